"""Moments of distinct tokens, and topics from them.

Tokens of a document are exchangeable, so the words of two or of three distinct tokens have the moments of the paper's
distinct variables, whatever the words are. Their sums over documents need the nonzero counts only: for features f
(V, m) of words, a document with counts c and N tokens adds to the third moment

    (u u u - [S u]_3 + 2 Q) / (N (N - 1) (N - 2)),

u = sum_w c_w f_w, S = sum_w c_w f_w f_w, Q = sum_w c_w f_w f_w f_w, with [S u]_3 the sum of the three ways to place u:
what is taken off are triples in which a token stands twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixmem.data.documents import Documents
from mixmem.moments.dirichlet import correct_third
from mixmem.typing import Array

SHORTEST = 3
"""Tokens that a document must have to hold three distinct ones."""
CHUNK_CELLS = 4_000_000
OVERSAMPLING, POWER_ROUNDS = 10, 2


@dataclass(frozen=True)
class TokenMoments:
    """Hold raw moments of one, two and three distinct tokens in the space of m features of words.

    Attributes
    ----------
    first : (m,) array
        E[f(w_1)].
    second : (m, m) array
        E[f(w_1) f(w_2)'].
    third : (m, m, m) array
        E[f(w_1) x f(w_2) x f(w_3)].
    n_documents : int
        Documents of at least three tokens, over which the means are taken.
    """

    first: Array
    second: Array
    third: Array
    n_documents: int

    def __add__(self, other: TokenMoments) -> TokenMoments:
        """Return the moments of two sets of documents together; features must be the same."""
        total = self.n_documents + other.n_documents
        mine, theirs = self.n_documents / max(total, 1), other.n_documents / max(total, 1)
        return TokenMoments(
            mine * self.first + theirs * other.first,
            mine * self.second + theirs * other.second,
            mine * self.third + theirs * other.third,
            total,
        )


def token_moments(X: Any, features: Any = None) -> TokenMoments:
    """Return the raw moments of one, two and three distinct tokens, means over documents of at least three tokens.

    Parameters
    ----------
    X : sparse matrix or array (documents, words)
        Counts of words.
    features : (words, m) array or None
        Features f of words; None takes every word as a feature of its own, which is for small vocabularies.

    Returns
    -------
    TokenMoments

    Examples
    --------
    >>> token_moments([[2, 1]]).third[0, 0]  # of the six ordered triples of tokens, two have word 1 first and second
    array([0.        , 0.33333333])
    """
    corpus = X if isinstance(X, Documents) else Documents.of(sparse.csr_matrix(X))
    words = np.eye(corpus.n_words) if features is None else np.asarray(features, dtype=np.float64)
    return _Weighted(corpus).moments(words)


class _Weighted:
    """The counts of a corpus as sparse matrices, its short documents left out, with the weights of the three orders."""

    def __init__(self, corpus: Documents):
        rows = np.flatnonzero(corpus.lengths >= SHORTEST)
        kept = corpus if len(rows) == corpus.n_documents else corpus.take(rows)
        shape = (kept.n_documents, kept.n_words)
        self.counts = sparse.csr_matrix((kept.counts.astype(np.float64), kept.indices, kept.indptr), shape=shape)
        self.by_word = self.counts.T.tocsr()
        n, lengths = max(kept.n_documents, 1), kept.lengths
        self.one = 1.0 / (n * lengths)
        self.two = self.one / (lengths - 1.0)
        self.three = self.two / (lengths - 2.0)
        self.mean = np.asarray(self.by_word @ self.one)
        self.repeats = np.asarray(self.by_word @ self.two)

    def second_times(self, features: Array) -> Array:
        """Return E[w_1 w_2'] features, (V, m), the matrix never formed."""
        product = self.counts @ features
        product *= self.two[:, None]
        return np.asarray(self.by_word @ product - self.repeats[:, None] * features)

    def moments(self, features: Array) -> TokenMoments:
        """Return the raw moments in the space of the features (V, m)."""
        n, m = self.counts.shape[0], features.shape[1]
        totals = np.asarray(self.counts @ features)
        third = np.zeros((m * m, m))
        for at in range(0, n, step := max(1, CHUNK_CELLS // (m * m))):
            part = totals[at : at + step]
            third += _pairs(part).T @ (part * self.three[at : at + step, None])
        # Pairs of one token beside another, and one token three times, placed in three ways each.
        alone = (2.0 / 3.0) * np.asarray(self.by_word @ self.three)[:, None] * features
        beside = alone - self.by_word @ (totals * self.three[:, None])
        same = np.zeros((m * m, m))
        for at in range(0, len(features), step):
            same += _pairs(features[at : at + step]).T @ beside[at : at + step]
        placed = same.reshape(m, m, m)
        third = third.reshape(m, m, m) + placed + placed.transpose(0, 2, 1) + placed.transpose(2, 0, 1)
        return TokenMoments(features.T @ self.mean, features.T @ self.second_times(features), third, n)


def _pairs(values: Array) -> Array:
    """Return the products of pairs of columns, (rows, m * m)."""
    return np.asarray((values[:, :, None] * values[:, None, :]).reshape(len(values), -1))


@dataclass(frozen=True)
class TopicMoments:
    """Hold what the moments say of topics: topics (V, k) on the simplex, alpha (k,) and the eigenvalues found."""

    topics: Array
    alpha: Array
    strength: Array


def topics_from_moments(corpus: Documents, k: int, alpha0: float, rng: np.random.Generator) -> TopicMoments:
    """Return topics from moments of distinct tokens, formed for k features of words only.

    Words are scaled by one over the root of their frequency, or frequent ones would drown the rest.
    """
    weighted = _Weighted(corpus)
    scale, inverse = _scales(weighted.mean)
    values, vectors = _leading(weighted.second_times, scale, inverse, k, alpha0, rng)
    whiten = inverse[:, None] * vectors / np.sqrt(values)
    return _unwhitened(weighted.moments(whiten), scale[:, None] * vectors * np.sqrt(values), alpha0, rng)


def topics_of_moments(moments: TokenMoments, k: int, alpha0: float, rng: np.random.Generator) -> TopicMoments:
    """Return topics from moments in which every word is a feature of its own (:func:`token_moments`)."""
    scale, inverse = _scales(moments.first)
    values, vectors = _leading(lambda block: moments.second @ block, scale, inverse, k, alpha0, rng)
    w = inverse[:, None] * vectors / np.sqrt(values)
    third = np.einsum("uvw,ua,vb,wc->abc", moments.third, w, w, w, optimize=True)
    small = TokenMoments(w.T @ moments.first, w.T @ moments.second @ w, third, moments.n_documents)
    return _unwhitened(small, scale[:, None] * vectors * np.sqrt(values), alpha0, rng)


def _scales(mean: Array) -> tuple[Array, Array]:
    scale = np.sqrt(np.maximum(mean, 1e-300))
    return scale, np.where(mean > 0.0, 1.0 / scale, 0.0)


def _unwhitened(raw: TokenMoments, back: Array, alpha0: float, rng: np.random.Generator) -> TopicMoments:
    """Return topics from raw moments of whitened words; back (V, k) leads from whitened space to words."""
    third = correct_third(raw.third, (raw.second,) * 3, (raw.first,) * 3, alpha0)
    found = orthogonal_terms(third, rng)
    strength = np.einsum("abc,ah,bh,ch->h", third, found, found, found, optimize=True)
    topics = back @ found
    topics = np.maximum(topics * np.sign(topics.sum(axis=0)), 0.0)
    weights = (2.0 / ((alpha0 + 2.0) * np.maximum(np.abs(strength), 1e-6))) ** 2
    return TopicMoments(topics / np.maximum(topics.sum(axis=0), 1e-300), alpha0 * weights / weights.sum(), strength)


def _leading(
    times: Callable[[Array], Array], scale: Array, inverse: Array, k: int, alpha0: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the k largest eigenvalues of the corrected, scaled second moment, positive, and their vectors (V, k).

    ``times`` multiplies the raw second moment with a block of vectors.
    """
    share = alpha0 / (alpha0 + 1.0)

    def apply(block: Array) -> Array:
        product = inverse[:, None] * times(inverse[:, None] * block)
        return np.asarray(product - share * np.outer(scale, scale @ block))

    size = min(k + OVERSAMPLING, len(scale))
    basis = np.linalg.qr(apply(rng.standard_normal((len(scale), size))))[0]
    for _ in range(POWER_ROUNDS):
        basis = np.linalg.qr(apply(basis))[0]
    small = basis.T @ apply(basis)
    values, vectors = np.linalg.eigh(0.5 * (small + small.T))
    largest = np.maximum(values[::-1][:k], max(float(values.max(initial=0.0)), 1e-300) * 1e-9)
    return largest, basis @ vectors[:, ::-1][:, :k]


def orthogonal_terms(tensor: Array, rng: np.random.Generator, restarts: int = 1, rounds: int = 40) -> Array:
    """Return orthonormal columns v (k, k) that make sum_h T(v_h, v_h, v_h)^2 large, for a symmetric tensor (k, k, k).

    All columns take a power step together and are made orthonormal again: by QR first, in which the columns that are
    found early hold the others off (Sharan and Valiant), then by the polar factor, which favours none.
    """
    k = len(tensor)
    flat = tensor.reshape(k * k, k)
    best, largest = np.eye(k), -np.inf
    for _ in range(restarts):
        v = np.linalg.qr(rng.standard_normal((k, k)))[0]
        for at in range(rounds):
            image = _power(flat, v)
            if at < rounds // 2:
                v = np.linalg.qr(image)[0]
            else:
                left, _, right = np.linalg.svd(image)
                v = left @ right
        strength = np.einsum("bh,bh->h", _power(flat, v), v)
        if (size := float((strength**2).sum())) > largest:
            best, largest = v * np.where(strength < 0.0, -1.0, 1.0), size
    return best


def _power(flat: Array, v: Array) -> Array:
    """Return T(v_h, ., v_h) for every column, (k, k); flat is the tensor as (k * k, k)."""
    k = len(v)
    return np.asarray(np.einsum("abh,ah->bh", (flat @ v).reshape(k, k, k), v))
