"""Raw moments as sums over rows, and block tensors (paper, section 3.2 and appendix A).

Raw moments add up over chunks of rows, files and machines: a sum holds its coding and the stretches of the table it was
taken over, and ``+`` refuses what does not belong together. What is nonlinear in the means, the correction by alpha0
and that for missing cells, is applied once, after the last sum: a search over alpha0 reads no row again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded
from mixmem.data.soft_levels import Part, rows_of, starts_of
from mixmem.data.united_levels import Recoding
from mixmem.engine.rows import Arrays, Blocks, RowSum, Slices, map_rows, sum_over
from mixmem.errors import InputError
from mixmem.kernels.counts import block_triples, count_cells
from mixmem.kernels.passes import add_features, scatter_sums
from mixmem.moments.dirichlet import correct_second, correct_third
from mixmem.typing import Array, Modes

NO_WEIGHTS = np.empty(0)
"""What kernels take for rows of weight one."""


@dataclass(frozen=True)
class FirstMoments:
    """Total weight of the rows in which each cell occurs.

    Attributes
    ----------
    coding : Coding
        What cells there are: sums of tables that are coded alike add up.
    sums : RowSum
        Counts (cells,), and the rows' weight, by stretches of the table.

    Examples
    --------
    >>> from mixmem import encode, first_moments, n_stretches
    >>> table = encode([["x", 1], ["y", 2], ["y", 1], ["x", 1]])
    >>> whole = first_moments(table.take([0, 1])) + first_moments(table.take([2, 3]), first_stretch=1)
    >>> whole.counts
    array([2., 2., 3., 1.])
    """

    coding: Coding
    sums: RowSum

    def __add__(self, other: FirstMoments) -> FirstMoments:
        self.coding.refuse_other(other.coding, "the two sums")
        return FirstMoments(self.coding, self.sums + other.sums)

    def recoded(self, coding: Coding) -> FirstMoments:
        """Return the same counts by the cells of a coding that holds all of this one."""
        if coding == self.coding:
            return FirstMoments(coding, self.sums)
        way = Recoding.between(self.coding, coding)
        nodes: dict[tuple[int, int], Arrays] = {
            at: (way.sums(counts), total) for at, (counts, total) in self.sums.nodes.items()
        }
        return FirstMoments(coding, RowSum(nodes))

    @cached_property
    def _root(self) -> Arrays:
        return self.sums.root

    @property
    def counts(self) -> Array:
        """Return the weight of the rows in which each cell occurs (cells,)."""
        return self._root[0]

    @property
    def total(self) -> float:
        """Return the weight of all rows."""
        return float(self._root[1])

    @cached_property
    def observed(self) -> Array:
        """Return the share of the rows in which each variable is observed (p,)."""
        soft = self.coding.soft
        present = np.add.reduceat(self.counts * soft.present, soft.cell_offsets[:-1])
        return np.asarray(np.maximum(present, 1e-300) / self.total)

    @cached_property
    def means(self) -> Array:
        """Return E[b_j] of every variable, stacked (soft levels,), over rows that have it; even where none has."""
        soft = self.coding.soft
        if soft.shares is None:
            return self.counts / self.total
        found = soft.shares.T @ self.counts / np.repeat(self.observed * self.total, soft.sizes)
        return np.where(np.repeat(self._known, soft.sizes), found, 1.0 / np.repeat(soft.sizes, soft.sizes))

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        """(p,): observed in some row; a part of a table may lack a variable."""
        return self.observed * self.total > 1e-299

    @cached_property
    def inverse(self) -> Array:
        """Return one over the share observed (cells,), 0 for missing cells."""
        soft = self.coding.soft
        inverse = np.where(self._known, 1.0 / self.observed, 0.0)
        return np.asarray(np.repeat(inverse, np.diff(soft.cell_offsets)) * soft.present)

    def of(self, j: int) -> Array:
        """Return the counts of variable j by code (codes,), missing cells left out."""
        begin = int(self.coding.soft.cell_offsets[j])
        return self.counts[begin : begin + self.coding.columns[j].n_codes]

    @cached_property
    def missing(self) -> Array:
        """Return the weight of the rows in which each variable is missing (p,)."""
        soft = self.coding.soft
        last = soft.cell_offsets[1:] - 1
        return np.where(soft.absent >= 0, self.counts[last], 0.0)

    def mean(self, j: int) -> float:
        """Return the mean of a column of numbers."""
        counts = self.of(j)
        return float(counts @ self.coding.columns[j].values) / max(float(counts.sum()), 1e-300)

    def spread(self, part: Part, theta: Array) -> Array:
        """Return what the part's cells say of the components (its cells, k); theta holds its soft levels only."""
        return part.spread(theta, self.means[part.rows], self.inverse[part.cells])

    def collect(self, part: Part, sums: Array) -> Array:
        """Return sums over the part's soft levels (its rows, k) from those over its cells."""
        return part.collect(sums, self.means[part.rows], self.inverse[part.cells])


def first_moments(table: Encoded, *, first_stretch: int = 0) -> FirstMoments:
    """Count the cells of a table, or of a part of one.

    Parameters
    ----------
    table : Encoded
        Codes (n, p), which may have weights.
    first_stretch : int
        Where a part begins that was cut from a larger table at stretch borders (:func:`mixmem.stretch_rows`).

    Returns
    -------
    FirstMoments
        Sums that add up with those of other parts.

    Examples
    --------
    >>> import numpy as np
    >>> from mixmem import encode
    >>> first_moments(encode(np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1], [1, 0, 0]]))).means
    array([0.25, 0.75, 0.5 , 0.5 , 0.5 , 0.5 ])
    """
    codes, offsets = table.codes, table.coding.soft.cell_offsets
    weights = NO_WEIGHTS if table.weights is None else table.weights

    def add(rows: slice, begin: int, end: int, sums: Arrays) -> None:
        each = weights[rows] if len(weights) else weights
        count_cells(codes[rows], offsets, each, begin, end, sums[0])
        if begin == 0:
            sums[1][...] = each.sum() if len(weights) else rows.stop - rows.start

    work = Slices([(int(offsets[-1]),), ()], table.n_variables, add)
    return FirstMoments(table.coding, sum_over(work, table.n_rows, table.n_variables, first_stretch))


def mode_rows(coding: Coding, variables: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the soft levels of variables, in their order: row r of a block's mode is row ``mode_rows(...)[r]``."""
    return rows_of(coding.soft.offsets, variables)


def features_of(table: Encoded, part: Part, says: Array) -> Array:
    """Return the sums over a part's variables of what each row's cells say (n, q); says (cells of the part, q)."""
    values = np.zeros((table.n_rows, says.shape[1]))
    codes = table.codes
    map_rows(lambda rows: add_features(codes[rows], part.cell_starts, part.variables, says, values[rows]), len(codes))
    return values


def cell_sums(table: Encoded, part: Part, values: Array) -> Array:
    """Return the sums over rows of values (n, q) by the cells of some variables: (cells, q)."""

    def fill(first: int, partials: Arrays) -> None:
        scatter_sums(table.codes, part.cell_starts, part.variables, values, first, partials[0])

    work = Blocks([(len(part.cells), values.shape[1])], fill)
    return sum_over(work, table.n_rows, table.n_variables).root[0]


def second_moments(
    table: Encoded, left: NDArray[np.int64], right: NDArray[np.int64], *, first: FirstMoments | None = None
) -> Array:
    """Return raw second-order sums of two groups of variables: (soft levels of left, soft levels of right).

    Divide by the rows' weight and apply :func:`correct_second` for M^{js}.

    Parameters
    ----------
    table : Encoded
        Codes (n, p), which may have weights.
    left, right : arrays of int
        Two disjoint groups of variables.
    first : FirstMoments or None
        The table's first moments, if they are known already.

    Examples
    --------
    >>> import numpy as np
    >>> from mixmem import encode
    >>> second_moments(encode(np.array([[0, 1], [1, 1], [1, 0], [1, 0]])), np.array([0]), np.array([1]))
    array([[0., 1.],
           [2., 1.]])
    """
    soft, first = table.coding.soft, first_moments(table) if first is None else first
    mine, other = soft.part(left), soft.part(right)
    values = features_of(table, other, first.spread(other, np.eye(len(other.rows))))
    if table.weights is not None:
        values *= table.weights[:, None]
    return first.collect(mine, cell_sums(table, mine, values))


@dataclass(frozen=True)
class BlockMoments:
    """Raw third moments of one block, from which its lower moments follow.

    Every variable's levels sum to one, so second moments are sums over a mode divided by its number of variables.

    Attributes
    ----------
    modes : three arrays of int
        The block's variables, disjoint.
    coding : Coding
        What cells there are: sums of tables that are coded alike add up.
    stretches : RowSum
        Sums (e_u, e_v, e_w), with a level for "missing" after the soft levels of variables that have such cells, and
        the rows' weight, by stretches of the table.
    """

    modes: Modes
    coding: Coding
    stretches: RowSum

    def __add__(self, other: BlockMoments) -> BlockMoments:
        self.coding.refuse_other(other.coding, "the two sums")
        if not all(np.array_equal(mine, theirs) for mine, theirs in zip(self.modes, other.modes, strict=True)):
            raise InputError("the two sums are of different blocks; count both parts with the same plan")
        return BlockMoments(self.modes, self.coding, self.stretches + other.stretches)

    @cached_property
    def _root(self) -> Arrays:
        return self.stretches.root

    @property
    def sums(self) -> Array:
        """Return the sums (e_u, e_v, e_w), with a level for "missing" where there is one."""
        return self._root[0]

    @property
    def total(self) -> float:
        """Return the weight of all rows."""
        return float(self._root[1])

    @cached_property
    def rows(self) -> Modes:
        """Return the modes' soft levels, as rows of the moments' theta."""
        u, v, w = (mode_rows(self.coding, mode) for mode in self.modes)
        return u, v, w

    @cached_property
    def raw(self) -> Array:
        """Return E[b_u x b_v x b_w] (d_u, d_v, d_w); :mod:`mixmem.data.soft_levels` makes up for missing cells."""
        raw = self.sums / self.total
        for axis in range(3):
            fill = self._filling(axis)
            if fill is not None:
                raw = np.moveaxis(np.tensordot(fill, raw, axes=(1, axis)), 0, axis)
        return np.asarray(raw)

    def _filling(self, axis: int) -> Array | None:
        """(soft levels, levels with "missing") of a mode: what every level counts as; None if nothing is missing."""
        soft, mode = self.coding.soft, self.modes[axis]
        gaps = soft.absent[mode] >= 0
        if not gaps.any():
            return None
        others = tuple(m for m in range(3) if m != axis)
        means = self.sums.sum(axis=others) / self.total / np.prod([len(self.modes[m]) for m in others])
        sizes = soft.sizes[mode]
        out = np.zeros((int(sizes.sum()), int((sizes + gaps).sum())))
        for begin, start, size, gap in zip(starts_of(sizes), starts_of(sizes + gaps), sizes, gaps, strict=True):
            rows, columns = slice(begin, begin + size), slice(start, start + size)
            seen = float(means[columns].sum())
            # a part of a table may lack a variable: even means, as of FirstMoments
            mean, seen = (means[columns] / seen, seen) if seen > 0.0 else (np.full(size, 1.0 / size), 1.0)
            out[rows, columns] = np.eye(size) if not gap else mean[:, None] + (np.eye(size) - mean[:, None]) / seen
            if gap:
                out[rows, start + size] = mean
        return out

    def corrected(self, alpha0: float) -> Array:
        """Return the block of M^{jst} (equation 3): E[b x b x b] less what the Dirichlet's own correlation adds."""
        return correct_third(self.raw, *self._lower(), alpha0)

    def corrected_pairs(self, alpha0: float) -> tuple[Array, Array, Array]:
        """Return the blocks of M^{js} (equation 2) between the modes: (d_u, d_v), (d_u, d_w), (d_v, d_w)."""
        (uv, uw, vw), (u, v, w) = self._lower()
        return (
            correct_second(uv, u, v, alpha0),
            correct_second(uw, u, w, alpha0),
            correct_second(vw, v, w, alpha0),
        )

    def _lower(self) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
        """Raw second moments between the modes, and the means."""
        raw = self.raw
        n_u, n_v, n_w = (len(mode) for mode in self.modes)
        pairs = raw.sum(axis=2) / n_w, raw.sum(axis=1) / n_v, raw.sum(axis=0) / n_u
        return pairs, (pairs[0].sum(axis=1) / n_v, pairs[0].sum(axis=0) / n_u, pairs[1].sum(axis=0) / n_u)


def third_moments(table: Encoded, blocks: Sequence[Modes], *, first_stretch: int = 0) -> list[BlockMoments]:
    """Count the raw third moments of many blocks, all in one pass.

    Each block names three disjoint groups of variables: the moment identity holds for distinct variables only, so a
    block whose modes share one would be biased.

    Parameters
    ----------
    table : Encoded
        Codes (n, p), which may have weights.
    blocks : sequence of three arrays of int
        The variables of each block's modes.
    first_stretch : int
        As in :func:`first_moments`.

    Examples
    --------
    >>> import numpy as np
    >>> from mixmem import simulate_gdlm
    >>> modes = (np.array([0]), np.array([1]), np.array([2]))
    >>> third_moments(simulate_gdlm(100, 3, 2, random_state=0).encoded, [modes])[0].sums.shape
    (4, 4, 4)
    """
    for modes in blocks:
        if len(np.unique(np.concatenate(modes))) < sum(len(mode) for mode in modes):
            raise ValueError("the three modes of a block must hold distinct variables")
    soft, weights = table.coding.soft, NO_WEIGHTS if table.weights is None else table.weights
    n_blocks, most = len(blocks), max(len(mode) for modes in blocks for mode in modes)
    members = np.full((n_blocks, 3, most), -1, dtype=np.int64)
    cells, local = np.zeros((2, n_blocks, 3, most), dtype=np.int64)
    sizes, shape = np.zeros((2, n_blocks, 3), dtype=np.int64)
    for b, modes in enumerate(blocks):
        for m, mode in enumerate(modes):
            levels = soft.sizes[mode] + (soft.absent[mode] >= 0)
            members[b, m, : len(mode)] = mode
            cells[b, m, : len(mode)] = soft.cell_offsets[mode]
            local[b, m, : len(mode)] = starts_of(levels)
            sizes[b, m], shape[b, m] = len(mode), levels.sum()

    def add(rows: slice, begin: int, end: int, sums: Arrays) -> None:
        each = weights[rows] if len(weights) else weights
        block_triples(table.codes[rows], each, members, cells, local, sizes, *soft.levels, begin, end, sums[0])
        if begin == 0:
            sums[1][...] = each.sum() if len(weights) else rows.stop - rows.start

    work = Slices([(n_blocks, *shape.max(axis=0)), ()], n_blocks * most, add)
    found = sum_over(work, table.n_rows, table.n_variables, first_stretch)
    return [
        BlockMoments(
            modes,
            table.coding,
            RowSum({at: (sums[b][_corner(shape[b])], total) for at, (sums, total) in found.nodes.items()}),
        )
        for b, modes in enumerate(blocks)
    ]


def _corner(shape: NDArray[np.int64]) -> tuple[slice, ...]:
    """Return the part of a padded array that holds an array of this shape."""
    return tuple(slice(int(d)) for d in shape)
