"""Memberships of documents against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import document_memberships, reference
from tests.kernels.cases import K, agree, csr, topic_state

ROUNDING, LOOSE = {"rtol": 2e-5, "atol": 2e-5}, {"rtol": 1e-3, "atol": 1e-3}


@pytest.mark.parametrize("rounds", [1, 30])
def test_memberships_of_documents(rounds):
    corpus, shares, _, own, alpha, _, topics, _, _ = topic_state()
    n, moved = corpus.n_documents, np.zeros_like(shares)
    agree(
        document_memberships.document_rounds, reference.document_rounds, *csr(corpus), 1, n, alpha, topics, rounds,
        1e-2, own, **LOOSE,
    )  # fmt: skip
    agree(
        document_memberships.spread_counts,
        reference.spread_counts,
        *csr(corpus),
        0,
        n,
        alpha,
        topics,
        own,
        moved,
        **ROUNDING,
    )
    agree(
        document_memberships.settle_documents, reference.settle_documents, *csr(corpus), 0, n, alpha, topics, rounds,
        moved, **LOOSE,
    )  # fmt: skip
    x = (own + alpha) / (own + alpha).sum(axis=1, keepdims=True)
    agree(
        document_memberships.document_likelihood, reference.document_likelihood, *csr(corpus), 0, n, x, topics,
        np.zeros(n), **ROUNDING,
    )  # fmt: skip
    exact = (corpus.counts.astype(float), x[:, :K].astype(float), topics[:, :K].astype(float))
    agree(
        document_memberships.expected_ratios, reference.expected_ratios, corpus.indptr, corpus.indices, exact[0], 0, n,
        exact[1], exact[2], np.zeros(corpus.n_nonzeros), np.zeros((n, K)), np.zeros(n), rtol=1e-9,
    )  # fmt: skip
