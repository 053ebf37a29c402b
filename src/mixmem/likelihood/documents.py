"""What documents say of their memberships, and how well topics predict the rest of a document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.data.documents import Documents
from mixmem.engine.local import in_parts, threads_for
from mixmem.kernels.document_memberships import document_likelihood, document_rounds
from mixmem.typing import Array

ROUNDS, TOLERANCE = 500, 1e-4
FLOOR = 1e-8
"""Least probability of a word, relative to an even share: one that a topic never saw is not impossible."""


@dataclass(frozen=True)
class DocumentFit:
    """Memberships (n, k), and how many documents had not come to rest."""

    memberships: Array
    unsettled: int


def document_memberships(corpus: Documents, topics: Array, alpha: Array) -> DocumentFit:
    """Return memberships of documents, topics (V, k) and alpha (k,) given.

    They are (n_h + alpha_h) / (N + alpha0), with counts by topic n_h at the fixed point of EM. A document without words
    has the memberships that alpha expects.
    """
    table, k = np.ascontiguousarray(topics, dtype=np.float32), len(alpha)
    prior = alpha.astype(np.float32)
    counts = np.repeat((corpus.lengths / k).astype(np.float32)[:, None], k, axis=1)
    left: list[int] = []

    def run(first: int, last: int) -> None:
        left.append(
            document_rounds(
                corpus.indptr, corpus.indices, corpus.counts, first, last, prior, table, ROUNDS, TOLERANCE, counts
            )
        )

    with threads_for(40 * k * corpus.n_nonzeros):
        in_parts(run, corpus.n_documents)
    values = counts.astype(np.float64) + alpha
    return DocumentFit(values / values.sum(axis=1, keepdims=True), sum(left))


def log_likelihoods(corpus: Documents, topics: Array, memberships: Array) -> Array:
    """Return the log-likelihood of every document's words (n,), memberships and topics given."""
    table, shares = np.ascontiguousarray(topics, dtype=np.float32), memberships.astype(np.float32)
    out = np.zeros(corpus.n_documents)

    def run(first: int, last: int) -> None:
        document_likelihood(corpus.indptr, corpus.indices, corpus.counts, first, last, shares, table, out)

    with threads_for(4 * len(table.T) * corpus.n_nonzeros):
        in_parts(run, corpus.n_documents)
    return out


def halves(corpus: Documents, rng: np.random.Generator) -> tuple[Documents, Documents]:
    """Return the documents with each token in one half or the other, at random; counts not whole are halved."""
    counts = corpus.counts.astype(np.float64)
    first = rng.binomial(counts.astype(np.int64), 0.5).astype(np.float64) if corpus.whole else 0.5 * counts
    return _kept(corpus, first), _kept(corpus, counts - first)


def _kept(corpus: Documents, counts: Array) -> Documents:
    stay = counts > 0.0
    ends = np.concatenate([[0], np.cumsum(stay)])
    return Documents(ends[corpus.indptr], corpus.indices[stay], counts[stay].astype(np.float32), corpus.n_words)


def completion(corpus: Documents, topics: Array, alpha: Array, rng: np.random.Generator) -> float:
    """Return the log-likelihood per token of one half of every document, its memberships found from the other half."""
    known, hidden = halves(corpus, rng)
    floored = np.maximum(topics, FLOOR / len(topics))
    floored = floored / floored.sum(axis=0)
    memberships = document_memberships(known, floored, alpha).memberships
    return float(log_likelihoods(hidden, floored, memberships).sum() / max(hidden.lengths.sum(), 1.0))
