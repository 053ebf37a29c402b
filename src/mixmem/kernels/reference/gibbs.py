"""Slow forms of :mod:`mixmem.kernels.gibbs`: the same draws from the same streams, cell after cell."""

from __future__ import annotations

import numpy as np

from mixmem.kernels.reference.streams import log_gamma_draw, mixed, stream, unit


def drawn(weights, target):
    """Return the component in whose part of the weights (k,), laid end to end, the target falls."""
    return min(int(np.searchsorted(np.cumsum(weights), target, side="right")), len(weights) - 1)


def assign_cells(columns, starts, absent, table, alpha, seed, step, assigned, row_counts, counts):
    """Draw the component of every cell anew, given the row's other cells, theta and alpha, in place."""
    counts[:] = 0
    for i, row in enumerate(columns.T):
        state = stream(seed, step, i)
        for j in np.flatnonzero(row != absent):
            cell = starts[j] + row[j]
            if assigned[j, i] < len(alpha):
                row_counts[i, assigned[j, i]] -= 1
            weights = (alpha + row_counts[i]) * table[cell]
            state, bits = mixed(state)
            h = drawn(weights, weights.sum() * unit(bits))
            assigned[j, i] = h
            row_counts[i, h] += 1
            counts[cell, h] += 1


def rows_above(row_counts, above):
    """Count the rows that have more than m cells in component h, into above (k, p)."""
    above[:] = (row_counts[:, :, None] > np.arange(above.shape[1])).sum(axis=0)


def membership_posterior(codes, starts, absent, table, marks, alpha, n_warm, n_keep, tails, mean, error, bounds):
    """Fill mean, standard deviation and quantiles of every row's memberships, theta and alpha given.

    Each sweep draws every cell's component given the others; given their numbers n_h the memberships are
    Dirichlet(alpha + n), of which one draw per sweep is kept after the first n_warm.
    """
    for i, row in enumerate(codes):
        state = 0
        for mark in marks[starts + row]:
            state = mixed(state ^ int(mark))[1]
        present = np.flatnonzero(row != absent)
        assigned: dict[int, int] = {}
        held, draws = alpha.astype(float), []
        for sweep in range(n_warm + n_keep):
            for j in map(int, present):
                if j in assigned:
                    held[assigned[j]] -= 1.0
                weights = held * table[starts[j] + row[j]]
                state, bits = mixed(state)
                assigned[j] = drawn(weights, weights.sum() * unit(bits))
                held[assigned[j]] += 1.0
            if sweep >= n_warm:
                logs = np.empty(len(alpha))
                for h in range(len(alpha)):
                    state, logs[h] = log_gamma_draw(state, held[h])
                sizes = np.exp(logs - logs.max())
                draws.append(sizes / sizes.sum())
        mean[i], error[i] = np.mean(draws, axis=0), np.std(draws, axis=0)
        bounds[i] = np.quantile(draws, tails, axis=0)
