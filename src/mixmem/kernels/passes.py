"""The sweep's pass over the rows: features gathered from theta, sums scattered back to its rows."""

from __future__ import annotations

import numpy as np

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
def group_sums(codes, weights, starts, members, bounds, table, slopes, k, first_block, partials, squares):
    """Fill the sums of ``pair_sums`` for all groups of variables at one theta, without features kept per row.

    members (p,) are all variables, group by group: group a has those from bounds[a] to bounds[a + 1]; starts (p,) is
    where their cells begin in table (cells, 2w). With u and y the sums of (U | Y) over the variables outside group a
    and g = u * u - slopes[a] * u + y, partials[b] (cells, w) receives sum_i b_ij g_i' for the members j of every group
    over row block first_block + b, and squares[b, a] (w,) the sum of u * u, over rows with weights (n,) or none.
    """
    n = codes.shape[0]
    width, n_groups = partials.shape[2], bounds.shape[0] - 1
    own = np.empty((n_groups, _ROWS, 2 * width))
    totals = np.empty((_ROWS, 2 * width))
    g = np.zeros((_ROWS, width))
    for b in range(partials.shape[0]):
        begin = (first_block + b) * ROW_BLOCK
        end = min(n, begin + ROW_BLOCK)
        partials[b] = 0.0
        squares[b] = 0.0
        for first in range(begin, end, _ROWS):
            last = min(end, first + _ROWS)
            own[:] = 0.0
            totals[:] = 0.0
            for a in range(n_groups):
                some = slice(bounds[a], bounds[a + 1])
                _gather(codes, starts[some], members[some], table, first, last, own[a])
                for i in range(last - first):
                    for h in range(2 * width):
                        totals[i, h] += own[a, i, h]
            for a in range(n_groups):
                some = slice(bounds[a], bounds[a + 1])
                for i in range(last - first):
                    weight = weights[first + i] if weights.shape[0] > 0 else 1.0
                    for h in range(k):
                        u = totals[i, h] - own[a, i, h]
                        y = totals[i, width + h] - own[a, i, width + h]
                        squares[b, a, h] += weight * (u * u)
                        g[i, h] = weight * (u * u - slopes[a, h] * u + y)
                _scatter(codes, starts[some], members[some], g, first, last, partials[b])
