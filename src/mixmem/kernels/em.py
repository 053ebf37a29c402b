"""The EM pass over the cells: what each says of its row's memberships and of theta."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import ROW_BLOCK, kernel


@kernel
def em_pass(codes, starts, absent, table, x, weights, first_block, slopes, partials, values):
    """Fill what an EM step needs of row blocks first_block, first_block + 1, …; missing cells add nothing.

    codes (n, q); a cell's likelihoods are table[starts[c] + code], table (rows, k); absent (q,) the codes of missing
    cells; x (n, k); weights (n,). With m_ic = sum_h table_h x_ih: slopes (n, k) receives the sums over a row's cells
    of table_h / m_ic; partials[b] (rows, k) the sums over block b of w_i x_ih / m_ic by the table's rows, which times
    the table are the cells expected in each component; values[b] the sum of w_i log m_ic.
    """
    n, q = codes.shape
    k = x.shape[1]
    own, slope = np.empty(k), np.empty(k)
    for b in range(partials.shape[0]):
        first = (first_block + b) * ROW_BLOCK
        partials[b] = 0.0
        part = partials[b]
        total = 0.0
        for i in range(first, min(n, first + ROW_BLOCK)):
            for h in range(k):
                own[h] = x[i, h]
                slope[h] = 0.0
            product, value = 1.0, 0.0
            for c in range(q):
                code = codes[i, c]
                if code == absent[c]:
                    continue
                row = starts[c] + code
                mix = 0.0
                for h in range(k):
                    mix += table[row, h] * own[h]
                product *= mix
                if product < 1e-200:  # one logarithm for many cells; taken before the product can underflow
                    value += np.log(product)
                    product = 1.0
                inverse = 1.0 / mix
                weighted = weights[i] * inverse
                for h in range(k):
                    slope[h] += table[row, h] * inverse
                    part[row, h] += own[h] * weighted
            total += weights[i] * (value + np.log(product))
            for h in range(k):
                slopes[i, h] = slope[h]
        values[b] = total
