"""Raw moments as sums over rows, the Dirichlet correction, and block tensors (paper, section 3.2 and appendix A).

Raw moments of categories are counts, so they add up over chunks of rows, files and machines without rounding. What is
nonlinear in the means, the correction by alpha0 and that for missing cells, is applied once, after the last sum: a
search over alpha0 reads no row again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from mixmem.data.schema import Schema
from mixmem.data.soft_levels import Part, rows_of, starts_of
from mixmem.engine.local import in_parts
from mixmem.kernels import ROW_BLOCK
from mixmem.kernels.counts import block_triples, count_cells
from mixmem.kernels.passes import add_features, scatter_sums
from mixmem.moments.dirichlet import correct_second, correct_third
from mixmem.typing import Array as Array
from mixmem.typing import Modes

WAVE_BYTES = 32_000_000
"""Memory for block sums under way at once; a wave of row blocks is as long as fits, the bits do not depend on it."""


@dataclass(frozen=True)
class FirstMoments:
    """Total weight of the rows in which each cell occurs: ``counts`` (cells,), ``total`` of all rows; addition merges
    chunks of one table."""

    counts: Array
    total: float
    schema: Schema

    @cached_property
    def observed(self) -> Array:
        """Share of the rows in which each variable is observed (p,)."""
        features = self.schema.features
        present = np.add.reduceat(self.counts * features.present, features.cell_offsets[:-1])
        return np.asarray(np.maximum(present, 1e-300) / self.total)

    @cached_property
    def means(self) -> Array:
        """E[b_j] for every variable, stacked (soft levels,), over the rows in which it is observed; even if in none."""
        features = self.schema.features
        if features.shares is None:
            return self.counts / self.total
        found = features.shares.T @ self.counts / np.repeat(self.observed * self.total, features.sizes)
        return np.where(np.repeat(self._known, features.sizes), found, 1.0 / np.repeat(features.sizes, features.sizes))

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        """(p,): observed in some row; a part of a table may lack a variable."""
        return self.observed * self.total > 1e-299

    @cached_property
    def inverse(self) -> Array:
        """(cells,): one over the share observed, 0 for missing cells."""
        features = self.schema.features
        inverse = np.where(self._known, 1.0 / self.observed, 0.0)
        return np.asarray(np.repeat(inverse, np.diff(features.cell_offsets)) * features.present)

    def spread(self, part: Part, theta: Array) -> Array:
        """What the part's cells say of the components (its cells, k); theta holds its soft levels only."""
        return part.spread(theta, self.means[part.rows], self.inverse[part.cells])

    def collect(self, part: Part, sums: Array) -> Array:
        """Sums over the part's soft levels (its rows, k) from those over its cells."""
        return part.collect(sums, self.means[part.rows], self.inverse[part.cells])

    def __add__(self, other: FirstMoments) -> FirstMoments:
        return FirstMoments(self.counts + other.counts, self.total + other.total, self.schema)


def first_moments(codes: NDArray[np.unsignedinteger], schema: Schema, weights: Array | None = None) -> FirstMoments:
    """Count the cells of a chunk of rows (n, p), which may have weights (n,).

    >>> import numpy as np
    >>> from mixmem import encode
    >>> table = encode(np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1], [1, 0, 0]]))
    >>> first_moments(table.codes, table.schema).means
    array([0.25, 0.75, 0.5 , 0.5 , 0.5 , 0.5 ])
    """
    total = float(len(codes) if weights is None else weights.sum())
    each = NO_WEIGHTS if weights is None else weights
    counts = np.zeros(schema.features.n_cells)
    in_parts(lambda a, b: count_cells(codes, schema.features.cell_offsets, each, a, b, counts), schema.n_variables)
    return FirstMoments(counts, total, schema)


def row_weights(codes: NDArray[np.unsignedinteger], weights: Array | None) -> Array:
    """The weights (n,), ones if there are none."""
    return np.ones(codes.shape[0]) if weights is None else weights


NO_WEIGHTS = np.empty(0)
"""What kernels take for rows of weight one."""


def mode_rows(schema: Schema, variables: NDArray[np.int64]) -> NDArray[np.int64]:
    """Soft levels of the given variables, in their order: row r of a block's mode is row ``mode_rows(...)[r]``."""
    return rows_of(schema.features.offsets, variables)


def waves(n_rows: int, bytes_per_block: int) -> Iterator[tuple[int, int]]:
    """Row blocks in waves (first block, number of blocks) that fit :data:`WAVE_BYTES`, in row order."""
    total = -(-n_rows // ROW_BLOCK)
    size = max(1, min(total, WAVE_BYTES // max(1, bytes_per_block)))
    for first in range(0, total, size):
        yield first, min(size, total - first)


def cell_sums(codes: NDArray[np.unsignedinteger], part: Part, values: Array) -> Array:
    """Sums over rows of values (n, q) by the cells of some variables: (cells, q).

    Row blocks are summed on their own and added in row order.
    """
    total = np.zeros((len(part.cells), values.shape[1]))
    for first, count in waves(codes.shape[0], total.nbytes):
        partials = np.empty((count, *total.shape))
        of_blocks = partial(_scatter_blocks, codes, part, values, first, partials)
        in_parts(of_blocks, count)
        for block in partials:
            total += block
    return total


def _scatter_blocks(
    codes: NDArray[np.unsignedinteger], part: Part, values: Array, first: int, partials: Array, begin: int, end: int
) -> None:
    """Fill the sums of blocks first + begin to first + end of a wave that starts at block ``first``."""
    scatter_sums(codes, part.cell_starts, part.variables, values, first + begin, partials[begin:end])


def second_moments(
    codes: NDArray[np.unsignedinteger],
    schema: Schema,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    weights: Array | None = None,
) -> Array:
    """Raw second-order sums of two groups of variables over a table: (soft levels of left, soft levels of right).

    Divide by the number of rows, or their total weight, and apply :func:`correct_second` for M^{js}.
    """
    features, first = schema.features, first_moments(codes, schema, weights)
    mine, other = features.part(left), features.part(right)
    says = first.spread(other, np.eye(len(other.rows)))
    values = np.zeros((codes.shape[0], len(other.rows)))
    add_features(codes, other.cell_starts, right, says, values)
    if weights is not None:
        values *= weights[:, None]
    return first.collect(mine, cell_sums(codes, mine, values))


@dataclass(frozen=True)
class BlockMoments:
    """Raw third moments of one block, from which its lower moments follow.

    ``sums`` (e_u, e_v, e_w) for the variables ``modes`` (three disjoint index arrays), with a level for "missing" after
    the soft levels of variables that have such cells; ``rows`` the modes' soft levels, ``total`` the rows' weight.
    Every variable's levels sum to one, so second moments are sums over a mode over its number of variables. Addition
    merges chunks.
    """

    modes: Modes
    rows: Modes
    sums: Array
    total: float
    schema: Schema

    def __add__(self, other: BlockMoments) -> BlockMoments:
        return BlockMoments(self.modes, self.rows, self.sums + other.sums, self.total + other.total, self.schema)

    @cached_property
    def raw(self) -> Array:
        """E[b_u x b_v x b_w] (d_u, d_v, d_w), missing cells made up for (see :mod:`mixmem.data.soft_levels`)."""
        raw = self.sums / self.total
        for axis in range(3):
            fill = self._filling(axis)
            if fill is not None:
                raw = np.moveaxis(np.tensordot(fill, raw, axes=(1, axis)), 0, axis)
        return np.asarray(raw)

    def _filling(self, axis: int) -> Array | None:
        """(soft levels, levels with "missing") of a mode: what every level counts as; None if nothing is missing."""
        features, mode = self.schema.features, self.modes[axis]
        gaps = features.absent[mode] >= 0
        if not gaps.any():
            return None
        others = tuple(m for m in range(3) if m != axis)
        means = self.sums.sum(axis=others) / self.total / np.prod([len(self.modes[m]) for m in others])
        sizes = features.sizes[mode]
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
        """The block of M^{jst} (equation 3): E[b x b x b] less what the Dirichlet's own correlation adds."""
        return correct_third(self.raw, *self._lower(), alpha0)

    def corrected_pairs(self, alpha0: float) -> tuple[Array, Array, Array]:
        """The blocks of M^{js} (equation 2) between the modes: (d_u, d_v), (d_u, d_w), (d_v, d_w)."""
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


def third_moments(
    codes: NDArray[np.unsignedinteger], schema: Schema, blocks: Sequence[Modes], weights: Array | None = None
) -> list[BlockMoments]:
    """Raw third moments of many blocks of a chunk of rows (n, p), with weights (n,), all in one compiled call.

    Each block names three disjoint groups of variables: the moment identity holds for distinct variables only, so a
    block whose modes share one would be biased.
    """
    for modes in blocks:
        if len(np.unique(np.concatenate(modes))) < sum(len(mode) for mode in modes):
            raise ValueError("the three modes of a block must hold distinct variables")
    features, each = schema.features, NO_WEIGHTS if weights is None else weights
    total = float(len(codes) if weights is None else weights.sum())
    n_blocks, most = len(blocks), max(len(mode) for modes in blocks for mode in modes)
    members = np.full((n_blocks, 3, most), -1, dtype=np.int64)
    cells, local = np.zeros((2, n_blocks, 3, most), dtype=np.int64)
    sizes, shape = np.zeros((2, n_blocks, 3), dtype=np.int64)
    for b, modes in enumerate(blocks):
        for m, mode in enumerate(modes):
            levels = features.sizes[mode] + (features.absent[mode] >= 0)
            members[b, m, : len(mode)] = mode
            cells[b, m, : len(mode)] = features.cell_offsets[mode]
            local[b, m, : len(mode)] = starts_of(levels)
            sizes[b, m], shape[b, m] = len(mode), levels.sum()
    sums = np.zeros((n_blocks, *shape.max(axis=0)))
    in_parts(
        lambda a, b: block_triples(codes, each, members, cells, local, sizes, *features.levels, a, b, sums),
        n_blocks * most,
    )
    return [
        BlockMoments(
            modes,
            (mode_rows(schema, modes[0]), mode_rows(schema, modes[1]), mode_rows(schema, modes[2])),
            sums[b, : shape[b, 0], : shape[b, 1], : shape[b, 2]],
            total,
            schema,
        )
        for b, modes in enumerate(blocks)
    ]
