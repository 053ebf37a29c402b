"""Drawn tokens against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import reference, tokens
from tests.kernels.cases import PADDED, K, agree, topic_state

ROUNDING = {"rtol": 2e-5, "atol": 2e-5}


@pytest.mark.parametrize("by_word", [False, True])
def test_tokens_are_drawn_and_moved(by_word):
    corpus, _, _, _, alpha, beta, _, inverse, _ = topic_state(by_word=by_word)
    rng = np.random.default_rng(1)
    starts = np.concatenate([[0], np.cumsum(corpus.counts.astype(np.int64))])
    topics = rng.integers(0, K, starts[-1]).astype(np.uint16)
    nonzero = np.repeat(np.arange(corpus.n_nonzeros), corpus.counts.astype(np.int64))
    document = np.repeat(np.arange(corpus.n_documents), np.diff(corpus.indptr))[nonzero]
    own, words = np.zeros((corpus.n_documents, PADDED), np.float32), np.zeros((corpus.n_words, PADDED), np.float32)
    np.add.at(own, (document, topics), 1)
    np.add.at(words, (corpus.indices[nonzero], topics), 1)
    filled = agree(
        tokens.draw_tokens, reference.draw_tokens, corpus.indptr, corpus.indices, starts, 0, corpus.n_documents, alpha,
        beta, int(by_word), words, inverse, 7, 3, own, topics, np.zeros_like(topics), **ROUNDING,
    )  # fmt: skip
    drawn = filled[-1]
    assert drawn.max() < K
    after = agree(
        tokens.move_tokens,
        reference.move_tokens,
        corpus.indices,
        starts,
        0,
        corpus.n_nonzeros,
        topics,
        drawn,
        words,
        **ROUNDING,
    )
    assert (after[-1].sum(axis=1) == words.sum(axis=1)).all()


def test_tokens_begin_with_the_shares_of_their_nonzeros():
    corpus, shares, words, own, *_ = topic_state()
    starts = np.concatenate([[0], np.cumsum(corpus.counts.astype(np.int64))])
    filled = agree(
        tokens.begin_tokens, reference.begin_tokens, corpus.indptr, corpus.indices, starts, shares, 3,
        np.zeros(starts[-1], np.uint16), np.zeros_like(own), np.zeros_like(words), **ROUNDING,
    )  # fmt: skip
    assert filled[-3].max() < K
    np.testing.assert_array_equal(filled[-2].sum(axis=1), corpus.lengths)
