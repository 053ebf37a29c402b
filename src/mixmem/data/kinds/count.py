"""Counts: mean and variance in every component, of a negative binomial distribution."""

from __future__ import annotations

import numpy as np

from mixmem.data.kinds.base import LEAST_MEAN, Column, Draw, NumberColumns, NumberKind, Sums
from mixmem.kernels.special import log_gamma
from mixmem.typing import Array, Positions


class Count(NumberKind):
    """Negative binomial counts.

    Counts of real tables vary more than Poisson's: the variance is mu + mu^2 / r, with one size r for a variable, from
    :data:`SIZES`; the largest is Poisson's distribution for all purposes. Prior: mu ~ Gamma, worth half a row, and
    log r uniform.
    """

    statistics = ("mean", "variance")
    words = "whole numbers from 0 up"
    nouns = ("count", "counts")
    whole = True

    def from_moments(self, column: Column, mean: Array, variance: Array, spread: float) -> Array:
        mean = np.maximum(mean, LEAST_MEAN * max(float(mean.mean()), LEAST_MEAN))
        return self._with_size(mean, _size(np.ones_like(mean), mean, variance))

    def _with_size(self, mean: Array, size: Array | float) -> Array:
        return np.stack([mean, mean + mean**2 / size])

    def moments(self, theta: Array) -> tuple[Array, Array]:
        return theta[0], theta[1]

    def log_density(self, values: Array, theta: Array) -> Array:
        mean, size = theta[0], _size_of(theta)
        grown = _log_rising(values, size) - log_gamma(values * np.ones_like(mean) + 1.0)
        return np.asarray(grown - size * np.log1p(mean / size) + values * np.log(mean / (size + mean)))

    def fitted(self, sums: Sums) -> Array:
        n, center = np.maximum(sums.n, 1e-300), sums.columns.center
        about = sums.first / n
        mean = np.maximum(about + center, LEAST_MEAN * np.maximum(center, LEAST_MEAN))
        return self._with_size(mean, _size(sums.n, mean, sums.second / n - about**2))

    def inside(self, theta: Array, columns: NumberColumns) -> Array:
        mean = np.maximum(theta[0], LEAST_MEAN * np.maximum(columns.center, LEAST_MEAN))
        return self._with_size(mean, _size(np.ones_like(mean), mean, theta[1]))

    def draw(self, sums: Sums, theta: Array, rng: np.random.Generator) -> Draw:
        center = sums.columns.center
        total = np.maximum(sums.first + sums.n * center, 0.0)
        size = self._draw_size(sums, total, theta[0], rng)
        # a draw of the mean is proposed from what it would be were its weight known, and kept by the exact density
        weight = 1.0 / (1.0 + total / np.maximum(sums.n, 1.0) / size)
        rate = 0.5 / np.maximum(center, 1e-12)
        shape, slope = 0.5 + total * weight, rate + sums.n * weight

        def excess(mean: Array) -> Array:
            """Return the log-density of a mean less that of proposing it."""
            exact = (total - 0.5) * np.log(mean) - rate * mean - (total + sums.n * size) * np.log(mean + size)
            return np.asarray(exact - (shape - 1.0) * np.log(mean) + slope * mean)

        proposed = np.maximum(rng.standard_gamma(shape) / slope, 1e-12)
        taken = np.log(rng.random(proposed.shape)) < excess(proposed) - excess(theta[0])
        drawn = self._with_size(np.where(taken, proposed, theta[0]), size)
        return Draw(drawn, drawn, np.zeros_like(drawn))

    def _draw_size(self, sums: Sums, total: Array, mean: Array, rng: np.random.Generator) -> Array:
        """Draw the size r of every variable (variables, 1), given the means: one of :data:`SIZES`."""
        assert sums.columns.kept is not None
        n, mass, mu = sums.n[:, :, None], total[:, :, None], mean[:, :, None]
        logs = sums.columns.kept + (n * SIZES * np.log(SIZES) - (mass + n * SIZES) * np.log(mu + SIZES)).sum(axis=1)
        reached = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
        place = (reached < rng.random((len(reached), 1)) * reached[:, -1:]).sum(axis=1)
        return SIZES[place][:, None]

    def kept(self, values: Array, counts: Array, starts: Positions) -> Array:
        """Return what of a log-likelihood depends on the variable's size alone (variables, sizes)."""
        each = counts * _log_rising(values, SIZES)
        return np.asarray(np.add.reduceat(each, starts, axis=0))

    def numbers(self, theta: Array, rng: np.random.Generator) -> Array:
        size = _size_of(theta)
        return rng.poisson(theta[0] * rng.standard_gamma(size) / size).astype(float)

    def upper_tail(self, values: Array, theta: Array) -> Array:
        from scipy.special import betainc

        size = _size_of(theta)
        tail = betainc(np.floor(np.maximum(values, 0.0)) + 1.0, size, theta[0] / (theta[0] + size))
        return np.asarray(np.where(values < 0.0, 1.0, tail))


SIZES = np.geomspace(0.05, 1e5, 60)
"""Sizes of the negative binomial distributions."""


def _log_rising(values: Array, size: Array) -> Array:
    """Return log Gamma(size + values) - log Gamma(size), of large sizes by Stirling's series: nothing cancels there."""
    whole = values + size
    large = np.maximum(size, 50.0)
    top = values + large
    series = (large - 0.5) * np.log1p(values / large) + values * (np.log(top) - 1.0) + _beyond(top) - _beyond(large)
    return np.where(size > 50.0, series, log_gamma(whole) - log_gamma(size))


def _beyond(x: Array) -> Array:
    """Return the terms of Stirling's series for log Gamma that vanish for large x."""
    return np.asarray((1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * x**2)) / x**2) / x)


def _size_of(theta: Array) -> Array:
    """Return the size r that goes with mean and variance, theta (2, ...)."""
    mean, variance = theta
    return _ratio(mean**2, variance - mean)


def _size(n: Array, mean: Array, variance: Array) -> Array:
    """Return one size for the components (the last axis) of means, variances and numbers of cells n."""
    return _ratio((n * mean**2).sum(axis=-1, keepdims=True), (n * (variance - mean)).sum(axis=-1, keepdims=True))


def _ratio(squares: Array, excess: Array) -> Array:
    """Return the size of squared means over what variances exceed means by; the largest where that is nothing."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(squares / np.maximum(excess, 1e-300), SIZES[0], SIZES[-1]))
