"""The sweep's pass over the rows: features gathered from theta, sums scattered back to its rows."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._lanes import LANES, add_four, add_lanes
from mixmem.kernels._numba import ROW_BLOCK, kernel

_TILE = 64  # variables handled together, so that their rows of the table stay in the first-level cache
_ROWS = 64  # rows whose features of all groups are held at once

# Cells are taken by fours: with one a loop, starting the loop over its components took most of the time.


@kernel
def _gather(codes, starts, members, table, first, last, out):
    """Add to out (last - first, q), for every row, the rows of the table that its cells select."""
    width = table.shape[1]
    for t0 in range(0, members.shape[0], _TILE):
        t1 = min(members.shape[0], t0 + _TILE)
        fours = t1 - (t1 - t0) % 4
        for i in range(first, last):
            for t in range(t0, fours, 4):
                a = starts[t] + codes[i, members[t]]
                b = starts[t + 1] + codes[i, members[t + 1]]
                c = starts[t + 2] + codes[i, members[t + 2]]
                d = starts[t + 3] + codes[i, members[t + 3]]
                for h in range(width):
                    out[i - first, h] += (table[a, h] + table[b, h]) + (table[c, h] + table[d, h])
            for t in range(fours, t1):
                row = starts[t] + codes[i, members[t]]
                for h in range(width):
                    out[i - first, h] += table[row, h]


@kernel
def _scatter(codes, starts, members, values, first, last, out):
    """Add the row's values (last - first, q) to the rows of out (table rows, q) that its cells select."""
    width = values.shape[1]
    for t0 in range(0, members.shape[0], _TILE):
        t1 = min(members.shape[0], t0 + _TILE)
        fours = t1 - (t1 - t0) % 4
        for i in range(first, last):
            for t in range(t0, fours, 4):
                a = starts[t] + codes[i, members[t]]
                b = starts[t + 1] + codes[i, members[t + 1]]
                c = starts[t + 2] + codes[i, members[t + 2]]
                d = starts[t + 3] + codes[i, members[t + 3]]
                for h in range(width):
                    value = values[i - first, h]
                    out[a, h] += value
                    out[b, h] += value
                    out[c, h] += value
                    out[d, h] += value
            for t in range(fours, t1):
                row = starts[t] + codes[i, members[t]]
                for h in range(width):
                    out[row, h] += values[i - first, h]


@kernel
def add_features(codes, starts, members, table, totals):
    """Add to totals[i] the sum over members j of table[starts_j + codes[i, j]].

    codes (n, p); members (m,) variables; starts (m,) the table row at which each member's levels start;
    table (rows, q); totals (n, q).
    """
    n = codes.shape[0]
    for first in range(0, n, ROW_BLOCK):
        last = min(n, first + ROW_BLOCK)
        _gather(codes, starts, members, table, first, last, totals[first:last])


@kernel
def scatter_sums(codes, starts, members, values, first_block, partials):
    """Fill partials[b] (rows, q) with the sums of b_ij values_i' for every member j over row block first_block + b.

    codes, starts and members as in add_features, values (n, q).
    """
    n = codes.shape[0]
    for b in range(partials.shape[0]):
        first = (first_block + b) * ROW_BLOCK
        last = min(n, first + ROW_BLOCK)
        partials[b] = 0.0
        _scatter(codes, starts, members, values[first:last], first, last, partials[b])


@kernel
def _look_up(codes, members, steps, bounds, starts, first, rows, out):
    """Fill out (joined, rows) with the joined cells of ``rows`` rows from the first on."""
    for j in range(starts.shape[0]):
        begin, end, start, cells = bounds[j], bounds[j + 1], starts[j], out[j]
        if end - begin == 3:  # by threes and twos, nothing is read back
            one, two, three = members[begin], members[begin + 1], members[begin + 2]
            step, far = steps[begin + 1], steps[begin + 2]
            for i in range(rows):
                cells[i] = start + codes[first + i, one] + codes[first + i, two] * step + codes[first + i, three] * far
            continue
        if end - begin == 2:
            one, two, step = members[begin], members[begin + 1], steps[begin + 1]
            for i in range(rows):
                cells[i] = start + codes[first + i, one] + codes[first + i, two] * step
            continue
        one = members[begin]
        for i in range(rows):
            cells[i] = start + codes[first + i, one]
        for t in range(begin + 1, end):
            one, step = members[t], steps[t]
            for i in range(rows):
                cells[i] += codes[first + i, one] * step


@kernel
def _gather_joined(cells, begin, end, table, rows, first, u, y):
    """Add to rows of u and y (n, w), from ``first`` on, what joined cells begin to end of every row say.

    cells (joined, rows); table (2 joined cells, w), U and Y of a cell one after the other.
    """
    width = table.shape[1]
    fours = end - (end - begin) % 4
    for t in range(begin, fours, 4):
        for i in range(rows):
            a, b, c, d = 2 * cells[t, i], 2 * cells[t + 1, i], 2 * cells[t + 2, i], 2 * cells[t + 3, i]
            for at in range(0, width, LANES):
                add_four(u, first + i, table, a, b, c, d, at)
                add_four(y, first + i, table, a + 1, b + 1, c + 1, d + 1, at)
    for t in range(fours, end):
        for i in range(rows):
            a = 2 * cells[t, i]
            for at in range(0, width, LANES):
                add_lanes(u, first + i, table, a, at)
                add_lanes(y, first + i, table, a + 1, at)


@kernel
def _scatter_joined(cells, begin, end, values, rows, out):
    """Add the values (rows, w) of every row to the rows of out that its joined cells begin to end select."""
    width = values.shape[1]
    fours = end - (end - begin) % 4
    for t in range(begin, fours, 4):
        for i in range(rows):
            a, b, c, d = cells[t, i], cells[t + 1, i], cells[t + 2, i], cells[t + 3, i]
            for at in range(0, width, LANES):
                add_lanes(out, a, values, i, at)
                add_lanes(out, b, values, i, at)
                add_lanes(out, c, values, i, at)
                add_lanes(out, d, values, i, at)
    for t in range(fours, end):
        for i in range(rows):
            a = cells[t, i]
            for at in range(0, width, LANES):
                add_lanes(out, a, values, i, at)


@kernel
def _n_joined(sizes, bounds, starts):
    """Return the number of joined cells."""
    last, size = starts.shape[0] - 1, 1
    for t in range(bounds[last], bounds[last + 1]):
        size *= sizes[t]
    return starts[last] + size


@kernel
def _take_apart(sums, sizes, steps, bounds, starts, cells, out):
    """Add sums of joined cells (joined cells, w) to those of the cells (cells, w) that each is joined from."""
    width = sums.shape[1]
    for j in range(starts.shape[0]):
        size = 1
        for t in range(bounds[j], bounds[j + 1]):
            size *= sizes[t]
        for t in range(bounds[j], bounds[j + 1]):
            step = steps[t]
            for outer in range(starts[j], starts[j] + size, step * sizes[t]):
                for code in range(sizes[t]):
                    for joined in range(outer + code * step, outer + (code + 1) * step):
                        for at in range(0, width, LANES):
                            add_lanes(out, cells[t] + code, sums, joined, at)


@kernel
def _pairs_of_others(u_all, u_own, y_all, y_own, slopes, weights, size, g, squares):
    """Fill g with weight * (u * u - slope * u + y) of the variables outside a group; add weight * u * u to squares.

    All are rows times components in one dimension, ``size`` of them; U and Y are those of all variables, and the
    group's own.
    """
    for x in range(size):
        u = u_all[x] - u_own[x]
        g[x] = weights[x] * (u * u - slopes[x] * u + (y_all[x] - y_own[x]))
    for x in range(size):
        u = u_all[x] - u_own[x]
        squares[x] += weights[x] * (u * u)


@kernel
def add_joined(codes, members, steps, bounds, starts, table, u, y):
    """Add to u[i] and y[i] what the cells of joined members say: the halves of rows of table (joined cells, 2w).

    codes (n, p); u and y (n, w); the others as in ``group_sums``. w is a multiple of four.
    """
    n, halves = codes.shape[0], table.reshape(-1, u.shape[1])
    joined = np.empty((starts.shape[0], _ROWS), np.uint32)
    for first in range(0, n, _ROWS):
        rows = min(n, first + _ROWS) - first
        _look_up(codes, members, steps, bounds, starts, first, rows, joined)
        _gather_joined(joined, 0, starts.shape[0], halves, rows, first, u, y)


@kernel
def _repeated(values, weights, first, rows, out):
    """Fill out (rows times components,) with values (w,) in every row, times the weights of rows from the first on."""
    for x in range(rows * values.shape[0]):
        weight = weights[first + x // values.shape[0]] if weights.shape[0] > 0 else 1.0
        out[x] = weight * values[x % values.shape[0]]


@kernel
def _column_sums(values, width, out):
    """Fill out (w,) with the sums over rows of values (rows times w,)."""
    for h in range(width):
        total = 0.0
        for x in range(h, values.shape[0], width):
            total += values[x]
        out[h] = total


@kernel
def pair_sums(
    codes, weights, cells, sizes, members, steps, bounds, starts, table, u_all, y_all, slope, first_block, partials,
    squares,
):  # fmt: skip
    """Fill the sums over rows from which the step for the group ``members`` takes its Z, one row block at a time.

    u_all and y_all (n, w) hold every variable's features U and Y, and table (joined cells, 2w) the members' own
    (U | Y), joined as in ``group_sums``; the members' part is taken off, so that u and y are sums over the other
    variables (a table without rows: the members have no part yet). With g = u * u - slope * u + y, partials[b]
    (cells, w) receives sum_i b_ij g_i' over row block first_block + b and squares[b] (w,) the sum of u * u, both over
    rows with weights (n,) or none. w is a multiple of four.
    """
    n, width = codes.shape[0], partials.shape[2]
    half, known, halves = _ROWS * width, table.shape[0] > 0, table.reshape(-1, width)
    u_flat, y_flat = u_all.reshape(-1), y_all.reshape(-1)
    u_own, y_own, g = np.empty((_ROWS, width)), np.empty((_ROWS, width)), np.empty((_ROWS, width))
    slope_flat, weight_flat, square_flat = np.empty(half), np.empty(half), np.empty(half)
    one = np.ones(width)
    _repeated(slope, weights[:0], 0, _ROWS, slope_flat)
    _repeated(one, weights[:0], 0, _ROWS, weight_flat)
    joined = np.empty((starts.shape[0], _ROWS), np.uint32)
    sums = np.empty((_n_joined(sizes, bounds, starts), width))
    for b in range(partials.shape[0]):
        begin = (first_block + b) * ROW_BLOCK
        end = min(n, begin + ROW_BLOCK)
        sums[:] = 0.0
        square_flat[:] = 0.0
        for first in range(begin, end, _ROWS):
            rows = min(end, first + _ROWS) - first
            _look_up(codes, members, steps, bounds, starts, first, rows, joined)
            if weights.shape[0] > 0:
                _repeated(one, weights, first, rows, weight_flat)
            u_own[:] = 0.0
            y_own[:] = 0.0
            if known:
                _gather_joined(joined, 0, starts.shape[0], halves, rows, 0, u_own, y_own)
            _pairs_of_others(
                u_flat[first * width :], u_own.reshape(-1), y_flat[first * width :], y_own.reshape(-1), slope_flat,
                weight_flat, rows * width, g.reshape(-1), square_flat,
            )  # fmt: skip
            _scatter_joined(joined, 0, starts.shape[0], g, rows, sums)
        _column_sums(square_flat, width, squares[b])
        partials[b] = 0.0
        _take_apart(sums, sizes, steps, bounds, starts, cells, partials[b])


@kernel
def group_sums(
    codes, weights, cells, sizes, members, steps, bounds, starts, groups, table, slopes, first_block, partials, squares
):
    """Fill the sums of ``pair_sums`` for all groups of variables at one theta, without features kept per row.

    members (p,) are all variables, group by group, neighbours joined so that a row needs fewer lookups: joined variable
    j has those from bounds[j] to bounds[j + 1], and group a the joined ones from groups[a] to groups[a + 1]. Cells of
    joined variable j begin at starts[j] in table (joined cells, 2w), and a member's code counts ``steps`` (p,) there;
    ``cells`` and ``sizes`` (p,) are where a member's own cells begin, and how many they are. With u and y the sums of
    (U | Y) over the variables outside group a and g = u * u - slopes[a] * u + y, partials[b] (cells, w) receives
    sum_i b_ij g_i' for the members j of every group over row block first_block + b, and squares[b, a] (w,) the sum of
    u * u, over rows with weights (n,) or none. w is a multiple of four.
    """
    n = codes.shape[0]
    width, n_groups, half = partials.shape[2], groups.shape[0] - 1, _ROWS * partials.shape[2]
    halves = table.reshape(-1, width)
    own, totals = np.empty((n_groups, 2 * _ROWS, width)), np.empty((2 * _ROWS, width))
    own_flat, totals_flat = own.reshape(n_groups, -1), totals.reshape(-1)
    g = np.empty((_ROWS, width))
    g_flat, weight_flat = g.reshape(-1), np.ones(half)
    slope_flat, square_flat, one = np.empty((n_groups, half)), np.empty((n_groups, half)), np.ones(width)
    for a in range(n_groups):
        _repeated(slopes[a], weights[:0], 0, _ROWS, slope_flat[a])
    joined = np.empty((starts.shape[0], _ROWS), np.uint32)
    sums = np.empty((table.shape[0], width))
    for b in range(partials.shape[0]):
        begin = (first_block + b) * ROW_BLOCK
        end = min(n, begin + ROW_BLOCK)
        sums[:] = 0.0
        square_flat[:] = 0.0
        for first in range(begin, end, _ROWS):
            rows = min(end, first + _ROWS) - first
            _look_up(codes, members, steps, bounds, starts, first, rows, joined)
            if weights.shape[0] > 0:
                _repeated(one, weights, first, rows, weight_flat)
            own[:] = 0.0
            totals[:] = 0.0
            for a in range(n_groups):
                _gather_joined(joined, groups[a], groups[a + 1], halves, rows, 0, own[a, :_ROWS], own[a, _ROWS:])
                for x in range(2 * half):
                    totals_flat[x] += own_flat[a, x]
            for a in range(n_groups):
                _pairs_of_others(
                    totals_flat[:half], own_flat[a, :half], totals_flat[half:], own_flat[a, half:], slope_flat[a],
                    weight_flat, rows * width, g_flat, square_flat[a],
                )  # fmt: skip
                _scatter_joined(joined, groups[a], groups[a + 1], g, rows, sums)
        for a in range(n_groups):
            _column_sums(square_flat[a], width, squares[b, a])
        partials[b] = 0.0
        _take_apart(sums, sizes, steps, bounds, starts, cells, partials[b])
