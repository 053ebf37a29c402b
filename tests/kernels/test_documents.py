"""Collapsed sweeps against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import documents, reference
from tests.kernels.cases import K, agree, csr, topic_state

ROUNDING = {"rtol": 2e-5, "atol": 2e-5}


@pytest.mark.parametrize("by_word", [False, True])
@pytest.mark.parametrize("push", [0.0, 0.9])
def test_collapsed_sweep(by_word, push):
    corpus, shares, words, own, alpha, beta, _, inverse, _ = topic_state(by_word=by_word)
    n, moved = corpus.n_documents, np.zeros_like(shares)
    given = (alpha, beta, int(by_word), np.float32(push))
    end = corpus.indptr[9] - corpus.indptr[2]
    filled = agree(
        documents.collapsed_sweep, reference.collapsed_sweep, *csr(corpus), 2, 9, *given, words, inverse, own, shares,
        moved[:end], np.zeros(n), **ROUNDING,
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


def test_where_arrays_lie_moves_no_bit():
    """Buffers of a kernel may lie just behind those it is given: with arrays of other sizes freed in between, do."""
    corpus, shares, words, own, alpha, beta, _, inverse, _ = topic_state()
    sizes, held, seen = np.random.default_rng(0).integers(1, 40, 8000), [], set()
    for turn in range(400):
        held = held[10:] if len(held) > 200 else held
        held += [np.empty(size, dtype=np.float32) for size in sizes[20 * turn : 20 * turn + 20]][:: 1 + turn % 3]
        moved, new = np.empty_like(shares), shares.copy()
        documents.collapsed_sweep(
            *csr(corpus), 0, corpus.n_documents, alpha.copy(), beta.copy(), 0, np.float32(0.9), words, inverse.copy(),
            own.copy(), new, moved, np.zeros(corpus.n_documents),
        )  # fmt: skip
        seen.add(new.tobytes())
    assert len(seen) == 1
