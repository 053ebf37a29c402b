"""Raw third moments of blocks of variables, counted from codes (paper, appendix A)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded
from mixmem.data.soft_levels import starts_of
from mixmem.engine.rows import Arrays, RowSum, Slices, sum_over
from mixmem.errors import InputError
from mixmem.kernels.counts import block_triples, plain_triples
from mixmem.moments.dirichlet import correct_second, correct_third
from mixmem.moments.joined_variables import JoinedVariables
from mixmem.moments.sums import NO_WEIGHTS, mode_rows
from mixmem.typing import Array, Modes

JOINED_LEVELS = 16
"""Levels of joined variables at most, where triples of levels are counted."""
MOST_COUNTERS = 4_000_000
"""Counters of one variable of the first mode up to which they are."""


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
    laid = _LaidOut.of(table.coding, blocks)
    levels, shares = soft.levels
    joined = _JoinedModes.of(laid) if not len(weights) and levels.shape[1] == 1 else None

    def add(rows: slice, begin: int, end: int, sums: Arrays) -> None:
        each = weights[rows] if len(weights) else weights
        if joined is None:
            block_triples(
                table.codes[rows], each, laid.members, laid.cells, laid.local, laid.n_members, levels, shares,
                begin, end, sums[0],
            )  # fmt: skip
        else:
            plain_triples(
                table.codes[rows], laid.members, laid.cells, laid.local, laid.sizes, laid.n_members, levels[:, 0],
                joined.steps, joined.bounds, joined.starts, joined.counts, begin, end, sums[0],
            )  # fmt: skip
        if begin == 0:
            sums[1][...] = each.sum() if len(weights) else rows.stop - rows.start

    shape, most = laid.shape, laid.members.shape[2]
    work = Slices([(len(blocks), *shape.max(axis=0)), ()], len(blocks) * most, add)
    found = sum_over(work, table.n_rows, table.n_variables, first_stretch)
    return [
        BlockMoments(
            modes,
            table.coding,
            RowSum({at: (sums[b][_corner(shape[b])], total) for at, (sums, total) in found.nodes.items()}),
        )
        for b, modes in enumerate(blocks)
    ]


@dataclass(frozen=True)
class _LaidOut:
    """Blocks as kernels take them, modes padded to as many variables: (blocks, 3, m) the variables, where their cells
    and their levels in the mode begin, and how many levels they have; (blocks, 3) the variables and levels of modes."""

    members: NDArray[np.int64]
    cells: NDArray[np.int64]
    local: NDArray[np.int64]
    sizes: NDArray[np.int64]
    n_members: NDArray[np.int64]
    shape: NDArray[np.int64]

    @classmethod
    def of(cls, coding: Coding, blocks: Sequence[Modes]) -> _LaidOut:
        soft = coding.soft
        n_blocks, most = len(blocks), max(len(mode) for modes in blocks for mode in modes)
        members = np.full((n_blocks, 3, most), -1, dtype=np.int64)
        cells, local, sizes = np.zeros((3, n_blocks, 3, most), dtype=np.int64)
        n_members, shape = np.zeros((2, n_blocks, 3), dtype=np.int64)
        for b, modes in enumerate(blocks):
            for m, mode in enumerate(modes):
                levels = soft.sizes[mode] + (soft.absent[mode] >= 0)
                members[b, m, : len(mode)] = mode
                cells[b, m, : len(mode)] = soft.cell_offsets[mode]
                local[b, m, : len(mode)] = starts_of(levels)
                sizes[b, m, : len(mode)] = levels
                n_members[b, m], shape[b, m] = len(mode), levels.sum()
        return cls(members, cells, local, sizes, n_members, shape)


@dataclass(frozen=True)
class _JoinedModes:
    """Neighbours of the second and third modes of blocks joined, as in :mod:`mixmem.moments.joined_variables`: steps
    (blocks, 2, m), bounds and starts (blocks, 2, m + 1), and how many there are (blocks, 2)."""

    steps: NDArray[np.int64]
    bounds: NDArray[np.int64]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, laid: _LaidOut) -> _JoinedModes | None:
        """Join as long as counters of a variable of the first mode stay few; None where they would be many anyway."""
        n_blocks, _, most = laid.members.shape
        steps = np.ones((n_blocks, 2, most), dtype=np.int64)
        bounds, starts = np.zeros((2, n_blocks, 2, most + 1), dtype=np.int64)
        counts = np.zeros((n_blocks, 2), dtype=np.int64)
        for b in range(n_blocks):
            for q in range(2):
                size = int(laid.n_members[b, 1 + q])
                own = laid.sizes[b, 1 + q, :size]
                found = JoinedVariables.up_to(laid.local[b, 1 + q, :size], own, np.array([0, size]), JOINED_LEVELS)
                n = counts[b, q] = len(found.starts)
                last = found.starts[-1] + own[found.bounds[-2] :].prod()
                steps[b, q, :size], bounds[b, q, : n + 1] = found.steps, found.bounds
                starts[b, q, : n + 1] = [*found.starts, last]
            if laid.sizes[b, 0].max() * starts[b, 0, counts[b, 0]] * starts[b, 1, counts[b, 1]] > MOST_COUNTERS:
                return None
        return cls(steps, bounds, starts, counts)


def _corner(shape: NDArray[np.int64]) -> tuple[slice, ...]:
    """Return the part of a padded array that holds an array of this shape."""
    return tuple(slice(int(d)) for d in shape)
