"""Raw moments by counting codes: exact integers, so no order of addition can change them."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import parallel_kernel, prange


@parallel_kernel
def count_levels(codes, offsets):
    """Rows in which each level of each variable occurs.

    codes (n, p), offsets (p+1,) -> (offsets[p],) int64; NumPy: ``np.bincount((offsets[:-1] + codes).ravel())``.
    """
    n, p = codes.shape
    out = np.zeros(offsets[p], np.int64)
    tile = 64
    for t in prange((p + tile - 1) // tile):
        first, last = t * tile, min(p, t * tile + tile)
        for i in range(n):
            for j in range(first, last):
                out[offsets[j] + codes[i, j]] += 1
    return out


@parallel_kernel
def block_triples(codes, members, local, sizes, out):
    """Raw third-order counts of many blocks in parallel.

    codes (n, p); members (blocks, 3, m) variable indices padded with -1; local (blocks, 3, m) the row of the block's
    mode at which a variable's levels start; sizes (blocks, 3) number of variables per mode; out (blocks, d_a, d_b, d_c)
    is added to. NumPy, a block: ``np.einsum("ia,ib,ic->abc", onehot_a, onehot_b, onehot_c)``.
    One block alone is split over the variables of its first mode, whose rows of ``out`` are disjoint.
    """
    n = codes.shape[0]
    n_blocks, m = members.shape[0], members.shape[2]
    for task in prange(n_blocks * m):
        block, u = task // m, task % m
        if u < sizes[block, 0]:
            n_b, n_c = sizes[block, 1], sizes[block, 2]
            row_b = np.empty(n_b, np.int64)
            row_c = np.empty(n_c, np.int64)
            for i in range(n):
                row_a = local[block, 0, u] + codes[i, members[block, 0, u]]
                for v in range(n_b):
                    row_b[v] = local[block, 1, v] + codes[i, members[block, 1, v]]
                for w in range(n_c):
                    row_c[w] = local[block, 2, w] + codes[i, members[block, 2, w]]
                for v in range(n_b):
                    for w in range(n_c):
                        out[block, row_a, row_b[v], row_c[w]] += 1.0
