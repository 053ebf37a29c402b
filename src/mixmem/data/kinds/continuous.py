"""Continuous numbers: mean and variance of a normal distribution in every component."""

from __future__ import annotations

import numpy as np

from mixmem.data.kinds.base import LEAST_VARIANCE, Column, Draw, NumberKind, Sums
from mixmem.typing import Array


class Continuous(NumberKind):
    """Normal numbers. Prior: normal-inverse-gamma about the column's mean and variance, worth a tenth of a row and one
    row."""

    statistics = ("mean", "variance")
    words = "numbers"
    nouns = ("continuous number", "continuous numbers")

    def from_moments(self, column: Column, mean: Array, variance: Array, spread: float) -> Array:
        return np.stack([mean, np.maximum(variance, LEAST_VARIANCE * spread)])

    def moments(self, theta: Array) -> tuple[Array, Array]:
        return theta[0], theta[1]

    def log_density(self, values: Array, theta: Array) -> Array:
        mean, variance = theta
        return np.asarray(-0.5 * ((values - mean) ** 2 / variance + np.log(2.0 * np.pi * variance)))

    def fitted(self, sums: Sums) -> Array:
        n = np.maximum(sums.n, 1e-300)
        mean = sums.first / n
        return self.inside(np.stack([sums.center + mean, sums.second / n - mean**2]), sums.center, sums.spread)

    def inside(self, theta: Array, center: Array, spread: Array) -> Array:
        return np.stack([theta[0], np.maximum(theta[1], LEAST_VARIANCE * spread)])

    def draw(self, sums: Sums, theta: Array, rng: np.random.Generator) -> Draw:
        precision = 0.1 + sums.n
        middle = sums.first / precision
        shape = 0.5 + 0.5 * sums.n
        scale = 0.25 * sums.spread + 0.5 * np.maximum(sums.second - precision * middle**2, 0.0)
        variance = scale / np.maximum(rng.standard_gamma(shape), 1e-12)
        mean = middle + np.sqrt(variance / precision) * rng.standard_normal(middle.shape)
        usual = scale / np.maximum(shape - 1.0, 0.5)
        return Draw(
            np.stack([sums.center + mean, variance]),
            np.stack([sums.center + middle, usual]),
            np.stack([usual / precision, usual**2 / np.maximum(shape - 2.0, 0.5)]),
        )

    def numbers(self, theta: Array, rng: np.random.Generator) -> Array:
        return np.asarray(theta[0] + np.sqrt(theta[1]) * rng.standard_normal(theta.shape[1]))

    def upper_tail(self, values: Array, theta: Array) -> Array:
        from scipy.special import ndtr

        return np.asarray(ndtr((theta[0] - values) / np.sqrt(theta[1])))
