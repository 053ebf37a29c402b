"""Slow form of :mod:`mixmem.kernels.blocks`: algorithm 1 of the paper with its products written as einsum."""

from __future__ import annotations

import numpy as np

from mixmem.kernels.reference.nqp import descend_rows, pqp_rows


def factorize_one(t, a, b, c, sweeps, inner, epsilon, tolerance, history):
    """Update one tensor's factors in turn, in place; return (sweeps done, converged).

    Each mode solves a nonnegative quadratic program per row, with Q the product of the others' Gram matrices and
    Z minus the tensor times the others; with cycles of descent the column sums of A and B are moved into C.
    """

    def update(x, z, q):
        if inner > 0:
            pqp_rows(q, z, x, inner, epsilon, 1e-15)
        else:
            descend_rows(q, z, x, -inner)
        return (t**2).sum() + 2.0 * (x * z).sum() + (x.T @ x * q).sum()

    previous = np.inf
    for sweep in range(sweeps):
        before = [a.copy(), b.copy()]
        history[3 * sweep] = update(a, -np.einsum("abc,bh,ch->ah", t, b, c), (c.T @ c) * (b.T @ b))
        history[3 * sweep + 1] = update(b, -np.einsum("abc,ah,ch->bh", t, a, c), (c.T @ c) * (a.T @ a))
        for x in (a, b) if inner < 0 else ():
            totals = np.where(x.sum(axis=0) > 0.0, x.sum(axis=0), 1.0)
            x /= totals
            c *= totals
        objective = update(c, -np.einsum("abc,ah,bh->ch", t, a, b), (a.T @ a) * (b.T @ b))
        history[3 * sweep + 2] = objective
        if objective > 1e-12 * (t**2).sum():
            ended = previous - objective <= tolerance * objective
        else:  # an exact fit: the residual is rounding error, so the factors themselves must have come to rest
            ended = max(_change(x, old) for x, old in zip((a, b), before, strict=True)) <= tolerance
        if ended:
            return sweep + 1, True
        previous = objective
    return sweeps, False


def _change(x, before):
    """Return the largest change of an entry relative to the largest entry."""
    return np.abs(x - before).max() / max(np.abs(x).max(), 1e-300)
