"""Kinds of variables: what each puts into theta, what its cells are to the moments, and how likely they are.

To the moments every cell is a mixture of a few *soft levels* of its variable, with shares that sum to one: a category
is one level; a genotype is half of one allele and half of another; a number lies between the peaks of quadratic
B-splines. A variable's soft levels then obey the moment identities of categories, whatever its kind, and one kernel
serves all. B-splines of degree two hold y and y^2 exactly, so that a component's mean and variance follow from its
shares of the soft levels, and they move with the units of a column: multiplied by a thousand it has the same shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mixmem.errors import InputError
from mixmem.kernels.special import log_gamma
from mixmem.typing import Array, Positions

MAX_CODES = 65_000
"""Codes are at most 16 bits wide: categories beyond this are no categories, and numbers are rounded to so many."""
LEAST_VARIANCE = 0.02
"""Share of a column's variance below which no component's variance falls: differences of moments may go below zero."""
LEAST_MEAN = 1e-6
"""Share of a column's mean below which no rate falls."""


class Column(Protocol):
    """What a kind needs to know of a variable (see :class:`mixmem.Variable`)."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def levels(self) -> tuple[str, ...]: ...
    @property
    def ploidy(self) -> int: ...
    @property
    def knots(self) -> tuple[float, ...]: ...
    @property
    def values(self) -> Array: ...
    @property
    def missing(self) -> bool: ...


@dataclass(frozen=True)
class Sums:
    """Of the cells that components hold, for several variables of one kind at once: their number ``n``, sum ``first``
    and sum of squares ``second`` about ``center``, (variables, k) each; ``center`` and ``spread`` (variables, 1) are
    the columns' mean and variance, ``grown`` what a kind keeps of the column beside (see :meth:`Number.grown`)."""

    n: Array
    first: Array
    second: Array
    center: Array
    spread: Array
    grown: Array | None = None


@dataclass(frozen=True)
class Draw:
    """Theta drawn (rows a variable, variables, k), and mean and variance of what it was drawn from."""

    theta: Array
    mean: Array
    variance: Array


class Kind:
    """Categories: one row of theta a level, its probability in every component."""

    statistics: tuple[str, ...] = ("probability",)
    words = "categories"
    number = False
    """Whether cells are numbers rather than one of a few levels."""

    def check(self, column: Column) -> None:
        """Refuse what cannot be of this kind."""
        if not column.levels:
            raise InputError(f"variable {column.name!r} has no levels; expected at least one")
        if len(column.levels) > MAX_CODES:
            raise InputError(
                f"variable {column.name!r} has {len(column.levels)} levels; expected at most {MAX_CODES}: "
                "drop the column or merge its levels"
            )
        if len(set(column.levels)) != len(column.levels):
            twice = next(level for level in column.levels if column.levels.count(level) > 1)
            raise InputError(f"variable {column.name!r} lists level {twice!r} twice; name each level once")

    def n_codes(self, column: Column) -> int:
        """Codes that a cell can have, missing not counted."""
        return len(column.levels)

    def n_soft(self, column: Column) -> int:
        """Soft levels."""
        return len(column.levels)

    def soften(self, column: Column) -> tuple[Positions, Array]:
        """Soft levels of every code and their shares: (codes, m) each; shares sum to one."""
        return np.arange(len(column.levels))[:, None], np.ones((len(column.levels), 1))

    def parameters(self, column: Column, soft: Array, spread: float) -> Array:
        """Theta (rows, k) from the components' shares of the soft levels (levels, k) and the column's variance."""
        return soft


class Dosage(Kind):
    """Genotypes: one row of theta an allele, its frequency in every component.

    A cell holds ``ploidy`` copies, each drawn on its own: code g of two alleles is the number of copies of the second;
    the code of a pair a <= b of more alleles is b (b + 1) / 2 + a.
    """

    words = "numbers of copies (0, 1, 2 in a diploid)"

    def check(self, column: Column) -> None:
        super().check(column)
        if len(column.levels) != 2 and column.ploidy != 2:
            raise InputError(
                f"variable {column.name!r} has {len(column.levels)} alleles in {column.ploidy} copies; expected two "
                "alleles, or two copies"
            )

    def n_codes(self, column: Column) -> int:
        d = len(column.levels)
        return column.ploidy + 1 if d == 2 else d * (d + 1) // 2

    def copies(self, column: Column) -> Positions:
        """The allele of every copy by code: (codes, ploidy).

        >>> from mixmem.data.schema import Variable
        >>> KINDS["dosage"].copies(Variable("snp", ("A", "G"), kind="dosage")).tolist()
        [[0, 0], [0, 1], [1, 1]]
        """
        if len(column.levels) == 2:
            held = np.arange(column.ploidy + 1)[:, None]
            return np.asarray(np.arange(column.ploidy)[::-1] < held, dtype=np.int64)
        pairs = [(a, b) for b in range(len(column.levels)) for a in range(b + 1)]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def soften(self, column: Column) -> tuple[Positions, Array]:
        copies = self.copies(column)
        return copies, np.full(copies.shape, 1.0 / column.ploidy)


class Number(Kind):
    """What counts and continuous numbers share: quadratic B-splines between knots."""

    number = True

    def check(self, column: Column) -> None:
        if column.levels:
            raise InputError(f"variable {column.name!r} is a number and has no levels; got {len(column.levels)}")

    def n_codes(self, column: Column) -> int:
        return len(column.values)

    def n_soft(self, column: Column) -> int:
        return len(column.knots) + 1

    def soften(self, column: Column) -> tuple[Positions, Array]:
        from scipy.interpolate import BSpline

        low, high = column.knots[0], column.knots[-1]
        padded = np.array([low, low, *column.knots, high, high])
        design = BSpline.design_matrix(np.clip(column.values, low, high), padded, 2)
        return design.indices.reshape(-1, 3).astype(np.int64), design.data.reshape(-1, 3)

    def raw_moments(self, column: Column, soft: Array) -> tuple[Array, Array]:
        """Mean (k,) and variance (k,) of components with these shares of the soft levels (levels, k).

        By Marsden's identity y and y^2 are the splines weighted by the mean and the product of their inner knots.
        """
        knots = np.asarray(column.knots)
        middle = 0.5 * (knots[0] + knots[-1])
        padded = np.concatenate([knots[:1], knots, knots[-1:]]) - middle
        mean = 0.5 * (padded[:-1] + padded[1:]) @ soft
        return middle + mean, (padded[:-1] * padded[1:]) @ soft - mean**2

    def log_density(self, values: Array, theta: Array) -> Array:
        """Log-likelihood of values (c, 1) in every component (c, k); theta (rows a variable, c, k)."""
        raise NotImplementedError

    def fitted(self, sums: Sums) -> Array:
        """The most likely theta (rows a variable, variables, k)."""
        raise NotImplementedError

    def inside(self, theta: Array, center: Array, spread: Array) -> Array:
        """An allowed theta (rows a variable, variables, k) near one that need not be; columns' mean and variance."""
        raise NotImplementedError

    def draw(self, sums: Sums, theta: Array, rng: np.random.Generator) -> Draw:
        """Theta given the sums, by a step from theta (rows a variable, variables, k) that leaves its posterior as it
        is."""
        raise NotImplementedError

    def grown(self, values: Array, counts: Array, starts: Positions) -> Array | None:
        """What :meth:`draw` needs of the columns themselves: values and their numbers (cells, 1), variables one after
        the other from ``starts`` on."""
        return None

    def sample(self, theta: Array, rng: np.random.Generator) -> Array:
        """Numbers drawn from theta (rows a variable, n), one each (n,)."""
        raise NotImplementedError

    def upper_tail(self, values: Array, theta: Array) -> Array:
        """Probability of more than values (c, 1) in every component (c, k); theta (rows a variable, 1, k)."""
        raise NotImplementedError


class Count(Number):
    """Counts: mean and variance in every component, of a negative binomial distribution.

    Counts of real tables vary more than Poisson's: the variance is mu + mu^2 / r, with one size r for a variable, from
    :data:`SIZES`; the largest is Poisson's distribution for all purposes. Prior: mu ~ Gamma, worth half a row, and
    log r uniform.
    """

    statistics = ("mean", "variance")
    words = "whole numbers from 0 up"

    def parameters(self, column: Column, soft: Array, spread: float) -> Array:
        mean, variance = self.raw_moments(column, soft)
        mean = np.maximum(mean, LEAST_MEAN * max(float(mean.mean()), LEAST_MEAN))
        return self._with_size(mean, _size(np.ones_like(mean), mean, variance))

    def _with_size(self, mean: Array, size: Array | float) -> Array:
        return np.stack([mean, mean + mean**2 / size])

    def log_density(self, values: Array, theta: Array) -> Array:
        mean, size = theta[0], _size_of(theta)
        one = np.ones_like(mean)
        grown = log_gamma(values + size) - log_gamma(size) - log_gamma(values * one + 1.0)
        return np.asarray(grown + size * np.log(size / (size + mean)) + values * np.log(mean / (size + mean)))

    def fitted(self, sums: Sums) -> Array:
        n = np.maximum(sums.n, 1e-300)
        about = sums.first / n
        mean = np.maximum(about + sums.center, LEAST_MEAN * np.maximum(sums.center, LEAST_MEAN))
        return self._with_size(mean, _size(sums.n, mean, sums.second / n - about**2))

    def inside(self, theta: Array, center: Array, spread: Array) -> Array:
        mean = np.maximum(theta[0], LEAST_MEAN * np.maximum(center, LEAST_MEAN))
        return self._with_size(mean, _size(np.ones_like(mean), mean, theta[1]))

    def draw(self, sums: Sums, theta: Array, rng: np.random.Generator) -> Draw:
        total = np.maximum(sums.first + sums.n * sums.center, 0.0)
        size = self._draw_size(sums, total, theta[0], rng)
        # a draw of the mean is proposed from what it would be were its weight known, and kept by the exact density
        weight = 1.0 / (1.0 + total / np.maximum(sums.n, 1.0) / size)
        rate = 0.5 / np.maximum(sums.center, 1e-12)
        shape, slope = 0.5 + total * weight, rate + sums.n * weight

        def excess(mean: Array) -> Array:
            """Log-density of a mean less that of proposing it."""
            exact = (total - 0.5) * np.log(mean) - rate * mean - (total + sums.n * size) * np.log(mean + size)
            return np.asarray(exact - (shape - 1.0) * np.log(mean) + slope * mean)

        proposed = np.maximum(rng.standard_gamma(shape) / slope, 1e-12)
        taken = np.log(rng.random(proposed.shape)) < excess(proposed) - excess(theta[0])
        drawn = self._with_size(np.where(taken, proposed, theta[0]), size)
        return Draw(drawn, drawn, np.zeros_like(drawn))

    def _draw_size(self, sums: Sums, total: Array, mean: Array, rng: np.random.Generator) -> Array:
        """The size r of every variable (variables, 1), given the means: one of :data:`SIZES`."""
        assert sums.grown is not None
        n, mass, mu = sums.n[:, :, None], total[:, :, None], mean[:, :, None]
        logs = sums.grown + (n * SIZES * np.log(SIZES) - (mass + n * SIZES) * np.log(mu + SIZES)).sum(axis=1)
        reached = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
        place = (reached < rng.random((len(reached), 1)) * reached[:, -1:]).sum(axis=1)
        return SIZES[place][:, None]

    def grown(self, values: Array, counts: Array, starts: Positions) -> Array:
        """What of a variable's log-likelihood depends on its size alone (variables, sizes); counts (cells, 1)."""
        each = counts * (log_gamma(values + SIZES) - log_gamma(SIZES))
        return np.asarray(np.add.reduceat(each, starts, axis=0))

    def sample(self, theta: Array, rng: np.random.Generator) -> Array:
        size = _size_of(theta)
        return rng.poisson(theta[0] * rng.standard_gamma(size) / size).astype(float)

    def upper_tail(self, values: Array, theta: Array) -> Array:
        from scipy.special import betainc

        size = _size_of(theta)
        tail = betainc(np.floor(np.maximum(values, 0.0)) + 1.0, size, theta[0] / (theta[0] + size))
        return np.asarray(np.where(values < 0.0, 1.0, tail))


SIZES = np.geomspace(0.05, 1e5, 60)
"""Sizes of the negative binomial distributions."""


def _size_of(theta: Array) -> Array:
    """The size r that goes with mean and variance, theta (2, ...)."""
    mean, variance = theta
    return np.asarray(np.clip(mean**2 / np.maximum(variance - mean, 1e-300), SIZES[0], SIZES[-1]))


def _size(n: Array, mean: Array, variance: Array) -> Array:
    """One size for the components (the last axis) of means, variances and numbers of cells n."""
    excess = (n * (variance - mean)).sum(axis=-1, keepdims=True)
    return np.asarray(
        np.clip((n * mean**2).sum(axis=-1, keepdims=True) / np.maximum(excess, 1e-300), SIZES[0], SIZES[-1])
    )


class Continuous(Number):
    """Continuous numbers: mean and variance of a normal distribution in every component.

    Prior: normal-inverse-gamma about the column's mean and variance, worth a tenth of a row and one row.
    """

    statistics = ("mean", "variance")
    words = "numbers"

    def parameters(self, column: Column, soft: Array, spread: float) -> Array:
        mean, variance = self.raw_moments(column, soft)
        return np.stack([mean, np.maximum(variance, LEAST_VARIANCE * spread)])

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

    def sample(self, theta: Array, rng: np.random.Generator) -> Array:
        return np.asarray(theta[0] + np.sqrt(theta[1]) * rng.standard_normal(theta.shape[1]))

    def upper_tail(self, values: Array, theta: Array) -> Array:
        from scipy.special import ndtr

        return np.asarray(ndtr((theta[0] - values) / np.sqrt(theta[1])))


KINDS: dict[str, Kind] = {"categorical": Kind(), "dosage": Dosage(), "count": Count(), "continuous": Continuous()}
# Both are categories to the moments; the names are kept because users declare them.
KINDS["binary"] = KINDS["ordinal"] = KINDS["categorical"]
