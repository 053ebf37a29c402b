"""The default: three models heard together, and probabilities that allow for workers who err together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixmem.models.crowd.dependence import Dependence, favour_given, measure
from mixmem.models.crowd.labels import Labels
from mixmem.models.crowd.rounds import LogPrior, Passes, Rounds, run_rounds
from mixmem.models.crowd.strengths import PULL, Strengths
from mixmem.models.crowd.votes import WeightedVotes, bwa
from mixmem.typing import Array

STRICT = (1.0, 4.0, 16.0, 64.0, 256.0)
"""Strengths among which every worker's own is found by the labels' likelihood."""
LOOSE = (2.0,)
"""Strength of the member that lets every worker have a confusion matrix."""
VOTES = 0.05
"""Share of the weighted votes, where workers err together."""
LEAST = 0.5
"""A class is taken to be at least this share as common as its votes: else it may collapse where workers are little
known."""


@dataclass(frozen=True)
class Member:
    """A model of workers after its rounds, and its share in the mean."""

    share: float
    workers: Strengths
    rounds: Rounds


@dataclass(frozen=True)
class Blend:
    """``posterior`` (n, K): the members' mean, tempered for ``dependence`` between workers, and weighted ``votes``."""

    posterior: Array
    members: tuple[Member, ...]
    votes: WeightedVotes
    dependence: Dependence

    def average(self, of: Callable[[Member], Array]) -> Array:
        """Return the mean of ``of(member)`` over the members, by their shares."""
        total = sum(member.share for member in self.members)
        return np.asarray(sum(member.share / total * of(member) for member in self.members))


def run_blend(passes: Passes, start: Array, counts: Array, *, n_iter: int, tol: float, log_prior: LogPrior) -> Blend:
    """Fit the members, each from class probabilities ``start`` (n, K) and labels expected ``counts``; take their mean.

    The loose member is heard as far as the strict one finds that workers have confusion matrices of their own: on
    labels of workers with one accuracy each it says nothing. Likewise the votes, as far as workers err together, or as
    far as workers are known by what all workers do rather than by labels of their own.
    """
    fitted, votes = [], bwa(passes)
    log_prior = _held(log_prior, passes.vote_shares().mean(axis=0))
    for workers in (Strengths(STRICT), Strengths(LOOSE, own=False)):
        rounds = run_rounds(passes, workers, start.copy(), counts, n_iter=n_iter, tol=tol, log_prior=log_prior)
        workers.update(rounds.counts)
        fitted.append((workers, rounds))
    (strict, first), (_, second) = fitted
    dependence = measure(passes.labels, strict.probabilities, first.posterior)
    share = max(VOTES * dependence.probability, _unknown(passes.labels))
    loose = strict.flexible(first.counts)
    shares = ((1.0 - share) * (1.0 - loose), (1.0 - share) * loose)
    members = tuple(Member(each, *fit) for each, fit in zip(shares, fitted, strict=True))
    mean = (1.0 - loose) * first.posterior + loose * second.posterior
    tempered = dependence.temper(mean, np.diff(passes.labels.starts))
    found = favour_given((1.0 - share) * tempered + share * votes.shares, passes.labels)
    return Blend(passes.with_known(found), members, votes, dependence)


def _held(log_prior: LogPrior, votes: Array) -> LogPrior:
    """Return the log prior of classes with none below ``LEAST`` of its share of the ``votes`` (K,)."""
    least = np.log(np.maximum(LEAST * votes, 1e-12))

    def held(sizes: Array) -> Array:
        raised = np.maximum(log_prior(sizes), least)
        return np.asarray(raised - np.log(np.exp(raised).sum()))

    return held


def _unknown(labels: Labels) -> float:
    """Return how far workers' accuracies are taken from all workers, mean over labels: half with four labels each."""
    given = np.bincount(labels.workers, minlength=labels.n_workers)
    return float((given * PULL / (PULL + given)).sum() / max(labels.n_labels, 1))
