"""The share of noise cells, drawn with theta integrated out.

Given the components of the cells, a variable's counts c in a component are multinomial with probabilities
(1 - delta) theta + delta / d and theta ~ Dirichlet(eta). Drawn given theta, delta would hardly move: levels that hold
nothing but noise are empty without it, and theta would have to fill or empty all of them at once. So theta is
integrated out. With b = delta / (d (1 - delta)) that is an integral of prod_l theta_l^(eta - 1) (theta_l + b)^(c_l)
over the simplex. With few cells it is a sum over how many of each level are noise, which is made: exact. With more
(:data:`mixmem.kernels.noise.FEW`) it is the density, at one, of a sum of independent parts. Their laws are tilted by
exp(-lambda theta) until the means sum to one, mean and variance of every part are taken by Gauss' rule where its mass
lies, and the density of the sum is that of the gamma law with the same mean and variance: exact for delta = 0, for
which parts are gamma, and off by less than a twentieth in the logarithm. A priori there is no noise at all with a given
probability, or any share of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from mixmem.kernels.noise import kept_cells, noise_evidence, noise_levels
from mixmem.kernels.special import log_gamma
from mixmem.likelihood.nodes import gauss_beta
from mixmem.refinement.slice_sampling import draw_slice
from mixmem.typing import Array

NODES = 16
"""Nodes of Gauss' rule for every part."""
SHARES, HALVINGS = np.geomspace(1e-5, 0.7, 8), 3
"""Shares of noise about which one is proposed where there is none, and how often the distance between the likeliest is
halved."""
CERTAIN = 20.0
"""Logarithm of the odds of noise above which none at all is not tried."""
RULES = (1e-3, 1e3, 1000)
"""Least and largest prior shape, and how many, whose rules stand for those of shapes that differ by level."""
PLAIN = np.array(gauss_beta(NODES, 1.0, 1.0))
"""Nodes in (0, 1) and weights (2, nodes) of Gauss' rule for parts that are nothing near zero."""


@dataclass(frozen=True)
class NoiseCounts:
    """Cells (rows, k) of each level in each component; the levels of a variable, of which there are ``sizes``, stand
    one after another. ``eta`` is theta's prior: one number, or one for every count where levels have an order."""

    counts: Array
    sizes: NDArray[np.int64]
    eta: Array | float

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Where each variable begins, and the last ends."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def shapes(self) -> Array:
        """The prior's shapes (rows, k)."""
        return np.array(np.broadcast_to(self.eta, self.counts.shape))

    @cached_property
    def rules(self) -> tuple[Array, NDArray[np.int64]]:
        """Gauss' rules for t^(eta - 1) on (0, 1), nodes and weights (rules, 2, nodes), and which is whose (rows, k)."""
        if isinstance(self.eta, float):
            return np.array([gauss_beta(NODES, self.eta, 1.0)]), np.zeros(self.counts.shape, np.int64)
        return _rules_of(self.eta), np.arange(self.counts.size).reshape(self.counts.shape)

    @cached_property
    def normalizer(self) -> float:
        """Logarithm of the prior's constant."""
        return float(log_gamma(self._summed(self.shapes)).sum() - log_gamma(self.shapes).sum())

    def _summed(self, values: Array) -> Array:
        """Return the sums over the levels of each variable (variables, k); values (rows, k)."""
        return np.asarray(np.add.reduceat(values, self.bounds[:-1], axis=0))

    def without_noise(self) -> float:
        """Return log p(counts | eta) if there is no noise, without the multinomial coefficients."""
        held = self.counts + self.shapes
        return float(log_gamma(held).sum() - log_gamma(self._summed(held)).sum()) + self.normalizer

    def with_noise(self, delta: float) -> float:
        """Return log p(counts | delta, eta) for delta > 0, without multinomial coefficients; nearly, of many cells."""
        evidence = np.empty((len(self.sizes), self.counts.shape[1]))
        noise_evidence(*self._laws(delta), evidence)
        return float(evidence.sum() + self.counts.sum() * np.log1p(-delta)) + self.normalizer

    def theta(self, delta: float, rng: np.random.Generator) -> Array:
        """Draw theta (rows, k) given delta > 0; of variables with many cells nearly: at the nodes."""
        laws, chances = self._laws(delta), rng.random(self.counts.shape)
        kept, drawn = np.empty((2, *self.counts.shape))
        noise_levels(*laws, chances, drawn)
        kept_cells(*laws[:4], chances, kept)
        few = kept >= 0.0
        drawn[few] = np.maximum(rng.standard_gamma(kept[few] + self.shapes[few]), 1e-300)
        return drawn / np.repeat(self._summed(drawn), self.sizes, axis=0)

    def _laws(self, delta: float) -> tuple[NDArray, ...]:
        """Return what kernels take that tell the laws of levels apart."""
        noises = delta / (1.0 - delta) / self.sizes
        return self.counts, self.shapes, self.bounds, noises, *self.rules, PLAIN


@cache
def _rules() -> tuple[Array, Array]:
    """Return logarithms of prior shapes, close together, and nodes and weights (shapes, 2, nodes) of their rules."""
    least, most, count = RULES
    logs = np.linspace(np.log(least), np.log(most), count)
    return logs, np.array([gauss_beta(NODES, float(eta), 1.0) for eta in np.exp(logs)])


def _rules_of(eta: Array) -> Array:
    """Return nodes and weights (shapes, 2, nodes) of the rules for many shapes, from those of their neighbours."""
    logs, rules = _rules()
    at = np.clip((np.log(eta).ravel() - logs[0]) / (logs[1] - logs[0]), 0.0, len(logs) - 1.000001)
    below = at.astype(np.int64)
    part = (at - below)[:, None, None]
    return np.asarray((1.0 - part) * rules[below] + part * rules[below + 1])


def draw_noise(
    held: NoiseCounts,
    delta: float,
    none: float,
    rng: np.random.Generator,
    *,
    far: bool,
) -> float:
    """Draw the share of noise given where it stands; ``none`` is the prior chance of none.

    ``far`` tries the step from some noise to none or back first.
    """

    def height(at: float) -> float:
        """Log-density of the logarithm of the share: shares are even a priori, not their logarithms."""
        return held.with_noise(float(np.exp(at))) + at + float(np.log1p(-none))

    if far:
        delta = _crossed(height, held.without_noise() + float(np.log(none)), delta, rng)
    if delta > 0.0:
        delta = float(np.exp(draw_slice(height, float(np.log(delta)), 0.2, (np.log(1e-6), np.log(0.95)), rng)))
    return delta


def _crossed(height: Callable[[float], float], nothing: float, delta: float, rng: np.random.Generator) -> float:
    """Return the share of noise after a try to step from none to some or back, by Metropolis and Hastings."""
    here = height(float(np.log(delta))) if delta > 0.0 else nothing
    if delta > 0.0 and here - nothing > CERTAIN:
        return delta
    points, heights, edges = _looked_over(height)
    chances = (np.exp(heights - heights.max()) + 1e-6) * np.diff(edges)
    chances /= chances.sum()
    if delta > 0.0:
        cell = int(np.clip(np.searchsorted(edges, np.log(delta)) - 1, 0, len(points) - 1))
        proposed = float(np.log(chances[cell] / (edges[cell + 1] - edges[cell])))
        return 0.0 if np.log(rng.random()) < nothing + proposed - here else delta
    cell = int(rng.choice(len(points), p=chances))
    at = float(edges[cell] + (edges[cell + 1] - edges[cell]) * rng.random())
    proposed = float(np.log(chances[cell] / (edges[cell + 1] - edges[cell])))
    return float(np.exp(at)) if np.log(rng.random()) < height(at) - proposed - nothing else 0.0


def _looked_over(height: Callable[[float], float]) -> tuple[Array, Array, Array]:
    """Return logarithms of shares, evenly spread and closer where they are likeliest, their heights, and the borders
    between them, of which there is one more."""
    points = np.log(SHARES)
    heights = np.array([height(at) for at in points.tolist()])
    for _ in range(HALVINGS):
        best = int(heights.argmax())
        near = points[[max(best - 1, 0), best, min(best + 1, len(points) - 1)]]
        between = [at for at in (near[:-1] + np.diff(near) / 2.0).tolist() if at not in points]
        order = np.argsort([*points, *between])
        points, heights = np.array([*points, *between])[order], np.array([*heights, *map(height, between)])[order]
    edges = np.concatenate([points[:1] - 0.5, (points[1:] + points[:-1]) / 2.0, np.log([0.95])])
    return points, heights, edges
