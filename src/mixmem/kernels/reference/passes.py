"""Slow forms of :mod:`mixmem.kernels.passes`: all cells of a block of rows at once."""

from __future__ import annotations

import numpy as np

from mixmem.kernels import ROW_BLOCK


def block_rows(n, block):
    """Return the rows of a row block, as a slice."""
    return slice(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK))


def add_features(codes, starts, members, table, totals):
    """Add to every row of totals the rows of the table that its cells select."""
    totals += table[starts + codes[:, members]].sum(axis=1)


def scatter_sums(codes, starts, members, values, first_block, partials):
    """Fill partials[b] with the values of block b's rows, each added to the table rows that the row's cells select."""
    for b in range(len(partials)):
        rows = block_rows(len(codes), first_block + b)
        partials[b] = 0.0
        np.add.at(partials[b], starts + codes[rows][:, members], values[rows, None, :])


def joined_cells(codes, members, steps, bounds, starts):
    """Return the joined cells of every row (n, joined)."""
    return starts + np.add.reduceat(codes[:, members].astype(np.int64) * steps, bounds[:-1], axis=1)


def add_joined(codes, members, steps, bounds, starts, table, u, y):
    """Add to every row of u and y the halves of the table's rows that its joined cells select."""
    found = table[joined_cells(codes, members, steps, bounds, starts)].sum(axis=1)
    u += found[:, : u.shape[1]]
    y += found[:, u.shape[1] :]


def pair_sums(
    codes, weights, cells, sizes, members, steps, bounds, starts, table, u_all, y_all, slope, first_block, partials,
    squares,
):  # fmt: skip
    """Fill the block sums of b_ij g_i' and of u * u, with g = u * u - slope * u + y from the other variables."""
    u, y = u_all.copy(), y_all.copy()
    if len(table):
        add_joined(codes, members, steps, bounds, starts, -table, u, y)
    weights = weights if len(weights) else np.ones(len(codes))
    g = weights[:, None] * (u * u - slope * u + y)
    scatter_sums(codes, cells, members, g, first_block, partials)
    for b in range(len(squares)):
        rows = block_rows(len(codes), first_block + b)
        squares[b] = weights[rows] @ (u[rows] * u[rows])


def group_sums(
    codes, weights, cells, sizes, members, steps, bounds, starts, groups, table, slopes, first_block, partials, squares
):
    """Fill the block sums of :func:`pair_sums` for every group, from the features of all variables at once."""
    width = partials.shape[2]
    joined = joined_cells(codes, members, steps, bounds, starts)
    totals = table[joined].sum(axis=1)
    partials[:] = 0.0
    for a in range(len(groups) - 1):
        some, parts = slice(groups[a], groups[a + 1]), slice(bounds[groups[a]], bounds[groups[a + 1]])
        rest = totals - table[joined[:, some]].sum(axis=1)
        sums, nothing = np.empty_like(partials), np.empty((0, 2 * width))
        pair_sums(
            codes, weights, cells[parts], sizes[parts], members[parts], steps[parts], bounds[some], starts[some],
            nothing, rest[:, :width], rest[:, width:], slopes[a], first_block, sums, squares[:, a],
        )  # fmt: skip
        partials += sums
