"""Workers drawn from a few communities, whose habits are learned."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma, gammaln

from mixmem.engine.local import in_parts
from mixmem.kernels.crowd_workers import WORKER_BLOCK, community_pass
from mixmem.typing import Array


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
