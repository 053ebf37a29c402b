"""Minimax conditional entropy (Zhou, Liu, Platt, Meek, Shah): workers err, and tasks mislead.

A label l of worker w for task i of class j has probability softmax_l(sigma_wlj + tau_ilj), with ridge penalties on
both. The penalties are those of the authors: gamma K^2 for workers, and for tasks the same times the ratio of
labels a worker to labels a task.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from mixmem.engine.local import in_parts
from mixmem.kernels.crowd_tasks import minimax_pass
from mixmem.models.crowd.rounds import Passes, Rounds
from mixmem.typing import Array

GAMMA = 1 / 64
"""Strength of the penalties, chosen by held-out labels (`python -m benchmarks crowd_settings`)."""
FROZEN = 10
"""Rounds with the vote shares held, in which the workers and tasks settle."""


@dataclass(frozen=True)
class Effects:
    """``sigma`` (W, K, K) of workers and ``tau`` (n, K, K) of tasks, [., l, j]."""

    sigma: Array
    tau: Array

    def probabilities(self) -> Array:
        """p(label l | class j) of every worker for a task that does not mislead, (W, K, K)."""
        return softmax(self.sigma)

    def predicted(self, task: np.ndarray, worker: np.ndarray, label: np.ndarray, posterior: Array) -> Array:
        """p(label) of single labels given everything learned, (m,)."""
        places = np.arange(len(label))
        return np.asarray((softmax(self.sigma[worker] + self.tau[task])[places, label] * posterior[task]).sum(axis=1))


def softmax(logits: Array) -> Array:
    """Probabilities over axis 1."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def run_minimax(passes: Passes, posterior: Array, *, n_iter: int, tol: float) -> tuple[Rounds, Effects]:
    """Alternate classes, tasks and workers until class probabilities change by less than ``tol`` a task."""
    labels = passes.labels
    k = labels.n_classes
    worker_ridge = GAMMA * k * k
    ridge = worker_ridge * labels.n_tasks / labels.n_workers
    effects = Effects(np.zeros((labels.n_workers, k, k)), np.zeros((labels.n_tasks, k, k)))
    partials = np.empty((len(passes.bounds) - 1, labels.n_workers, k + 1, k))
    values, changes = np.empty(len(partials)), np.empty(len(partials))
    history: list[float] = []
    converged = False

    def one_round(frozen: bool, first: int, last: int) -> None:
        minimax_pass(
            labels.starts, labels.workers, labels.labels, passes.known, effects.sigma, effects.tau, ridge, frozen,
            passes.bounds, first, last, posterior, partials, values, changes,
        )  # fmt: skip

    for step in range(FROZEN + n_iter):
        frozen = step < FROZEN
        in_parts(partial(one_round, frozen), len(partials))
        sums = partials.sum(axis=0)
        effects.sigma[:] += (sums[:, :k] - worker_ridge * effects.sigma) / (sums[:, k:] + worker_ridge)
        if not frozen:
            history.append(-float(values.sum()) / labels.n_tasks)
            if changes.sum() / labels.n_tasks < tol:
                converged = True
                break
    counts = passes.counts(posterior)
    return Rounds(posterior, counts, np.full(k, 1.0 / k), history, converged), effects
