"""Topics and memberships together at the maximum of the likelihood, without priors: counts of molecules in cells."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mixmem.data.documents import Documents
from mixmem.engine.local import in_parts, threads_for
from mixmem.kernels.document_memberships import expected_ratios
from mixmem.progress import Progress
from mixmem.refinement.ascent import LEAST, Maximum, Point, Stride, climb, memberships_inside
from mixmem.typing import Array

MOST_ROUNDS, TOLERANCE = 1000, 1e-9


class DocumentSteps:
    """Plain EM steps of documents: topics (V, k) with columns on the simplex, memberships (n, k)."""

    def __init__(self, corpus: Documents):
        self.corpus = corpus
        self.counts = corpus.counts.astype(np.float64)
        self.lengths = np.maximum(corpus.lengths, 1e-300)

    def step(self, start: Point) -> Stride:
        corpus, ratios = self.corpus, np.empty(self.corpus.n_nonzeros)
        topics, x = np.ascontiguousarray(start.theta), np.ascontiguousarray(start.memberships)
        slopes, likelihoods = np.empty_like(x), np.empty(len(x))

        def run(first: int, last: int) -> None:
            expected_ratios(
                corpus.indptr, corpus.indices, self.counts, first, last, x, topics, ratios, slopes, likelihoods
            )

        with threads_for(8 * topics.shape[1] * corpus.n_nonzeros):
            in_parts(run, corpus.n_documents)
        shape = (corpus.n_documents, corpus.n_words)
        sums = sparse.csr_matrix((ratios, corpus.indices, corpus.indptr), shape=shape).T @ x
        to = Point(topics_inside(topics * sums), memberships_inside(x * slopes / self.lengths[:, None]))
        return Stride(start, to, float(likelihoods.sum()) / len(x))

    def vector(self, point: Point) -> Array:
        return np.concatenate([np.sqrt(point.theta).ravel(), np.sqrt(point.memberships).ravel()])

    def point(self, vector: Array, near: Point) -> Point:
        theta = vector[: near.theta.size].reshape(near.theta.shape)
        x = vector[near.theta.size :].reshape(near.memberships.shape)
        return Point(topics_inside(np.maximum(theta, 0.0) ** 2), memberships_inside(np.maximum(x, 0.0) ** 2))


def topics_inside(topics: Array) -> Array:
    """Return topics (V, k) with columns on the simplex, no entry zero."""
    inside = np.maximum(topics, LEAST * np.maximum(topics.sum(axis=0), 1e-300))
    return np.asarray(inside / inside.sum(axis=0))


def maximise_documents(
    corpus: Documents, topics: Array, memberships: Array, *, progress: Progress, max_rounds: int = MOST_ROUNDS
) -> Maximum:
    """Run accelerated EM from topics (V, k) and memberships (n, k), on the mean log-likelihood of a document."""
    start = Point(topics_inside(topics), memberships_inside(memberships))
    per_row = float(corpus.lengths.sum()) / max(corpus.n_documents, 1)
    return climb(DocumentSteps(corpus), start, progress=progress, tol=TOLERANCE, per_row=per_row, max_rounds=max_rounds)
