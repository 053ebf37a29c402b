"""What cells say of their rows' components: the likelihood of every code in every component, given theta.

The model draws a component for a cell from the row's memberships and the cell from that component. A genotype holds
several such draws, one a copy of the locus, so it is laid out as that many columns over the same alleles. Everything
after the moments (memberships, sampling, EM, likelihoods) works on these columns and one table with a row for every
code, whatever the kinds of the variables; missing cells are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.data.kinds import KINDS
from mixmem.data.kinds.base import Draw, LevelKind, NumberColumns, NumberKind, Sums
from mixmem.data.soft_levels import rows_of, starts_of
from mixmem.engine.rows import map_rows
from mixmem.kernels.passes import add_features
from mixmem.typing import Array, Codes, Positions

LEAST_PROBABILITY = 1e-6
"""No likelihood is taken below this, of a number relative to its most likely component: an estimate of zero does not
make a level impossible, and one cell far out does not decide on a row alone."""


@dataclass(frozen=True)
class Numbers:
    """The variables of one kind of number: rows of theta (rows per variable, variables), the table's rows (cells,),
    each cell's variable (cells,) and value (cells, 1). Atoms are levels and have no cells here; ``other`` (variables,)
    is the row of theta with the probability of any other number, -1 where there are no atoms."""

    kind: NumberKind
    variables: Positions
    theta_rows: Positions
    rows: Positions
    starts: Positions
    owner: Positions
    values: Array
    other: Positions

    @cached_property
    def _of_cells(self) -> Positions:
        """Rows of theta of each cell's variable (rows per variable, cells)."""
        return self.theta_rows[:, self.owner]

    @cached_property
    def place(self) -> Positions | slice:
        """The table's rows, as a slice if they follow each other: that is faster to assign to."""
        if not len(self.rows) or self.rows[-1] - self.rows[0] != len(self.rows) - 1:
            return self.rows
        return slice(int(self.rows[0]), int(self.rows[-1]) + 1)

    def log_density(self, theta: Array) -> Array:
        """(cells, k)."""
        logs = self.kind.log_density(self.values, theta.take(self._of_cells, axis=0))
        mixed = self.other[self.owner] >= 0
        if mixed.any():
            logs[mixed] += np.log(np.maximum(theta[self.other[self.owner[mixed]]], LEAST_PROBABILITY))
        return logs

    def places(self, theta: Array) -> Array:
        """Where the cells' values lie among the components, in standard deviations (cells,)."""
        own = self.kind.moments(theta[self.theta_rows])
        mean, variance = (part.mean(axis=-1) for part in own)
        return np.asarray((self.values[:, 0] - mean[self.owner]) / np.sqrt(variance[self.owner]))

    def sums(self, counts: Array, theta: Array, columns: NumberColumns, rng: np.random.Generator | None = None) -> Sums:
        """Of cells held by components, counts (table's rows, k); what they weigh goes by theta (theta rows, k), as
        expected or, with ``rng``, drawn."""
        held, about = counts.take(self.rows, axis=0), self.values - columns.center[self.owner]
        weighed = self.kind.masses(held, self.values, theta.take(self._of_cells, axis=0), rng)
        each = (held, weighed, weighed * about, weighed * about**2)
        n, mass, first, second = (np.add.reduceat(part, self.starts, axis=0) for part in each)
        return Sums(n, mass, first, second, columns)


def largest(values: Array) -> Array:
    """Return the largest of every row (n, 1) of values (n, k): column by column, since rows are short."""
    out = values[:, :1].copy()
    for column in values.T[1:]:
        np.maximum(out[:, 0], column, out=out[:, 0])
    return out


class LikelihoodTable:
    """A table's draws: ``codes`` (n, q), where column c's codes start in the table of likelihoods (``starts``, (q,)),
    and the code that stands for a missing cell (``absent``, (q,); -1 where there is none)."""

    def __init__(self, table: Encoded):
        self.coding, self.schema, self.weights = table.coding, table.schema, table.weights
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
        atoms = np.array([len(column.levels) for column in columns]) * number
        sized = np.where(number, atoms + (atoms > 0), self.schema.sizes)
        levels = np.flatnonzero(sized)
        self.level_variables, self.level_sizes = levels, sized[levels]
        self.level_theta = rows_of(self.schema.offsets, levels, self.level_sizes)
        """Rows of theta that are probabilities of levels: of categories, of atoms and of any other number."""
        mixed = np.flatnonzero(atoms).tolist()
        self._atoms = {j: cast(NumberKind, columns[j].own_kind).atom_of(columns[j]) for j in mixed}
        """Which atom each code stands for, of variables that have atoms (codes,)."""
        self.level_rows = self._rows_of_levels(levels)
        """The table's rows for them; -1 for any other number, and for an atom that this table's grid does not have."""
        by_kind: dict[int, list[int]] = {}
        for j in np.flatnonzero(number).tolist():
            by_kind.setdefault(id(columns[j].own_kind), []).append(j)
        order = {id(kind): place for place, kind in enumerate(KINDS.values())}
        self.numbers = [self._numbers(by_kind[kind]) for kind in sorted(by_kind, key=order.__getitem__)]
        self.plain = not missing.any() and not self.numbers

    @cached_property
    def by_column(self) -> Codes:
        """Return the codes (q, n), one column after the other."""
        return np.ascontiguousarray(self.codes.T)

    def _rows_of_levels(self, levels: Positions) -> Positions:
        within = np.arange(len(self.level_theta)) - np.repeat(starts_of(self.level_sizes), self.level_sizes)
        rows = np.repeat(self.offsets[levels], self.level_sizes) + within
        for place in np.flatnonzero(np.isin(levels, list(self._atoms))).tolist():
            atom = self._atoms[int(levels[place])]
            begin = int(starts_of(self.level_sizes)[place])
            own = rows[begin : begin + self.level_sizes[place]]
            own[:] = -1
            own[atom[atom >= 0]] = self.offsets[levels[place]] + np.flatnonzero(atom >= 0)
        return np.asarray(rows)

    def _numbers(self, members: list[int]) -> Numbers:
        variables = np.array(members, dtype=np.int64)
        kind = cast(NumberKind, self.coding.columns[members[0]].own_kind)
        own = np.arange(-len(kind.statistics), 0)[:, None] + self.schema.offsets[variables + 1]
        codes = [
            np.flatnonzero(self._atoms[j] < 0) if j in self._atoms else np.arange(self.codes_of[j]) for j in members
        ]
        sizes = np.array([len(each) for each in codes], dtype=np.int64)
        rows = np.repeat(self.offsets[variables], sizes) + np.concatenate(codes)
        values = np.concatenate([self.coding.columns[j].values[each] for j, each in zip(members, codes, strict=True)])
        owner = np.repeat(np.arange(len(variables)), sizes)
        other = np.where([j in self._atoms for j in members], own[0] - 1, -1)
        return Numbers(kind, variables, own, rows, starts_of(sizes), owner, values[:, None], other)

    @cached_property
    def columns(self) -> list[NumberColumns]:
        """What is known of the variables of :attr:`numbers` in this table, by group."""
        out = []
        for group in self.numbers:
            counts, facts = np.zeros((self.n_rows, 1)), np.empty((3, len(group.variables), 1))
            for at, j in enumerate(group.variables.tolist()):
                size, column = int(self.codes_of[j]), self.coding.columns[j]
                own = self.code_counts(j)
                counts[self.offsets[j] : self.offsets[j] + size, 0] = own
                facts[:, at, 0] = *group.kind.center_and_spread(column, own), group.kind.least_variance(column)
            kept = group.kind.kept(group.values, counts[group.rows], group.starts)
            out.append(NumberColumns(facts[0], facts[1], facts[2], kept))
        return out

    def code_counts(self, j: int) -> Array:
        """Return how many cells of variable j have each code (codes,), rows weighted; of genotypes, first copies."""
        held, size = self.codes[:, np.flatnonzero(self.variables == j)[0]], int(self.codes_of[j])
        return np.asarray(np.bincount(held, self.weights, minlength=size + 1)[:size], dtype=float)

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
        for j, atom in self._atoms.items():
            own = np.flatnonzero(atom >= 0)
            out[self.offsets[j] + own] = np.iinfo(np.uint64).max - 1 - atom[own].astype(np.uint64)
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
        known = self.level_rows >= 0
        out[self.level_rows[known]] = np.maximum(theta[self.level_theta[known]], LEAST_PROBABILITY)
        for group in self.numbers:
            logs = group.log_density(theta)
            out[group.place] = np.maximum(np.exp(logs - largest(logs)), LEAST_PROBABILITY)
        return out

    def log_likelihoods(self, theta: Array) -> Array:
        """Log-likelihood of every code in every component (rows, k), of numbers as it is; theta (theta rows, k)."""
        if self.plain:
            return np.log(self.likelihoods(theta))
        out = np.zeros((self.n_rows, theta.shape[1]))
        known = self.level_rows >= 0
        out[self.level_rows[known]] = np.log(np.maximum(theta[self.level_theta[known]], LEAST_PROBABILITY))
        for group in self.numbers:
            logs = group.log_density(theta)
            out[group.place] = np.maximum(logs, largest(logs) + math.log(LEAST_PROBABILITY))
        return out

    def scale(self, theta: Array) -> Array:
        """Return the log of what a row's numbers are relative to in :meth:`likelihoods`, summed (n,)."""
        total = np.zeros((len(self.codes), 1))
        if self.numbers:
            logs = np.zeros((self.n_rows, 1))
            for group in self.numbers:
                logs[group.place] = largest(group.log_density(theta))
            members = np.arange(len(self.starts))
            codes = self.codes
            map_rows(lambda rows: add_features(codes[rows], self.starts, members, logs, total[rows]), len(codes))
        return total[:, 0]

    def level_counts(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Counts (rows, k) by level (level rows, k): of any other number than atoms, all of them together."""
        out = counts[self.level_rows]
        if self._atoms:
            out[self.level_rows < 0] = 0
            place = np.full(self.schema.n_rows, -1)
            place[self.level_theta] = np.arange(len(self.level_theta))
            for group in self.numbers:
                mixed = np.flatnonzero(group.other >= 0)
                sums = np.add.reduceat(counts[group.rows], group.starts, axis=0)
                out[place[group.other[mixed]]] = sums[mixed]
        return out

    def level_sums(self, values: Array) -> Array:
        """Sums of values (level rows, k) over the levels of each variable, at every level."""
        sums = np.add.reduceat(values, starts_of(self.level_sizes), axis=0)
        return np.asarray(np.repeat(sums, self.level_sizes, axis=0))

    def _shares(self, values: Array) -> Array:
        """Values (level rows, k), at least something, over their sums: probabilities."""
        held = np.maximum(values, 1e-12)
        return held / self.level_sums(held) if len(held) else held

    def fitted(self, counts: Array, theta: Array, eta: float = 0.0) -> Array:
        """A theta (theta rows, k) more likely than the one given, of cells that components hold, counts (rows, k).

        The likeliest, but for numbers of which cells far out weigh less: how much less goes by the theta given. Of
        levels, the mean under a Dirichlet(eta) prior.
        """
        out = np.empty((self.schema.n_rows, counts.shape[1]))
        out[self.level_theta] = self._shares(self.level_counts(counts) + eta)
        for group, columns in zip(self.numbers, self.columns, strict=True):
            out[group.theta_rows] = group.kind.fitted(group.sums(counts, theta, columns))
        return out

    def inside(self, theta: Array) -> Array:
        """An allowed theta (theta rows, k) near one that need not be."""
        out = theta.copy()
        out[self.level_theta] = self._shares(theta[self.level_theta])
        for group, columns in zip(self.numbers, self.columns, strict=True):
            out[group.theta_rows] = group.kind.inside(theta[group.theta_rows], columns)
        return out

    def draw_numbers(self, counts: Array, theta: Array, rng: np.random.Generator) -> list[tuple[Positions, Draw]]:
        """Rows of theta of each kind of number (rows a variable, variables), and a draw of them from where it is."""
        return [
            (group.theta_rows, group.kind.draw(group.sums(counts, theta, columns, rng), theta[group.theta_rows], rng))
            for group, columns in zip(self.numbers, self.columns, strict=True)
        ]

    @cached_property
    def units(self) -> Array:
        """Typical size of every row of theta (theta rows, 1): one for probabilities, from the column's spread else."""
        out = np.ones((self.schema.n_rows, 1))
        for group, columns in zip(self.numbers, self.columns, strict=True):
            out[group.theta_rows] = group.kind.units(columns.spread[:, 0])[:, :, None]
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
