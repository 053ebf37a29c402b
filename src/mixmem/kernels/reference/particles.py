"""Slow form of :mod:`mixmem.kernels.particles`: all particles of a cell at once, drawn from the same streams."""

from __future__ import annotations

import numpy as np

from mixmem.kernels.reference.gibbs import drawn
from mixmem.kernels.reference.streams import mixed, unit


def marginal_likelihood(codes, starts, absent, table, marks, alpha, n_particles, seed, out):
    """Fill out with log p(row), the memberships integrated out by a particle filter over the row's cells."""
    for i, row in enumerate(codes):
        state = int(seed)
        for mark in marks[starts + row]:
            state = mixed(state ^ int(mark))[1]
        counts, logs = np.zeros((n_particles, len(alpha))), np.zeros(n_particles)
        out[i] = 0.0
        present = np.flatnonzero(row != absent)
        for seen, j in enumerate(present):
            weights = table[starts[j] + row[j]] * (alpha + counts)
            logs += np.log(weights.sum(axis=1) / (alpha.sum() + seen))
            for r in range(n_particles):
                state, bits = mixed(state)
                counts[r, drawn(weights[r], weights[r].sum() * unit(bits))] += 1.0
            shares = np.exp(logs - logs.max())
            uneven = shares.sum() ** 2 < 0.5 * n_particles * (shares**2).sum()
            if uneven or j == present[-1]:
                out[i] += logs.max() + np.log(shares.mean())
                state, bits = mixed(state)
                positions = (unit(bits) + np.arange(n_particles)) / n_particles
                counts = counts[[drawn(shares, position * shares.sum()) for position in positions]]
                logs[:] = 0.0
