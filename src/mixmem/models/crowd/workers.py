"""Models of workers: from the labels expected of them in every class to their confusion matrices.

All have one contract, :class:`WorkerModel`. Arrays by worker are (W, K, K) with [w, l, j] for label l in class j.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from scipy.special import digamma, gammaln

from mixmem.engine.local import in_parts
from mixmem.kernels.crowd import WORKER_BLOCK, community_pass
from mixmem.typing import Array


class WorkerModel(Protocol):
    """What a round needs of a model of workers."""

    probabilities: Array
    """p(label l | class j) of worker w, (W, K, K), as of the last update."""

    def update(self, counts: Array) -> Array:
        """Learn from the labels expected of each worker in each class; returns log p(label | class), (W, K, K)."""

    def errors(self, counts: Array) -> Array:
        """Standard errors of ``probabilities`` under the posterior, (W, K, K)."""

    def typical(self, counts: Array) -> Array:
        """p(label l | class j) of a worker of whom nothing is known, (K, K)."""


class Confusion:
    """Dawid and Skene's model: a confusion matrix a worker, every cell with ``smoothing`` labels added."""

    def __init__(self, smoothing: float):
        self.smoothing = smoothing

    def update(self, counts: Array) -> Array:
        self.probabilities = counts + self.smoothing
        self.probabilities /= self.probabilities.sum(axis=1, keepdims=True)
        return np.log(self.probabilities)

    def errors(self, counts: Array) -> Array:
        return _dirichlet_errors(self.probabilities, (counts + self.smoothing).sum(axis=1, keepdims=True))

    def typical(self, counts: Array) -> Array:
        return _pooled(counts, self.smoothing)


class Unsmoothed(Confusion):
    """Confusion matrices as shares; a label never given in a class is no evidence against it (log 0 left out).

    The way of the published experiment (Zhang et al.); it exists to show its numbers again.
    """

    def __init__(self) -> None:
        super().__init__(smoothing=0.0)

    def update(self, counts: Array) -> Array:
        totals = counts.sum(axis=1, keepdims=True)
        self.probabilities = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0.0)
        return np.log(np.where(self.probabilities > 0.0, self.probabilities, 1.0))


class OneCoin:
    """One number a worker: the probability of the right label; wrong ones are equally likely.

    ``smoothing`` labels are added to the right ones and to each of the wrong ones.
    """

    def __init__(self, smoothing: float):
        self.smoothing = smoothing

    def update(self, counts: Array) -> Array:
        self.n_classes = counts.shape[1]
        self.probabilities = self._matrices(*self._right(counts))
        return np.log(self.probabilities)

    def errors(self, counts: Array) -> Array:
        right, total = self._right(counts)
        share = right / total
        off = np.maximum(counts.shape[1] - 1, 1)
        error = np.sqrt(share * (1.0 - share) / (total + 1.0))
        eye = np.eye(counts.shape[1])
        return np.asarray(error[:, None, None] * (eye + (1.0 - eye) / off))

    def typical(self, counts: Array) -> Array:
        right, total = self._right(counts)
        return np.asarray(self._matrices(right.sum(keepdims=True), total.sum(keepdims=True))[0])

    def _right(self, counts: Array) -> tuple[Array, Array]:
        right = np.trace(counts, axis1=1, axis2=2)
        return right + self.smoothing, counts.sum(axis=(1, 2)) + counts.shape[1] * self.smoothing

    def _matrices(self, right: Array, total: Array) -> Array:
        k = self.n_classes
        share = (right / total)[:, None, None]
        eye = np.eye(k)
        return np.asarray(share * eye + (1.0 - share) / max(k - 1, 1) * (1.0 - eye))


class Communities:
    """Confusion matrices drawn from a few communities of workers, whose Dirichlet priors are learned with them.

    Community g has Dirichlet parameters alpha (G, K, K), a column a class; the last community labels at random: its
    columns are the same for every class. A worker of few labels is taken for a typical member, one of many stands for
    himself. The priors move by Minka's fixed point, held back by one imaginary worker in each community, who gave
    ``STRENGTH`` labels in every class as the community began.
    """

    STRENGTH = 5.0
    STEPS = 5
    ENOUGH = 1000
    """Workers that the priors are learned from where there are twice as many or more: every second, third, ..."""
    LEAST, MOST = 1e-3, 1e4
    """Bounds of the Dirichlet parameters."""

    def __init__(self, counts: Array, n_communities: int):
        self.alpha = _first_priors(counts, n_communities) * self.STRENGTH
        self.imaginary = self.alpha.copy()
        self.log_weights = np.full(n_communities, -math.log(n_communities))

    def update(self, counts: Array) -> Array:
        some = np.ascontiguousarray(counts[:: max(1, len(counts) // self.ENOUGH)])
        for _ in range(self.STEPS):
            memberships, _, sums = self._pass(some)
            self._move(memberships, sums)
        self.memberships, self.probabilities, _ = self._pass(counts)
        return np.log(self.probabilities)

    def errors(self, counts: Array) -> Array:
        square = np.zeros_like(counts)
        for g, alpha in enumerate(self.alpha):
            total = (counts + alpha).sum(axis=1, keepdims=True)
            mean = (counts + alpha) / total
            square += self.memberships[:, g, None, None] * (mean * (1.0 - mean) / (total + 1.0) + mean**2)
        return np.sqrt(np.maximum(square - self.probabilities**2, 0.0))

    def typical(self, counts: Array) -> Array:
        means = self.alpha / self.alpha.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("g,glj->lj", np.exp(self.log_weights), means))

    def _pass(self, counts: Array) -> tuple[Array, Array, Array]:
        """Memberships (W, G) and mean confusion matrices (W, K, K) of workers, and the sums that move the priors."""
        n_communities, n_classes = self.alpha.shape[:2]
        n_blocks = -(-len(counts) // WORKER_BLOCK)
        memberships, means = np.empty((len(counts), n_communities)), np.empty_like(counts)
        partials = np.empty((n_blocks, n_communities, n_classes + 1, n_classes))
        whole = np.concatenate([self.alpha, self.alpha.sum(axis=1, keepdims=True)], axis=1)
        logs, slopes = gammaln(whole), digamma(whole)
        in_parts(
            lambda first, last: community_pass(
                counts, self.alpha, logs, slopes, self.log_weights, first, last, memberships, means, partials
            ),
            n_blocks,
        )
        return memberships, means, np.asarray(partials.sum(axis=0))

    def _move(self, memberships: Array, sums: Array) -> None:
        """One step of Minka's fixed point for the priors; weights of the communities with one worker added to each."""
        strength, imagined = (x.sum(axis=1) for x in (self.alpha, self.imaginary))
        rise = sums[:, :-1] + digamma(self.alpha + self.imaginary) - digamma(self.alpha)
        fall = sums[:, -1] + digamma(strength + imagined) - digamma(strength)
        rise[-1], fall[-1] = rise[-1].sum(axis=1, keepdims=True), fall[-1].sum()
        self.alpha = np.clip(self.alpha * rise / fall[:, None, :], self.LEAST, self.MOST)
        sizes = memberships.sum(axis=0) + 1.0
        self.log_weights = np.log(sizes / sizes.sum())


def _first_priors(counts: Array, n_communities: int) -> Array:
    """Mean confusion matrices to begin with, (G, K, K): levels of accuracy among the workers, and random labels."""
    k = counts.shape[1]
    accuracy = (np.trace(counts, axis1=1, axis2=2) + 1.0) / (counts.sum(axis=(1, 2)) + 1.5)
    levels = np.quantile(accuracy, (np.arange(n_communities - 1) + 0.5) / max(n_communities - 1, 1))[::-1]
    eye = np.eye(k)
    means = [level * eye + (1.0 - level) / max(k - 1, 1) * (1.0 - eye) for level in levels]
    used = counts.sum(axis=(0, 2)) + 1.0
    return np.array([*means, np.repeat((used / used.sum())[:, None], k, axis=1)])


def _dirichlet_errors(mean: Array, total: Array) -> Array:
    return np.sqrt(mean * (1.0 - mean) / (total + 1.0))


def _pooled(counts: Array, smoothing: float) -> Array:
    pooled = counts.sum(axis=0) + max(smoothing, 1e-9)
    return np.asarray(pooled / pooled.sum(axis=0))
