"""Slow forms of :mod:`mixmem.kernels.counts`: cells as rows of indicators, counted by products."""

from __future__ import annotations

import numpy as np


def count_cells(codes, offsets, weights, first, last, out):
    """Add to out the total weight of the rows in which each code of variables first to last occurs."""
    weights = weights if len(weights) else np.ones(len(codes))
    for j in range(first, last):
        np.add.at(out, offsets[j] + codes[:, j], weights)


def block_triples(codes, weights, members, cells, local, sizes, levels, shares, first, last, out):
    """Add to out the raw third moments of blocks: sum_i w_i b_ia b_ib b_ic, with b the shares of row i's cells.

    Task t is variable t % m of the first mode of block t // m.
    """
    n, most = len(codes), members.shape[2]
    weights = weights if len(weights) else np.ones(n)

    def rows_of(block, mode, variables, d):
        """Return (n, d): the shares of every row in the levels of a block's mode, of some of its variables."""
        b = np.zeros((n, d))
        for v in variables:
            cell = cells[block, mode, v] + codes[:, members[block, mode, v]]
            for m in range(levels.shape[1]):
                np.add.at(b, (np.arange(n), local[block, mode, v] + levels[cell, m]), shares[cell, m])
        return b

    for block in range(len(members)):
        tasks = [u for u in range(sizes[block, 0]) if first <= block * most + u < last]
        b_a = rows_of(block, 0, tasks, out.shape[1])
        b_b = rows_of(block, 1, range(sizes[block, 1]), out.shape[2])
        b_c = rows_of(block, 2, range(sizes[block, 2]), out.shape[3])
        out[block] += np.einsum("i,ia,ib,ic->abc", weights, b_a, b_b, b_c)


def plain_triples(
    codes, members, cells, local, sizes, n_members, levels, steps, bounds, starts, n_joined, first, last, out
):
    """Add to out the third moments of blocks whose cells have one level each; how variables are joined is no matter."""
    shares = np.ones((len(levels), 1))
    block_triples(codes, (), members, cells, local, n_members, levels[:, None], shares, first, last, out)
