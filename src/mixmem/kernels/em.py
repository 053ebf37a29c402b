"""The EM pass over the cells: what each says of its row's memberships and of theta."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import ROW_BLOCK, parallel_kernel, prange


@parallel_kernel
def em_pass(codes, offsets, theta, x, first_block, new_x, partials, values):
    """One EM step for the memberships, and the sums of theta's, for row blocks first_block, first_block + 1, ….

    codes (n, p), theta (rows, k), x (n, k). With m_ij = sum_h theta_jch x_ih at the cell's level c, new_x (n, k)
    receives x_ih sum_j theta_jch / m_ij over p; partials[b] (rows, k) the sums over block b of x_ih / m_ij by level,
    which times theta are the cells expected in each component; values[b] the sum of log m_ij.
    """
    n, p = codes.shape
    k = x.shape[1]
    for b in prange(partials.shape[0]):
        first = (first_block + b) * ROW_BLOCK
        partials[b] = 0.0
        own, slope, part = np.empty(k), np.empty(k), partials[b]
        value = 0.0
        for i in range(first, min(n, first + ROW_BLOCK)):
            for h in range(k):
                own[h] = x[i, h]
                slope[h] = 0.0
            product = 1.0
            for j in range(p):
                row = offsets[j] + codes[i, j]
                mix = 0.0
                for h in range(k):
                    mix += theta[row, h] * own[h]
                product *= mix
                if product < 1e-200:  # one logarithm for many cells; taken before the product can underflow
                    value += np.log(product)
                    product = 1.0
                inverse = 1.0 / mix
                for h in range(k):
                    slope[h] += theta[row, h] * inverse
                    part[row, h] += own[h] * inverse
            value += np.log(product)
            for h in range(k):
                new_x[i, h] = own[h] * slope[h] / p
        values[b] = value
