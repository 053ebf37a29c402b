"""Continuous numbers: mean and variance of a normal distribution in every component, beside a few far out."""

from __future__ import annotations

import math

import numpy as np

from mixmem.data.kinds.base import LEAST_VARIANCE, Column, Draw, NumberColumns, NumberKind, Sums
from mixmem.typing import Array, Positions

FAR, DEGREES = 1e-8, 3.0
"""The share of cells that are far out, and the degrees of freedom of Student's distribution that they have: a cell more
than about seven standard deviations out is most likely one of them; up to four the density is normal in six digits."""
NEAR_SQUARE, NEAR_SHARE = 16.0, 1e-6
"""Cells up to the square of so many standard deviations from the mean are far out with a probability less than this."""
NEAR_PEAK = (1.0 - FAR) / math.sqrt(2.0 * math.pi)
FAR_PEAK = FAR * 2.0 / (math.pi * math.sqrt(3.0))


class Continuous(NumberKind):
    """Normal numbers, of which a share :data:`FAR` has Student's distribution, of the same mean and scale.

    Both are normal with a precision lambda times the component's: lambda is 1, or Gamma distributed. Given what every
    cell has, its mass, mean and variance follow as those of weighted normal numbers, in EM (masses expected) as in
    sampling (masses drawn). A cell 85 standard deviations out moves them as little as one 2 out. Prior:
    normal-inverse-gamma about the column's mean and variance, worth a tenth of a row and one row, no variance below
    that of the column's resolution.
    """

    statistics = ("mean", "variance")
    words = "numbers"
    nouns = ("continuous number", "continuous numbers")
    atoms = True
    fenced = True

    def from_moments(self, column: Column, mean: Array, variance: Array, spread: float) -> Array:
        return np.stack([mean, np.maximum(variance, max(LEAST_VARIANCE * spread, self.least_variance(column)))])

    def moments(self, theta: Array) -> tuple[Array, Array]:
        return theta[0], theta[1]

    def log_density(self, values: Array, theta: Array) -> Array:
        near, far = _parts((values - theta[0]) ** 2 / theta[1])
        return np.asarray(np.log(near + far) - 0.5 * np.log(theta[1]))

    def masses(self, held: Array, values: Array, theta: Array, rng: np.random.Generator | None = None) -> Array:
        square = (values - theta[0]) ** 2 / theta[1]
        shape = 0.5 * (DEGREES + 1.0)  # of lambda, with the rate (DEGREES + square) / 2
        if rng is None:
            share = _far_share(square)
            return np.asarray(held * (1.0 - share + share * shape / (0.5 * (DEGREES + square))))
        where, strayed = _strayed(held, square, rng)
        out = held.copy()
        out.flat[where] += rng.standard_gamma(shape * strayed) / (0.5 * (DEGREES + square.flat[where])) - strayed
        return np.asarray(out)

    def fitted(self, sums: Sums) -> Array:
        mean = sums.first / np.maximum(sums.mass, 1e-300)
        variance = (sums.second - sums.mass * mean**2) / np.maximum(sums.n, 1e-300)
        return self.inside(np.stack([sums.columns.center + mean, variance]), sums.columns)

    def inside(self, theta: Array, columns: NumberColumns) -> Array:
        return np.stack([theta[0], np.maximum(theta[1], np.maximum(LEAST_VARIANCE * columns.spread, columns.least))])

    def draw(self, sums: Sums, theta: Array, rng: np.random.Generator) -> Draw:
        columns = sums.columns
        precision = 0.1 + sums.mass
        middle = sums.first / precision
        shape = 0.5 + 0.5 * sums.n
        scale = 0.25 * columns.spread + 0.5 * np.maximum(sums.second - precision * middle**2, 0.0)
        variance = scale / np.maximum(rng.standard_gamma(shape), 1e-12)
        variance = _at_least(variance, np.broadcast_to(columns.least, scale.shape), shape, scale, rng)
        mean = middle + np.sqrt(variance / precision) * rng.standard_normal(middle.shape)
        usual = np.maximum(scale / np.maximum(shape - 1.0, 0.5), columns.least)
        return Draw(
            np.stack([columns.center + mean, variance]),
            np.stack([columns.center + middle, usual]),
            np.stack([usual / precision, usual**2 / np.maximum(shape - 2.0, 0.5)]),
        )

    def numbers(self, theta: Array, rng: np.random.Generator) -> Array:
        n = theta.shape[1]
        far = rng.random(n) < FAR
        scale = np.where(far, np.sqrt(rng.chisquare(DEGREES, n) / DEGREES), 1.0)
        return np.asarray(theta[0] + np.sqrt(theta[1]) * rng.standard_normal(n) / scale)

    def upper_tail(self, values: Array, theta: Array) -> Array:
        from scipy.special import ndtr, stdtr

        place = (theta[0] - values) / np.sqrt(theta[1])
        return np.asarray((1.0 - FAR) * ndtr(place) + FAR * stdtr(DEGREES, place))


def _parts(square: Array) -> tuple[Array, Array]:
    """Return the densities of the normal part and of that far out, at squares of standard deviations from the mean."""
    wide = 1.0 + square / DEGREES
    return NEAR_PEAK * np.exp(-0.5 * square), FAR_PEAK / (wide * wide)


def _far_share(square: Array) -> Array:
    """Return how likely a cell is far out, at squares of standard deviations from the mean."""
    near, far = _parts(square)
    return far / (near + far)


def _strayed(held: Array, square: Array, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Draw which of the cells held (c, k) are far out: the places, in the flat arrays, that have some, and how many.

    Those near the mean are hardly ever: a few of all cells are picked with :data:`NEAR_SHARE`, each kept by its own.
    """
    counts, squares = held.ravel().astype(np.int64), square.ravel()
    out = np.flatnonzero((squares > NEAR_SQUARE) & (counts > 0))
    strayed = rng.binomial(counts[out], _far_share(squares[out]))
    reached = np.cumsum(counts)
    total = int(reached[-1])
    picked = rng.choice(max(total, 1), rng.binomial(total, NEAR_SHARE), replace=False, shuffle=False)
    near = np.searchsorted(reached, picked, side="right")
    near = near[squares[near] <= NEAR_SQUARE]
    near = near[rng.random(len(near)) * NEAR_SHARE < _far_share(squares[near])]
    near, times = np.unique(near, return_counts=True)
    return np.concatenate([out, near]), np.concatenate([strayed, times])


def _at_least(variance: Array, least: Array, shape: Array, scale: Array, rng: np.random.Generator) -> Array:
    """Draw those of the inverse Gamma distributed variances again that are below the least allowed, from above it."""
    low = variance < least
    if not low.any():
        return variance
    from scipy.special import gammainc, gammaincinv

    out = variance.copy()
    inside = gammainc(shape[low], scale[low] / least[low])
    precision = gammaincinv(shape[low], rng.random(inside.shape) * inside)
    out[low] = np.maximum(np.where(inside > 1e-300, scale[low] / np.maximum(precision, 1e-300), 0.0), least[low])
    return out
