"""Slow form of :mod:`mixmem.kernels.long_rows`: a row after another."""

from __future__ import annotations

import numpy as np

from mixmem.kernels.reference.passes import block_rows
from mixmem.kernels.reference.simplex import climb, likelihood

LEAST_CELLS = 100


def tilted(mean, variance, a):
    """Return mean and variance of the density on (0, 1) proportional to x^(a - 1) Normal(x; mean, variance).

    Summed by Gauss's rule over what is within six standard deviations of its top; next to zero in the variable x^a.
    """
    top, above, below = np.clip(mean, 0.0, 1.0), max(mean - 1.0, 0.0), max(-mean, 0.0)
    low = top + above - np.sqrt(above**2 + 36.0 * variance)
    high = min(top - below + np.sqrt(below**2 + 36.0 * variance), 1.0)
    x, w = np.empty(0), np.empty(0)
    if low <= 0.0:
        low = high / 12.0
        places, shares = np.polynomial.legendre.leggauss(4)
        x, w = low * (0.5 * (places + 1.0)) ** (1.0 / a), 0.5 * shares * low**a / a
    places, shares = np.polynomial.legendre.leggauss(20)
    wide = low + (high - low) * 0.5 * (places + 1.0)
    x, w = np.append(x, wide), np.append(w, 0.5 * shares * (high - low) * wide ** (a - 1.0))
    w *= np.exp(((top - mean) ** 2 - (x - mean) ** 2) / (2.0 * variance))
    center = w @ x / w.sum()
    return center, max(w @ x**2 / w.sum() - center**2, 1e-12 * variance)


def gaussian(hessian, slope, alpha, precise, pull):
    """Return mean (k,) and covariance (k, k) of memberships x of log-likelihood slope' x - x' hessian x / 2.

    Every factor of the prior is a Gaussian, too, in place: its precision (k,), and that times its mean, the pull (k,).
    """
    tie = 1e4 * np.diag(hessian).max()
    for made in range(9):
        spread = np.linalg.inv(hessian + tie + np.diag(precise))
        mean = spread @ (slope + tie + pull)
        change = 0.0
        for h, variance in enumerate(np.diag(spread)):
            others = 1.0 / variance - precise[h]
            if others > 0.0 and made < 8:
                place = (mean[h] / variance - pull[h]) / others
                center, left = tilted(place, 1.0 / others, alpha[h])
                change = max(change, abs(center - mean[h]))
                precise[h] += 0.9 * (1.0 / left - others - precise[h])
                pull[h] += 0.9 * (center / left - place * others - pull[h])
        if change < 1e-4:
            break
    return mean, spread


def laid_out(cells, x, alpha):
    """Return Hessian (k, k) and slope (k,) of the Gaussian that stands for the likelihood of a row of cells (p, k).

    x is the row's mode; the factors of the prior (2, k) that go with it are returned, too.
    """
    shares = cells / (cells @ x)[:, None]
    hessian, factors = shares.T @ shares, np.stack([alpha / x**2, 2.0 * alpha / x])
    slope = 2.0 * hessian @ x
    mean, spread = gaussian(hessian, slope, alpha, *factors)
    second = spread + np.outer(mean - x, mean - x)
    return hessian, slope + shares.T @ ((shares @ second) * shares).sum(axis=1), factors


def posterior(cells, x, alpha):
    """Return mean (k,) and covariance (k, k) of the memberships of a row of cells (p, k), whose mode is x."""
    hessian, slope, factors = laid_out(cells, x, alpha)
    mean, spread = gaussian(hessian, slope, alpha, *factors)
    inside = np.maximum(mean, 1e-12)
    if not abs(inside.sum() - 1.0) < 0.01:
        return x.copy(), np.zeros_like(hessian)
    return inside / inside.sum(), spread


def posterior_memberships(codes, starts, absent, table, alpha, steps, tolerance, x, loglik, done, gaps):
    """Find the posterior means of memberships of every row, from x, in place; rows that are not long keep the mode."""
    for i, row in enumerate(codes):
        present = row != absent
        cells = table[starts[present] + row[present]]
        done[i], gaps[i] = climb(cells, alpha, steps, tolerance, x[i])
        if len(cells) >= LEAST_CELLS and len(alpha) > 1:
            x[i] = posterior(cells, x[i], alpha)[0]
        loglik[i] = likelihood(cells, x[i])[0]


def integrated_pass(
    codes, starts, absent, table, alpha, steps, tolerance, influence, weights, first_block, x, means, partials, squares
):
    """Fill what a round of EM with memberships integrated out needs of row blocks first_block, first_block + 1, …."""
    for b in range(len(partials)):
        partials[b], squares[b] = 0.0, 0.0
        for i in range(*block_rows(len(codes), first_block + b).indices(len(codes))):
            present = codes[i] != absent
            rows = starts[present] + codes[i][present]
            cells = table[rows]
            owed = np.outer(1.0 - cells @ means[i], influence @ means[i])
            others = np.maximum(cells - owed, 0.1 * cells)
            climb(others, alpha, steps, tolerance, x[i])
            means[i], spread = x[i], np.zeros((len(alpha), len(alpha)))
            if len(rows) >= LEAST_CELLS:
                means[i], spread = posterior(others, x[i], alpha)
            mix, along = (cells @ means[i])[:, None], cells @ spread
            square = 1.0 + (along * cells).sum(axis=1, keepdims=True) / mix**2
            shares = cells / mix * np.maximum(means[i] * square - along / mix, 0.0)
            np.add.at(partials[b], rows, weights[i] * shares)
            squares[b] += weights[i] * (shares**2).sum(axis=0)
