"""Topics of single tokens, drawn each given all others (collapsed Gibbs sampling)."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel, vector_kernel
from mixmem.kernels.documents import LANES, ONE, ZERO
from mixmem.kernels.streams import mixed, stream, unit


@kernel
def begin_tokens(indptr, indices, starts, shares, seed, topics, documents, words):
    """Draw a first topic for every token from the shares (nonzeros, k) of its nonzero, and count them.

    starts (nonzeros + 1,) is where a nonzero's tokens begin among all tokens; topics (tokens,) is set, documents (n, k)
    and words (V, k) are added to. Every document has a stream of random numbers of its own.
    """
    for d in range(indptr.shape[0] - 1):
        state = stream(seed, 0, d)
        for e in range(indptr[d], indptr[d + 1]):
            for t in range(starts[e], starts[e + 1]):
                state, bits = mixed(state)
                target = np.float32(unit(bits))
                new = 0
                for h in range(shares.shape[1]):
                    if shares[e, h] > ZERO:
                        new = h
                        target -= shares[e, h]
                        if target < ZERO:
                            break
                topics[t] = new
                documents[d, new] += ONE
                words[indices[e], new] += ONE


@vector_kernel
def draw_tokens(
    indptr, indices, starts, first, last, alpha, beta, by_word, words, inverse, seed, step, documents, topics, drawn
):
    """Draw the topics of the tokens of the documents first to last, each given all others (collapsed Gibbs).

    starts (nonzeros + 1,) is where a nonzero's tokens begin among all tokens; topics (tokens,) holds what was drawn
    before, drawn (tokens,) is set to what is drawn now. documents (n, k) is kept up to date. Every document has a
    stream of random numbers of its own. A topic is found by its lane, then within the lane.
    """
    k = alpha.shape[0]
    weights = np.empty(k, dtype=np.float32)
    lanes = np.empty(LANES, dtype=np.float32)
    own = np.empty(k, dtype=np.float32)
    for d in range(first, last):
        state = stream(seed, step, d)
        for h in range(k):
            own[h] = documents[d, h] + alpha[h]
        for e in range(indptr[d], indptr[d + 1]):
            w = indices[e]
            b = w * by_word
            for t in range(starts[e], starts[e + 1]):
                old = topics[t]
                own[old] -= ONE
                for h in range(k):
                    weights[h] = own[h] * (words[w, h] + beta[b, h]) * inverse[h]
                less = max(words[w, old] - ONE, ZERO) + beta[b, old]
                weights[old] = own[old] * less * inverse[old]
                for j in range(LANES):
                    lanes[j] = weights[j]
                for g in range(LANES, k, LANES):
                    for j in range(LANES):
                        lanes[j] += weights[g + j]
                total = ZERO
                for j in range(LANES):
                    total += lanes[j]
                state, bits = mixed(state)
                target = np.float32(unit(bits)) * total
                new = int(old)  # stays only if rounding leaves nothing to choose from
                for j in range(LANES):
                    if target < lanes[j]:
                        new = j
                        while new + LANES < k and target >= weights[new]:
                            target -= weights[new]
                            new += LANES
                        break
                    target -= lanes[j]
                if inverse[new] == ZERO:
                    new = int(old)
                own[new] += ONE
                drawn[t] = new
        for h in range(k):
            documents[d, h] = own[h] - alpha[h]


@kernel
def move_tokens(indices, starts, begin, end, topics, drawn, words):
    """Move the tokens of the nonzeros begin to end from the topics they had to those drawn, in words (V, k)."""
    for e in range(begin, end):
        for t in range(starts[e], starts[e + 1]):
            if drawn[t] != topics[t]:
                words[indices[e], topics[t]] -= ONE
                words[indices[e], drawn[t]] += ONE
                topics[t] = drawn[t]
