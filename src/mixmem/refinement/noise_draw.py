"""The share of noise cells, drawn with theta integrated out.

Given the components of the cells, a variable's counts in a component are multinomial with probabilities
(1 - delta) theta + delta / d and theta ~ Dirichlet(eta). For delta = 0 theta integrates out in closed form; for
delta > 0 the integral is taken by importance sampling around what is left of the counts without the noise. Drawn given
theta instead, delta would hardly move: levels that hold nothing but noise are empty without it, and theta would have to
fill or empty all of them at once. A priori there is no noise at all with a given probability, or any share of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.data.soft_levels import starts_of
from mixmem.kernels.special import log_gamma
from mixmem.typing import Array

DRAWS = 16
"""Draws of theta per variable, component and share of noise."""
SHARES, NEAR = np.geomspace(0.001, 0.7, 14), np.linspace(-0.5, 0.5, 5)
"""Shares of noise that are weighed against each other and against none, all of them moved by one random factor; and
the logarithms of factors that lead to those about a share."""


@dataclass(frozen=True)
class NoiseCounts:
    """Cells (rows, k) of each level in each component; the levels of a variable, of which there are ``sizes``, stand
    one after another."""

    counts: Array
    sizes: NDArray[np.int64]

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each variable begins."""
        return starts_of(self.sizes)

    def summed(self, values: Array) -> Array:
        """Return the sums over the levels of each variable, for each of its levels; values (…, rows, k)."""
        return np.repeat(np.add.reduceat(values, self.starts, axis=-2), self.sizes, axis=-2)

    def _prior(self, eta: Array | float) -> tuple[Array, float, float]:
        """Return the sums of the prior's shapes by variable, and of log Gamma of the shapes and of those sums, over
        all components; eta is one number, or one for every count."""
        k = self.counts.shape[1]
        if isinstance(eta, float):
            whole = np.asarray(eta * self.sizes, dtype=np.float64)[:, None]
            return whole, self.counts.size * float(log_gamma(eta)), float(k * log_gamma(whole).sum())
        whole = np.asarray(np.add.reduceat(eta, self.starts, axis=0), dtype=np.float64)
        return whole, float(log_gamma(eta).sum()), float(log_gamma(whole).sum())

    def without_noise(self, eta: Array | float) -> float:
        """Return log p(counts | eta) if there is no noise, without the multinomial coefficients."""
        whole, of_shapes, of_sums = self._prior(eta)
        totals = np.add.reduceat(self.counts, self.starts, axis=0)
        of_levels = log_gamma(self.counts + eta).sum() - of_shapes
        return float(of_levels + of_sums - log_gamma(totals + whole).sum())

    def with_noise(self, delta: float, eta: Array | float, rng: np.random.Generator) -> tuple[float, Array]:
        """Return log p(counts | delta, eta), nearly, and a draw of theta (rows, k) given both."""
        level = np.repeat(1.0 / self.sizes, self.sizes)[:, None]
        shapes = eta + np.maximum(self.counts - delta * self.summed(self.counts) * level, 0.0)
        draws = np.maximum(rng.standard_gamma(shapes, size=(DRAWS, *shapes.shape)), 1e-300)
        theta = draws / self.summed(draws)
        explained = self.counts * np.log((1.0 - delta) * theta + delta * level)
        explained += (eta - shapes) * np.log(np.maximum(theta, 1e-300))
        weights = np.add.reduceat(explained, self.starts, axis=1)  # (draws, variables, k)
        largest = weights.max(axis=0)
        relative = np.exp(weights - largest)
        chances = np.cumsum(relative, axis=0)
        taken = (chances < chances[-1] * rng.random(largest.shape)).sum(axis=0)
        taken = np.repeat(taken, self.sizes, axis=0)
        _, of_shapes, of_sums = self._prior(eta)
        constant = (
            of_sums
            - of_shapes
            - log_gamma(np.add.reduceat(shapes, self.starts, axis=0)).sum()
            + log_gamma(shapes).sum()
        )
        mean = chances[-1] / DRAWS
        # the logarithm of a mean of draws is too low by half of its relative variance, over and over
        low = relative.var(axis=0, ddof=1) / mean**2 / (2.0 * DRAWS)
        value = float((largest + np.log(mean) + low).sum() + constant)
        return value, np.take_along_axis(theta, taken[None], axis=0)[0]


def draw_noise(
    held: NoiseCounts, delta: float, eta: Array | float, none: float, rng: np.random.Generator, *, far: bool
) -> tuple[float, Array]:
    """Draw the share of noise and theta (rows, k) given where the share stands; ``none`` is the prior chance of none.

    ``far`` weighs shares of all sizes and none; else those about where the share stands are weighed, if there is noise.
    """
    common = int(rng.integers(2**63))  # the same draws at all shares: their noise falls out of the comparison
    jitter = rng.random() - 0.5
    heights: list[float] = []
    found: list[tuple[float, Array | None]] = []
    if far or delta == 0.0:
        heights, found = [held.without_noise(eta) + float(np.log(none))], [(0.0, None)]
    if far or delta > 0.0:
        logs = np.log(SHARES) if far else np.log(delta) + NEAR
        step = float(logs[1] - logs[0])
        for share in np.minimum(np.exp(logs + jitter * step), 0.95).tolist():
            value, theta = held.with_noise(share, eta, np.random.default_rng(common))
            heights.append(value + float(np.log(share * step) + np.log1p(-none)))  # even in the share, not in its log
            found.append((share, theta))
    chances = np.cumsum(np.exp(np.array(heights) - max(heights)))
    drawn, with_it = found[int(np.searchsorted(chances, chances[-1] * rng.random(), side="right"))]
    if with_it is not None:
        return drawn, with_it
    draws = np.maximum(rng.standard_gamma(held.counts + eta), 1e-300)
    return 0.0, draws / held.summed(draws)
