"""Confusion matrices held near the diagonal by the data's own evidence: one accuracy per worker, or more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixmem.engine.local import in_parts
from mixmem.kernels.crowd_workers import WORKER_BLOCK, strength_pass
from mixmem.typing import Array

PULL = 4.0
"""Labels by which a worker's accuracy is drawn to that of all workers."""
WRONG = 10.0
"""Labels per class, evenly over the wrong ones, beside those that all workers gave wrongly."""
MOST_RANDOM = 0.5
"""Share of workers that may be expected to label at random: else doubt about classes would make all of them so."""
FLEXIBLE = 16.0
"""A worker of this strength or less has a confusion matrix of their own."""


class Strengths:
    """Workers of one accuracy each, who follow it more or less strictly; some label at random.

    In class j, worker w's labels have a Dirichlet prior around right labels with the worker's accuracy and wrong ones
    as all workers choose them. Its strength is one of ``strengths``: a large one means one accuracy whatever the class,
    a small one a confusion matrix of the worker's own. Which strength a worker has, or whether the labels do not depend
    on the class at all, is weighed by the labels' own likelihood, and how common each is is learned from all workers.
    The accuracy is the same in every class before the worker's labels are seen: an accuracy per class, learned from all
    workers, would let a rare class drift to another one. With ``own=False`` it is the same for all workers, too.

    A label is no evidence of itself: with ``own``, of the n labels l that a worker gave, n - 1 count for that label's
    probabilities, so that a label given once says what other workers' labels say.
    """

    def __init__(self, strengths: Sequence[float], *, own: bool = True):
        self.strengths, self.own = np.array(strengths, dtype=float), own
        self.memberships: Array | None = None

    def update(self, counts: Array) -> Array:
        n_workers = len(counts)
        if self.memberships is None:
            self.memberships = np.full((n_workers, len(self.strengths) + 1), 1.0 / (len(self.strengths) + 1))
        self._center(counts)
        if self.own:
            given = counts.sum(axis=2, keepdims=True)
            counts = counts * (np.maximum(given - 1.0, 0.0) / np.maximum(given, 1e-9))
        weights = self.memberships.sum(axis=0) + 1.0
        weights /= weights.sum()
        if weights[-1] > MOST_RANDOM:
            weights[:-1] *= (1.0 - MOST_RANDOM) / weights[:-1].sum()
            weights[-1] = MOST_RANDOM
        self.log_weights = np.log(weights)
        memberships, self.probabilities = np.empty_like(self.memberships), np.empty_like(counts)
        in_parts(
            lambda first, last: strength_pass(
                counts, self.right, self.wrong, self.strengths, self.habit, self.log_weights, first, last, memberships,
                self.probabilities,
            ),
            -(-n_workers // WORKER_BLOCK),
        )  # fmt: skip
        self.memberships = memberships
        return np.log(self.probabilities)

    def errors(self, counts: Array) -> Array:
        assert self.memberships is not None
        square = np.zeros_like(counts)
        for g, strength in enumerate(self.strengths):
            total = counts.sum(axis=1, keepdims=True) + strength
            mean = (counts + strength * self._centers(self.right)) / total
            square += self.memberships[:, g, None, None] * (mean * (1.0 - mean) / (total + 1.0) + mean**2)
        given = (counts.sum(axis=2) + self.habit)[:, :, None]
        total = given.sum(axis=1, keepdims=True)
        mean = given / total
        square += self.memberships[:, -1, None, None] * (mean * (1.0 - mean) / (total + 1.0) + mean**2)
        return np.sqrt(np.maximum(square - self.probabilities**2, 0.0))

    def typical(self, counts: Array) -> Array:
        weights = np.exp(self.log_weights)
        habit = self.habit / self.habit.sum()
        return np.asarray((1.0 - weights[-1]) * self._centers(self.accuracy)[0] + weights[-1] * habit[:, None])

    @property
    def random(self) -> Array:
        """Return the probability that a worker labels at random, (W,)."""
        assert self.memberships is not None
        return np.asarray(self.memberships[:, -1])

    def flexible(self, counts: Array) -> float:
        """Return the share of labels, random ones left out, whose workers have a confusion matrix of their own."""
        assert self.memberships is not None
        given = counts.sum(axis=(1, 2))
        small = self.memberships[:, :-1][:, self.strengths <= FLEXIBLE].sum(axis=1)
        return float((small * given).sum() / max(((1.0 - self.memberships[:, -1]) * given).sum(), 1e-12))

    def _center(self, counts: Array) -> None:
        """Set accuracies, wrong labels and random habits from the labels expected of all workers."""
        assert self.memberships is not None
        k = counts.shape[1]
        off = 1.0 - np.eye(k)
        serious = 1.0 - self.memberships[:, -1]
        right, total = np.einsum("wjj->w", counts), counts.sum(axis=(1, 2))
        self.accuracy = np.array(
            [((right * serious).sum() + 1.0) / ((total * serious).sum() + (2.0 if k > 1 else 1.0))]
        )
        everyone = np.repeat(self.accuracy, len(counts))
        self.right = (right + PULL * everyone) / (total + PULL) if self.own else everyone
        pooled = np.einsum("w,wlj->lj", serious, counts) * off + WRONG / max(k - 1, 1) * off
        self.wrong = pooled / np.maximum(pooled.sum(axis=0), 1e-300)
        habit = np.einsum("w,wlj->l", 1.0 - serious, counts) + 1.0
        self.habit = k * habit / habit.sum()

    def _centers(self, right: Array) -> Array:
        eye = np.eye(len(self.wrong))
        return np.asarray(right[:, None, None] * eye + (1.0 - right)[:, None, None] * self.wrong)
