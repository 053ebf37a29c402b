"""Collapsed sweeps over the nonzero counts of documents.

Documents are the rows of a matrix in CSR form: ``indptr`` (n + 1,), ``indices`` and ``counts`` (nonzeros,). A call
takes the documents first to last, whose nonzeros are looked at against word counts that stay as they are meanwhile;
what moved is put down per nonzero and added to the words afterwards, in the order of the nonzeros. So neither threads
nor chunks decide a bit.

Topics are padded to a multiple of 8 columns, the width of a vector; alpha and ``inverse`` are zero in those too many,
and so is everything that follows from them.
"""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel, vector_kernel

LANES = 8
"""Columns of topics come in multiples of this."""
TINY = np.float32(1e-30)
ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)


@vector_kernel
def collapsed_sweep(
    indptr, indices, counts, first, last, alpha, beta, by_word, push, words, inverse, documents, shares, moved, changes
):
    """Move the shares of the documents first to last by one collapsed variational step of order zero (CVB0).

    Shares go further than the step by ``push`` times its length, as far as they stay positive.

    alpha (k,), words (V, k) counts by topic, inverse (k,) one over the topics' totals; beta (V or 1, k), with
    ``by_word`` 1 or 0 to say which. documents (n, k) and shares (nonzeros, k) are changed, moved (nonzeros of the call,
    k) is set to the change of the counts, changes (n,) to the tokens that changed topic, on balance per document.
    """
    k = alpha.shape[0]
    new = np.empty(k, dtype=np.float32)
    own = np.empty(k, dtype=np.float32)
    begin = indptr[first]
    for d in range(first, last):
        for h in range(k):
            own[h] = documents[d, h] + alpha[h]
        for e in range(indptr[d], indptr[d + 1]):
            w, count = indices[e], counts[e]
            b, weight, total = w * by_word, min(count, ONE), ZERO
            for h in range(k):
                mine = weight * shares[e, h]
                new[h] = max((own[h] - mine) * (words[w, h] - mine + beta[b, h]) * inverse[h], ZERO)
            for h in range(k):
                total += new[h]
            scale, at, pushed = ONE / max(total, TINY), e - begin, ZERO
            for h in range(k):
                fresh = new[h] * scale
                fresh = max(fresh + push * (fresh - shares[e, h]), ZERO)
                new[h] = fresh
            for h in range(k):
                pushed += new[h]
            scale = ONE / max(pushed, TINY)
            for h in range(k):
                fresh = new[h] * scale
                step = count * (fresh - shares[e, h])
                moved[at, h] = step
                own[h] += step
                shares[e, h] = fresh
        moves = ZERO
        for h in range(k):
            moves += abs(own[h] - alpha[h] - documents[d, h])
        for h in range(k):
            documents[d, h] = own[h] - alpha[h]
        changes[d] = HALF * moves


@kernel
def add_to_words(indices, begin, end, moved, low, high, words):
    """Add moved (end - begin, k) to the counts of the words low to high, nonzero by nonzero."""
    for e in range(begin, end):
        w = indices[e]
        if low <= w < high:
            for h in range(words.shape[1]):
                words[w, h] += moved[e - begin, h]


@kernel
def topic_inverses(totals, beta_sums, out):
    """Set out (k,) to one over the topics' totals with beta; zero where a topic has no beta, in the padding."""
    for h in range(out.shape[0]):
        out[h] = np.float32(1.0 / (totals[h] + beta_sums[h])) if beta_sums[h] > 0.0 else ZERO


@kernel
def add_to_totals(documents, first, last, sign, totals):
    """Add the counts of the documents first to last to totals (k,), or take them off with sign -1."""
    for d in range(first, last):
        for h in range(totals.shape[0]):
            totals[h] += sign * np.float64(documents[d, h])


@vector_kernel
def left_out_likelihood(
    indptr, indices, counts, first, last, alpha, beta, by_word, words, inverse, documents, shares, out
):
    """Set out (n,) to the log-likelihood of each document's tokens, every token left out of the counts in its turn."""
    k = alpha.shape[0]
    concentration = 0.0
    for h in range(k):
        concentration += alpha[h]
    for d in range(first, last):
        likelihood, tokens = 0.0, 0.0
        for e in range(indptr[d], indptr[d + 1]):
            w, count = indices[e], counts[e]
            b, weight, total = w * by_word, min(count, ONE), ZERO
            for h in range(k):
                mine = weight * shares[e, h]
                own = documents[d, h] + alpha[h] - mine
                total += max(own * (words[w, h] - mine + beta[b, h]) * inverse[h], ZERO)
            likelihood += count * np.log(np.float64(max(total, TINY)))
            tokens += count
        if tokens > 0.0:
            likelihood -= tokens * np.log(max(tokens - 1.0, 0.0) + concentration)
        out[d] = likelihood
