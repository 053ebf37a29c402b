"""The sampler's pass over the cells: a component drawn for each, memberships integrated out."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel
from mixmem.kernels.streams import STRIDE, log_gamma_draw, mixed, mixed_bits, stream, unit

_ROWS = 256  # rows whose cells of one column are drawn together: none waits for another


@kernel
def drawn(weights, target):
    """Return the component in whose part of the weights (k,), laid end to end, the target falls."""
    h = 0
    target -= weights[0]
    while target >= 0.0 and h < weights.shape[0] - 1:
        h += 1
        target -= weights[h]
    return h


@kernel
def _add_weights(held, table, cells, h, before, after):
    """Fill after (rows,) with before plus the weights of component h: held (rows,) times the likelihoods of cells."""
    for r in range(after.shape[0]):
        after[r] = before[r] + held[r] * table[cells[r] + h]


@kernel
def _draw_targets(states, strides, masses, targets):
    """Draw a target below each mass (rows,) from the rows' streams; a stream of stride 0 stays where it is."""
    for r in range(states.shape[0]):
        state = states[r] + strides[r]
        states[r] = state
        targets[r] = masses[r] * unit(mixed_bits(state))


@kernel
def _count_passed(targets, sums, passed):
    """Count for every row whether its target lies beyond the sum (rows,) of the weights so far."""
    for r in range(passed.shape[0]):
        passed[r] += 1 if targets[r] >= sums[r] else 0


@kernel
def assign_cells(columns, starts, absent, table, alpha, seed, step, assigned, row_counts, counts):
    """Draw the component of every cell anew, given the row's other cells, theta and alpha, in place.

    columns (p, n) holds the codes, one column of the data after the other; starts (p,) where a column's codes begin in
    the table of likelihoods (rows, k), all positive; absent (p,) the code of a missing cell, which gets no component;
    alpha (k,). Component h has weight theta_jch (alpha_h + n_ih), n_ih the row's other cells in h. assigned (p, n)
    holds the components (k or more: none), row_counts (n, k) the n_ih; counts (rows, k) receives the number of cells
    of each code in each component.

    A row's cells depend on each other, so that one row alone would wait for itself; _ROWS of them go side by side.
    """
    p, n = columns.shape
    k = alpha.shape[0]
    likelihoods, counted = table.ravel(), counts.ravel()
    held, sums = np.empty((k, _ROWS)), np.zeros((k + 1, _ROWS))
    cells, passed = np.empty(_ROWS, np.uint64), np.empty(_ROWS, np.int64)
    states, strides, targets = np.empty(_ROWS, np.uint64), np.empty(_ROWS, np.uint64), np.empty(_ROWS)
    counts[:, :] = 0
    for first in range(0, n, _ROWS):
        rows = min(_ROWS, n - first)
        for r in range(rows):
            states[r] = stream(seed, step, first + r)
            for h in range(k):
                held[h, r] = row_counts[first + r, h] + alpha[h]
        for j in range(p):
            codes, own = columns[j, first : first + rows], assigned[j, first : first + rows]
            for r in range(rows):
                there = codes[r] != absent[j]
                cells[r] = (starts[j] + codes[r]) * k if there else starts[j] * k
                strides[r] = STRIDE if there else np.uint64(0)
            for r in range(rows):
                if own[r] < k:
                    held[own[r], r] -= 1.0
            for h in range(k):
                _add_weights(held[h, :rows], likelihoods, cells, np.uint64(h), sums[h], sums[h + 1, :rows])
            _draw_targets(states[:rows], strides, sums[k], targets)
            passed[:] = 0
            for h in range(1, k):
                _count_passed(targets, sums[h], passed[:rows])
            for r in range(rows):
                if strides[r] > 0:
                    h = passed[r]
                    own[r] = h
                    held[h, r] += 1.0
                    counted[cells[r] + np.uint64(h)] += 1
        for r in range(rows):
            for h in range(k):
                # a whole number: rounding must not add up
                row_counts[first + r, h] = np.floor(held[h, r] - alpha[h] + 0.5)


@kernel
def rows_above(row_counts, above):
    """Count the rows that have more than m cells in component h, into above (k, p).

    row_counts (n, k), whole numbers.
    """
    n, k = row_counts.shape
    above[:, :] = 0
    for i in range(n):
        for h in range(k):
            count = int(row_counts[i, h])
            if count > 0:
                above[h, count - 1] += 1
    for m in range(above.shape[1] - 1, 0, -1):
        for h in range(k):
            above[h, m - 1] += above[h, m]


@kernel
def membership_posterior(codes, starts, absent, table, marks, alpha, n_warm, n_keep, tails, mean, error, bounds):
    """Fill mean, standard deviation (n, k) and quantiles (n, 2, k) of rows' memberships, theta and alpha given.

    codes (n, p) row by row; starts, absent and table as in assign_cells, marks (rows,) what tells the table's rows
    apart, alpha (k,), tails (2,) the quantiles' probabilities. The row's cells are sampled; given their numbers n_ih
    the memberships are Dirichlet(alpha + n_i), of which one draw is taken in each of n_keep sweeps after n_warm. A
    row's stream is seeded by what it holds: equal rows get equal values.
    """
    n, p = codes.shape
    k = alpha.shape[0]
    weights, held = np.empty(k), np.empty(k)
    assigned = np.empty(p, np.int64)
    draws = np.empty((k, n_keep))
    for i in range(n):
        state = np.uint64(0)
        for j in range(p):
            _, state = mixed(state ^ marks[starts[j] + codes[i, j]])
        for h in range(k):
            held[h] = alpha[h]
        for sweep in range(n_warm + n_keep):
            for j in range(p):
                if codes[i, j] == absent[j]:
                    continue
                row = starts[j] + codes[i, j]
                if sweep > 0:
                    held[assigned[j]] -= 1.0
                mass = 0.0
                for h in range(k):
                    weights[h] = held[h] * table[row, h]
                    mass += weights[h]
                state, bits = mixed(state)
                h = drawn(weights, mass * unit(bits))
                assigned[j] = h
                held[h] += 1.0
            if sweep >= n_warm:
                largest, total = -np.inf, 0.0
                for h in range(k):
                    state, weights[h] = log_gamma_draw(state, held[h])
                    largest = max(largest, weights[h])
                for h in range(k):
                    weights[h] = np.exp(weights[h] - largest)
                    total += weights[h]
                for h in range(k):
                    draws[h, sweep - n_warm] = weights[h] / total
        for h in range(k):
            mean[i, h] = draws[h].mean()
            error[i, h] = draws[h].std()
            ranked = np.sort(draws[h])
            for side in range(2):
                place = tails[side] * (n_keep - 1)
                low = min(int(place), n_keep - 2)
                bounds[i, side, h] = ranked[low] + (place - low) * (ranked[low + 1] - ranked[low])
