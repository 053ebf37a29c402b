"""Slow form of :mod:`mixmem.kernels.em`."""

from __future__ import annotations

import numpy as np

from mixmem.kernels.reference.passes import block_rows


def em_pass(codes, starts, absent, table, x, weights, first_block, slopes, partials, values):
    """Fill what an EM step needs of row blocks first_block, first_block + 1, …; missing cells add nothing."""
    for b in range(len(partials)):
        rows = block_rows(len(codes), first_block + b)
        own, w = x[rows], weights[rows]
        i, c = np.nonzero(codes[rows] != absent)
        cells = starts[c] + codes[rows][i, c]
        mix = (table[cells] * own[i]).sum(axis=1)
        slopes[rows] = 0.0
        np.add.at(slopes[rows], i, table[cells] / mix[:, None])
        partials[b] = 0.0
        np.add.at(partials[b], cells, (w[i] / mix)[:, None] * own[i])
        values[b] = w[i] @ np.log(mix)
