"""Slow forms of :mod:`mixmem.kernels.documents`."""

from __future__ import annotations

import numpy as np


def _left(documents, shares, weight, alpha, words, beta, inverse):
    """Weights of topics for a token that is left out of the counts."""
    mine = weight * shares
    return np.maximum((documents + alpha - mine) * (words - mine + beta) * inverse, 0)


def collapsed_sweep(
    indptr, indices, counts, first, last, alpha, beta, by_word, push, words, inverse, documents, shares, moved, changes
):
    """Shares of every nonzero in turn, its own part taken off, and further by ``push``."""
    for d in range(first, last):
        before = documents[d].copy()
        for e in range(indptr[d], indptr[d + 1]):
            w = indices[e]
            new = _left(documents[d], shares[e], min(counts[e], 1), alpha, words[w], beta[w * by_word], inverse)
            new = new / new.sum()
            new = np.maximum(new + push * (new - shares[e]), 0)
            new = new / new.sum()
            moved[e - indptr[first]] = counts[e] * (new - shares[e])
            documents[d] += counts[e] * (new - shares[e])
            shares[e] = new
        changes[d] = 0.5 * np.abs(documents[d] - before).sum()


def add_to_words(indices, begin, end, moved, low, high, words):
    """Sums by word."""
    for e in range(begin, end):
        if low <= indices[e] < high:
            words[indices[e]] += moved[e - begin]


def topic_inverses(totals, beta_sums, out):
    """One over the totals with beta, zero without beta."""
    out[:] = np.where(beta_sums > 0, 1 / np.where(beta_sums > 0, totals + beta_sums, 1), 0)


def add_to_totals(documents, first, last, sign, totals):
    """Sums over documents."""
    totals += sign * documents[first:last].sum(axis=0, dtype=np.float64)


def left_out_likelihood(
    indptr, indices, counts, first, last, alpha, beta, by_word, words, inverse, documents, shares, out
):
    """Log of the weights' sums over tokens, less that of the document's own total."""
    for d in range(first, last):
        here = slice(indptr[d], indptr[d + 1])
        value = 0.0
        for e in range(indptr[d], indptr[d + 1]):
            w = indices[e]
            weights = _left(documents[d], shares[e], min(counts[e], 1), alpha, words[w], beta[w * by_word], inverse)
            value += counts[e] * np.log(np.float64(weights.sum()))
        tokens = float(counts[here].sum())
        out[d] = value - (tokens * np.log(max(tokens - 1.0, 0.0) + float(alpha.sum())) if tokens else 0.0)
