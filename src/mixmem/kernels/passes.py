"""The sweep's pass over the rows: features gathered from theta, sums scattered back to its rows."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import ROW_BLOCK, kernel

_TILE = 64  # variables handled together, so that their rows of the table stay in the first-level cache
_ROWS = 64  # rows whose features of all groups are held at once
_JOINED = 16  # joined variables handled together: they have more cells

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
def pair_sums(codes, weights, starts, members, table, totals, slope, k, first_block, partials, squares):
    """Fill the sums over rows from which the step for the group ``members`` takes its Z, one row block at a time.

    totals (n, 2w) holds every variable's features (U | Y) and table (rows, 2w) the members' own, both padded to an even
    width w >= k; the members' part is taken off, so that u and y are sums over the other variables (a table without
    rows: the members have no part yet). With g = u * u - slope * u + y, partials[b] (rows, w) receives sum_i b_ij g_i'
    over row block first_block + b and squares[b] (w,) the sum of u * u, both over rows with weights (n,) or none.
    """
    n = codes.shape[0]
    width = partials.shape[2]
    for b in range(partials.shape[0]):
        first = (first_block + b) * ROW_BLOCK
        last = min(n, first + ROW_BLOCK)
        own = np.zeros((last - first, 2 * width))
        if table.shape[0] > 0:
            _gather(codes, starts, members, table, first, last, own)
        g = np.zeros((last - first, width))
        squares[b] = 0.0
        for i in range(last - first):
            weight = weights[first + i] if weights.shape[0] > 0 else 1.0
            for h in range(k):
                u = totals[first + i, h] - own[i, h]
                y = totals[first + i, width + h] - own[i, width + h]
                squares[b, h] += weight * (u * u)
                g[i, h] = weight * (u * u - slope[h] * u + y)
        partials[b] = 0.0
        _scatter(codes, starts, members, g, first, last, partials[b])


@kernel
def _look_up(codes, members, steps, bounds, starts, first, last, out):
    """Fill out (last - first, joined) with the joined cells of rows first to last."""
    for i in range(first, last):
        for j in range(starts.shape[0]):
            cell = starts[j]
            for t in range(bounds[j], bounds[j + 1]):
                cell += codes[i, members[t]] * steps[t]
            out[i - first, j] = cell


@kernel
def _gather_joined(joined, begin, end, table, out):
    """Add to every row of out (rows, q) the rows of the table that its joined cells begin to end select."""
    width = table.shape[1]
    for t0 in range(begin, end, _JOINED):
        t1 = min(end, t0 + _JOINED)
        fours, twos = t1 - (t1 - t0) % 4, t1 - (t1 - t0) % 2
        for i in range(out.shape[0]):
            for t in range(t0, fours, 4):
                a, b, c, d = joined[i, t], joined[i, t + 1], joined[i, t + 2], joined[i, t + 3]
                for h in range(width):
                    out[i, h] += (table[a, h] + table[b, h]) + (table[c, h] + table[d, h])
            for t in range(fours, twos, 2):
                a, b = joined[i, t], joined[i, t + 1]
                for h in range(width):
                    out[i, h] += table[a, h] + table[b, h]
            for t in range(twos, t1):
                a = joined[i, t]
                for h in range(width):
                    out[i, h] += table[a, h]


@kernel
def _scatter_joined(joined, begin, end, values, rows, out):
    """Add the values (rows, q) of every row to the rows of out that its joined cells begin to end select."""
    width = values.shape[1]
    for t0 in range(begin, end, _JOINED):
        t1 = min(end, t0 + _JOINED)
        fours, twos = t1 - (t1 - t0) % 4, t1 - (t1 - t0) % 2
        for i in range(rows):
            for t in range(t0, fours, 4):
                a, b, c, d = joined[i, t], joined[i, t + 1], joined[i, t + 2], joined[i, t + 3]
                for h in range(width):
                    value = values[i, h]
                    out[a, h] += value
                    out[b, h] += value
                    out[c, h] += value
                    out[d, h] += value
            for t in range(fours, twos, 2):
                a, b = joined[i, t], joined[i, t + 1]
                for h in range(width):
                    value = values[i, h]
                    out[a, h] += value
                    out[b, h] += value
            for t in range(twos, t1):
                a = joined[i, t]
                for h in range(width):
                    out[a, h] += values[i, h]


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
            for outer in range(0, size, step * sizes[t]):
                for code in range(sizes[t]):
                    cell = cells[t] + code
                    for inner in range(step):
                        joined = starts[j] + outer + code * step + inner
                        for h in range(width):
                            out[cell, h] += sums[joined, h]


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
    u * u, over rows with weights (n,) or none.
    """
    n = codes.shape[0]
    width, n_groups = partials.shape[2], groups.shape[0] - 1
    own = np.empty((n_groups, _ROWS, 2 * width))
    totals = np.empty((_ROWS, 2 * width))
    g = np.empty((_ROWS, width))
    square = np.empty(width)
    joined = np.empty((_ROWS, starts.shape[0]), np.uint32)
    sums = np.empty((table.shape[0], width))
    for b in range(partials.shape[0]):
        begin = (first_block + b) * ROW_BLOCK
        end = min(n, begin + ROW_BLOCK)
        sums[:] = 0.0
        squares[b] = 0.0
        for first in range(begin, end, _ROWS):
            last = min(end, first + _ROWS)
            rows = last - first
            _look_up(codes, members, steps, bounds, starts, first, last, joined)
            own[:] = 0.0
            totals[:] = 0.0
            for a in range(n_groups):
                _gather_joined(joined, groups[a], groups[a + 1], table, own[a, :rows])
                for i in range(rows):
                    for h in range(2 * width):
                        totals[i, h] += own[a, i, h]
            for a in range(n_groups):
                square[:] = 0.0
                for i in range(rows):
                    weight = weights[first + i] if weights.shape[0] > 0 else 1.0
                    for h in range(width):
                        u = totals[i, h] - own[a, i, h]
                        y = totals[i, width + h] - own[a, i, width + h]
                        square[h] += weight * (u * u)
                        g[i, h] = weight * (u * u - slopes[a, h] * u + y)
                for h in range(width):
                    squares[b, a, h] += square[h]
                _scatter_joined(joined, groups[a], groups[a + 1], g, rows, sums)
        partials[b] = 0.0
        _take_apart(sums, sizes, steps, bounds, starts, cells, partials[b])
