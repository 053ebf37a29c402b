"""What cells say of their rows' components: the likelihood of every code in every component, given theta.

The model draws a component for a cell from the row's memberships and the cell from that component. A genotype holds
several such draws, one a copy of the locus, so it is laid out as that many columns over the same alleles. Everything
after the moments (memberships, sampling, EM, likelihoods) works on these columns and one table with a row for every
code, whatever the kinds of the variables; missing cells are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.data.kinds import KINDS
from mixmem.data.kinds.base import Draw, LevelKind, NumberKind, Sums
from mixmem.data.soft_levels import rows_of, starts_of
from mixmem.engine.rows import map_rows
from mixmem.kernels.passes import add_features
from mixmem.typing import Array, Positions

LEAST_PROBABILITY = 1e-6
"""No likelihood is taken below this, of a number relative to its most likely component: an estimate of zero does not
make a level impossible, and one cell far out does not decide on a row alone."""


@dataclass(frozen=True)
class Numbers:
    """The variables of one kind of number: rows of theta (rows per variable, variables), the table's rows (cells,),
    each cell's variable (cells,) and value (cells, 1)."""

    kind: NumberKind
    variables: Positions
    theta_rows: Positions
    rows: Positions
    starts: Positions
    owner: Positions
    values: Array

    def log_density(self, theta: Array) -> Array:
        """(cells, k)."""
        return self.kind.log_density(self.values, theta[self.theta_rows[:, self.owner]])

    def places(self, theta: Array) -> Array:
        """Where the cells' values lie among the components, in standard deviations (cells,)."""
        own = self.kind.moments(theta[self.theta_rows])
        mean, variance = (part.mean(axis=-1) for part in own)
        return np.asarray((self.values[:, 0] - mean[self.owner]) / np.sqrt(variance[self.owner]))

    def sums(self, counts: Array, column: NumberColumns) -> Sums:
        """Of cells held by components, counts (table's rows, k)."""
        held, about = counts[self.rows], self.values - column.center[self.owner]
        n, first, second = (np.add.reduceat(held * weight, self.starts, axis=0) for weight in (1.0, about, about**2))
        return Sums(n, first, second, column.center, column.spread, column.kept)


@dataclass(frozen=True)
class NumberColumns:
    """Of columns of numbers: mean and variance (variables, 1), and what their kind keeps beside."""

    center: Array
    spread: Array
    kept: Array | None


class LikelihoodTable:
    """A table's draws: ``codes`` (n, q), where column c's codes start in the table of likelihoods (``starts``, (q,)),
    and the code that stands for a missing cell (``absent``, (q,); -1 where there is none)."""

    def __init__(self, table: Encoded):
        self.coding, self.schema = table.coding, table.schema
        columns = table.coding.columns
        missing = table.coding.missing
        number = self.schema.has("number")
        draws = np.array([column.own_kind.n_draws(column) for column in columns])
        values = np.array([len(column.values) for column in columns], dtype=np.int64)
        self.codes_of = np.where(number, values, self.schema.sizes)
        """(p,): rows of the table that a variable has, the missing one not counted."""
        self.offsets = np.concatenate([[0], np.cumsum(self.codes_of + missing)]).astype(np.int64)
        self.n_rows = int(self.offsets[-1])
        self.variables = np.repeat(np.arange(len(columns)), draws)
        """(q,): the variable of every column."""
        self.starts = self.offsets[self.variables]
        self.absent = np.where(missing, self.codes_of, -1)[self.variables]
        self.codes = table.codes if draws.max(initial=1) == 1 else _laid_out(table, draws)
        levels = np.flatnonzero(~number)
        self.level_sizes = self.schema.sizes[levels]
        self.level_theta = rows_of(self.schema.offsets, levels)
        """Rows of theta that are probabilities of levels, and the table's rows for them (``level_rows``)."""
        within = np.arange(len(self.level_theta)) - np.repeat(starts_of(self.level_sizes), self.level_sizes)
        self.level_rows = np.repeat(self.offsets[levels], self.level_sizes) + within
        by_kind: dict[int, list[int]] = {}
        for j in np.flatnonzero(number).tolist():
            by_kind.setdefault(id(columns[j].own_kind), []).append(j)
        order = {id(kind): place for place, kind in enumerate(KINDS.values())}
        self.numbers = [self._numbers(by_kind[kind]) for kind in sorted(by_kind, key=order.__getitem__)]
        self.plain = not missing.any() and not self.numbers

    def _numbers(self, members: list[int]) -> Numbers:
        variables = np.array(members, dtype=np.int64)
        sizes = self.codes_of[variables]
        kind = cast(NumberKind, self.coding.columns[members[0]].own_kind)
        own = np.arange(len(kind.statistics))[:, None] + self.schema.offsets[variables]
        rows = np.repeat(self.offsets[variables] - starts_of(sizes), sizes) + np.arange(sizes.sum())
        values = np.concatenate([self.coding.columns[j].values for j in members])[:, None]
        owner = np.repeat(np.arange(len(variables)), sizes)
        return Numbers(kind, variables, own, rows, starts_of(sizes), owner, values)

    @cached_property
    def columns(self) -> list[NumberColumns]:
        """What is known of the variables of :attr:`numbers` in this table, by group."""
        out = []
        for group in self.numbers:
            counts = np.concatenate(
                [
                    np.bincount(self.codes[:, np.flatnonzero(self.variables == j)[0]], minlength=size + 1)[:size]
                    for j, size in zip(group.variables, self.codes_of[group.variables], strict=True)
                ]
            )[:, None].astype(float)
            n = np.maximum(np.add.reduceat(counts, group.starts, axis=0), 1.0)
            mean = np.add.reduceat(counts * group.values, group.starts, axis=0) / n
            about = (group.values - mean[group.owner]) ** 2
            spread = np.maximum(np.add.reduceat(counts * about, group.starts, axis=0) / n, 1e-300)
            out.append(NumberColumns(mean, spread, group.kind.kept(group.values, counts, group.starts)))
        return out

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Draws of each row that are not missing (n,)."""
        if (self.absent < 0).all():
            return np.full(len(self.codes), self.codes.shape[1])
        return np.asarray((self.codes != self.absent).sum(axis=1))

    def marks(self, theta: Array) -> NDArray[np.uint64]:
        """What tells the table's rows apart (rows,), whatever other rows there are: levels by their order, numbers by
        where they lie among the components, in millionths of a standard deviation, so that their unit is of no account.
        Streams of random numbers are seeded by it: equal rows have equal ones in any company."""
        within = np.arange(self.n_rows) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        out = within.astype(np.uint64)
        for group in self.numbers:
            places = group.places(theta)
            out[group.rows] = np.rint(1e6 * np.clip(places, -1e9, 1e9)).astype(np.int64).view(np.uint64)
        gaps = self.absent >= 0
        out[self.starts[gaps] + self.absent[gaps]] = np.iinfo(np.uint64).max
        return out

    def likelihoods(self, theta: Array) -> Array:
        """Likelihood of every code in every component (rows, k), of numbers relative to their most likely component.

        theta (theta rows, k).
        """
        if self.plain:
            return np.ascontiguousarray(np.maximum(theta, LEAST_PROBABILITY))
        out = np.ones((self.n_rows, theta.shape[1]))
        out[self.level_rows] = np.maximum(theta[self.level_theta], LEAST_PROBABILITY)
        for group in self.numbers:
            logs = group.log_density(theta)
            out[group.rows] = np.maximum(np.exp(logs - logs.max(axis=1, keepdims=True)), LEAST_PROBABILITY)
        return out

    def scale(self, theta: Array) -> Array:
        """Return the log of what a row's numbers are relative to in :meth:`likelihoods`, summed (n,)."""
        total = np.zeros((len(self.codes), 1))
        if self.numbers:
            logs = np.zeros((self.n_rows, 1))
            for group in self.numbers:
                logs[group.rows, 0] = group.log_density(theta).max(axis=1)
            members = np.arange(len(self.starts))
            codes = self.codes
            map_rows(lambda rows: add_features(codes[rows], self.starts, members, logs, total[rows]), len(codes))
        return total[:, 0]

    def level_sums(self, values: Array) -> Array:
        """Sums of values (level rows, k) over the levels of each variable, at every level."""
        sums = np.add.reduceat(values, starts_of(self.level_sizes), axis=0)
        return np.asarray(np.repeat(sums, self.level_sizes, axis=0))

    def _shares(self, values: Array) -> Array:
        """Values (level rows, k), at least something, over their sums: probabilities."""
        held = np.maximum(values, 1e-12)
        return held / self.level_sums(held) if len(held) else held

    def fitted(self, counts: Array) -> Array:
        """The most likely theta (theta rows, k) given the cells that components hold, counts (rows, k)."""
        theta = np.empty((self.schema.n_rows, counts.shape[1]))
        theta[self.level_theta] = self._shares(counts[self.level_rows])
        for group, column in zip(self.numbers, self.columns, strict=True):
            theta[group.theta_rows] = group.kind.fitted(group.sums(counts, column))
        return theta

    def inside(self, theta: Array) -> Array:
        """An allowed theta (theta rows, k) near one that need not be."""
        out = theta.copy()
        out[self.level_theta] = self._shares(theta[self.level_theta])
        for group, column in zip(self.numbers, self.columns, strict=True):
            out[group.theta_rows] = group.kind.inside(theta[group.theta_rows], column.center, column.spread)
        return out

    def draw_numbers(self, counts: Array, theta: Array, rng: np.random.Generator) -> list[tuple[Positions, Draw]]:
        """Rows of theta of each kind of number (rows a variable, variables), and a draw of them from where it is."""
        return [
            (group.theta_rows, group.kind.draw(group.sums(counts, column), theta[group.theta_rows], rng))
            for group, column in zip(self.numbers, self.columns, strict=True)
        ]

    @cached_property
    def units(self) -> Array:
        """Typical size of every row of theta (theta rows, 1): one for probabilities, from the column's spread else."""
        out = np.ones((self.schema.n_rows, 1))
        for group, column in zip(self.numbers, self.columns, strict=True):
            out[group.theta_rows] = group.kind.units(column.spread[:, 0])[:, :, None]
        return out


def _laid_out(table: Encoded, draws: Positions) -> NDArray[np.unsignedinteger]:
    """Return the codes (n, p) with every cell of several draws as one column per draw: (n, q).

    Variables of one form are handled at once.
    """
    codes = table.codes
    out = np.empty((len(codes), int(draws.sum())), codes.dtype)
    starts = starts_of(draws)
    forms: dict[tuple[int, int], list[int]] = {}
    for j, column in enumerate(table.coding.columns):
        forms.setdefault((len(column.levels), int(draws[j])) if draws[j] > 1 else (0, 1), []).append(j)
    for (n_levels, n_draws), members in forms.items():
        if not n_levels:
            out[:, starts[members]] = codes[:, members]
            continue
        column = table.coding.columns[members[0]]
        lookup = cast(LevelKind, column.own_kind).draws(column)
        lookup = np.concatenate([lookup, np.full((1, n_draws), n_levels)]).astype(codes.dtype)
        held = codes[:, members]
        for draw in range(n_draws):
            out[:, starts[members] + draw] = lookup[held, draw]
    return out
