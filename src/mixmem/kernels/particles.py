"""Marginal likelihood of rows by particles: one cell after another, with the component of each cell drawn."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel
from mixmem.kernels.streams import mixed, unit


@kernel
def marginal_likelihood(codes, starts, absent, table, marks, alpha, n_particles, seed, out):
    """Fill out (n,) with log p(row), the memberships integrated out by a particle filter over the row's cells.

    codes (n, p), starts (p,) where a column's codes begin in the table of likelihoods (rows, k), absent (p,) the code
    of a missing cell, which is left out, marks (rows,) what tells the table's rows apart, alpha (k,). A particle holds
    the number of cells each component explains so far, n_h. Cell j adds log of the particles' mean of
    sum_h theta_jh (alpha_h + n_h) / (alpha0 + cells so far); each particle then draws the cell's component, and all are
    resampled (systematically) when their weights grow uneven. The mean of exp(out) is the likelihood, exactly. A row's
    stream is seeded by what it holds: equal rows get equal values, in any order and company.
    """
    n, p = codes.shape
    k = alpha.shape[0]
    alpha0 = alpha.sum()
    for i in range(n):
        state = np.uint64(seed)
        for j in range(p):
            _, state = mixed(state ^ marks[starts[j] + codes[i, j]])
        counts = np.zeros((n_particles, k))
        spare = np.zeros((n_particles, k))
        logs = np.zeros(n_particles)
        chance = np.empty(k)
        total, seen = 0.0, 0
        last = p - 1
        while last >= 0 and codes[i, last] == absent[last]:
            last -= 1
        for j in range(last + 1):
            if codes[i, j] == absent[j]:
                continue
            row = starts[j] + codes[i, j]
            for r in range(n_particles):
                mass = 0.0
                for h in range(k):
                    mass += table[row, h] * (alpha[h] + counts[r, h])
                    chance[h] = mass
                logs[r] += np.log(mass / (alpha0 + seen))
                state, bits = mixed(state)
                target = mass * unit(bits)
                h = 0
                while h < k - 1 and chance[h] <= target:
                    h += 1
                counts[r, h] += 1.0
            seen += 1
            top = logs[0]
            for r in range(1, n_particles):
                top = max(top, logs[r])
            weight, square = 0.0, 0.0
            for r in range(n_particles):
                share = np.exp(logs[r] - top)
                weight += share
                square += share * share
            if weight * weight < 0.5 * n_particles * square or j == last:
                total += top + np.log(weight / n_particles)
                state, bits = mixed(state)
                position = unit(bits)
                reached = 0.0
                source = -1
                for r in range(n_particles):
                    while reached <= (position + r) / n_particles * weight and source < n_particles - 1:
                        source += 1
                        reached += np.exp(logs[source] - top)
                    for h in range(k):
                        spare[r, h] = counts[source, h]
                for r in range(n_particles):
                    logs[r] = 0.0
                    for h in range(k):
                        counts[r, h] = spare[r, h]
        out[i] = total
