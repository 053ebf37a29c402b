"""Concentrations of memberships and of topics from whole counts, by Minka's fixed point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixmem.typing import Array


def learned_alpha(documents: NDArray[Any], alpha: Array, rounds: int = 5) -> Array:
    """Return alpha by Minka's fixed point from whole counts of documents by topic (n, k)."""
    whole = np.rint(documents).astype(np.int64)
    longest = int(whole.sum(axis=1).max(initial=0))
    above = _above(whole, longest)
    tokens = _above(whole.sum(axis=1, keepdims=True), longest)[0]
    steps = np.arange(longest)
    for _ in range(rounds):
        up = (above / (alpha[:, None] + steps)).sum(axis=1)
        down = (tokens / (alpha.sum() + steps)).sum()
        alpha = np.maximum(alpha * up / max(down, 1e-300), 1e-5)
    return alpha


def _above(whole: NDArray[np.int64], longest: int) -> Array:
    """Return how many entries of each column exceed 0, 1, …, (k, longest)."""
    k = whole.shape[1]
    held = np.bincount((whole + np.arange(k) * (longest + 1)).ravel(), minlength=k * (longest + 1))
    tails = np.cumsum(held.reshape(k, longest + 1)[:, ::-1], axis=1)[:, ::-1]
    return tails[:, 1:].astype(np.float64)


def learned_beta(words: NDArray[Any], beta: float, rounds: int = 5) -> float:
    """Return a symmetric beta by Minka's fixed point from whole counts of words by topic (V, k)."""
    from scipy.special import digamma

    whole = np.rint(words).astype(np.int64)
    totals, n_words = whole.sum(axis=0), len(whole)
    largest = int(whole.max(initial=0))
    above = _above(whole.reshape(-1, 1), largest)[0]
    steps = np.arange(largest)
    for _ in range(rounds):
        up = (above / (beta + steps)).sum()
        down = n_words * (digamma(totals + n_words * beta) - digamma(n_words * beta)).sum()
        beta = float(np.clip(beta * up / max(down, 1e-300), 1e-4, 10.0))
    return beta
