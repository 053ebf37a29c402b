"""One function from labels to a fit, whatever the model of workers and the start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixmem.engine.local import threads_for
from mixmem.models.crowd import ebcc, glad, votes
from mixmem.models.crowd.blend import run_blend
from mixmem.models.crowd.communities import Communities
from mixmem.models.crowd.dependence import Dependence
from mixmem.models.crowd.labels import Labels
from mixmem.models.crowd.minimax import Effects, run_minimax
from mixmem.models.crowd.rounds import (
    LogPrior,
    Passes,
    Rounds,
    flat_prior,
    learned_prior,
    run_rounds,
    variational_prior,
)
from mixmem.models.crowd.starts import ptpqp_counts, tensor_counts
from mixmem.models.crowd.voices import TableVoice, Voice, VoteVoice
from mixmem.models.crowd.workers import Confusion, Mace, OneCoin, Unsmoothed, Variational, WorkerModel
from mixmem.typing import Array

MODELS = (
    "blend", "community", "ds", "ibcc", "ebcc", "one_coin", "mace", "glad", "minimax", "bwa", "wawa", "majority",
)  # fmt: skip
STARTS = ("majority", "tensor", "ptpqp")
SOLVERS = ("pqp", "hals", "wnmf", "tpm", "nojd0", "nojd1")
PUBLISHED_ROUNDS = 10


@dataclass(frozen=True)
class Settings:
    """What is fitted and how; the estimator's parameters, checked."""

    model: str = "blend"
    n_iter: int = 300
    tol: float = 1e-3
    start: str = "majority"
    solver: str = "pqp"
    smoothing: float = 0.5
    n_communities: int = 3
    estimate_prior: bool = True
    published: bool = False

    @property
    def log_prior(self) -> LogPrior:
        """How the rounds take the class prior."""
        return learned_prior if self.estimate_prior else flat_prior


@dataclass(frozen=True)
class Fit:
    """Classes of tasks and confusion matrices of workers.

    ``posterior`` (n, K), ``counts``, ``confusion`` and ``errors`` (W, K, K) with [w, l, j] for label l in class j,
    ``typical`` (K, K) of an unknown worker, ``prior`` (K,), ``voices`` that label new tasks, ``memberships`` (W, G) in
    communities, minimax ``effects``, ``dependence`` between workers, and what else a model has for workers or tasks,
    by name.
    """

    posterior: Array
    counts: Array
    confusion: Array
    errors: Array
    typical: Array
    prior: Array
    history: list[float]
    converged: bool
    voices: tuple[Voice, ...]
    memberships: Array | None = None
    effects: Effects | None = None
    dependence: Dependence | None = None
    further: dict[str, Any] = field(default_factory=dict)

    def predicted(self, task: np.ndarray, worker: np.ndarray, label: np.ndarray) -> Array:
        """Probability of single labels of known workers for known tasks, (m,)."""
        if self.effects is not None:
            return self.effects.predicted(task, worker, label, self.posterior)
        return np.asarray((self.confusion[worker, label] * self.posterior[task]).sum(axis=1))


def fit_labels(
    labels: Labels, known: np.ndarray, settings: Settings, rng: np.random.Generator, start: Array | None = None
) -> Fit:
    """Fit the model that the settings name; ``known`` (n,) holds the classes of tasks where they are given, else -1.

    ``start`` (n, K) are class probabilities to begin with, instead of the vote shares.
    """
    passes = Passes(labels, known)
    with threads_for(passes.work):  # once for all rounds: setting threads takes as long as a short pass
        posterior = passes.shares() if start is None else passes.with_known(start.copy())
        special = {
            "ebcc": _ebcc,
            "glad": _glad,
            "minimax": _minimax,
            "bwa": _votes,
            "wawa": _votes,
            "majority": _votes,
        }
        if settings.model in special:
            return special[settings.model](passes, posterior, settings, rng)
        counts = passes.counts(posterior) if start is not None else start_counts(passes, posterior, settings, rng)
        return fit_from(passes, posterior, counts, settings)


def fit_from(passes: Passes, posterior: Array, counts: Array, settings: Settings) -> Fit:
    """Rounds from the labels expected of the workers, ``counts``; ``posterior`` is overwritten."""
    if settings.model == "blend":
        return _blend(passes, posterior, counts, settings)
    workers = _workers(counts, settings)
    rounds = run_rounds(
        passes, workers, posterior, counts, n_iter=settings.n_iter, tol=settings.tol,
        log_prior=variational_prior if settings.model == "ibcc" and settings.estimate_prior else settings.log_prior,
    )  # fmt: skip
    workers.update(rounds.counts)
    further = {"trust": workers.trust} if isinstance(workers, Mace) else {}
    memberships = workers.memberships if isinstance(workers, Communities) else None
    return _described(rounds, workers, memberships=memberships, further=further)


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
    if settings.model == "ibcc":
        return Variational(counts.shape[1])
    simple: dict[str, type[Confusion] | type[OneCoin]] = {"ds": Confusion, "one_coin": OneCoin, "mace": Mace}
    return simple[settings.model](settings.smoothing)


def _described(rounds: Rounds, workers: WorkerModel, **more: Any) -> Fit:
    """The workers as the last round's classes show them."""
    typical = workers.typical(rounds.counts)
    confusion = more.pop("confusion", workers.probabilities)
    values = {
        "posterior": rounds.posterior, "counts": rounds.counts, "confusion": confusion,
        "errors": workers.errors(rounds.counts), "typical": typical, "prior": rounds.prior,
        "history": rounds.history, "converged": rounds.converged,
        "voices": (TableVoice(1.0, _with_typical(confusion, typical), rounds.prior),),
    }  # fmt: skip
    return Fit(**{**values, **more})


def _with_typical(tables: Array, typical: Array) -> Array:
    return np.concatenate([tables, typical[None]])


# --- Models that are more than rounds between tables and classes


def _blend(passes: Passes, posterior: Array, counts: Array, settings: Settings) -> Fit:
    found = run_blend(passes, posterior, counts, n_iter=settings.n_iter, tol=settings.tol, log_prior=settings.log_prior)
    tables = [
        TableVoice(
            member.share, _with_typical(member.workers.probabilities, member.workers.typical(member.rounds.counts)),
            member.rounds.prior,
        )
        for member in found.members
    ]  # fmt: skip
    strict = found.members[0]
    return Fit(
        posterior=found.posterior,
        counts=found.average(lambda member: member.rounds.counts),
        confusion=found.average(lambda member: member.workers.probabilities),
        errors=np.sqrt(found.average(lambda member: member.workers.errors(member.rounds.counts) ** 2)),
        typical=found.average(lambda member: member.workers.typical(member.rounds.counts)),
        prior=found.average(lambda member: member.rounds.prior),
        history=strict.rounds.history,
        converged=all(member.rounds.converged for member in found.members) and found.votes.converged,
        voices=(*tables, _vote_voice(found.votes, 1.0 - sum(member.share for member in found.members))),
        dependence=found.dependence,
        further={"random": found.average(lambda member: member.workers.random)},
    )


def _ebcc(passes: Passes, posterior: Array, settings: Settings, rng: np.random.Generator) -> Fit:
    wide = Passes(passes.labels, passes.known, ebcc.SUBTYPES)
    rounds, workers = ebcc.run_ebcc(wide, rng, n_iter=settings.n_iter, tol=settings.tol)
    workers.update(rounds.counts)

    def by_class(tables: Array) -> Array:
        return ebcc.class_tables(tables, rounds.prior, wide.width)

    typical = workers.typical(rounds.counts)
    n, k = passes.labels.n_tasks, passes.labels.n_classes
    return Fit(
        posterior=rounds.posterior.reshape(n, k, -1).sum(axis=2),
        counts=rounds.counts.reshape(*rounds.counts.shape[:2], k, -1).sum(axis=3),
        confusion=by_class(workers.probabilities),
        errors=np.sqrt(by_class(workers.errors(rounds.counts) ** 2)),
        typical=by_class(typical),
        prior=rounds.prior.reshape(k, -1).sum(axis=1),
        history=rounds.history,
        converged=rounds.converged,
        voices=(TableVoice(1.0, _with_typical(workers.probabilities, typical), rounds.prior),),
    )


def _glad(passes: Passes, posterior: Array, settings: Settings, rng: np.random.Generator) -> Fit:
    rounds, found = glad.run_glad(passes, posterior, n_iter=settings.n_iter, tol=settings.tol)
    workers = OneCoin(settings.smoothing)
    workers.update(rounds.counts)
    tables = glad.glad_tables(found.ability, passes.labels.n_classes)
    further = {"ability": found.ability, "ease": np.exp(found.ease)}
    return _described(rounds, workers, confusion=tables, further=further)


def _minimax(passes: Passes, posterior: Array, settings: Settings, rng: np.random.Generator) -> Fit:
    rounds, effects = run_minimax(passes, posterior, n_iter=settings.n_iter, tol=settings.tol)
    workers = Confusion(settings.smoothing)
    workers.update(rounds.counts)
    return _described(rounds, workers, confusion=effects.probabilities(), effects=effects)


def _votes(passes: Passes, posterior: Array, settings: Settings, rng: np.random.Generator) -> Fit:
    labels = passes.labels
    if settings.model == "majority":
        each, flat = np.ones(labels.n_workers), np.full(labels.n_classes, 1.0 / labels.n_classes)
        found = votes.WeightedVotes(passes.shares(), each, flat, 0.0, 0, True)
    elif settings.model == "wawa":
        found = votes.wawa(passes)
    else:
        found = votes.bwa(passes, n_iter=settings.n_iter, tol=settings.tol)
    workers = Confusion(settings.smoothing)
    counts = passes.counts(found.shares)
    workers.update(counts)
    rounds = Rounds(found.shares, counts, np.asarray(found.shares.mean(axis=0)), [], found.converged)
    return _described(rounds, workers, voices=(_vote_voice(found, 1.0),), further={"weight": found.weights})


def _vote_voice(found: votes.WeightedVotes, share: float) -> VoteVoice:
    typical = found.weights.mean() if len(found.weights) else 1.0
    return VoteVoice(share, np.append(found.weights, typical), found.mean, found.pull)
