"""Raw moments as sums over rows, the Dirichlet correction, and block tensors (paper, section 3.2 and appendix A).

Raw moments are counts, so they add up over chunks of rows, files and machines without rounding. The correction by
alpha0 is nonlinear in the means and is applied once, after the last sum: a search over alpha0 reads no row again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.kernels import ROW_BLOCK
from mixmem.kernels.counts import block_triples, count_levels
from mixmem.kernels.passes import scatter_sums
from mixmem.schema import Schema

Array = NDArray[np.float64]
Modes = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

WAVE_BYTES = 32_000_000
"""Memory for block sums under way at once; a wave of row blocks is as long as fits, the bits do not depend on it."""


@dataclass(frozen=True)
class FirstMoments:
    """Rows in which each level occurs: ``counts`` (theta rows,), ``n_rows``; addition merges chunks."""

    counts: NDArray[np.int64]
    n_rows: int

    @property
    def means(self) -> Array:
        """E[b_j] for every variable, stacked (theta rows,)."""
        return np.asarray(self.counts / self.n_rows, dtype=np.float64)

    def __add__(self, other: FirstMoments) -> FirstMoments:
        return FirstMoments(self.counts + other.counts, self.n_rows + other.n_rows)


def first_moments(codes: NDArray[np.unsignedinteger], schema: Schema) -> FirstMoments:
    """Count the levels of a chunk of rows.

    >>> import numpy as np
    >>> from mixmem import encode
    >>> table = encode(np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1], [1, 0, 0]]))
    >>> first_moments(table.codes, table.schema).means
    array([0.25, 0.75, 0.5 , 0.5 , 0.5 , 0.5 ])
    """
    return FirstMoments(count_levels(codes, schema.offsets), int(codes.shape[0]))


def mode_rows(schema: Schema, variables: NDArray[np.int64]) -> NDArray[np.int64]:
    """Theta rows of the given variables, in their order: row r of a block's mode is theta row ``mode_rows(...)[r]``."""
    starts, sizes = schema.offsets[variables], schema.n_levels[variables]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(np.repeat(starts, sizes) + within, dtype=np.int64)


def waves(n_rows: int, bytes_per_block: int) -> Iterator[tuple[int, int]]:
    """Row blocks in waves (first block, number of blocks) that fit :data:`WAVE_BYTES`, in row order."""
    total = -(-n_rows // ROW_BLOCK)
    size = max(1, min(total, WAVE_BYTES // max(1, bytes_per_block)))
    for first in range(0, total, size):
        yield first, min(size, total - first)


def cross_sums(
    codes: NDArray[np.unsignedinteger], schema: Schema, variables: NDArray[np.int64], values: Array
) -> Array:
    """sum_i b_ij values_i' for the given variables, stacked: (their theta rows, q); values (n, q).

    Row blocks are summed on their own and added in row order.
    """
    sizes = schema.n_levels[variables]
    starts = np.cumsum(sizes) - sizes
    width = values.shape[1]
    total = np.zeros((int(sizes.sum()), width))
    for first, count in waves(codes.shape[0], total.nbytes):
        partials = np.empty((count, *total.shape))
        scatter_sums(codes, starts, variables, values, first, partials)
        for partial in partials:
            total += partial
    return total


def second_moments(
    codes: NDArray[np.unsignedinteger], schema: Schema, left: NDArray[np.int64], right: NDArray[np.int64]
) -> Array:
    """Raw second-order counts of two groups of variables over a chunk of rows: (rows of left, rows of right).

    Chunks merge by addition; divide by the number of rows and apply :func:`correct_second` for M^{js}.
    """
    rows = mode_rows(schema, right)
    onehot = np.zeros((codes.shape[0], len(rows)))
    starts = np.cumsum(schema.n_levels[right]) - schema.n_levels[right]
    np.put_along_axis(onehot, starts + codes[:, right].astype(np.int64), 1.0, axis=1)
    return cross_sums(codes, schema, left, onehot)


@dataclass(frozen=True)
class BlockMoments:
    """Raw third-order counts of one block, from which its lower moments follow.

    ``counts`` (d_u, d_v, d_w) for the variables ``modes`` (three disjoint index arrays); every categorical variable's
    levels sum to one, so second moments are sums over a mode over its number of variables. Addition merges chunks.
    """

    modes: Modes
    rows: Modes
    counts: Array
    n_rows: int

    def __add__(self, other: BlockMoments) -> BlockMoments:
        return BlockMoments(self.modes, self.rows, self.counts + other.counts, self.n_rows + other.n_rows)

    def corrected(self, alpha0: float) -> Array:
        """The block of M^{jst} (equation 3): E[b x b x b] less what the Dirichlet's own correlation adds."""
        return correct_third(self.counts / self.n_rows, *self._lower(), alpha0)

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
        raw = self.counts / self.n_rows
        n_u, n_v, n_w = (len(mode) for mode in self.modes)
        pairs = raw.sum(axis=2) / n_w, raw.sum(axis=1) / n_v, raw.sum(axis=0) / n_u
        return pairs, (pairs[0].sum(axis=1) / n_v, pairs[0].sum(axis=0) / n_u, pairs[1].sum(axis=0) / n_u)


def correct_third(
    raw: Array, pairs: tuple[Array, Array, Array], means: tuple[Array, Array, Array], alpha0: float
) -> Array:
    """Apply the Dirichlet correction to raw third moments.

    ``raw`` (a, b, c) = E[b_u x b_v x b_w]; ``pairs`` = E[b_u x b_v] (a, b), E[b_u x b_w] (a, c), E[b_v x b_w] (b, c);
    ``means`` (a,), (b,), (c,).
    """
    once = alpha0 / (alpha0 + 2.0)
    twice = 2.0 * alpha0**2 / ((alpha0 + 1.0) * (alpha0 + 2.0))
    u, v, w = means[0][:, None, None], means[1][None, :, None], means[2][None, None, :]
    crossed = u * pairs[2][None, :, :] + v * pairs[1][:, None, :] + w * pairs[0][:, :, None]
    return np.asarray(raw - once * crossed + twice * u * v * w)


def correct_second(raw: Array, left: Array, right: Array, alpha0: float) -> Array:
    """M^{js} = E[b_j x b_s] - alpha0 / (alpha0 + 1) E[b_j] E[b_s]'; raw (a, b), left (a,), right (b,)."""
    return np.asarray(raw - alpha0 / (alpha0 + 1.0) * np.outer(left, right))


def third_moments(codes: NDArray[np.unsignedinteger], schema: Schema, blocks: Sequence[Modes]) -> list[BlockMoments]:
    """Raw third moments of many blocks of a chunk of rows, all in one compiled call.

    Each block names three disjoint groups of variables: the moment identity holds for distinct variables only, so a
    block whose modes share one would be biased.
    """
    for modes in blocks:
        if len(np.unique(np.concatenate(modes))) < sum(len(mode) for mode in modes):
            raise ValueError("the three modes of a block must hold distinct variables")
    n_blocks, most = len(blocks), max(len(mode) for modes in blocks for mode in modes)
    members = np.full((n_blocks, 3, most), -1, dtype=np.int64)
    local = np.zeros((n_blocks, 3, most), dtype=np.int64)
    sizes = np.zeros((n_blocks, 3), dtype=np.int64)
    shape = np.zeros((n_blocks, 3), dtype=np.int64)
    for b, modes in enumerate(blocks):
        for m, mode in enumerate(modes):
            levels = schema.n_levels[mode]
            members[b, m, : len(mode)] = mode
            local[b, m, : len(mode)] = np.cumsum(levels) - levels
            sizes[b, m] = len(mode)
            shape[b, m] = levels.sum()
    counts = np.zeros((n_blocks, *shape.max(axis=0)))
    block_triples(codes, members, local, sizes, counts)
    return [
        BlockMoments(
            modes,
            (mode_rows(schema, modes[0]), mode_rows(schema, modes[1]), mode_rows(schema, modes[2])),
            counts[b, : shape[b, 0], : shape[b, 1], : shape[b, 2]],
            int(codes.shape[0]),
        )
        for b, modes in enumerate(blocks)
    ]


def second_moment(theta: Array, alpha: Array) -> Array:
    """M2 in closed form (equation 2): sum_h alpha_h / (alpha0 (alpha0 + 1)) theta_h x theta_h; theta (rows, k).

    >>> import numpy as np
    >>> second_moment(np.eye(2), np.array([1.0, 1.0]))
    array([[0.16666667, 0.        ],
           [0.        , 0.16666667]])
    """
    alpha0 = alpha.sum()
    return np.asarray((theta * (alpha / (alpha0 * (alpha0 + 1.0)))) @ theta.T)


def third_moment(theta_u: Array, theta_v: Array, theta_w: Array, alpha: Array) -> Array:
    """M3 in closed form (equation 3): sum_h w_h theta_uh x theta_vh x theta_wh, w_h as in :func:`weights_of`.

    >>> import numpy as np
    >>> third_moment(np.eye(2), np.eye(2), np.eye(2), np.array([1.0, 1.0]))[0, 0, 0]
    np.float64(0.08333333333333333)
    """
    return np.asarray(np.einsum("ah,bh,ch,h->abc", theta_u, theta_v, theta_w, weights_of(alpha)))


def weights_of(alpha: Array) -> Array:
    """Weights of the components in the third moment: w_h = 2 alpha_h / (alpha0 (alpha0 + 1) (alpha0 + 2))."""
    alpha0 = alpha.sum()
    return np.asarray(2.0 * alpha / (alpha0 * (alpha0 + 1.0) * (alpha0 + 2.0)))
