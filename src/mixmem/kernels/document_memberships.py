"""Memberships of documents in topics that are given.

Documents are the rows of a matrix in CSR form: ``indptr`` (n + 1,), ``indices`` and ``counts`` (nonzeros,); a call
takes the documents first to last.
"""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import vector_kernel
from mixmem.kernels.documents import ONE, TINY, ZERO


@vector_kernel
def document_rounds(indptr, indices, counts, first, last, alpha, topics, rounds, tol, documents):
    """Find the counts by topic of the documents first to last, topics (V, k) given, by EM rounds from where they are.

    documents (n, k) is changed: n_h = sum_w c_w r_wh with r_wh in proportion to (n_h + alpha_h) topics_wh. Rounds end
    when the counts of a document move by less than tol times its tokens. Returns the number of documents that did not
    come to rest.
    """
    k = alpha.shape[0]
    own = np.empty(k, dtype=np.float32)
    new = np.empty(k, dtype=np.float32)
    left = 0
    for d in range(first, last):
        tokens = ZERO
        for e in range(indptr[d], indptr[d + 1]):
            tokens += counts[e]
        change = tokens + ONE
        for _ in range(rounds):
            for h in range(k):
                own[h] = documents[d, h] + alpha[h]
                new[h] = ZERO
            for e in range(indptr[d], indptr[d + 1]):
                w, total = indices[e], ZERO
                for h in range(k):
                    total += own[h] * topics[w, h]
                scale = counts[e] / max(total, TINY)
                for h in range(k):
                    new[h] += scale * topics[w, h]
            change = ZERO
            for h in range(k):
                change += abs(own[h] * new[h] - documents[d, h])
            for h in range(k):
                documents[d, h] = own[h] * new[h]
            if change <= tol * tokens:
                break
        if change > tol * tokens:
            left += 1
    return left


@vector_kernel
def spread_counts(indptr, indices, counts, first, last, alpha, topics, documents, moved):
    """Set moved (nonzeros of the call, k) to the counts of nonzeros by topic, memberships and topics given."""
    k = alpha.shape[0]
    begin = indptr[first]
    for d in range(first, last):
        for e in range(indptr[d], indptr[d + 1]):
            w, total, at = indices[e], ZERO, e - begin
            for h in range(k):
                moved[at, h] = (documents[d, h] + alpha[h]) * topics[w, h]
            for h in range(k):
                total += moved[at, h]
            scale = counts[e] / max(total, TINY)
            for h in range(k):
                moved[at, h] *= scale


@vector_kernel
def settle_documents(indptr, indices, counts, first, last, alpha, topics, rounds, moved):
    """Set moved (nonzeros of the call, k) to the counts by topic of the documents first to last, each settled alone.

    Rounds of collapsed steps with topics (V, k) as they are: a nonzero's shares are in proportion to topics_wh times
    n_h + alpha_h, n_h the document's counts by topic without the token itself. Shares begin in proportion to topics.
    """
    k = alpha.shape[0]
    own = np.empty(k, dtype=np.float32)
    new = np.empty(k, dtype=np.float32)
    begin = indptr[first]
    for d in range(first, last):
        for h in range(k):
            own[h] = alpha[h]
        for turn in range(rounds + 1):
            for e in range(indptr[d], indptr[d + 1]):
                w, count, at, total = indices[e], counts[e], e - begin, ZERO
                part = min(count, ONE) / count
                for h in range(k):
                    new[h] = max((own[h] - part * moved[at, h]) * topics[w, h], ZERO) if turn else topics[w, h]
                for h in range(k):
                    total += new[h]
                scale = count / max(total, TINY)
                for h in range(k):
                    fresh = new[h] * scale
                    own[h] += fresh - (moved[at, h] if turn > 0 else ZERO)
                    moved[at, h] = fresh


@vector_kernel
def document_likelihood(indptr, indices, counts, first, last, memberships, topics, out):
    """Set out (n,) to sum_w c_w log sum_h memberships_dh topics_wh of the documents first to last."""
    for d in range(first, last):
        likelihood = 0.0
        for e in range(indptr[d], indptr[d + 1]):
            w, total = indices[e], ZERO
            for h in range(memberships.shape[1]):
                total += memberships[d, h] * topics[w, h]
            likelihood += counts[e] * np.log(np.float64(max(total, TINY)))
        out[d] = likelihood


@vector_kernel
def expected_ratios(indptr, indices, counts, first, last, memberships, topics, ratios, slopes, likelihoods):
    """Set what an EM step without priors needs of the documents first to last, all in float64.

    ratios (nonzeros,) are counts over what is expected per token, sum_h x_dh topics_wh; slopes (n, k) their sums over a
    document's words, weighted by topics; likelihoods (n,) sums of counts times the logarithm of what is expected.
    """
    k = topics.shape[1]
    for d in range(first, last):
        likelihood = 0.0
        for h in range(k):
            slopes[d, h] = 0.0
        for e in range(indptr[d], indptr[d + 1]):
            w, total = indices[e], 0.0
            for h in range(k):
                total += memberships[d, h] * topics[w, h]
            total = max(total, 1e-300)
            likelihood += counts[e] * np.log(total)
            ratio = counts[e] / total
            ratios[e] = ratio
            for h in range(k):
                slopes[d, h] += ratio * topics[w, h]
        likelihoods[d] = likelihood
