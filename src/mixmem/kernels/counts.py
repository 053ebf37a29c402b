"""Raw moments by counting codes: whole numbers without weights, so that no order of addition can change them."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel

_TILE = 64  # variables counted together
_ROWS = 128  # rows whose cells are looked up together


@kernel
def count_cells(codes, offsets, weights, first, last, out):
    """Add to out the total weight of the rows in which each code of variables first to last occurs.

    codes (n, p), offsets (p + 1,), weights (n,) or none, out (offsets[p],).
    """
    n = codes.shape[0]
    for begin in range(first, last, _TILE):
        end = min(last, begin + _TILE)
        for i in range(n):
            weight = weights[i] if weights.shape[0] > 0 else 1.0
            for j in range(begin, end):
                out[offsets[j] + codes[i, j]] += weight


@kernel
def _unfold(codes, i, members, size, cells, local, levels, shares, rows, parts):
    """Find the rows of a block's mode that row i's cells select, and with what share; return how many."""
    count = 0
    for v in range(size):
        cell = cells[v] + codes[i, members[v]]
        for m in range(levels.shape[1]):
            if shares[cell, m] != 0.0:
                rows[count] = local[v] + levels[cell, m]
                parts[count] = shares[cell, m]
                count += 1
    return count


@kernel
def block_triples(codes, weights, members, cells, local, sizes, levels, shares, first, last, out):
    """Add to out the raw third moments of many blocks; tasks first to last.

    codes (n, p), weights (n,) or none; members (blocks, 3, m) variables padded with -1; cells and local (blocks, 3, m)
    where a variable's cells and its rows of the block's mode start; sizes (blocks, 3) variables per mode; levels and
    shares (cells, w) the levels of every cell; out (blocks, d_a, d_b, d_c). A task is a block and a variable of its
    first mode, whose rows of out no other task touches.
    """
    n, most, width = codes.shape[0], members.shape[2], levels.shape[1]
    rows_b, rows_c = np.empty((_ROWS, most * width), np.int64), np.empty((_ROWS, most * width), np.int64)
    parts_b, parts_c = np.empty((_ROWS, most * width)), np.empty((_ROWS, most * width))
    n_b, n_c = np.empty(_ROWS, np.int64), np.empty(_ROWS, np.int64)
    for block in range(first // most, (last + most - 1) // most):
        tasks = range(max(0, first - block * most), min(last - block * most, sizes[block, 0]))
        for begin in range(0, n, _ROWS):
            some = min(n, begin + _ROWS) - begin
            for i in range(some):  # a row's cells in the other modes are the same for all of the first mode's
                n_b[i] = _unfold(
                    codes, begin + i, members[block, 1], sizes[block, 1], cells[block, 1], local[block, 1], levels,
                    shares, rows_b[i], parts_b[i],
                )  # fmt: skip
                n_c[i] = _unfold(
                    codes, begin + i, members[block, 2], sizes[block, 2], cells[block, 2], local[block, 2], levels,
                    shares, rows_c[i], parts_c[i],
                )  # fmt: skip
            for u in tasks:
                for i in range(some):
                    cell = cells[block, 0, u] + codes[begin + i, members[block, 0, u]]
                    for m in range(width):
                        if shares[cell, m] != 0.0:
                            weight = shares[cell, m] * (weights[begin + i] if weights.shape[0] > 0 else 1.0)
                            plane = out[block, local[block, 0, u] + levels[cell, m]]
                            for v in range(n_b[i]):
                                part = weight * parts_b[i, v]
                                line = plane[rows_b[i, v]]
                                for w in range(n_c[i]):
                                    line[rows_c[i, w]] += part * parts_c[i, w]
