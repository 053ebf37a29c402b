"""The share of noise cells, drawn with theta integrated out.

Given the components of the cells, a variable's counts c in a component are multinomial with probabilities
(1 - delta) theta + delta / d and theta ~ Dirichlet(eta). Drawn given theta, delta would hardly move: levels that hold
nothing but noise are empty without it, and theta would have to fill or empty all of them at once. So theta is
integrated out. With b = delta / (d (1 - delta)) that is an integral of prod_l theta_l^(eta - 1) (theta_l + b)^(c_l)
over the simplex: the density, at one, of a sum of independent parts. Their laws are tilted by exp(-lambda theta) until
the means sum to one, mean and variance of every part are taken by Gauss' rule where its mass lies, and the density of
the sum is that of the gamma law with the same mean and variance: exact for delta = 0, for which parts are gamma, and
off by some hundredths in the logarithm with ten cells. A priori there is no noise at all with a given probability, or
any share of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from mixmem.data.soft_levels import starts_of
from mixmem.kernels.special import log_gamma
from mixmem.likelihood.nodes import gauss_beta
from mixmem.refinement.slice_sampling import draw_slice
from mixmem.typing import Array

NODES = 16
"""Nodes of Gauss' rule for every part."""
REACH = 16.0
"""How far down in logarithms a part is followed to either side of its mode."""
TILTS = 4
"""Newton's steps towards the tilt at which means sum to one; a parabola does the rest."""
SHARES, HALVINGS = np.geomspace(1e-5, 0.7, 8), 3
"""Shares of noise about which one is proposed where there is none, and how often the distance between the likeliest is
halved."""
CERTAIN = 20.0
"""Logarithm of the odds of noise above which none at all is not tried."""
RULES = (1e-3, 1e3, 1000)
"""Least and largest prior shape, and how many, whose rules stand for those of shapes that differ by level."""
PLAIN = gauss_beta(NODES, 1.0, 1.0)
"""Nodes in (0, 1) and weights of Gauss' rule for parts that are nothing near zero."""


@dataclass(frozen=True)
class NoiseCounts:
    """Cells (rows, k) of each level in each component; the levels of a variable, of which there are ``sizes``, stand
    one after another. ``eta`` is theta's prior: one number, or one for every count where levels have an order."""

    counts: Array
    sizes: NDArray[np.int64]
    eta: Array | float

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each variable begins."""
        return starts_of(self.sizes)

    @cached_property
    def totals(self) -> Array:
        """Cells (variables, k) of each variable in each component."""
        return self._summed(self.counts)

    @cached_property
    def rule(self) -> tuple[Array, Array]:
        """Nodes in (0, 1) and weights of Gauss' rule for t^(eta - 1): (nodes,), or (rows, k, nodes)."""
        return gauss_beta(NODES, self.eta, 1.0) if isinstance(self.eta, float) else _rules_of(self.eta)

    @cached_property
    def wholes(self) -> Array:
        """Sums of the prior's shapes (variables, k)."""
        return self._summed(np.broadcast_to(self.eta, self.counts.shape))

    def _summed(self, values: Array) -> Array:
        """Return the sums over the levels of each variable (variables, k); values (rows, k)."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=0))

    def _spread(self, values: Array) -> Array:
        """Return values of variables (variables, k) for each of their levels (rows, k)."""
        return np.repeat(values, self.sizes, axis=0)

    def without_noise(self) -> float:
        """Return log p(counts | eta) if there is no noise, without the multinomial coefficients."""
        eta = np.broadcast_to(self.eta, self.counts.shape)
        of_levels = log_gamma(self.counts + eta).sum() - log_gamma(eta).sum()
        return float(of_levels + log_gamma(self.wholes).sum() - log_gamma(self.totals + self.wholes).sum())

    def with_noise(self, delta: float) -> float:
        """Return log p(counts | delta, eta) for delta > 0, nearly, without the multinomial coefficients."""
        tilt, part = self._parts(delta)
        mean, variance = self._summed(part.mean), self._summed(part.variance)
        shape = mean**2 / variance
        # of the gamma law with this shape, at its mean, and how far from there one lies
        density = shape * np.log(shape) - shape - log_gamma(shape) - np.log(mean) - (mean - 1.0) ** 2 / (2.0 * variance)
        found = tilt + self._summed(part.log_mass) + density + self.totals * np.log1p(-delta)
        return float(found.sum() + log_gamma(self.wholes).sum())

    def theta(self, delta: float, rng: np.random.Generator) -> Array:
        """Draw theta (rows, k) given delta > 0, nearly: at the nodes."""
        _, part = self._parts(delta)
        chances = np.cumsum(part.weights, axis=2)
        taken = (chances < chances[..., -1:] * rng.random((*self.counts.shape, 1))).sum(axis=2)
        drawn = np.maximum(np.take_along_axis(part.nodes, taken[..., None], axis=2)[..., 0], 1e-300)
        return np.asarray(drawn / self._spread(self._summed(drawn)))

    def _parts(self, delta: float) -> tuple[Array, Parts]:
        """Return the tilts (variables, k), and what is known of theta_l^(eta - 1) (theta_l + b)^(c_l) under them."""
        eta = self.eta
        noise = (delta / (1.0 - delta) / self.sizes)[:, None]
        tilt = (self.totals + self.wholes) / (1.0 + self.sizes[:, None] * noise)
        noise = self._spread(noise)
        for _ in range(TILTS):
            each = self._spread(tilt)
            at, root = _balanced(each, self.counts, noise, eta)
            slope = -self._summed((at + noise) * at / root)
            tilt = tilt * np.exp(np.clip((1.0 - self._summed(at)) / (slope * tilt), -1.0, 1.0))
        return tilt, Parts.of(self._spread(tilt), self.counts, noise, eta, self.rule)


@dataclass(frozen=True)
class Parts:
    """The laws t^(eta - 1) (t + b)^c exp(-tilt t) / Gamma(eta) of every level and component (rows, k).

    ``log_mass``, ``mean`` and ``variance`` (rows, k); ``nodes`` and their ``weights`` (rows, k, NODES).
    """

    log_mass: Array
    mean: Array
    variance: Array
    nodes: Array
    weights: Array

    @classmethod
    def of(cls, tilt: Array, counts: Array, noise: Array, eta: Array | float, zero: tuple[Array, Array]) -> Parts:
        """Take nodes where the mass lies: from zero by the rule for t^(eta - 1), or about the mode by the plain one."""
        beyond = np.maximum(np.asarray(eta) - 1.0, 0.0)
        mode = np.maximum(_balanced(tilt, counts, noise, beyond)[0], 0.0)
        at = mode + noise
        falls = tilt - counts / at - beyond / np.maximum(mode, 1e-300)
        left, right = _sides(at, counts)
        if beyond.any():
            nearer = (np.where(beyond > 0.0, side, np.inf) for side in _sides(mode, beyond))
            left, right = (np.minimum(*both) for both in zip((left, right), nearer, strict=True))
        high = mode + np.minimum(right, REACH / np.maximum(falls, 1e-300))
        low = np.maximum(mode - left, 0.0)
        from_zero = (low <= 0.0)[..., None]
        nodes = low[..., None] + (high - low)[..., None] * np.where(from_zero, zero[0], PLAIN[0])
        logs = counts[..., None] * np.log((nodes + noise[..., None]) / at[..., None])
        logs -= tilt[..., None] * (nodes - mode[..., None])
        power = np.broadcast_to(np.asarray(eta) - 1.0, counts.shape)[..., None]
        logs += np.where(from_zero, 0.0, power * np.log(np.maximum(nodes, 1e-300)))
        weights = np.exp(logs) * np.where(from_zero, zero[1], PLAIN[1])
        mass = weights.sum(axis=2)
        mean = (weights * nodes).sum(axis=2) / mass
        variance = (weights * (nodes - mean[..., None]) ** 2).sum(axis=2) / mass
        unit = np.where(from_zero[..., 0], high**eta / eta, high - low)
        log_mass = counts * np.log(at) - tilt * mode + np.log(mass * unit) - log_gamma(eta)
        return cls(log_mass, mean, variance, nodes, weights)


@cache
def _rules() -> tuple[Array, Array, Array]:
    """Return logarithms of prior shapes, close together, and nodes and weights (shapes, nodes) of their rules."""
    least, most, count = RULES
    logs = np.linspace(np.log(least), np.log(most), count)
    nodes, weights = zip(*(gauss_beta(NODES, float(eta), 1.0) for eta in np.exp(logs)), strict=True)
    return logs, np.array(nodes), np.array(weights)


def _rules_of(eta: Array) -> tuple[Array, Array]:
    """Return nodes and weights (rows, k, nodes) of the rules for many shapes, from those of their neighbours."""
    logs, nodes, weights = _rules()
    at = np.clip((np.log(eta) - logs[0]) / (logs[1] - logs[0]), 0.0, len(logs) - 1.000001)
    below = at.astype(np.int64)
    part = (at - below)[..., None]
    nodes, weights = ((1.0 - part) * values[below] + part * values[below + 1] for values in (nodes, weights))
    return nodes, weights


def _sides(at: Array, power: Array | float) -> tuple[Array, Array]:
    """Return how far to the left and right of ``at`` t^power exp(-power t / at) has fallen by REACH, or further."""
    reach = REACH / np.maximum(power, 1e-9)
    return at * np.sqrt(2.0 * reach), at * (reach + np.sqrt(2.0 * reach))


def _balanced(tilt: Array, counts: Array, noise: Array, eta: Array | float) -> tuple[Array, Array]:
    """Return where tilt t^2 + (tilt noise - eta - counts) t = eta noise, t not negative, and the root of the
    discriminant: nearly the mean of a part, and exactly so without noise."""
    middle = eta + counts - tilt * noise
    root = np.maximum(np.sqrt(middle**2 + 4.0 * tilt * eta * noise), 1e-300)
    return np.where(middle > 0.0, (middle + root) / (2.0 * tilt), 2.0 * eta * noise / (root - middle + 1e-300)), root


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
