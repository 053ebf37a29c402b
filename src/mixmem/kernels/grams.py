"""Sums over variables of theta's own products, for the quadratic part of a sweep's step."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel


@kernel
def gram_sums(theta, starts, sizes):
    """Return sum_j P_j and sum_j P_j * P_j, P_j = theta_j' theta_j, over the variables given by starts and sizes.

    theta (rows, k), starts (m,), sizes (m,) -> (k, k), (k, k).
    """
    k = theta.shape[1]
    total = np.zeros((k, k))
    squares = np.zeros((k, k))
    own = np.zeros((k, k))
    for j in range(starts.shape[0]):
        own[:, :] = 0.0
        for row in range(starts[j], starts[j] + sizes[j]):
            for h in range(k):
                for g in range(k):
                    own[h, g] += theta[row, h] * theta[row, g]
        for h in range(k):
            for g in range(k):
                total[h, g] += own[h, g]
                squares[h, g] += own[h, g] * own[h, g]
    return total, squares
