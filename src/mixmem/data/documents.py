"""Documents as counts of words: what topic models are fitted to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixmem.typing import Array

MOST_IN_BATCH, BATCHES = 262_144, 64
"""Nonzeros of a batch at most, and batches of a corpus at least; part of the last bits, so they are fixed."""
DOCUMENT_BLOCK = 65_536
"""Documents that are passed over together where not all can be held; part of the last bits, too."""


@dataclass(frozen=True)
class Documents:
    """Hold counts of words in documents: a matrix in CSR form, its indices sorted within every document.

    Attributes
    ----------
    indptr : (n + 1,) array of integers
    indices : (nonzeros,) array of integers
        Word of every nonzero.
    counts : (nonzeros,) array of float32
    n_words : int
    of_texts : bool
        Whether words were counted in texts, so that rows are documents for sure.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    counts: NDArray[np.float32]
    n_words: int
    of_texts: bool = False

    @classmethod
    def of(cls, matrix: Any) -> Documents:
        """Return the documents of a scipy sparse matrix or array (documents, words) without negative entries."""
        rows = matrix.tocsr()
        if not rows.has_canonical_format or (rows.data == 0).any():
            rows = rows.copy()
            rows.sum_duplicates()
            rows.eliminate_zeros()
        return cls(
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int32),
            rows.data.astype(np.float32),
            int(rows.shape[1]),
        )

    @classmethod
    def joined(cls, parts: Sequence[Documents]) -> Documents:
        """Return the documents of several corpora of the same words, one after the other."""
        if len(parts) == 1:
            return parts[0]
        begins = np.cumsum([0, *(part.n_nonzeros for part in parts)])
        starts = [part.indptr[:-1] + begin for part, begin in zip(parts, begins[:-1], strict=True)]
        return cls(
            np.concatenate([*starts, begins[-1:]]).astype(np.int64),
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.counts for part in parts]),
            parts[0].n_words,
            all(part.of_texts for part in parts),
        )

    def part(self, first: int, last: int) -> Documents:
        """Return documents first to last, without a copy of their counts."""
        begin, end = int(self.indptr[first]), int(self.indptr[last])
        own = self.indptr[first : last + 1] - begin
        return replace(self, indptr=own, indices=self.indices[begin:end], counts=self.counts[begin:end])

    @property
    def n_blocks(self) -> int:
        """Return the number of blocks."""
        return -(-self.n_documents // DOCUMENT_BLOCK)

    def blocks(self) -> Iterator[Documents]:
        """Yield the documents by blocks of a fixed number."""
        for first in range(0, self.n_documents, DOCUMENT_BLOCK):
            yield self.part(first, min(self.n_documents, first + DOCUMENT_BLOCK))

    @property
    def n_documents(self) -> int:
        """Return the number of documents."""
        return len(self.indptr) - 1

    @property
    def n_nonzeros(self) -> int:
        """Return the number of counts that are not zero."""
        return len(self.indices)

    @cached_property
    def lengths(self) -> Array:
        """Return the tokens of every document, (n,)."""
        sums = np.concatenate([[0.0], np.cumsum(self.counts, dtype=np.float64)])
        return np.asarray(sums[self.indptr[1:]] - sums[self.indptr[:-1]])

    @cached_property
    def word_counts(self) -> Array:
        """Return the tokens of every word, (V,)."""
        return np.bincount(self.indices, weights=self.counts, minlength=self.n_words).astype(np.float64)

    @cached_property
    def whole(self) -> bool:
        """Return whether all counts are whole numbers."""
        return bool((self.counts == np.rint(self.counts)).all())

    def take(self, rows: NDArray[np.int64]) -> Documents:
        """Return some of the documents, in the order given."""
        sizes = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.indptr[rows] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return replace(self, indptr=indptr, indices=self.indices[places], counts=self.counts[places])

    @cached_property
    def batches(self) -> NDArray[np.int64]:
        """Return where batches of documents begin, and the end: those whose counts are updated together.

        A batch has about a 64th of the nonzeros, and at most 262,144 of them if its first document has no more.
        """
        size = max(1, min(MOST_IN_BATCH, self.n_nonzeros // BATCHES))
        number = (np.maximum(self.indptr[1:], 1) - 1) // size
        borders = np.flatnonzero(np.diff(number)) + 1
        return np.concatenate([[0], borders, [self.n_documents]]).astype(np.int64)
