"""Raw moments by counting codes: whole numbers without weights, so that no order of addition can change them."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel

_TILE = 64  # variables counted together
_ROWS = 256  # rows whose cells are looked up together


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


@kernel
def _join(codes, begin, some, members, cells, levels, steps, bounds, starts, count, out):
    """Fill out (count, some) with the joined levels of rows begin to begin + some."""
    for j in range(count):
        for i in range(some):
            level = starts[j]
            for t in range(bounds[j], bounds[j + 1]):
                level += levels[cells[t] + codes[begin + i, members[t]]] * steps[t]
            out[j, i] = level


@kernel
def _take_apart(counts, d_u, first, sizes, local, steps, bounds, starts, n_joined, lines, out):
    """Add counts (d_u, joined of b, joined of c) to out[first :], by the levels of each variable; lines is room."""
    for u in range(d_u):
        lines[:] = 0.0
        for b in range(lines.shape[0]):
            for j in range(n_joined[1]):
                for t in range(bounds[1, j], bounds[1, j + 1]):
                    step, size = steps[1, t], sizes[2, t]
                    for outer in range(starts[1, j], starts[1, j + 1], step * size):
                        for level in range(size):
                            total = 0.0
                            for inner in range(outer + level * step, outer + (level + 1) * step):
                                total += counts[u, b, inner]
                            lines[b, local[2, t] + level] += total
        for j in range(n_joined[0]):
            for t in range(bounds[0, j], bounds[0, j + 1]):
                step, size = steps[0, t], sizes[1, t]
                for outer in range(starts[0, j], starts[0, j + 1], step * size):
                    for level in range(size):
                        for inner in range(outer + level * step, outer + (level + 1) * step):
                            for c in range(lines.shape[1]):
                                out[first + u, local[1, t] + level, c] += lines[inner, c]


@kernel
def plain_triples(
    codes, members, cells, local, sizes, n_members, levels, steps, bounds, starts, n_joined, first, last, out
):
    """Add to out the third moments of many blocks whose cells have one level each, of rows without weights.

    Arguments up to local as those of block_triples; sizes (blocks, 3, m) levels of the variables, n_members (blocks, 3)
    variables per mode, levels (cells,). Neighbours of the second and third mode are counted joined: number j of mode
    1 + q has the members bounds[q, j] to bounds[q, j + 1], whose levels count steps[q], and its levels stand from
    starts[q, j] to starts[q, j + 1]; n_joined (blocks, 2) there are. Fewer counters are touched per row then.
    """
    n, most = codes.shape[0], members.shape[2]
    joined_b, joined_c = np.empty((most, _ROWS), np.int64), np.empty((most, _ROWS), np.int64)
    planes, across = np.empty(_ROWS, np.int64), np.empty((_ROWS, most), np.int64)
    for block in range(first // most, (last + most - 1) // most):
        n_b, n_c = n_joined[block]
        size_b, size_c = starts[block, 0, n_b], starts[block, 1, n_c]
        begin_u, end_u = max(0, first - block * most), min(last - block * most, n_members[block, 0])
        if begin_u >= end_u:
            continue
        widest = sizes[block, 0, begin_u:end_u].max()
        counts = np.zeros((end_u - begin_u, widest * size_b * size_c), np.uint32)
        for begin in range(0, n, _ROWS):
            some = min(n, begin + _ROWS) - begin
            _join(
                codes, begin, some, members[block, 1], cells[block, 1], levels, steps[block, 0], bounds[block, 0],
                starts[block, 0], n_b, joined_b,
            )  # fmt: skip
            _join(
                codes, begin, some, members[block, 2], cells[block, 2], levels, steps[block, 1], bounds[block, 1],
                starts[block, 1], n_c, joined_c,
            )  # fmt: skip
            for i in range(some):
                for j in range(n_c):
                    across[i, j] = joined_c[j, i]
            for u in range(begin_u, end_u):
                own = counts[u - begin_u]
                for i in range(some):
                    planes[i] = levels[cells[block, 0, u] + codes[begin + i, members[block, 0, u]]] * size_b
                for j in range(n_b):
                    for i in range(some):
                        line = (planes[i] + joined_b[j, i]) * size_c
                        for m in range(n_c):
                            own[np.uint64(line + across[i, m])] += np.uint32(1)
        lines = np.empty((size_b, out.shape[3]))
        for u in range(begin_u, end_u):
            own = counts[u - begin_u].reshape(widest, size_b, size_c)
            _take_apart(
                own, sizes[block, 0, u], local[block, 0, u], sizes[block], local[block], steps[block], bounds[block],
                starts[block], n_joined[block], lines, out[block],
            )  # fmt: skip
