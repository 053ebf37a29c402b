"""Models of single workers: from the labels expected of them in every class to their confusion matrices.

All have one contract, :class:`WorkerModel`. Arrays by worker are (W, K, K) with [w, l, j] for label l in class j.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import digamma

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


class Variational(Confusion):
    """Confusion matrices under a Dirichlet prior of ``right`` labels on the diagonal and one elsewhere, by variational
    Bayes: a label's score is the expected log of its probability (iBCC, Kim and Ghahramani 2012).

    With ``width`` subtypes every class has that many columns, each with a matrix column of its own (EBCC).
    """

    def __init__(self, n_classes: int, right: float = 4.0, width: int = 1):
        self.imagined = np.repeat(np.ones((n_classes, n_classes)) + (right - 1.0) * np.eye(n_classes), width, axis=1)

    def update(self, counts: Array) -> Array:
        known = counts + self.imagined
        total = known.sum(axis=1, keepdims=True)
        self.probabilities = known / total
        return np.asarray(digamma(known) - digamma(total))

    def errors(self, counts: Array) -> Array:
        return _dirichlet_errors(self.probabilities, (counts + self.imagined).sum(axis=1, keepdims=True))

    def typical(self, counts: Array) -> Array:
        pooled = counts.sum(axis=0) + self.imagined
        return np.asarray(pooled / pooled.sum(axis=0))


class Mace(Confusion):
    """Workers who know the class, or else follow a habit of their own (MACE, Hovy and others 2013).

    Worker w gives the class as label with probability ``trust``, else label l with probability ``habit``; both have
    ``smoothing`` labels added.
    """

    def __init__(self, smoothing: float):
        super().__init__(smoothing)
        self.trust: Array | None = None

    def update(self, counts: Array) -> Array:
        k = counts.shape[1]
        given, right = counts.sum(axis=2), np.einsum("wll->wl", counts)
        if self.trust is None:
            self.trust, self.habit = np.full(len(counts), 0.5), np.full(given.shape, 1.0 / k)
        knew = right * self.trust[:, None] / (self.trust[:, None] + (1.0 - self.trust)[:, None] * self.habit)
        self.trust = (knew.sum(axis=1) + self.smoothing) / (given.sum(axis=1) + 2.0 * self.smoothing)
        self.habit = given - knew + self.smoothing
        self.habit /= self.habit.sum(axis=1, keepdims=True)
        self.probabilities = self._matrices(self.trust, self.habit)
        return np.log(self.probabilities)

    def typical(self, counts: Array) -> Array:
        assert self.trust is not None
        labels = counts.sum(axis=(1, 2))
        mean = [np.average(x, axis=0, weights=labels + 1e-9) for x in (self.trust, self.habit)]
        return np.asarray(self._matrices(mean[0][None], mean[1][None])[0])

    def _matrices(self, trust: Array, habit: Array) -> Array:
        eye = np.eye(habit.shape[1])
        return np.asarray(trust[:, None, None] * eye + (1.0 - trust)[:, None, None] * habit[:, :, None])


def _dirichlet_errors(mean: Array, total: Array) -> Array:
    return np.sqrt(mean * (1.0 - mean) / (total + 1.0))


def _pooled(counts: Array, smoothing: float) -> Array:
    pooled = counts.sum(axis=0) + max(smoothing, 1e-9)
    return np.asarray(pooled / pooled.sum(axis=0))
