"""Joint diagonalization of symmetric matrices: a sweep of rotations and of triangular steps (Afsari, QRJ1D)."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel, vector_kernel


@vector_kernel
def _inner(a, b):
    """Return the sum of a * b, both (m,)."""
    total = 0.0
    for r in range(a.shape[0]):
        total += a[r] * b[r]
    return total


@kernel
def _combine(a, b, c, s):
    """Set (a, b) = (c a - s b, s a + c b), both (m,)."""
    for r in range(a.shape[0]):
        first, second = a[r], b[r]
        a[r] = c * first - s * second
        b[r] = s * first + c * second


@kernel
def _rotate(x, step, j, i):
    """Turn rows and columns j and i of every matrix by the angle that leaves least beside their diagonals."""
    n, m = x.shape[0], x.shape[2]
    p = q = r = 0.0
    for t in range(m):
        apart, beside = x[j, j, t] - x[i, i, t], -2.0 * x[i, j, t]
        p += apart * apart
        q += apart * beside
        r += beside * beside
    angle = 0.25 * np.arctan2(2.0 * q, p - r)
    c, s = np.cos(angle), np.sin(angle)
    for other in range(n):
        if other not in (i, j):
            _combine(x[j, other], x[i, other], c, s)
            x[other, j, :] = x[j, other]
            x[other, i, :] = x[i, other]
        step[j, other], step[i, other] = (
            c * step[j, other] - s * step[i, other],
            s * step[j, other] + c * step[i, other],
        )
    for t in range(m):
        jj, ii, ij = x[j, j, t], x[i, i, t], x[i, j, t]
        x[j, j, t] = c * c * jj - 2.0 * c * s * ij + s * s * ii
        x[i, i, t] = s * s * jj + 2.0 * c * s * ij + c * c * ii
        x[i, j, t] = c * s * (jj - ii) + (c * c - s * s) * ij
        x[j, i, t] = x[i, j, t]


@kernel
def _shear(x, step, i, j):
    """Add a multiple of row and column i, at most one, to those of j: the one that leaves least in row j."""
    n, m = x.shape[0], x.shape[2]
    together = own = 0.0
    for other in range(n):
        if other != j:
            together += _inner(x[i, other], x[j, other])
            own += _inner(x[i, other], x[i, other])
    if own <= 0.0:
        return
    a = max(-1.0, min(1.0, -together / own))
    for t in range(m):
        x[j, j, t] += 2.0 * a * x[i, j, t] + a * a * x[i, i, t]
    for other in range(n):
        if other != j:
            for t in range(m):
                x[j, other, t] += a * x[i, other, t]
                x[other, j, t] = x[j, other, t]
        step[j, other] += a * step[i, other]


@kernel
def diagonalizing_sweep(x, v):
    """Bring symmetric matrices nearer to diagonal by one sweep over all pairs of rows, in place.

    x (n, n, m) are m matrices V M V', the matrices last; v (n, n) the V so far. Every pair is rotated first; then every
    row is added to each later one. Returns the largest entry by which the sweep's own matrix differs from the identity.
    """
    n = x.shape[0]
    step = np.eye(n)
    for i in range(1, n):
        for j in range(i):
            _rotate(x, step, j, i)
    for i in range(n):
        for j in range(i + 1, n):
            _shear(x, step, i, j)
    new = np.zeros((n, n))
    change = 0.0
    for i in range(n):
        for j in range(n):
            change = max(change, abs(step[i, j] - (1.0 if i == j else 0.0)))
            for g in range(n):
                new[i, g] += step[i, j] * v[j, g]
    v[:, :] = new
    return change
