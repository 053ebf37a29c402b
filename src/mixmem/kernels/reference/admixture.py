"""Slow forms of :mod:`mixmem.kernels.admixture`: derivatives of g log f + (2 - g) log(1 - f) with f = p @ x."""

from __future__ import annotations

import numpy as np


def locus_sums(genotypes, x, p, weights, first, last, gradients, hessians):
    """Add the derivatives of rows first to last by the loci's frequencies p (m, k), times the rows' weights."""
    g, x, w = genotypes[:, first:last].astype(float), x[:, first:last], weights[first:last]
    w = np.where(g < 3, w, 0.0)
    f = p @ x
    slope = w * (g / f - (2 - g) / (1 - f))
    curve = w * (g / f**2 + (2 - g) / (1 - f) ** 2)
    gradients += slope @ x.T
    hessians += _lower_halves(np.einsum("ji,hi,gi->jhg", curve, x, x))


def row_sums(genotypes, x, p, first, last, hessians, values):
    """Add the loci's part in the second derivatives and log-likelihoods of rows first to last."""
    g, f = genotypes[:, first:last].astype(float), p @ x[:, first:last]
    seen = g < 3
    up, down = np.where(seen, g / f**2, 0.0), np.where(seen, (2 - g) / (1 - f) ** 2, 0.0)
    curves = np.einsum("ji,jh,jg->ihg", up, p, p) + np.einsum("ji,jh,jg->ihg", down, 1 - p, 1 - p)
    hessians[:, first:last] += _lower_halves(curves).T
    values[first:last] += np.where(seen, g * np.log(f) + (2 - g) * np.log(1 - f), 0.0).sum(axis=0)


def box_steps(hessians, gradients, low, high, damped, tolerance, x):
    """Take a Newton step inside the box for every row of x (m, k), in place, by cyclic coordinate descent."""
    m, k = x.shape
    for j in range(m):
        system = np.zeros((k, k))
        system[np.tril_indices(k)] = hessians[j]
        system += np.tril(system, -1).T
        step = np.zeros(k)
        for _ in range(100):
            before = step.copy()
            for h in range(k):
                free = step[h] + (gradients[j, h] - system[h] @ step) / (system[h, h] + 1e-9)
                step[h] = np.clip(free, low - x[j, h], high - x[j, h])
            if np.abs(step - before).max() <= tolerance:
                break
        length = np.sqrt(np.maximum(step @ system @ step, 0.0))
        x[j] = np.clip(x[j] + (step / (1.0 + length) if damped and length > 0.6 else step), low, high)


def _lower_halves(matrices):
    """Return the lower halves of matrices (m, k, k), row by row: (m, k (k + 1) / 2)."""
    h, g = np.tril_indices(matrices.shape[1])
    return matrices[:, h, g]
