"""Slow forms of :mod:`mixmem.kernels.document_memberships`."""

from __future__ import annotations

import numpy as np


def document_rounds(indptr, indices, counts, first, last, alpha, topics, rounds, tol, documents):
    """EM rounds, document by document."""
    left = 0
    for d in range(first, last):
        here = slice(indptr[d], indptr[d + 1])
        table, count = topics[indices[here]], counts[here]
        change, tokens = count.sum() + 1, count.sum()
        for _ in range(rounds):
            shares = (documents[d] + alpha) * table
            new = count @ (shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-30))
            change = np.abs(new - documents[d]).sum()
            documents[d] = new
            if change <= tol * tokens:
                break
        left += bool(change > tol * tokens)
    return left


def spread_counts(indptr, indices, counts, first, last, alpha, topics, documents, moved):
    """Counts times shares in proportion to (n + alpha) topics."""
    for d in range(first, last):
        here = slice(indptr[d], indptr[d + 1])
        shares = (documents[d] + alpha) * topics[indices[here]]
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-30)
        moved[indptr[d] - indptr[first] : indptr[d + 1] - indptr[first]] = counts[here, None] * shares


def settle_documents(indptr, indices, counts, first, last, alpha, topics, rounds, moved):
    """Collapsed steps within each document, from shares in proportion to topics."""
    for d in range(first, last):
        here = slice(indptr[d], indptr[d + 1])
        table, count = topics[indices[here]], counts[here]
        mine = count[:, None] * table / table.sum(axis=1, keepdims=True)
        for _ in range(rounds):
            for e in range(len(count)):
                own = mine.sum(axis=0) + alpha - mine[e] * min(count[e], 1) / count[e]
                new = np.maximum(own * table[e], 0)
                mine[e] = count[e] * new / new.sum()
        moved[indptr[d] - indptr[first] : indptr[d + 1] - indptr[first]] = mine


def document_likelihood(indptr, indices, counts, first, last, memberships, topics, out):
    """Counts times log of what is expected."""
    for d in range(first, last):
        here = slice(indptr[d], indptr[d + 1])
        out[d] = counts[here] @ np.log(np.maximum(topics[indices[here]] @ memberships[d], 1e-30))


def expected_ratios(indptr, indices, counts, first, last, memberships, topics, ratios, slopes, likelihoods):
    """Counts over what is expected, and their sums."""
    for d in range(first, last):
        here = slice(indptr[d], indptr[d + 1])
        table = topics[indices[here]]
        expected = np.maximum(table @ memberships[d], 1e-300)
        ratios[here] = counts[here] / expected
        slopes[d] = ratios[here] @ table
        likelihoods[d] = counts[here] @ np.log(expected)
