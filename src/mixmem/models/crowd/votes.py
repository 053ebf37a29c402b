"""Votes and weighted votes: majority, WAWA and BWA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.engine.local import in_parts
from mixmem.kernels.crowd import vote_pass
from mixmem.models.crowd.rounds import Passes, column_sums
from mixmem.typing import Array

PRECISION = 15.0
"""Labels that a worker's precision is worth before any is seen (BWA)."""
ROUNDS, TOLERANCE = 100, 1e-3


@dataclass(frozen=True)
class WeightedVotes:
    """``shares`` (n, K) of tasks, from labels that count ``weights`` (W,) beside ``pull`` votes split as ``mean``."""

    shares: Array
    weights: Array
    mean: Array
    pull: float
    rounds: int
    converged: bool


def wawa(passes: Passes) -> WeightedVotes:
    """Weigh workers by how often they agree with the majority, once; a tied vote is shared."""
    labels, shares = passes.labels, passes.shares()
    leading = (shares >= shares.max(axis=1, keepdims=True) - 1e-12).astype(float)
    counts = passes.counts(leading / leading.sum(axis=1, keepdims=True))
    weights = np.einsum("wll->w", counts) / np.maximum(counts.sum(axis=(1, 2)), 1e-12)
    mean = np.full(labels.n_classes, 1.0 / labels.n_classes)
    _vote(passes, weights, mean, 0.0, shares)
    return WeightedVotes(shares, weights, mean, 0.0, 1, True)


def bwa(passes: Passes, *, n_iter: int = ROUNDS, tol: float = TOLERANCE) -> WeightedVotes:
    """Bayesian weighted average (Li, Rubinstein, Cohn 2019): labels are the task's unknown point plus a worker's noise.

    A task's point z_i ~ N(mean, 1), a label's indicator ~ N(z_i, 1 / v_w), v_w ~ Gamma with mean as the vote shares
    give it and ``PRECISION`` labels' weight; the points, precisions and mean are taken in turn.
    """
    labels, shares = passes.labels, passes.shares()
    given = np.bincount(labels.workers, minlength=labels.n_workers)
    k = labels.n_classes
    mean = np.asarray(shares.mean(axis=0))
    # Around the vote shares a task's labels scatter by n (1 - sum of squared shares).
    scatter = float((np.diff(labels.starts) * (1.0 - (passes.vote_shares() ** 2).sum(axis=1))).sum())
    noise = PRECISION * max(scatter, 1e-9) / (max(labels.n_labels, 1) * k)
    weights, converged, rounds = np.full(labels.n_workers, PRECISION / noise), False, 0
    off, _ = _vote(passes, np.ones(labels.n_workers), mean, 0.0, shares)
    while rounds < n_iter and not converged:
        weights = (PRECISION + given) / (noise + off / k)
        off, change = _vote(passes, weights, mean, 1.0, shares)
        mean = column_sums(shares) / labels.n_tasks
        rounds, converged = rounds + 1, change < tol
    return WeightedVotes(shares, weights, mean, 1.0, rounds, converged)


def _vote(passes: Passes, weights: Array, mean: Array, pull: float, shares: Array) -> tuple[Array, float]:
    """Renew the shares; return the squared distances of every worker's labels from them and the mean change."""
    labels, blocks = passes.labels, len(passes.bounds) - 1
    partials, changes = np.empty((blocks, labels.n_workers)), np.empty(blocks)
    in_parts(
        lambda first, last: vote_pass(
            labels.starts, labels.workers, labels.labels, passes.known, weights, mean, pull, passes.bounds, first, last,
            shares, partials, changes,
        ),
        blocks,
    )  # fmt: skip
    return np.asarray(partials.sum(axis=0)), float(changes.sum()) / max(labels.n_tasks, 1)
