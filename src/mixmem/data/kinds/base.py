"""What a kind of variable is: everything that any stage asks of one is a method here.

A new kind, step by step:

1. Subclass :class:`LevelKind` (a cell is one of a few levels, theta holds their probabilities) or :class:`NumberKind`
   (a cell is a number, theta holds the statistics of its distribution) in a file of its own, and fill in the methods
   that are abstract. ``statistics`` names the rows of theta, ``words`` says what cells are to be.
2. Give it to :func:`mixmem.data.kinds.register` under the names by which users declare it. A kind that lacks a method
   is refused there, by name.
3. If columns are to be recognised as of this kind, add a rule to :mod:`mixmem.data.infer_kinds`.

Nothing else knows kinds by name. ``tests/data/test_open_kinds.py`` defines one, and runs every stage on it.

To the moments every cell is a mixture of a few *soft levels* of its variable, with shares that sum to one: a category
is one level; a genotype is half of one allele and half of another; a number lies between the peaks of quadratic
B-splines. A variable's soft levels then obey the moment identities of categories, whatever its kind, and one kernel
serves all. B-splines of degree two hold y and y^2 exactly, so that a component's mean and variance follow from its
shares of the soft levels, and they move with the units of a column: multiplied by a thousand it has the same shares.

A number may have *atoms*: values that a large share of the cells hold, such as 40 of weekly hours. They are the levels
of the variable, levels of their own in every stage; its statistics are those of the other numbers. Its rows of theta
are the probability of every atom, that of any other number, and the statistics.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from mixmem.errors import InputError
from mixmem.typing import Array, Positions
from mixmem.words import plain_number

MAX_CODES = 65_000
"""Codes are at most 16 bits wide: categories beyond this are no categories, and numbers are rounded to so many."""
MOST_SOFT = 128
"""Soft levels that a category has at most: third moments of three such variables take 17 MB, of 1,000 levels each 8 GB.
Where there are more levels, the rare ones share the last."""
LEAST_VARIANCE = 0.02
"""Share of a column's variance below which no component's variance falls: differences of moments may go below zero."""
LEAST_MEAN = 1e-6
"""Share of a column's mean below which no rate falls."""
OTHER = "other"
"""What theta calls the numbers that are no atoms."""

Label = tuple[str, str]
"""Level and statistic of a row of theta; numbers have no level."""


class Described(Protocol):
    """What a schema says of a variable (see :class:`mixmem.Variable`)."""

    @property
    def name(self) -> str: ...
    @property
    def levels(self) -> tuple[str, ...]: ...
    @property
    def value_type(self) -> str: ...
    @property
    def ploidy(self) -> int: ...


class Column(Described, Protocol):
    """What a coding adds to it (see :class:`mixmem.data.coding.ColumnCoding`)."""

    @property
    def knots(self) -> tuple[float, ...]: ...
    @property
    def values(self) -> Array: ...
    @property
    def frequencies(self) -> Array: ...
    @property
    def missing(self) -> bool: ...
    @property
    def resolution(self) -> float: ...


@dataclass(frozen=True)
class NumberColumns:
    """Columns of numbers of one kind: mean ``center`` and variance ``spread`` of their numbers, atoms left out, and the
    ``least`` variance that their resolution allows, (variables, 1) each; ``kept`` is what the kind keeps of them beside
    (see :meth:`NumberKind.kept`)."""

    center: Array
    spread: Array
    least: Array
    kept: Array | None = None


@dataclass(frozen=True)
class Sums:
    """Sums over the cells that components hold, for several variables of one kind at once.

    Their number ``n``, what they weigh (``mass``, see :meth:`NumberKind.masses`), and, so weighed, sum ``first`` and
    sum of squares ``second`` about the columns' center: (variables, k) each.
    """

    n: Array
    mass: Array
    first: Array
    second: Array
    columns: NumberColumns


@dataclass(frozen=True)
class Draw:
    """Theta drawn (rows per variable, variables, k), and mean and variance of what it was drawn from."""

    theta: Array
    mean: Array
    variance: Array


@dataclass(frozen=True)
class AsCategories:
    """A variable seen as categories: the level of every code (codes, draws), the ``levels``, theta (levels, k)."""

    of_code: Positions
    levels: tuple[str, ...]
    theta: Array


class Kind(ABC):
    """A kind of variable; the module says how to write one."""

    statistics: ClassVar[tuple[str, ...]]
    """Names of its rows of theta; of levels, the one statistic that each level has."""
    words: ClassVar[str]
    """What cells are to be, in a refusal: "expected whole numbers from 0 up"."""
    nouns: ClassVar[tuple[str, str]]
    """One variable of the kind, and several, as reports call them: ("count", "counts")."""
    number: ClassVar[bool]
    """Whether cells are numbers rather than one of a few levels."""
    cells: ClassVar[Literal["levels", "numbers", "copies"]]
    """How a column is coded: by its levels, by a grid of its values, by numbers of copies of an allele."""
    level_word: ClassVar[str] = "levels"
    whole: ClassVar[bool] = False
    """Whether numbers are to be whole and not negative."""
    plain: ClassVar[bool] = False
    """Whether codes, levels and soft levels are one and the same."""
    pools: ClassVar[bool] = False
    """Whether the moments pool rare levels of a column that has more than :data:`MOST_SOFT`."""
    contaminable: ClassVar[bool] = False
    """Whether a share of the cells may be noise, uniform over the levels."""
    ordered: ClassVar[bool] = False
    """Whether levels stand in an order, by which theta's prior ties neighbours."""

    @abstractmethod
    def check(self, column: Described) -> None:
        """Refuse a variable that cannot be of this kind."""

    @abstractmethod
    def labels(self, column: Described) -> list[Label]:
        """Return level and statistic of every row that the variable owns in theta."""

    @abstractmethod
    def n_codes(self, column: Column) -> int:
        """Return how many codes a cell can have, missing not counted."""

    @abstractmethod
    def held(self, column: Column) -> list[Any]:
        """Return what a cell of each code holds, in the column's own type."""

    @abstractmethod
    def n_soft(self, column: Column) -> int:
        """Return the number of soft levels."""

    @abstractmethod
    def soften(self, column: Column) -> tuple[Positions, Array]:
        """Return the soft levels of every code and their shares: (codes, m) each; shares sum to one."""

    @abstractmethod
    def parameters(self, column: Column, soft: Array, counts: Array) -> Array:
        """Return theta (rows, k) from components' shares of soft levels (levels, k); counts (codes,) of the column."""

    @abstractmethod
    def soft_theta(self, column: Column, theta: Array, likely: Array, counts: Array, alpha: Array) -> Array:
        """Return the shares of soft levels (levels, k) that go with theta (rows, k).

        ``likely`` (codes, k) is the likelihood of every code in every component, ``counts`` (codes,) how many cells
        have it, ``alpha`` (k,).
        """

    @abstractmethod
    def bounds(self) -> list[tuple[float, float]]:
        """Return the least and the largest value that each statistic may have."""

    def all_bounds(self, column: Described) -> list[tuple[float, float]]:
        """Return the same of every row that the variable owns in theta; the other rows are probabilities."""
        own = dict(zip(self.statistics, self.bounds(), strict=True))
        return [own.get(statistic, (0.0, 1.0)) for _, statistic in self.labels(column)]

    @abstractmethod
    def units(self, spread: Array) -> Array:
        """Return the typical size of each statistic (statistics, variables); spread (variables,) are variances."""

    @abstractmethod
    def most_likely(self, column: Column, theta: Array, memberships: Array) -> list[Any]:
        """Return values for cells of rows with these memberships (cells, k); theta (rows, k)."""

    @abstractmethod
    def sample(self, column: Column, theta: Array, memberships: Array, rng: np.random.Generator) -> Array | Positions:
        """Return a draw for every row (n,), from theta (rows, k) mixed by memberships (n, k): codes, or numbers."""

    @abstractmethod
    def as_categories(self, column: Column, theta: Array, counts: Array) -> AsCategories:
        """Return the variable as categories, of which pairs can be counted; theta (rows, k), counts (codes,)."""

    @abstractmethod
    def describe(self, column: Column, counts: Array) -> str:
        """Say in a few words what the cells hold; counts (codes,)."""

    def n_draws(self, column: Column) -> int:
        """Return how many draws from a component a cell holds: the copies of a genotype, one of anything else."""
        return 1

    def diploid_locus(self, column: Described) -> bool:
        """Return whether the variable is a diploid locus of two alleles, whose likelihood has steps of its own."""
        return False


class LevelKind(Kind):
    """A cell is one or several draws of levels; theta holds their probabilities, one row per level."""

    statistics = ("probability",)
    number = False

    def check(self, column: Described) -> None:
        if not column.levels:
            raise InputError(f"variable {column.name!r} has no {self.level_word}; expected at least one")
        if len(column.levels) > MAX_CODES:
            raise InputError(
                f"variable {column.name!r} has {len(column.levels)} levels; expected at most {MAX_CODES}: "
                "drop the column or merge its levels"
            )
        if len(set(column.levels)) != len(column.levels):
            twice = next(level for level in column.levels if column.levels.count(level) > 1)
            raise InputError(f"variable {column.name!r} lists level {twice!r} twice; name each level once")

    def labels(self, column: Described) -> list[Label]:
        return [(level, self.statistics[0]) for level in column.levels]

    @abstractmethod
    def draws(self, column: Column) -> Positions:
        """Return the level of every draw by code: (codes, draws)."""

    def n_soft(self, column: Column) -> int:
        return len(column.levels)

    def parameters(self, column: Column, soft: Array, counts: Array) -> Array:
        return soft

    def soft_theta(self, column: Column, theta: Array, likely: Array, counts: Array, alpha: Array) -> Array:
        return theta

    def bounds(self) -> list[tuple[float, float]]:
        return [(0.0, 1.0)]

    def units(self, spread: Array) -> Array:
        return np.ones((1, len(spread)))

    def as_categories(self, column: Column, theta: Array, counts: Array) -> AsCategories:
        return AsCategories(self.draws(column), column.levels, theta)


class NumberKind(Kind):
    """A cell is a number with a distribution in every component; quadratic B-splines between knots are its soft levels.

    Its values lie on a grid (:mod:`mixmem.data.value_grid`), of which codes are the positions. Atoms are handled here:
    what a kind has to say is of the other numbers alone.
    """

    number = True
    cells = "numbers"
    atoms: ClassVar[bool] = False
    """Whether values that a large share of the cells hold are looked for, to be levels of their own."""
    fenced: ClassVar[bool] = False
    """Whether a few cells far out are left beyond the outer knots: of kinds that :meth:`masses` keeps from them."""

    # --- What a kind of number has to say

    @abstractmethod
    def log_density(self, values: Array, theta: Array) -> Array:
        """Return the log-likelihood of values (c, 1) in every component (c, k); theta (rows per variable, c, k)."""

    @abstractmethod
    def fitted(self, sums: Sums) -> Array:
        """Return the most likely theta (rows per variable, variables, k)."""

    @abstractmethod
    def inside(self, theta: Array, columns: NumberColumns) -> Array:
        """Return an allowed theta (rows per variable, variables, k) near one that need not be."""

    @abstractmethod
    def draw(self, sums: Sums, theta: Array, rng: np.random.Generator) -> Draw:
        """Draw theta given the sums: a step from theta (rows per variable, variables, k) that keeps its posterior."""

    @abstractmethod
    def numbers(self, theta: Array, rng: np.random.Generator) -> Array:
        """Draw a number (n,) from each column of theta (rows per variable, n)."""

    @abstractmethod
    def upper_tail(self, values: Array, theta: Array) -> Array:
        """Return the probability of more than values (c, 1) in every component (c, k); theta (rows, 1, k)."""

    @abstractmethod
    def moments(self, theta: Array) -> tuple[Array, Array]:
        """Return mean and variance of the distribution with theta (rows per variable, …), each of its shape."""

    @abstractmethod
    def from_moments(self, column: Column, mean: Array, variance: Array, spread: float) -> Array:
        """Return theta (rows, k) of components with these means and variances (k,), as the moments give them."""

    def kept(self, values: Array, counts: Array, starts: Positions) -> Array | None:
        """Return what :meth:`draw` needs of the columns themselves, if anything.

        Values and their numbers (cells, 1), variables one after the other from ``starts`` on.
        """
        return None

    def masses(self, held: Array, values: Array, theta: Array, rng: np.random.Generator | None = None) -> Array:
        """Return what the cells weigh that components hold (c, k): their numbers ``held``, less for cells far out.

        Values (c, 1) and theta (rows per variable, c, k). With ``rng`` it is a draw given theta, else what is expected.
        """
        return held

    # --- What all kinds of numbers share

    def check(self, column: Described) -> None:
        if column.levels and not self.atoms:
            raise InputError(f"variable {column.name!r} is a number and has no levels; got {len(column.levels)}")
        try:
            values = [float(level) for level in column.levels]
        except ValueError:
            values = [math.nan]
        rising = all(low < high for low, high in pairwise(values))
        if not rising or not all(map(math.isfinite, values)):
            raise InputError(
                f"variable {column.name!r} is a number with the levels {', '.join(column.levels)}; expected rising "
                "numbers"
            )

    def labels(self, column: Described) -> list[Label]:
        if not column.levels:
            return [("", statistic) for statistic in self.statistics]
        levels = [(level, "probability") for level in (*column.levels, OTHER)]
        return levels + [(OTHER, statistic) for statistic in self.statistics]

    def atom_of(self, column: Column) -> Positions:
        """Return which atom each code stands for, -1 for any other number: (codes,)."""
        atoms = np.array([float(level) for level in column.levels])
        if not len(atoms):
            return np.full(len(column.values), -1)
        near = np.minimum(np.searchsorted(atoms, column.values), len(atoms) - 1)
        return np.where(atoms[near] == column.values, near, -1)

    def center_and_spread(self, column: Column, counts: Array) -> tuple[float, float]:
        """Return mean and variance of the numbers that are no atoms, as the moments see them; counts (codes,)."""
        values = self.seen(column)
        own = np.where(self.atom_of(column) < 0, counts, 0.0)
        total = max(float(own.sum()), 1e-300)
        mean = float(own @ values) / total
        return mean, max(float(own @ (values - mean) ** 2) / total, 1e-300)

    @staticmethod
    def seen(column: Column) -> Array:
        """Return the values as the moments see them (codes,): those beyond the outer knots, far out, at inner ones."""
        if not column.knots:
            return column.values
        inner = column.knots[1:-1] or column.knots
        high = np.where(column.values > column.knots[-1], inner[-1], column.values)
        return np.where(high < column.knots[0], inner[0], high)

    @staticmethod
    def least_variance(column: Column) -> float:
        """Return the variance of what the resolution hides: of numbers anywhere within a step."""
        return column.resolution**2 / 12.0

    def n_codes(self, column: Column) -> int:
        return len(column.values)

    def held(self, column: Column) -> list[Any]:
        values: list[Any] = column.values.tolist()
        if column.value_type == "int":
            values = [int(value) if float(value).is_integer() else value for value in values]
        return values

    def n_soft(self, column: Column) -> int:
        return len(column.levels) + len(column.knots) + 1

    def soften(self, column: Column) -> tuple[Positions, Array]:
        from scipy.interpolate import BSpline

        low, high = column.knots[0], column.knots[-1]
        padded = np.array([low, low, *column.knots, high, high])
        design = BSpline.design_matrix(self.seen(column), padded, 2)
        where, shares = design.indices.reshape(-1, 3).astype(np.int64), design.data.reshape(-1, 3)
        atom = self.atom_of(column)[:, None]
        where = np.where(atom < 0, len(column.levels) + where, np.maximum(atom, 0))
        return where, np.where(atom < 0, shares, [1.0, 0.0, 0.0])

    def raw_moments(self, column: Column, soft: Array) -> tuple[Array, Array]:
        """Return mean (k,) and variance (k,) of components with these shares of the splines (splines, k).

        By Marsden's identity y and y^2 are the splines weighted by the mean and the product of their inner knots.
        """
        knots = np.asarray(column.knots)
        middle = 0.5 * (knots[0] + knots[-1])
        padded = np.concatenate([knots[:1], knots, knots[-1:]]) - middle
        mean = 0.5 * (padded[:-1] + padded[1:]) @ soft
        return middle + mean, (padded[:-1] * padded[1:]) @ soft - mean**2

    def parameters(self, column: Column, soft: Array, counts: Array) -> Array:
        spread, at = self.center_and_spread(column, counts)[1], len(column.levels)
        if not at:
            return self.from_moments(column, *self.raw_moments(column, soft), spread)
        rest = soft[at:].sum(axis=0)
        # a component that is all atoms has the others' mean over all components, or over the column if all are so
        usual = soft[at:].sum(axis=1) if rest.any() else self._shares(column, counts)[at:]
        others = soft[at:] + 1e-6 * usual[:, None] / float(usual.sum())
        numbers = self.from_moments(column, *self.raw_moments(column, others / others.sum(axis=0)), spread)
        return np.concatenate([soft[:at], rest[None], numbers])

    def _shares(self, column: Column, counts: Array) -> Array:
        """Return how often the column holds each soft level (soft levels,), from the counts of its values."""
        where, shares = self.soften(column)
        held = np.bincount(where.ravel(), (shares * counts[:, None]).ravel(), self.n_soft(column))
        return np.asarray(held, dtype=float)

    def soft_theta(self, column: Column, theta: Array, likely: Array, counts: Array, alpha: Array) -> Array:
        weight = counts[:, None] * likely / (likely @ (alpha / alpha.sum()))[:, None]
        where, shares = self.soften(column)
        soft = np.zeros((self.n_soft(column), theta.shape[1]))
        for m in range(where.shape[1]):
            np.add.at(soft, where[:, m], shares[:, m, None] * weight)
        return soft / weight.sum(axis=0)

    def bounds(self) -> list[tuple[float, float]]:
        return [(0.0 if self.whole or statistic != "mean" else -math.inf, math.inf) for statistic in self.statistics]

    def units(self, spread: Array) -> Array:
        return np.stack([np.sqrt(spread) if statistic == "mean" else spread for statistic in self.statistics])

    def most_likely(self, column: Column, theta: Array, memberships: Array) -> list[Any]:
        """Return the likeliest atom where all other numbers together are less likely, else the mean of the others."""
        at = len(column.levels)
        shares = memberships * theta[at] if at else memberships
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        mean = self.moments(theta[-len(self.statistics) :] @ shares.T)[0]
        values = np.rint(mean) if column.value_type == "int" else mean
        if at:
            chances = memberships @ theta[: at + 1].T
            atoms = np.array([float(level) for level in column.levels])
            best = chances.argmax(axis=1)
            values = np.where(best < at, atoms[np.minimum(best, at - 1)], values)
        return list(values)

    def sample(self, column: Column, theta: Array, memberships: Array, rng: np.random.Generator) -> Array | Positions:
        component = np.sum(rng.random((len(memberships), 1)) > np.cumsum(memberships, axis=1)[:, :-1], axis=1)
        drawn = self.numbers(theta[-len(self.statistics) :, component], rng)
        if at := len(column.levels):
            chances = np.cumsum(theta[:at, component], axis=0)
            which = np.sum(rng.random(len(component)) > chances, axis=0)
            drawn = np.where(which < at, np.array([*map(float, column.levels), 0.0])[which], drawn)
        return drawn.astype(np.int64) if self.whole else drawn

    def as_categories(self, column: Column, theta: Array, counts: Array) -> AsCategories:
        """Return the quarters of the column, and their probabilities in every component; atoms stand by themselves."""
        values, atom, n_atoms = column.values, self.atom_of(column), len(column.levels)
        reached = np.cumsum(np.where(atom < 0, counts, 0.0))
        at = np.unique(np.searchsorted(reached, np.array([0.25, 0.5, 0.75]) * reached.max(initial=0.0)))
        edges = values[at[at < len(values) - 1]]
        own = theta[-len(self.statistics) :, None, :]
        tails = np.concatenate([np.ones((1, theta.shape[1])), self.upper_tail(edges[:, None], own)])
        names = (*(f"to {edge:g}" for edge in edges), f"above {edges[-1]:g}" if len(edges) else "any")
        quarters = np.searchsorted(edges, values, side="left")
        shares = tails - np.concatenate([tails[1:], np.zeros((1, theta.shape[1]))])
        if n_atoms:
            shares = np.concatenate([theta[:n_atoms], theta[n_atoms] * shares])
        of_code = np.where(atom < 0, n_atoms + quarters, atom)[:, None]
        return AsCategories(of_code, (*column.levels, *names), shares)

    def describe(self, column: Column, counts: Array) -> str:
        total, atom = max(float(counts.sum()), 1.0), self.atom_of(column)
        mean = float(counts @ column.values / total)
        ends = (plain_number(float(column.values[at])) for at in (0, -1))
        held = "".join(
            f", {level} in {float(counts[atom == at].sum()) / total:.0%}" for at, level in enumerate(column.levels)
        )
        return f"{' to '.join(ends)}, mean {plain_number(mean)}{held}"
