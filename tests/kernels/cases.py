"""Small random arguments for kernels, and the comparison of a kernel with its slow form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem import simulate_documents
from mixmem.data.documents import Documents
from mixmem.kernels.documents import topic_inverses

K, PADDED = 5, 8
"""Topics of a state, and as many as kernels see."""


@dataclass(frozen=True)
class Cells:
    """A coded table; ``starts`` are where a column's codes begin among ``n_rows`` rows of a table of likelihoods."""

    codes: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    absent: np.ndarray
    n_rows: int

    def likelihoods(self, k, seed=0):
        """Return a table (rows, k) of numbers from 1e-3 to 1, in a column's rows of codes and of missing alike."""
        return np.random.default_rng(seed).uniform(1e-3, 1.0, (self.n_rows, k))


def random_cells(n, levels, *, missing=0.0, seed=0, dtype=np.uint8):
    """Return n rows of random codes; a share of cells is missing, which is the code after the column's last level."""
    rng = np.random.default_rng(seed)
    sizes = np.array(levels)
    codes = rng.integers(0, sizes, (n, len(levels)))
    codes[rng.random(codes.shape) < missing] = -1
    if missing and n > 2:
        codes[1] = -1  # a row with nothing observed
    codes = np.where(codes < 0, sizes, codes).astype(dtype)
    starts = np.cumsum(sizes + 1) - (sizes + 1)
    return Cells(codes, starts, sizes, sizes if missing else np.full(len(levels), -1), int((sizes + 1).sum()))


def empty(*shape):
    """Return an array for a kernel to fill: what it leaves out stays nan."""
    return np.full(shape, np.nan)


def agree(kernel, form, *arguments, rtol=1e-10, atol=1e-10):
    """Call a kernel and its slow form on copies of the arguments and compare what they return and what they fill.

    Whole numbers must be equal. Returns the arguments as the kernel left them.
    """
    first, second = (
        [np.copy(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments]
        for _ in range(2)
    )
    returned, expected = kernel(*first), form(*second)
    if returned is not None or expected is not None:
        assert_close(returned, expected, rtol, atol, "returned")
    for place, (one, other) in enumerate(zip(first, second, strict=True)):
        if isinstance(one, np.ndarray):
            assert_close(one, other, rtol, atol, f"argument {place}")
    return first


def assert_close(one, other, rtol, atol, what):
    """Compare two results, or tuples of them."""
    if isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_close(a, b, rtol, atol, what)
        return
    if np.asarray(one).dtype.kind in "iub":
        np.testing.assert_array_equal(one, other, err_msg=what)
    else:
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=what)


def topic_state(seed=0, n=12, n_words=15, by_word=False):
    """Return documents and a state of counts by topic, as in the middle of a fit."""
    rng = np.random.default_rng(seed)
    corpus = Documents.of(simulate_documents(n, n_words, 3, length=20, random_state=rng).counts)
    shares = np.zeros((corpus.n_nonzeros, PADDED), dtype=np.float32)
    shares[:, :K] = rng.dirichlet(np.ones(K), corpus.n_nonzeros)
    weighted = shares * corpus.counts[:, None]
    words, own = np.zeros((n_words, PADDED), np.float32), np.zeros((n, PADDED), np.float32)
    np.add.at(words, corpus.indices, weighted)
    np.add.at(own, np.repeat(np.arange(n), np.diff(corpus.indptr)), weighted)
    alpha, beta = np.zeros(PADDED, np.float32), np.zeros((n_words if by_word else 1, PADDED), np.float32)
    alpha[:K], beta[:, :K] = rng.random(K), rng.random((len(beta), K))
    topics = np.zeros((n_words, PADDED), np.float32)
    topics[:, :K] = rng.dirichlet(np.ones(n_words), K).T
    sums = beta.sum(axis=0, dtype=np.float64) * (1 if by_word else n_words)
    inverse = np.zeros(PADDED, np.float32)
    topic_inverses(own.sum(axis=0, dtype=np.float64), sums, inverse)
    return corpus, shares, words, own, alpha, beta, topics, inverse, sums


def csr(corpus):
    """Return the arrays that kernels of documents begin with."""
    return corpus.indptr, corpus.indices, corpus.counts
