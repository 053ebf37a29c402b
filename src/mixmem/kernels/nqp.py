"""Nonnegative quadratic programs: minimise 1/2 x'Qx + z'x over x >= 0, one small problem a row."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel


@kernel
def _eigen(q, vectors):
    """Return the eigenvalues (k,) of a symmetric q (k, k), in no order; put its eigenvectors in columns of vectors.

    Rotations after Jacobi: LAPACK through numba would need SciPy.
    """
    k = q.shape[0]
    a = q.copy()
    vectors[:, :] = 0.0
    size = 0.0
    for h in range(k):
        vectors[h, h] = 1.0
        for g in range(k):
            size += a[h, g] * a[h, g]
    for _ in range(30):
        off = 0.0
        for h in range(k):
            for g in range(h):
                off += a[h, g] * a[h, g]
        if off <= 1e-30 * size:
            break
        for h in range(k):
            for g in range(h):
                if a[h, g] != 0.0:
                    slope = (a[h, h] - a[g, g]) / (2.0 * a[h, g])
                    t = 1.0 / (abs(slope) + np.sqrt(1.0 + slope * slope))
                    if slope < 0.0:
                        t = -t
                    c = 1.0 / np.sqrt(1.0 + t * t)
                    s = t * c
                    for i in range(k):
                        left, right = a[i, g], a[i, h]
                        a[i, g], a[i, h] = c * left - s * right, s * left + c * right
                    for i in range(k):
                        left, right = a[g, i], a[h, i]
                        a[g, i], a[h, i] = c * left - s * right, s * left + c * right
                        left, right = vectors[i, g], vectors[i, h]
                        vectors[i, g], vectors[i, h] = c * left - s * right, s * left + c * right
    values = np.empty(k)
    for h in range(k):
        values[h] = a[h, h]
    return values


@kernel
def pqp_rows(q, z, x, steps, epsilon, tolerance):
    """Take up to ``steps`` PQP updates (theorem 4) of every row of x, in place; q is nonnegative, so gamma = 0.

    q (k, k), z (m, k), x (m, k). A row stops early when an update changes it by less than ``tolerance`` relatively.
    A singular q has no finite bound (the minimiser may be unbounded): its eigenvalues are held at 1e-12 of the largest.
    """
    m, k = x.shape
    vectors = np.empty((k, k))
    values = _eigen(q, vectors)
    floor = max(values.max(), 1e-300) * 1e-12
    smallest = max(values.min(), floor)
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


@kernel
def descend_rows(q, z, x, cycles):
    """Take cycles of coordinate descent towards every row's minimiser, in place: q (k, k), z (m, k), x (m, k)."""
    for r in range(x.shape[0]):
        exact_row(q, z[r], x[r], cycles, 1e-13)


@kernel
def _solved_on(q, z, support, n, factor, y):
    """Set y[:n] to the solution of q y = -z on the first n of a support (k,); False if q is not definite there.

    q (k, k), z (k,); factor (k, k) receives the transpose of Cholesky's triangle, by rows.
    """
    for i in range(n):
        for j in range(i, n):
            factor[i, j] = q[support[i], support[j]]
        y[i] = -z[support[i]]
    for i in range(n):
        if factor[i, i] <= 1e-13 * q[support[i], support[i]]:
            return False
        root = 1.0 / np.sqrt(factor[i, i])
        for j in range(i, n):
            factor[i, j] *= root
        y[i] *= root
        for g in range(i + 1, n):
            part = factor[i, g]
            for j in range(g, n):
                factor[g, j] -= part * factor[i, j]
            y[g] -= part * y[i]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            y[i] -= factor[i, j] * y[j]
        y[i] /= factor[i, i]
    return True


@kernel
def exact_rows(q, z, x, cycles, tolerance):
    """Minimise every row's program in place: q (k, k), z (m, k), x (m, k).

    Coordinate descent finds which entries are positive, and a linear equation their values; an entry that would become
    negative stops the step and leaves. A row ends when no gradient of an entry at zero, relative to the largest of z,
    asks it back by more than ``tolerance``, or after so many such turns.
    """
    k = x.shape[1]
    factor, y, support = np.empty((k, k)), np.empty(k), np.empty(k, np.int64)
    for r in range(x.shape[0]):
        exact_row(q, z[r], x[r], 2, tolerance)
        scale = 0.0
        for h in range(k):
            scale = max(scale, abs(z[r, h]))
        for _ in range(cycles):
            n = 0
            for h in range(k):
                if x[r, h] > 0.0 and q[h, h] > 0.0:
                    support[n] = h
                    n += 1
            if not _solved_on(q, z[r], support, n, factor, y):
                exact_row(q, z[r], x[r], cycles, tolerance)
                break
            step = 1.0
            for i in range(n):
                if y[i] < 0.0:
                    step = min(step, x[r, support[i]] / (x[r, support[i]] - y[i]))
            for i in range(n):
                h = support[i]
                value = x[r, h] + step * (y[i] - x[r, h])
                x[r, h] = value if value > 1e-15 * x[r, h] else 0.0
            asked = False
            if step == 1.0:
                for h in range(k):
                    if x[r, h] == 0.0 and q[h, h] > 0.0:
                        gradient = z[r, h]
                        for i in range(n):
                            gradient += q[h, support[i]] * x[r, support[i]]
                        asked = asked or gradient < -tolerance * scale
                if not asked:
                    break
            exact_row(q, z[r], x[r], 1, 0.0)
