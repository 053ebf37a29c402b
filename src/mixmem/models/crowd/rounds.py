"""Rounds of expectation and maximisation: classes of tasks from workers, workers from classes of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma

from mixmem.engine.local import in_parts
from mixmem.kernels.crowd import expected_labels, label_pass, vote_shares
from mixmem.models.crowd.labels import Labels
from mixmem.models.crowd.workers import WorkerModel
from mixmem.typing import Array

MOST_BLOCKS, BLOCK_LABELS = 16, 1 << 17
"""Blocks of tasks whose sums are taken apart, at most, and labels that are worth one: both fix the last bits."""

LogPrior = Callable[[Array], Array]
"""From the tasks expected in every column (C,) to the log prior of the columns."""


@dataclass(frozen=True)
class Rounds:
    """What the rounds ended with.

    ``posterior`` (n, C): probabilities of the tasks' columns, which are the classes unless these have subtypes;
    ``counts`` (W, K, C): labels expected of worker w, label l, column j; ``prior`` (C,): of the columns; ``history``:
    minus the mean log-likelihood of a task's labels, by round.
    """

    posterior: Array
    counts: Array
    prior: Array
    history: list[float]
    converged: bool


class Passes:
    """The passes over the labels, with their buffers; bits do not depend on the number of threads.

    ``width`` is the number of subtypes of a class, each with a column of its own.
    """

    def __init__(self, labels: Labels, known: np.ndarray, width: int = 1):
        self.labels, self.known, self.width = labels, known, width
        k, columns = labels.n_classes, labels.n_classes * width
        cells = labels.n_workers * k * columns
        n_blocks = max(1, min(MOST_BLOCKS, labels.n_labels // max(BLOCK_LABELS, 4 * cells)))
        edges = np.linspace(0, labels.n_labels, n_blocks + 1).astype(np.int64)
        self.bounds = np.searchsorted(labels.starts, edges)
        self.bounds[0], self.bounds[-1] = 0, labels.n_tasks
        self._cells = labels.workers.astype(np.uint32) * np.uint32(k) + labels.labels.astype(np.uint32)
        self._partials = np.empty((n_blocks, labels.n_workers * k, columns))
        self._values, self._changes = np.empty(n_blocks), np.empty(n_blocks)
        self.work = labels.n_labels * columns
        """Additions a pass takes, for `threads_for`."""

    def vote_shares(self) -> Array:
        """Vote shares of the tasks, (n, K)."""
        shares = np.empty((self.labels.n_tasks, self.labels.n_classes))
        vote_shares(self.labels.starts, self.labels.labels, shares)
        return shares

    def shares(self) -> Array:
        """Vote shares of the tasks, (n, K), with the known classes put in."""
        return self.with_known(self.vote_shares())

    def with_known(self, posterior: Array) -> Array:
        """Class probabilities with those of known tasks put in place."""
        sure = self.known >= 0
        posterior[sure] = np.eye(self.labels.n_classes)[self.known[sure]]
        return posterior

    def counts(self, posterior: Array) -> Array:
        """Labels expected of every worker in every column, (W, K, C)."""
        starts, partials = self.labels.starts, self._partials
        in_parts(
            lambda first, last: expected_labels(starts, self._cells, self.bounds, posterior, first, last, partials),
            len(partials),
        )
        return self._sum()

    def classify(self, scores: Array, log_prior: Array, posterior: Array) -> tuple[Array, float, float]:
        """New probabilities, into ``posterior``: counts, mean log-likelihood and mean change of a task."""
        labels, each = self.labels, scores.reshape(-1, scores.shape[2])
        in_parts(
            lambda first, last: label_pass(
                labels.starts, self._cells, self.known, self.width, each, log_prior, self.bounds, first, last,
                posterior, self._partials, self._values, self._changes,
            ),
            len(self._partials),
        )  # fmt: skip
        n = labels.n_tasks
        return self._sum(), float(self._values.sum()) / n, float(self._changes.sum()) / n

    def _sum(self) -> Array:
        k = self.labels.n_classes
        total = self._partials.sum(axis=0) if len(self._partials) > 1 else self._partials[0].copy()
        return np.asarray(total).reshape(-1, k, k * self.width)


def flat_prior(sizes: Array) -> Array:
    """Return the log prior of equally common classes."""
    return np.full(len(sizes), -np.log(len(sizes)))


def learned_prior(sizes: Array) -> Array:
    """Return the log prior learned from the classes found, with one task added to each."""
    return np.asarray(np.log((sizes + 1.0) / (sizes + 1.0).sum()))


def variational_prior(sizes: Array) -> Array:
    """Return the expected log of the classes' shares under their Dirichlet posterior, one task added to each."""
    return np.asarray(digamma(sizes + 1.0) - digamma((sizes + 1.0).sum()))


def column_sums(posterior: Array) -> Array:
    """Return the sums of columns (C,); one column after another, which is many times faster where there are few."""
    return np.array([posterior[:, j].sum() for j in range(posterior.shape[1])])


def run_rounds(
    passes: Passes, workers: WorkerModel, posterior: Array, counts: Array, *,
    n_iter: int, tol: float, log_prior: LogPrior = learned_prior,
) -> Rounds:  # fmt: skip
    """Alternate until class probabilities change by less than ``tol`` per task, ``n_iter`` rounds at most."""
    history: list[float] = []
    converged = False
    logs = log_prior(column_sums(posterior))
    for step in range(n_iter):
        logs = log_prior(column_sums(posterior)) if step else logs
        counts, value, change = passes.classify(workers.update(counts), logs, posterior)
        history.append(-value)
        if change < tol:
            converged = True
            break
    prior = np.exp(logs)
    return Rounds(posterior, counts, prior / prior.sum(), history, converged)
