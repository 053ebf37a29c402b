"""Slow forms of :mod:`mixmem.kernels.corners`: a row after another."""

from __future__ import annotations

import numpy as np

from mixmem.kernels.reference.long_rows import LEAST_CELLS, gaussian, laid_out
from mixmem.kernels.reference.passes import block_rows
from mixmem.kernels.reference.simplex import climb


def row_gaussians(codes, starts, absent, table, alpha, steps, tolerance, x, hessians, slopes, factors):
    """Fill the Gaussian that stands for every row's likelihood of its memberships y: slope' y - y' hessian y / 2."""
    for i, row in enumerate(codes):
        present = row != absent
        cells = table[starts[present] + row[present]]
        hessians[i], slopes[i], factors[i] = 0.0, 0.0, 0.0
        if len(cells) >= LEAST_CELLS:
            climb(cells, alpha, steps, tolerance, x[i])
            hessians[i], slopes[i], own = laid_out(cells, x[i], alpha)
            gaussian(hessians[i], slopes[i], alpha, *own)
            factors[i] = own.T


def corner_sums(hessians, slopes, alpha, corners, weights, first_block, factors, sums, curvature, pulls):
    """Fill what a step of the corners needs of row blocks first_block, first_block + 1, …."""
    for b in range(len(sums)):
        sums[b], curvature[b], pulls[b] = 0.0, 0.0, 0.0
        for i in range(*block_rows(len(slopes), first_block + b).indices(len(slopes))):
            if hessians[i, 0, 0] > 0.0:
                mean, spread = gaussian(
                    corners.T @ hessians[i] @ corners, corners.T @ slopes[i], alpha, *factors[i].T
                )  # which leaves the factors in place
                sums[b] += weights[i] * mean
                curvature[b] += weights[i] * np.einsum("ef,hg->ehfg", hessians[i], spread + np.outer(mean, mean))
                pulls[b] += weights[i] * np.outer(slopes[i], mean)
