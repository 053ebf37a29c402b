"""One function from labels to a fit, whatever the model of workers and the start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.engine.local import threads_for
from mixmem.models.crowd.labels import Labels
from mixmem.models.crowd.minimax import Effects, run_minimax
from mixmem.models.crowd.rounds import Passes, Rounds, run_rounds
from mixmem.models.crowd.starts import ptpqp_counts, tensor_counts
from mixmem.models.crowd.workers import Communities, Confusion, OneCoin, Unsmoothed, WorkerModel
from mixmem.typing import Array

MODELS = ("community", "ds", "one_coin", "minimax", "majority")
STARTS = ("majority", "tensor", "ptpqp")
SOLVERS = ("pqp", "hals", "wnmf", "tpm", "nojd0", "nojd1")
PUBLISHED_ROUNDS = 10


@dataclass(frozen=True)
class Settings:
    """What is fitted and how; the estimator's parameters, checked."""

    model: str = "community"
    n_iter: int = 300
    tol: float = 1e-4
    start: str = "majority"
    solver: str = "pqp"
    smoothing: float = 0.5
    n_communities: int = 3
    estimate_prior: bool = False
    published: bool = False


@dataclass(frozen=True)
class Fit:
    """Classes of tasks and confusion matrices of workers.

    ``posterior`` (n, K), ``counts``, ``confusion`` and ``errors`` (W, K, K) with [w, l, j] for label l in class j,
    ``typical`` (K, K) of an unknown worker, ``prior`` (K,), ``memberships`` (W, G) in communities, minimax ``effects``.
    """

    posterior: Array
    counts: Array
    confusion: Array
    errors: Array
    typical: Array
    prior: Array
    history: list[float]
    converged: bool
    memberships: Array | None = None
    effects: Effects | None = None

    def predicted(self, task: np.ndarray, worker: np.ndarray, label: np.ndarray) -> Array:
        """Probability of single labels of known workers for known tasks, (m,)."""
        if self.effects is not None:
            return self.effects.predicted(task, worker, label, self.posterior)
        return np.asarray((self.confusion[worker, label] * self.posterior[task]).sum(axis=1))


def fit_labels(labels: Labels, known: np.ndarray, settings: Settings, rng: np.random.Generator) -> Fit:
    """Fit the model that the settings name; ``known`` (n,) holds the classes of tasks where they are given, else -1."""
    passes = Passes(labels, known)
    with threads_for(passes.work):  # once for all rounds: setting threads takes as long as a short pass
        return _fit(passes, settings, rng)


def _fit(passes: Passes, settings: Settings, rng: np.random.Generator) -> Fit:
    labels, posterior = passes.labels, passes.shares()
    if settings.model == "majority":
        flat = np.full(labels.n_classes, 1.0 / labels.n_classes)
        votes = Rounds(posterior, passes.counts(posterior), flat, [], True)
        return _described(votes, Confusion(settings.smoothing))
    if settings.model == "minimax":
        rounds, effects = run_minimax(passes, posterior, n_iter=settings.n_iter, tol=settings.tol)
        return _described(rounds, Confusion(settings.smoothing), effects)
    return fit_from(passes, posterior, start_counts(passes, posterior, settings, rng), settings)


def fit_from(passes: Passes, posterior: Array, counts: Array, settings: Settings) -> Fit:
    """Rounds from the labels expected of the workers, ``counts``; ``posterior`` is overwritten."""
    workers = _workers(counts, settings)
    rounds = run_rounds(
        passes, workers, posterior, counts,
        n_iter=settings.n_iter, tol=settings.tol, estimate_prior=settings.estimate_prior,
    )  # fmt: skip
    return _described(rounds, workers)


def start_counts(passes: Passes, posterior: Array, settings: Settings, rng: np.random.Generator) -> Array:
    """Labels expected of every worker in every class before the first round, (W, K, K)."""
    if settings.start == "majority":
        return passes.counts(posterior)
    counts_of = tensor_counts if settings.start == "tensor" else ptpqp_counts
    return counts_of(passes.labels, settings.solver, rng)


def _workers(counts: Array, settings: Settings) -> WorkerModel:
    if settings.published:
        return Unsmoothed()
    if settings.model == "community":
        return Communities(counts, settings.n_communities)
    return (Confusion if settings.model == "ds" else OneCoin)(settings.smoothing)


def _described(rounds: Rounds, workers: WorkerModel, effects: Effects | None = None) -> Fit:
    """The workers as the last round's classes show them."""
    workers.update(rounds.counts)
    return Fit(
        posterior=rounds.posterior,
        counts=rounds.counts,
        confusion=workers.probabilities if effects is None else effects.probabilities(),
        errors=workers.errors(rounds.counts),
        typical=workers.typical(rounds.counts),
        prior=rounds.prior,
        history=rounds.history,
        converged=rounds.converged,
        memberships=workers.memberships if isinstance(workers, Communities) else None,
        effects=effects,
    )
