"""Likelihood of rows at points of the simplex that are common to all of them."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel, vector_kernel

_FOLD = 24  # cells multiplied before a row's products are put back to a largest of one: likelihoods are at least 1e-6
_TOGETHER = 4  # cells whose product is taken at once, in single precision where that is what at_nodes has


@kernel
def mix_at_nodes(table, nodes, out):
    """Fill out (rows, m) with the likelihood of every code at every node: sum_h table[row, h] nodes[h, node].

    table (rows, k), nodes (k, m). Added in the order of the components, so that a code's figures hang on no other code.
    """
    k, m = nodes.shape
    for r in range(table.shape[0]):
        for c in range(m):
            out[r, c] = 0.0
        for h in range(k):
            share = table[r, h]
            for c in range(m):
                out[r, c] += share * nodes[h, c]


@kernel
def _present(row, starts, absent, cells):
    """Fill cells with where the codes of a row (p,) that are not missing lie in a table of them; return how many."""
    present = 0
    for j in range(len(row)):
        if row[j] != absent[j]:
            cells[present] = starts[j] + row[j]
            present += 1
    return present


@vector_kernel
def node_sums(codes, starts, absent, at_nodes, weights, points, sums, squares, means):
    """Fill sums and squares (n,) with the logarithms of a row's likelihood summed over nodes, and of its square, and
    means (n, q) with the mean of the points (q, m) under it; q is zero where no means are wanted.

    codes (n, p), starts (p,) where a column's codes begin in at_nodes (rows, m), in single or double precision, absent
    (p,) the code of a missing cell, which is left out, weights (m,) of the nodes. What is summed is weight * prod_j
    at_nodes[cell j].
    """
    n, p = codes.shape
    m = weights.shape[0]
    product, cells = np.empty(m), np.empty(p, dtype=np.int64)
    for i in range(n):
        present = _present(codes[i], starts, absent, cells)
        for c in range(m):
            product[c] = weights[c]
        scale = 0.0
        for first in range(0, present, _FOLD):
            last = min(first + _FOLD, present)
            whole = last - (last - first) % _TOGETHER
            for j in range(first, whole, _TOGETHER):
                one, two = at_nodes[cells[j]], at_nodes[cells[j + 1]]
                three, four = at_nodes[cells[j + 2]], at_nodes[cells[j + 3]]
                for c in range(m):
                    product[c] *= (one[c] * two[c]) * (three[c] * four[c])
            for j in range(whole, last):
                one = at_nodes[cells[j]]
                for c in range(m):
                    product[c] *= one[c]
            if last - first == _FOLD:
                top = 0.0
                for c in range(m):
                    top = max(top, product[c])
                top = max(top, 1e-300)
                scale += np.log(top)
                for c in range(m):
                    product[c] /= top
        total, square = 0.0, 0.0
        for c in range(m):
            total += product[c]
        total = max(total, 1e-300)
        for c in range(m):
            square += (product[c] / total) ** 2
        for h in range(points.shape[0]):
            mean = 0.0
            for c in range(m):
                mean += product[c] * points[h, c]
            means[i, h] = mean / total
        sums[i] = scale + np.log(total)
        squares[i] = 2.0 * sums[i] + np.log(max(square, 1e-300))
