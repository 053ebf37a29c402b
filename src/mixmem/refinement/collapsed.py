"""Collapsed sweeps over documents, variational ones and by sampling.

Counts by topic are float32 and lie word by word (words, topics), since a nonzero takes a whole row. Documents are taken
in the batches of their corpus: a batch is swept against the words' counts as they stood before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixmem.data.documents import Documents
from mixmem.engine.local import in_parts, threads_for
from mixmem.kernels.document_memberships import document_rounds, settle_documents, spread_counts
from mixmem.kernels.documents import (
    LANES,
    add_to_totals,
    add_to_words,
    collapsed_sweep,
    left_out_likelihood,
    topic_inverses,
)
from mixmem.kernels.tokens import begin_tokens, draw_tokens, move_tokens
from mixmem.typing import Array

Table = NDArray[np.float32]
BEGIN_ROUNDS, PASS_ROUNDS = 3, 8
"""Rounds in which documents settle at the start, and by themselves where they are not held."""
WORK = 4
"""Additions per nonzero and topic of a sweep, by which threads are given out."""


@dataclass(frozen=True)
class Prior:
    """Concentrations: alpha (k,) of memberships, beta (1 or V, k) of words in topics; k is padded for the kernels."""

    n_topics: int
    alpha: Table
    beta: Table

    @classmethod
    def of(cls, alpha: Any, beta: Any) -> Prior:
        """Return the prior of any arrays; beta may be a number."""
        alpha = np.asarray(alpha, dtype=np.float32)
        beta = np.asarray(beta, dtype=np.float32)
        if beta.ndim == 0:
            beta = np.full((1, len(alpha)), beta)
        return cls(len(alpha), padded(alpha), padded(beta))

    @property
    def by_word(self) -> int:
        """Return 1 if beta has a row per word, else 0."""
        return int(len(self.beta) > 1)

    def sums(self, n_words: int) -> Array:
        """Return the sums over words of beta, (k,); zero in the padding."""
        return self.beta.sum(axis=0, dtype=np.float64) * (1 if self.by_word else n_words)

    def inverse(self, totals: Array, n_words: int) -> Table:
        """Return one over the topics' totals, beta of all words added; zero in the padding."""
        out = np.empty(len(self.alpha), dtype=np.float32)
        topic_inverses(totals, self.sums(n_words), out)
        return out


def padded(values: Any) -> Table:
    """Return float32 values (…, k) with zeros appended until k is a multiple of the kernels' lanes."""
    more = -values.shape[-1] % LANES
    return np.pad(np.asarray(values, dtype=np.float32), [(0, 0)] * (values.ndim - 1) + [(0, more)])


class Counts:
    """Counts of tokens by topic: of documents (n, k), of words (V, k), and the shares of nonzeros (nonzeros, k)."""

    def __init__(self, corpus: Documents, documents: Table, words: Table, shares: Table):
        self.corpus, self.documents, self.words, self.shares = corpus, documents, words, shares
        self.totals = documents.sum(axis=0, dtype=np.float64)

    @classmethod
    def begin(cls, corpus: Documents, topics: Array, prior: Prior, shares: Table) -> Counts:
        """Return the counts that follow from topics (V, k), whose rows are words; shares are filled in place."""
        documents, table = even_counts(corpus, prior), padded(topics)

        def run(first: int, last: int) -> None:
            document_rounds(*csr(corpus), first, last, prior.alpha, table, BEGIN_ROUNDS, 1e-2, documents)

        in_documents(corpus, run, len(prior.alpha) * BEGIN_ROUNDS)
        counts = cls(corpus, documents, np.empty((corpus.n_words, len(prior.alpha)), dtype=np.float32), shares)
        counts.refill(topics, prior)
        return counts

    def refill(self, topics: Array, prior: Prior) -> None:
        """Set the shares to what follows from topics (V, k) and the documents' counts, and sum them."""
        corpus, table, ones = self.corpus, padded(topics), np.ones_like(self.corpus.counts)

        def fill(first: int, last: int) -> None:
            part = self.shares[corpus.indptr[first] : corpus.indptr[last]]
            spread_counts(corpus.indptr, corpus.indices, ones, first, last, prior.alpha, table, self.documents, part)

        in_documents(corpus, fill, len(prior.alpha))
        self.recount()

    def recount(self) -> None:
        """Sum the shares again: rounding adds up over sweeps."""
        corpus = self.corpus
        self.words[:] = 0.0
        for first, last in batches(corpus):
            begin, end = corpus.indptr[first], corpus.indptr[last]
            moved = self.shares[begin:end] * corpus.counts[begin:end, None]
            filled = np.flatnonzero(np.diff(corpus.indptr[first : last + 1]))
            self.documents[first:last] = 0.0
            if len(filled):
                self.documents[first + filled] = np.add.reduceat(moved, corpus.indptr[first + filled] - begin, axis=0)
            to_words(corpus, begin, end, moved, self.words)
        self.totals = self.documents.sum(axis=0, dtype=np.float64)

    def sweep(self, prior: Prior, push: float = 0.0) -> float:
        """Take one collapsed sweep and return the share of tokens that moved; ``push`` goes further than the step."""
        corpus, changes = self.corpus, np.zeros(self.corpus.n_documents)
        most = int(np.diff(corpus.indptr[corpus.batches]).max(initial=0))
        moved = np.empty((most, self.words.shape[1]), dtype=np.float32)
        with threads_for(WORK * moved.size):
            for first, last in batches(corpus):
                self._sweep_batch(first, last, prior, np.float32(push), moved, changes)
        return float(changes.sum()) / max(float(corpus.lengths.sum()), 1.0)

    def _sweep_batch(self, first: int, last: int, prior: Prior, push: np.float32, moved: Table, changes: Array) -> None:
        """Sweep over one batch, its documents shared among threads."""
        corpus, begin = self.corpus, self.corpus.indptr[first]
        inverse = prior.inverse(self.totals, corpus.n_words)

        def run(low: int, high: int) -> None:
            part = moved[corpus.indptr[first + low] - begin : corpus.indptr[first + high] - begin]
            collapsed_sweep(
                *csr(corpus), first + low, first + high, prior.alpha, prior.beta, prior.by_word, push, self.words,
                inverse, self.documents, self.shares, part, changes,
            )  # fmt: skip

        add_to_totals(self.documents, first, last, -1.0, self.totals)
        in_parts(run, last - first)
        add_to_totals(self.documents, first, last, 1.0, self.totals)
        to_words(corpus, begin, corpus.indptr[last], moved, self.words)

    def left_out(self, prior: Prior) -> float:
        """Return the log-likelihood per token, every token left out of the counts in its turn."""
        corpus, out = self.corpus, np.zeros(self.corpus.n_documents)
        inverse = prior.inverse(self.totals, corpus.n_words)
        in_documents(corpus, lambda first, last: left_out_likelihood(
            *csr(corpus), first, last, prior.alpha, prior.beta, prior.by_word, self.words, inverse, self.documents,
            self.shares, out,
        ), len(prior.alpha))  # fmt: skip
        return float(out.sum() / max(corpus.lengths.sum(), 1.0))

    def topics(self, prior: Prior) -> Array:
        """Return the topics (V, k), columns on the simplex."""
        return topics_of(self.words, prior)

    def memberships(self, prior: Prior) -> Array:
        """Return the memberships (n, k) of documents."""
        values = (np.maximum(self.documents, 0.0).astype(np.float64) + prior.alpha)[:, : prior.n_topics]
        return np.asarray(values / values.sum(axis=1, keepdims=True))


def topics_of(words: Table | Array, prior: Prior) -> Array:
    """Return topics (V, k) from counts of words by topic, columns on the simplex."""
    values = (np.maximum(words, 0.0).astype(np.float64) + prior.beta)[:, : prior.n_topics]
    return np.asarray(values / values.sum(axis=0))


def passed_counts(corpus: Documents, topics: Array, prior: Prior) -> Table:
    """Return counts of words by topic (V, k), topics given: every document settles alone, and is not kept."""
    table, words = padded(topics), np.zeros((corpus.n_words, len(prior.alpha)), dtype=np.float32)
    for first, last in batches(corpus):
        begin, end = corpus.indptr[first], corpus.indptr[last]
        moved = np.empty((end - begin, words.shape[1]), dtype=np.float32)

        def run(low: int, high: int, first: int = first, begin: int = begin, moved: Table = moved) -> None:
            part = moved[corpus.indptr[first + low] - begin : corpus.indptr[first + high] - begin]
            settle_documents(*csr(corpus), first + low, first + high, prior.alpha, table, PASS_ROUNDS, part)

        with threads_for(WORK * PASS_ROUNDS * moved.size):
            in_parts(run, last - first)
        to_words(corpus, begin, end, moved, words)
    return words


def csr(corpus: Documents) -> tuple[Any, Any, Any]:
    """Return the three arrays that every kernel of documents begins with."""
    return corpus.indptr, corpus.indices, corpus.counts


def batches(corpus: Documents) -> list[tuple[int, int]]:
    """Return the first and last documents of the batches."""
    borders = corpus.batches.tolist()
    return [(a, b) for a, b in pairwise(borders) if b > a]


def even_counts(corpus: Documents, prior: Prior) -> Table:
    """Return the tokens of documents spread evenly over the topics."""
    even = (prior.alpha > 0.0) / np.float32(prior.n_topics)
    return np.asarray(corpus.lengths.astype(np.float32)[:, None] * even, dtype=np.float32)


def in_documents(corpus: Documents, run: Callable[[int, int], Any], work: int) -> None:
    """Call run(first, last) for stretches of documents, one per thread, cut by nonzeros."""
    with threads_for(WORK * work * corpus.n_nonzeros):
        in_parts(run, corpus.n_documents)


def to_words(corpus: Documents, begin: int, end: int, moved: Table, words: Table) -> None:
    """Add what moved to the words' counts; threads share the words."""
    with threads_for(moved.size):
        in_parts(lambda low, high: add_to_words(corpus.indices, begin, end, moved, low, high, words), len(words))


class Sampler:
    """Topics of single tokens, drawn each given all others."""

    def __init__(self, counts: Counts, seed: int):
        corpus = self.corpus = counts.corpus
        self.seed, self.step = seed, 1
        whole = np.rint(corpus.counts).astype(np.int64)
        self.starts = np.concatenate([[0], np.cumsum(whole)])
        self.topics = np.empty(int(self.starts[-1]), dtype=np.uint16)
        self.drawn = np.empty_like(self.topics)
        self.documents, self.words = np.zeros_like(counts.documents), np.zeros_like(counts.words)
        begin_tokens(
            corpus.indptr, corpus.indices, self.starts, counts.shares, seed, self.topics, self.documents, self.words
        )

    def sweep(self, prior: Prior) -> None:
        """Draw every token once."""
        corpus, k = self.corpus, len(prior.alpha)
        for first, last in batches(corpus):
            begin, end = corpus.indptr[first], corpus.indptr[last]
            inverse = prior.inverse(self.documents.sum(axis=0, dtype=np.float64), corpus.n_words)

            def run(low: int, high: int, first: int = first, inverse: Table = inverse) -> None:
                draw_tokens(
                    corpus.indptr, corpus.indices, self.starts, first + low, first + high, prior.alpha, prior.beta,
                    prior.by_word, self.words, inverse, self.seed, self.step, self.documents, self.topics, self.drawn,
                )  # fmt: skip

            with threads_for(WORK * k * int(self.starts[end] - self.starts[begin])):
                in_parts(run, last - first)
            move_tokens(corpus.indices, self.starts, begin, end, self.topics, self.drawn, self.words)
        self.step += 1
