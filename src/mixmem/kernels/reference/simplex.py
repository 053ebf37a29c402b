"""Slow form of :mod:`mixmem.kernels.simplex`: Newton steps on the simplex, a row after another."""

from __future__ import annotations

import numpy as np


def memberships(codes, starts, absent, table, alpha, steps, tolerance, x, loglik, done, gaps):
    """Maximise log p(row | x) + sum_h alpha_h log x_h on the simplex for every row, from x, in place."""
    for i, row in enumerate(codes):
        present = row != absent
        cells = table[starts[present] + row[present]]
        done[i], gaps[i] = climb(cells, alpha, steps, tolerance, x[i])
        loglik[i] = likelihood(cells, x[i])[0]


def likelihood(cells, x):
    """Return the log-likelihood at x of a row of cells (p, k), and the shares theta_jh / sum_g theta_jg x_g (p, k).

    The gradient by x is the sum of the shares over cells, minus the Hessian is ``shares.T @ shares``.
    """
    mix = cells @ x
    return np.log(mix).sum(), cells / mix[:, None]


def climb(cells, alpha, steps, tolerance, x):
    """Take Newton steps from x, in place, until the optimality gap is small; return (steps, gap).

    At the maximum x_h (gradient_h + alpha_h / x_h) is x_h (p + alpha0) for every h: the gap is the largest relative
    miss of that.
    """
    weight = len(cells) + alpha.sum()
    gap = np.inf
    for step in range(steps):
        value, shares = likelihood(cells, x)
        gradient = shares.sum(axis=0)
        slope = gradient + alpha / x
        gap = (x * np.abs(slope - weight)).max() / weight
        if gap <= tolerance:
            return step, gap
        # in relative changes of x, held to sum_h x_h change_h = 0; the barrier's curvature is that along log x_h
        barrier = np.clip(x * (weight - gradient), 0.1 * alpha, 10.0 * alpha)
        system = shares.T @ shares * np.outer(x, x) + np.diag(barrier)
        free, border = np.linalg.solve(system, np.stack([x * slope, x], axis=1)).T
        change = free - (x @ free) / (x @ border) * border
        start, objective = x.copy(), value + alpha @ np.log(x)
        size = min(1.0, 0.95 / max(-change.min(), 1e-300))
        for _ in range(30):
            x[:] = start * (1.0 + size * change)
            x /= x.sum()
            reached = likelihood(cells, x)[0] + alpha @ np.log(x)
            if reached >= objective + 1e-4 * size * (change @ (start * slope)) - 1e-10 * abs(objective):
                break
            size *= 0.5
    return steps, gap


def cholesky(system):
    """Put the factor of a positive definite matrix (k, k) into its lower half."""
    lower = np.tril_indices(len(system))
    system[lower] = np.linalg.cholesky(system)[lower]
