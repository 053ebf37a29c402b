"""From codes to the soft levels of the moments, and back.

A table's codes select *cells*: every variable has one for each of its codes and, where something is missing, a last one
for that. The matrix ``shares`` (cells, soft levels) says what mixture of soft levels a cell is. A missing cell counts
as the variable's mean mu; to make up for those, the others count as mu + (b - mu) / pi with pi the share observed. The
moments of distinct variables are then unbiased if cells are missing at random, and a variable's soft levels still sum
to one in every row, which the lower moments are taken from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from mixmem.data.kinds.base import Column, Kind
from mixmem.typing import Array, Positions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class CodedColumn(Column, Protocol):
    """A column that knows its kind."""

    @property
    def own_kind(self) -> Kind: ...


def starts_of(sizes: Positions) -> Positions:
    """Where consecutive parts of these sizes begin: (p,)."""
    return np.asarray(np.cumsum(sizes) - sizes, dtype=np.int64)


def rows_of(offsets: Positions, variables: Positions, sizes: Positions | None = None) -> Positions:
    """Rows offsets[j] to offsets[j + 1] of the given variables, in their order, or the first ``sizes`` of them.

    >>> import numpy as np
    >>> rows_of(np.array([0, 2, 5, 6]), np.array([2, 0]))
    array([5, 0, 1])
    """
    starts = offsets[variables]
    sizes = offsets[variables + 1] - starts if sizes is None else sizes
    within = np.arange(sizes.sum()) - np.repeat(starts_of(sizes), sizes)
    return np.asarray(np.repeat(starts, sizes) + within, dtype=np.int64)


@dataclass(frozen=True)
class Part:
    """Some variables: their soft levels, ``rows`` of the moments' theta, and their ``cells``.

    ``starts`` and ``cell_starts`` are where each variable begins among these; ``shares`` (cells, rows) is None where
    every code is a level of its own and nothing is missing.
    """

    variables: Positions
    rows: Positions
    sizes: Positions
    starts: Positions
    cells: Positions
    cell_sizes: Positions
    cell_starts: Positions
    shares: csr_matrix | None

    def spread(self, theta: Array, means: Array, inverse: Array) -> Array:
        """What cells say of the components (cells, k): their soft levels' theta (rows, k), missing cells the mean's.

        ``means`` (rows,) are the soft levels' means, ``inverse`` (cells,) one over the share observed, 0 if missing.
        """
        if self.shares is None:
            return theta
        own = np.add.reduceat(theta * means[:, None], self.starts, axis=0)
        base = np.repeat(own, self.cell_sizes, axis=0)
        return np.asarray(base + (self.shares @ theta - base) * inverse[:, None])

    def collect(self, sums: Array, means: Array, inverse: Array) -> Array:
        """Sums over rows of the soft levels (rows, k) from those of the cells (cells, k): the transpose of spread."""
        if self.shares is None:
            return sums
        rest = np.add.reduceat(sums * (1.0 - inverse)[:, None], self.cell_starts, axis=0)
        return np.asarray(self.shares.T @ (sums * inverse[:, None]) + means[:, None] * np.repeat(rest, self.sizes, 0))


class SoftLevels:
    """The soft levels and cells of a table's variables.

    ``sizes`` (p,) and ``offsets`` (p + 1,) of the soft levels; ``cell_offsets`` (p + 1,) of the cells; ``absent`` (p,)
    the code of a missing cell, -1 where there is none.
    """

    def __init__(self, columns: Sequence[CodedColumn]):
        self.columns = columns
        self.sizes = _integers(column.own_kind.n_soft(column) for column in columns)
        codes = _integers(column.own_kind.n_codes(column) for column in columns)
        gaps = np.array([column.missing for column in columns], dtype=bool)
        self.offsets = _offsets(self.sizes)
        self.cell_offsets = _offsets(codes + gaps)
        self.absent = np.where(gaps, codes, -1)
        kinds = all(column.own_kind.plain for column in columns)
        self.plain = kinds and not gaps.any() and np.array_equal(self.sizes, codes)

    @cached_property
    def levels(self) -> tuple[Positions, Array]:
        """Soft levels of every cell, counted within its variable, and their shares: (cells, m) each.

        A missing cell has the level after the last one, with share one; what is not used has share zero.
        """
        found = [column.own_kind.soften(column) for column in self.columns]
        width = max((positions.shape[1] for positions, _ in found), default=1)
        where = np.zeros((self.n_cells, width), dtype=np.int64)
        shares = np.zeros((self.n_cells, width))
        for j, (positions, part) in enumerate(found):
            begin, m = self.cell_offsets[j], positions.shape[1]
            where[begin : begin + len(positions), :m] = positions
            shares[begin : begin + len(positions), :m] = part
            if self.absent[j] >= 0:
                where[begin + len(positions), 0], shares[begin + len(positions), 0] = self.sizes[j], 1.0
        return where, shares

    @property
    def n_cells(self) -> int:
        return int(self.cell_offsets[-1])

    @cached_property
    def shares(self) -> csr_matrix | None:
        """(cells, soft levels): what mixture of soft levels a cell is; rows of missing cells are empty."""
        if self.plain:
            return None
        from scipy.sparse import csr_matrix

        where, shares = self.levels
        used = shares * self.present[:, None]
        columns = where + np.repeat(self.offsets[:-1], np.diff(self.cell_offsets))[:, None]
        cell, nth = np.nonzero(used)
        return csr_matrix((used[cell, nth], (cell, columns[cell, nth])), shape=(self.n_cells, int(self.offsets[-1])))

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """(cells,): not the missing ones."""
        out = np.ones(self.n_cells, dtype=bool)
        gaps = self.absent >= 0
        out[self.cell_offsets[:-1][gaps] + self.absent[gaps]] = False
        return out

    def part(self, variables: Positions) -> Part:
        """Some variables, in the order given."""
        rows, cells = rows_of(self.offsets, variables), rows_of(self.cell_offsets, variables)
        sizes, cell_sizes = self.sizes[variables], np.diff(self.cell_offsets)[variables]
        shares = None if self.shares is None else self.shares[cells][:, rows]
        return Part(variables, rows, sizes, starts_of(sizes), cells, cell_sizes, starts_of(cell_sizes), shares)

    @cached_property
    def whole(self) -> Part:
        """All variables."""
        return self.part(np.arange(len(self.sizes)))


def _integers(numbers: Iterable[int]) -> Positions:
    return np.fromiter(numbers, dtype=np.int64)


def _offsets(sizes: Positions) -> Positions:
    out = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    out.flags.writeable = False
    return out
