"""Collapsed sweeps against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import documents, reference
from tests.kernels.cases import K, agree, csr, topic_state

ROUNDING, LOOSE = {"rtol": 2e-5, "atol": 2e-5}, {"rtol": 1e-3, "atol": 1e-3}


@pytest.mark.parametrize("by_word", [False, True])
@pytest.mark.parametrize("push", [0.0, 0.9])
def test_collapsed_sweep(by_word, push):
    corpus, shares, words, own, alpha, beta, _, inverse, sums = topic_state(by_word=by_word)
    n, moved = corpus.n_documents, np.zeros_like(shares)
    given = (alpha, beta, int(by_word), np.float32(push))
    end = corpus.indptr[9] - corpus.indptr[2]
    agree(
        documents.collapsed_sweep, reference.collapsed_sweep, *csr(corpus), 2, 9, *given, words, inverse, own, shares,
        moved[:end], np.zeros(n), **ROUNDING,
    )  # fmt: skip
    borders = np.array([0, 5, 5, n])
    totals = own.sum(axis=0, dtype=np.float64)
    filled = agree(
        documents.collapsed_sweeps, reference.collapsed_sweeps, *csr(corpus), borders, *given, sums, words, totals, own,
        shares, moved, np.zeros(n), **LOOSE,
    )  # fmt: skip
    assert filled[-3][:, K:].max() == 0.0  # nothing reaches the padding
    agree(
        documents.left_out_likelihood, reference.left_out_likelihood, *csr(corpus), 0, n, *given[:3], words, inverse,
        own, shares, np.zeros(n), **ROUNDING,
    )  # fmt: skip


def test_sums_of_words_and_totals():
    corpus, shares, words, own, _, _, _, _, sums = topic_state()
    agree(documents.add_to_words, reference.add_to_words, corpus.indices, 3, 30, shares[3:30], 4, 11, words, **ROUNDING)
    agree(
        documents.add_to_totals, reference.add_to_totals, own, 2, 7, -1.0, own.sum(axis=0, dtype=np.float64), **ROUNDING
    )
    agree(documents.topic_inverses, reference.topic_inverses, np.arange(8.0), sums, np.zeros(8, np.float32), **ROUNDING)
