"""Nonnegative quadratic programs: minimise 1/2 x'Qx + z'x over x >= 0, one small problem a row."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel, parallel_kernel, prange


@kernel
def pqp_rows(q, z, x, steps, epsilon, tolerance):
    """Up to ``steps`` PQP updates (theorem 4) of every row of x, in place; q has nonnegative entries, so gamma = 0.

    q (k, k), z (m, k), x (m, k). A row stops early when an update changes it by less than ``tolerance`` relatively.
    NumPy, one step: ``x *= (np.maximum(-z, 0) + phi) / (x @ q + np.maximum(z, 0) + phi)`` with
    ``phi = np.maximum(np.sqrt(z @ inv(q) @ z / eigvalsh(q)[0]) * diag(q) - abs(z), 0) / 2 + epsilon`` row by row.
    A singular q has no finite bound (the minimiser may be unbounded): its eigenvalues are held at 1e-12 of the largest.
    """
    m, k = x.shape
    values, vectors = np.linalg.eigh(q)
    floor = max(values[k - 1], 1e-300) * 1e-12
    smallest = max(values[0], floor)
    phi = np.empty(k)
    new = np.empty(k)
    for r in range(m):
        quadratic = 0.0
        for h in range(k):
            along = 0.0
            for g in range(k):
                along += vectors[g, h] * z[r, g]
            quadratic += along * along / max(values[h], floor)
        bound = np.sqrt(quadratic / smallest)
        for h in range(k):
            phi[h] = 0.5 * max(bound * q[h, h] - abs(z[r, h]), 0.0) + epsilon
        for _ in range(steps):
            change = 0.0
            largest = 0.0
            for h in range(k):
                qx = 0.0
                for g in range(k):
                    qx += q[h, g] * x[r, g]
                new[h] = x[r, h] * (max(-z[r, h], 0.0) + phi[h]) / (qx + max(z[r, h], 0.0) + phi[h])
                change = max(change, abs(new[h] - x[r, h]))
                largest = max(largest, new[h])
            for h in range(k):
                x[r, h] = new[h]
            if change <= tolerance * largest:
                break


@kernel
def exact_row(q, z, x, cycles, tolerance):
    """Minimise one program by cyclic coordinate descent from x, in place; q (k, k), z (k,), x (k,).

    This is the point the PQP updates converge to, reached sooner where q is ill conditioned.
    """
    k = x.shape[0]
    for _ in range(cycles):
        change = 0.0
        largest = 0.0
        for h in range(k):
            if q[h, h] <= 0.0:
                continue
            gradient = z[h]
            for g in range(k):
                gradient += q[h, g] * x[g]
            value = max(0.0, x[h] - gradient / q[h, h])
            change = max(change, abs(value - x[h]))
            largest = max(largest, value)
            x[h] = value
        if change <= tolerance * largest:
            break


@parallel_kernel
def exact_rows(q, z, x, cycles, tolerance):
    """Minimise every row's program, in parallel and in place: q (k, k), z (m, k), x (m, k)."""
    tile = 16
    m = x.shape[0]
    for t in prange((m + tile - 1) // tile):
        for r in range(t * tile, min(m, t * tile + tile)):
            exact_row(q, z[r], x[r], cycles, tolerance)
