"""Slow form of :mod:`mixmem.kernels.joint`."""

from __future__ import annotations

import numpy as np


def diagonalizing_sweep(x, v):
    """Bring symmetric matrices x (n, n, m) nearer to diagonal by rotations and by triangular steps, in place.

    Each step is a matrix that differs from the identity in two rows; it multiplies every matrix from both sides.
    """
    n = len(x)
    whole = np.eye(n)

    def take(step):
        x[:] = np.einsum("ai,ijt,bj->abt", step, x, step)
        whole[:] = step @ whole

    for i in range(1, n):
        for j in range(i):
            beside = np.stack([x[j, j] - x[i, i], -2.0 * x[i, j]])
            leading = np.linalg.eigh(beside @ beside.T)[1][:, 1]
            angle = 0.5 * np.arctan2(leading[1] * np.sign(leading[0] or 1.0), abs(leading[0]))
            step = np.eye(n)
            step[j, j] = step[i, i] = np.cos(angle)
            step[i, j] = np.sin(angle)
            step[j, i] = -np.sin(angle)
            take(step)
    for i in range(n):
        for j in range(i + 1, n):
            one, other = (np.delete(x[row], j, axis=0) for row in (i, j))
            if (one**2).sum() > 0.0:
                step = np.eye(n)
                step[j, i] = np.clip(-(one * other).sum() / (one**2).sum(), -1.0, 1.0)
                take(step)
    v[:] = whole @ v
    return np.abs(whole - np.eye(n)).max()
