"""Continuous numbers: mean and variance of a normal distribution in every component, beside a few far out."""

from __future__ import annotations

import math

import numpy as np

from mixmem.data.kinds.base import LEAST_VARIANCE, Column, Draw, NumberColumns, NumberKind, Sums
from mixmem.typing import Array

FAR, DEGREES = 1e-4, 3.0
"""The share of cells that are far out, and the degrees of freedom of Student's distribution that they have: a cell more
than about five standard deviations out is most likely one of them."""
COMMON = 2e-3
"""Cells less likely than this to be far out are looked at together: few of them are."""


class Continuous(NumberKind):
    """Normal numbers, of which a share :data:`FAR` has Student's distribution, of the same mean and scale.

    Both are normal with a precision lambda times the component's: lambda is 1, or Gamma distributed. Given what every
    cell has, its mass, mean and variance follow as those of weighted normal numbers, in EM (masses expected) as in
    sampling (masses drawn). A cell 85 standard deviations out moves them as little as one 2 out. Prior:
    normal-inverse-gamma about the column's mean and variance, worth a tenth of a row and one row, no variance below that
    of the column's resolution.
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
        near, far = _parts(square)
        share, rate = far / (near + far), 0.5 * (DEGREES + square)
        shape = 0.5 * (DEGREES + 1.0)
        if rng is None:
            return np.asarray(held * (1.0 - share + share * shape / rate))
        strayed = _strayed(held.astype(np.int64), share, rng)
        out = held - strayed
        some = strayed > 0
        out[some] += rng.standard_gamma(shape * strayed[some]) / rate[some]
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
    near = (1.0 - FAR) / math.sqrt(2.0 * math.pi) * np.exp(-0.5 * square)
    peak = math.exp(math.lgamma(0.5 * (DEGREES + 1.0)) - math.lgamma(0.5 * DEGREES)) / math.sqrt(DEGREES * math.pi)
    return near, FAR * peak * (1.0 + square / DEGREES) ** (-0.5 * (DEGREES + 1.0))


def _strayed(held: Array, share: Array, rng: np.random.Generator) -> Array:
    """Draw how many of the cells held (c, k) are far out, each with a probability (c, k).

    Of most cells that is tiny: of all those together a few are picked at :data:`COMMON`, and each kept by its own.
    """
    out = np.zeros_like(held)
    rare = share < COMMON
    out[~rare] = rng.binomial(held[~rare], share[~rare])
    reached, own = np.cumsum(held[rare]), share[rare]
    if len(reached) and reached[-1]:
        picked = rng.choice(int(reached[-1]), rng.binomial(int(reached[-1]), COMMON), replace=False, shuffle=False)
        places = np.searchsorted(reached, picked, side="right")
        places = places[rng.random(len(places)) * COMMON < own[places]]
        out[rare] = np.bincount(places, minlength=len(own))
    return out


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
