"""Rounds of expectation and maximisation: classes of tasks from workers, workers from classes of tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.engine.local import in_parts
from mixmem.kernels.crowd import expected_labels, label_pass, vote_shares
from mixmem.models.crowd.labels import Labels
from mixmem.models.crowd.workers import WorkerModel
from mixmem.typing import Array

MOST_BLOCKS, BLOCK_LABELS = 16, 1 << 17
"""Blocks of tasks whose sums are taken apart, at most, and labels that are worth one: both fix the last bits."""


@dataclass(frozen=True)
class Rounds:
    """What the rounds ended with.

    ``posterior`` (n, K): class probabilities of the tasks; ``counts`` (W, K, K): labels expected of worker w, label l,
    class j; ``prior`` (K,): of the classes; ``history``: minus the mean log-likelihood of a task's labels, by round.
    """

    posterior: Array
    counts: Array
    prior: Array
    history: list[float]
    converged: bool


class Passes:
    """The passes over the labels, with their buffers; bits do not depend on the number of threads."""

    def __init__(self, labels: Labels, known: np.ndarray):
        self.labels, self.known = labels, known
        k = labels.n_classes
        cells = labels.n_workers * k * k
        n_blocks = max(1, min(MOST_BLOCKS, labels.n_labels // max(BLOCK_LABELS, 4 * cells)))
        edges = np.linspace(0, labels.n_labels, n_blocks + 1).astype(np.int64)
        self.bounds = np.searchsorted(labels.starts, edges)
        self.bounds[0], self.bounds[-1] = 0, labels.n_tasks
        self._cells = labels.workers.astype(np.uint32) * np.uint32(k) + labels.labels.astype(np.uint32)
        self._partials = np.empty((n_blocks, labels.n_workers * k, k))
        self._values, self._changes = np.empty(n_blocks), np.empty(n_blocks)
        self.work = labels.n_labels * k
        """Additions a pass takes, for `threads_for`."""

    def shares(self) -> Array:
        """Vote shares of the tasks, (n, K), with the known classes put in."""
        shares = np.empty((self.labels.n_tasks, self.labels.n_classes))
        vote_shares(self.labels.starts, self.labels.labels, shares)
        return self.with_known(shares)

    def with_known(self, posterior: Array) -> Array:
        """Class probabilities with those of known tasks put in place."""
        sure = self.known >= 0
        posterior[sure] = np.eye(self.labels.n_classes)[self.known[sure]]
        return posterior

    def counts(self, posterior: Array) -> Array:
        """Labels expected of every worker in every class, (W, K, K)."""
        starts, partials = self.labels.starts, self._partials
        in_parts(
            lambda first, last: expected_labels(starts, self._cells, self.bounds, posterior, first, last, partials),
            len(partials),
        )
        return self._sum()

    def classify(self, scores: Array, prior: Array, posterior: Array) -> tuple[Array, float, float]:
        """New class probabilities, into ``posterior``: counts, mean log-likelihood and mean change of a task."""
        labels, each, logs = self.labels, scores.reshape(-1, self.labels.n_classes), np.log(prior)
        in_parts(
            lambda first, last: label_pass(
                labels.starts, self._cells, self.known, each, logs, self.bounds, first, last, posterior,
                self._partials, self._values, self._changes,
            ),
            len(self._partials),
        )  # fmt: skip
        n = labels.n_tasks
        return self._sum(), float(self._values.sum()) / n, float(self._changes.sum()) / n

    def _sum(self) -> Array:
        k = self.labels.n_classes
        total = self._partials.sum(axis=0) if len(self._partials) > 1 else self._partials[0].copy()
        return np.asarray(total).reshape(-1, k, k)


def run_rounds(
    passes: Passes, workers: WorkerModel, posterior: Array, counts: Array, *,
    n_iter: int, tol: float, estimate_prior: bool = False,
) -> Rounds:  # fmt: skip
    """Alternate until class probabilities change by less than ``tol`` a task, ``n_iter`` rounds at most."""
    k = posterior.shape[1]
    prior, history, converged = np.full(k, 1.0 / k), [], False
    for _ in range(n_iter):
        if estimate_prior:
            prior = (posterior.sum(axis=0) + 1.0) / (len(posterior) + k)
        scores = workers.update(counts)
        counts, value, change = passes.classify(scores, prior, posterior)
        history.append(-value)
        if change < tol:
            converged = True
            break
    return Rounds(posterior, counts, prior, history, converged)
