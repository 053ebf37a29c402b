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


def pair_sums(codes, weights, starts, members, table, totals, slope, k, first_block, partials, squares):
    """Fill the block sums of b_ij g_i' and of u * u, with g = u * u - slope * u + y from the other variables."""
    n, width = len(codes), partials.shape[2]
    weights = weights if len(weights) else np.ones(n)
    rest = totals.copy()
    if len(table):
        rest -= table[starts + codes[:, members]].sum(axis=1)
    u, y = rest[:, :k], rest[:, width : width + k]
    g = np.zeros((n, width))
    g[:, :k] = weights[:, None] * (u * u - slope[:k] * u + y)
    scatter_sums(codes, starts, members, g, first_block, partials)
    squares[:] = 0.0
    for b in range(len(squares)):
        rows = block_rows(n, first_block + b)
        squares[b, :k] = weights[rows] @ (u[rows] * u[rows])


def group_sums(
    codes, weights, cells, sizes, members, steps, bounds, starts, groups, table, slopes, first_block, partials, squares
):
    """Fill the block sums of :func:`pair_sums` for every group, from the features of all variables at once."""
    width = partials.shape[2]
    joined = starts + np.add.reduceat(codes[:, members].astype(np.int64) * steps, bounds[:-1], axis=1)
    totals = table[joined].sum(axis=1)
    partials[:] = 0.0
    for a in range(len(groups) - 1):
        some = slice(bounds[groups[a]], bounds[groups[a + 1]])
        own = totals - table[joined[:, groups[a] : groups[a + 1]]].sum(axis=1)
        sums, square = np.zeros_like(partials), np.zeros((len(partials), width))
        nothing = np.empty((0, 2 * width))
        pair_sums(codes, weights, cells[some], members[some], nothing, own, slopes[a], width, first_block, sums, square)
        partials += sums
        squares[:, a] = square
