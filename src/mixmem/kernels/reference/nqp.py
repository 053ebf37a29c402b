"""Slow forms of :mod:`mixmem.kernels.nqp`: minimise 1/2 x'Qx + z'x over x >= 0."""

from __future__ import annotations

import numpy as np


def eigen(q):
    """Return the eigenvalues (k,) of a symmetric q (k, k), rising, and its eigenvectors in columns."""
    return np.linalg.eigh(q)


def pqp_rows(q, z, x, steps, epsilon, tolerance):
    """Take up to ``steps`` PQP updates (theorem 4) of every row of x, in place.

    x <- x * (max(-z, 0) + phi) / (Qx + max(z, 0) + phi) with
    phi_h = max(sqrt(z' inv(Q) z / smallest eigenvalue) Q_hh - |z_h|, 0) / 2 + epsilon.
    """
    values, vectors = eigen(q)
    values = np.maximum(values, max(values.max(), 1e-300) * 1e-12)
    inverse = vectors / values @ vectors.T
    for r in range(len(x)):
        bound = np.sqrt(z[r] @ inverse @ z[r] / values.min())
        phi = np.maximum(bound * np.diag(q) - np.abs(z[r]), 0.0) / 2 + epsilon
        for _ in range(steps):
            before = x[r].copy()
            x[r] *= (np.maximum(-z[r], 0.0) + phi) / (q @ x[r] + np.maximum(z[r], 0.0) + phi)
            if np.abs(x[r] - before).max() <= tolerance * x[r].max():
                break


def exact_row(q, z, x, cycles, tolerance):
    """Minimise one program by cyclic coordinate descent from x, in place."""
    for _ in range(cycles):
        before = x.copy()
        for h in np.flatnonzero(np.diag(q) > 0.0):
            x[h] = max(0.0, x[h] - (z[h] + q[h] @ x) / q[h, h])
        moved = np.diag(q) > 0.0
        if np.abs(x - before).max() <= tolerance * x[moved].max(initial=0.0):
            break


def descend_rows(q, z, x, cycles):
    """Take cycles of coordinate descent towards every row's minimiser, in place."""
    for r in range(len(x)):
        exact_row(q, z[r], x[r], cycles, 1e-13)


def exact_rows(q, z, x, cycles, tolerance):
    """Minimise every row's program in place."""
    for r in range(len(x)):
        exact_row(q, z[r], x[r], 1000 * cycles, 1e-3 * tolerance)
