"""Where the components' corners lie: rows as Gaussians, and the sums over them from which all corners move together."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import ROW_BLOCK, kernel
from mixmem.kernels.long_rows import LEAST_CELLS, _gaussian, _posterior
from mixmem.kernels.simplex import _TILE, _climb, _lay_out


@kernel
def row_gaussians(codes, starts, absent, table, alpha, steps, tolerance, x, hessians, slopes, factors):
    """Fill the Gaussian that stands for every row's likelihood of its memberships y: slope' y - y' hessian y / 2.

    Arguments up to x (n, k), the modes, as those of mixmem.kernels.simplex.memberships; hessians (n, k, k), slopes
    (n, k), factors (n, k, 2) the Gaussians of the prior. A row that is not long gets a Hessian of zeros.
    """
    n, q = codes.shape
    k = x.shape[1]
    width = min(q, _TILE)
    cells = np.empty(((q + width - 1) // width, k, width))
    mix, square, along = np.empty(width), np.empty(width), np.empty((k, width))
    mean, hessian, spread, room = np.empty(k), np.empty((k, k)), np.empty((k, k)), np.empty((k, k + 3))
    for i in range(n):
        p = _lay_out(codes, i, starts, absent, table, cells)
        hessians[i] = 0.0
        slopes[i] = 0.0
        factors[i] = 0.0
        if p >= LEAST_CELLS:
            _climb(cells, p, alpha, steps, tolerance, x[i], hessian)
            _posterior(cells, p, hessian, x[i], alpha, slopes[i], mean, spread, room, mix, square, along)
            for h in range(k):
                for g in range(k):
                    hessians[i, h, g] = hessian[h, g] if g <= h else hessian[g, h]
                factors[i, h, 0], factors[i, h, 1] = room[h, k + 1], room[h, k + 2]


@kernel
def corner_sums(hessians, slopes, alpha, corners, weights, first_block, factors, sums, curvature, pulls):
    """Fill what a step of the corners needs of row blocks first_block, first_block + 1, ….

    A row's memberships x are where its likelihood's y = corners @ x is; hessians, slopes and factors as row_gaussians
    leaves them, the latter going on from row to row; corners (k, k), weights (n,). sums[b] (k,) receives the rows' mean
    memberships, curvature[b] (k, k, k, k) the sums of H_ef E[x_h x_g] at [e, h, f, g], and pulls[b] (k, k) those of
    slope_e E[x_h].
    """
    n, k = slopes.shape
    along, hessian, slope = np.empty((k, k)), np.empty((k, k)), np.empty(k)
    mean, spread, room = np.empty(k), np.empty((k, k)), np.empty((k, k + 3))
    for b in range(sums.shape[0]):
        sums[b] = 0.0
        curvature[b] = 0.0
        pulls[b] = 0.0
        for i in range((first_block + b) * ROW_BLOCK, min(n, (first_block + b + 1) * ROW_BLOCK)):
            if hessians[i, 0, 0] <= 0.0:
                continue
            for h in range(k):
                for g in range(k):
                    along[h, g] = 0.0
                    for e in range(k):
                        along[h, g] += hessians[i, h, e] * corners[e, g]
            for h in range(k):
                slope[h] = 0.0
                for e in range(k):
                    slope[h] += corners[e, h] * slopes[i, e]
                for g in range(h + 1):
                    hessian[h, g] = 0.0
                    for e in range(k):
                        hessian[h, g] += corners[e, h] * along[e, g]
                room[h, k + 1], room[h, k + 2] = factors[i, h, 0], factors[i, h, 1]
            _gaussian(hessian, slope, alpha, mean, spread, room)
            total = 0.0
            for h in range(k):
                total += mean[h]
            if not abs(total - 1.0) < 0.01:  # neither finite nor near
                continue
            for h in range(k):
                factors[i, h, 0], factors[i, h, 1] = room[h, k + 1], room[h, k + 2]
                sums[b, h] += weights[i] * mean[h]
                for g in range(k):
                    pulls[b, h, g] += weights[i] * slopes[i, h] * mean[g]
                    second = weights[i] * (spread[h, g] + mean[h] * mean[g])
                    for e in range(k):
                        for f in range(k):
                            curvature[b, e, h, f, g] += hessians[i, e, f] * second
