"""Slow forms of :mod:`mixmem.kernels.tokens`."""

from __future__ import annotations

import numpy as np

from mixmem.kernels.reference.streams import mixed, stream, unit


def begin_tokens(indptr, indices, starts, shares, seed, topics, documents, words):
    """Draws by the inverse of the cumulative shares."""
    for d in range(len(indptr) - 1):
        state = stream(seed, 0, d)
        for e in range(indptr[d], indptr[d + 1]):
            sums = np.cumsum(shares[e])
            for t in range(starts[e], starts[e + 1]):
                state, bits = mixed(state)
                topics[t] = np.searchsorted(sums, unit(bits), side="right")
                documents[d, topics[t]] += 1
                words[indices[e], topics[t]] += 1


def draw_tokens(
    indptr, indices, starts, first, last, alpha, beta, by_word, words, inverse, seed, step, documents, topics, drawn
):
    """Draws by the inverse of the cumulative weights, topics in the order of their lanes."""
    k = len(alpha)
    order = np.arange(k).reshape(-1, 8).T.ravel()
    for d in range(first, last):
        state = stream(seed, step, d)
        for e in range(indptr[d], indptr[d + 1]):
            w = indices[e]
            for t in range(starts[e], starts[e + 1]):
                documents[d, topics[t]] -= 1
                others = words[w].copy()
                others[topics[t]] = max(others[topics[t]] - 1, 0)
                weights = (documents[d] + alpha) * (others + beta[w * by_word]) * inverse
                sums = np.cumsum(weights[order])
                state, bits = mixed(state)
                drawn[t] = order[np.searchsorted(sums, unit(bits) * sums[-1], side="right")]
                documents[d, drawn[t]] += 1


def move_tokens(indices, starts, begin, end, topics, drawn, words):
    """Tokens leave the topics they had for those drawn."""
    for e in range(begin, end):
        for t in range(starts[e], starts[e + 1]):
            words[indices[e], topics[t]] -= 1
            words[indices[e], drawn[t]] += 1
            topics[t] = drawn[t]
