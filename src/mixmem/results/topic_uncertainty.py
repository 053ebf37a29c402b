"""Standard errors of topics, and in which words each differs from all others.

Memberships and topics give every token its shares r in the topics. The information of a word's log-probabilities in
the k topics is the sum over its tokens of r r', a (k, k) matrix, and the prior adds beta on the diagonal: tokens that
could be of two topics say less of either. Memberships are taken as known.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from mixmem.data.documents import Documents
from mixmem.typing import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

CHUNK_CELLS = 20_000_000


def word_covariances(corpus: Documents, topics: Array, memberships: Array, beta: float) -> Array:
    """Return the covariances (V, k, k) of the logarithms of a word's probabilities in the topics, (V, k)."""
    k = topics.shape[1]
    shape = (corpus.n_documents, corpus.n_words)
    by_word = sparse.csr_matrix((corpus.counts.astype(np.float64), corpus.indices, corpus.indptr), shape=shape).tocsc()
    information = np.zeros((corpus.n_words, k, k))
    information[:, np.arange(k), np.arange(k)] = max(beta, 1e-3)
    step = max(1, CHUNK_CELLS // (k * k))
    words = np.repeat(np.arange(corpus.n_words), np.diff(by_word.indptr))
    for at in range(0, len(words), step):
        part = slice(at, at + step)
        shares = memberships[by_word.indices[part]] * topics[words[part]]
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        squares = (by_word.data[part, None] * shares)[:, :, None] * shares[:, None, :]
        own, first = np.unique(words[part], return_index=True)
        information[own] += np.add.reduceat(squares, first, axis=0)
    return np.asarray(np.linalg.inv(information))


def interval_table(topics: Array, covariances: Array, words: Sequence[str], level: float) -> pd.DataFrame:
    """Return topic (from 1), word, estimate, standard_error, lower, upper of probabilities (V, k)."""
    import pandas as pd

    n_words, k = topics.shape
    errors = np.sqrt(covariances[:, np.arange(k), np.arange(k)])
    wide = NormalDist().inv_cdf(0.5 + 0.5 * level)
    return pd.DataFrame({
        "topic": np.repeat(np.arange(1, k + 1), n_words),
        "word": list(words) * k,
        "estimate": topics.T.ravel(),
        "standard_error": (topics * errors).T.ravel(),
        "lower": (topics * np.exp(-wide * errors)).T.ravel(),
        "upper": np.minimum(topics * np.exp(wide * errors), 1.0).T.ravel(),
    })  # fmt: skip


def difference_table(topics: Array, covariances: Array, words: Sequence[str], level: float) -> pd.DataFrame:
    """Return how each word differs between a topic and the other topic that is nearest in it.

    topic (from 1), word, probability, versus (the other topic), log2_fold_change, lower, upper, z; the words that are
    surest to be more frequent come first within a topic.
    """
    import pandas as pd

    n_words, k = topics.shape
    logs, wide = np.log(np.maximum(topics, 1e-300)), NormalDist().inv_cdf(0.5 + 0.5 * level)
    frames = []
    for h in range(k):
        others = np.array([g for g in range(k) if g != h])
        change = logs[:, [h]] - logs[:, others]
        nearest = np.abs(change).argmin(axis=1)
        g = others[nearest]
        rows = np.arange(n_words)
        variance = covariances[rows, h, h] + covariances[rows, g, g] - 2.0 * covariances[rows, h, g]
        error = np.sqrt(np.maximum(variance, 1e-300)) / np.log(2.0)
        fold = change[rows, nearest] / np.log(2.0)
        frame = pd.DataFrame({
            "topic": h + 1,
            "word": list(words),
            "probability": topics[:, h],
            "versus": g + 1,
            "log2_fold_change": fold,
            "lower": fold - wide * error,
            "upper": fold + wide * error,
            "z": fold / error,
        })  # fmt: skip
        frames.append(frame.sort_values("z", ascending=False, kind="stable"))
    return pd.concat(frames, ignore_index=True)
