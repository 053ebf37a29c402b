"""Posterior of a long row's memberships: its mean and covariance, and the components expected of its cells.

In a long row the likelihood is close to a Gaussian in the memberships; what is not Gaussian is the Dirichlet prior, and
that memberships end at zero. The Gaussian is taken at the mode, and the prior's factors x_h^(alpha_h - 1) are brought
in one by one, each by the mean and the variance that it leaves (expectation propagation). The likelihood's third
derivatives then move the mean a little.
"""

from __future__ import annotations

import math

import numpy as np

from mixmem.kernels._numba import ROW_BLOCK, kernel, vector_kernel
from mixmem.kernels.simplex import _TILE, _climb, _derivatives, _lay_out, _solve, cholesky

LEAST_CELLS = 100
"""Cells from which on a row counts as long."""
_ROUNDS, _CLOSE, _STEP = 8, 1e-4, 0.9  # rounds over the factors, the change of a mean that ends them, and damping
_TIED = 1e4  # how much more precisely the sum of memberships is known than they are
_REACH = 36.0  # squared standard deviations, beyond which a density is not summed
_WIDE = np.polynomial.legendre.leggauss(20)
_NEAR = np.polynomial.legendre.leggauss(4)
_PLACES, _SHARES = 0.5 * (_WIDE[0] + 1.0), 0.5 * _WIDE[1]
_NEAR_PLACES, _NEAR_SHARES = 0.5 * (_NEAR[0] + 1.0), 0.5 * _NEAR[1]
_CORNER = 1.0 / 12.0  # share of the range next to zero that is summed by its own rule, in x^a


@kernel
def _tilted(mean, variance, a):
    """Return mean and variance of the density on (0, 1) that is proportional to x^(a - 1) Normal(x; mean, variance)."""
    top = min(max(mean, 0.0), 1.0)
    above, below = max(mean - 1.0, 0.0), max(-mean, 0.0)
    low = top + above - math.sqrt(above * above + _REACH * variance)
    high = min(top - below + math.sqrt(below * below + _REACH * variance), 1.0)
    scale = (top - mean) ** 2 / (2.0 * variance)
    total, first, second = 0.0, 0.0, 0.0
    if low <= 0.0:
        low = _CORNER * high
        for q in range(_NEAR_PLACES.shape[0]):
            x = low * math.exp(math.log(_NEAR_PLACES[q]) / a)
            w = _NEAR_SHARES[q] * low**a / a * math.exp(scale - (x - mean) ** 2 / (2.0 * variance))
            total += w
            first += w * x
            second += w * x * x
    for q in range(_PLACES.shape[0]):
        x = low + (high - low) * _PLACES[q]
        w = _SHARES[q] * (high - low) * math.exp(scale - (x - mean) ** 2 / (2.0 * variance) + (a - 1.0) * math.log(x))
        total += w
        first += w * x
        second += w * x * x
    center = first / total
    return center, max(second / total - center * center, 1e-12 * variance)


@kernel
def _gaussian(hessian, slope, alpha, mean, spread, room):
    """Set mean (k,) and spread (k, k) to those of memberships x of log-likelihood slope' x - x' hessian x / 2.

    The lower half of the Hessian is read. The last two columns of room (k, k + 3) hold the factors of the prior, each
    a Gaussian: where they begin, and then where they ended.
    """
    k = slope.shape[0]
    system, column, precise, pull = room[:, :k], room[:, k], room[:, k + 1], room[:, k + 2]
    tie = 0.0
    for h in range(k):
        tie = max(tie, _TIED * hessian[h, h])
    for made in range(_ROUNDS + 1):
        for h in range(k):
            for g in range(h + 1):
                system[h, g] = hessian[h, g] + tie
            system[h, h] += precise[h]
            mean[h] = slope[h] + tie + pull[h]
        cholesky(system)
        _solve(system, mean)
        for g in range(k):
            column[:] = 0.0
            column[g] = 1.0
            _solve(system, column)
            for h in range(k):
                spread[h, g] = column[h]
        change = 0.0
        for h in range(k):
            others = 1.0 / spread[h, h] - precise[h]
            if others > 0.0 and made < _ROUNDS:
                place = (mean[h] / spread[h, h] - pull[h]) / others
                center, variance = _tilted(place, 1.0 / others, alpha[h])
                change = max(change, abs(center - mean[h]))
                precise[h] += _STEP * (1.0 / variance - others - precise[h])
                pull[h] += _STEP * (center / variance - place * others - pull[h])
        if change < _CLOSE:
            break


@vector_kernel
def _add_skew(cells, p, x, second, mix, square, along, slope):
    """Add to slope (k,) half the third derivatives of the log-likelihood at x times the second moments (k, k) about x.

    mix and square (width,) and along (k, width) are room.
    """
    k, width = cells.shape[1], cells.shape[2]
    for t in range((p + width - 1) // width):
        m = min(width, p - t * width)
        _gather_squares(cells, t, m, x, second, mix, square, along)
        for c in range(m):
            square[c] *= mix[c] * mix[c] * mix[c]
        for h in range(k):
            total = 0.0
            for c in range(m):
                total += cells[t, h, c] * square[c]
            slope[h] += total


@vector_kernel
def _gather_squares(cells, t, m, x, second, mix, square, along):
    """Of the m cells of tile t set mix to 1 / sum_h x_h theta_h, along to second @ theta, square to theta' along."""
    k = cells.shape[1]
    for c in range(m):
        mix[c] = 0.0
        square[c] = 0.0
    for h in range(k):
        for c in range(m):
            mix[c] += cells[t, h, c] * x[h]
            along[h, c] = 0.0
        for g in range(k):
            for c in range(m):
                along[h, c] += second[h, g] * cells[t, g, c]
        for c in range(m):
            square[c] += along[h, c] * cells[t, h, c]
    for c in range(m):
        mix[c] = 1.0 / mix[c]


@kernel
def _posterior(cells, p, hessian, x, alpha, slope, mean, spread, room, mix, square, along):
    """Set mean (k,) and spread (k, k) to those of the memberships of a row, whose likelihood has this Hessian at x.

    slope (k,) and the Hessian are then those of the Gaussian that stands for the likelihood. Where that fails the mean
    is x, and spread is zero. The other arguments are room.
    """
    k = x.shape[0]
    for h in range(k):
        gradient = 0.0
        for g in range(k):
            gradient += x[g] * (hessian[h, g] if g <= h else hessian[g, h])
        slope[h] = 2.0 * gradient
        room[h, k + 1] = alpha[h] / (x[h] * x[h])
        room[h, k + 2] = 2.0 * alpha[h] / x[h]
    _gaussian(hessian, slope, alpha, mean, spread, room)
    for h in range(k):
        for g in range(k):
            room[h, g] = spread[h, g] + (mean[h] - x[h]) * (mean[g] - x[g])
    _add_skew(cells, p, x, room[:, :k], mix, square, along, slope)
    _gaussian(hessian, slope, alpha, mean, spread, room)
    total = 0.0
    for h in range(k):
        mean[h] = max(mean[h], 1e-12)
        total += mean[h]
    if not abs(total - 1.0) < 0.01:  # neither finite nor near
        mean[:] = x
        spread[:] = 0.0
        return
    for h in range(k):
        mean[h] /= total


@kernel
def posterior_memberships(codes, starts, absent, table, alpha, steps, tolerance, x, loglik, done, gaps):
    """Find the posterior means of memberships of every row, from x, in place; rows that are not long keep the mode.

    Arguments as those of mixmem.kernels.simplex.memberships; loglik (n,) is the log-likelihood at the mean, done and
    gaps (n,) are the mode's.
    """
    n, q = codes.shape
    k = x.shape[1]
    width = min(q, _TILE)
    cells = np.empty(((q + width - 1) // width, k, width))
    mix, square, along = np.empty(width), np.empty(width), np.empty((k, width))
    mean, hessian, spread, room = np.empty(k), np.empty((k, k)), np.empty((k, k)), np.empty((k, k + 3))
    slope = np.empty(k)
    for i in range(n):
        p = _lay_out(codes, i, starts, absent, table, cells)
        done[i], gaps[i], loglik[i] = _climb(cells, p, alpha, steps, tolerance, x[i], hessian)
        if p >= LEAST_CELLS and k > 1:
            _posterior(cells, p, hessian, x[i], alpha, slope, mean, spread, room, mix, square, along)
            x[i] = mean
            loglik[i] = _derivatives(cells, p, mean, mix, square, along, hessian)


@vector_kernel
def _take_off_own(cells, p, x, influence, mix):
    """Take off a row's cells (tiles, k, width) what they owe to the row itself.

    A cell of probability mix = sum_h x_h theta_h has raised theta of its level by about influence (k,) (1 - mix).
    """
    k, width = cells.shape[1], cells.shape[2]
    for t in range((p + width - 1) // width):
        m = min(width, p - t * width)
        for c in range(m):
            mix[c] = 0.0
        for h in range(k):
            for c in range(m):
                mix[c] += cells[t, h, c] * x[h]
        for h in range(k):
            for c in range(m):
                cells[t, h, c] = max(cells[t, h, c] - influence[h] * (1.0 - mix[c]), 0.1 * cells[t, h, c])


@vector_kernel
def _expect(cells, p, mean, spread, mix, square, along):
    """Turn a row's cells (tiles, k, width) into the components expected of them, memberships of this mean and spread.

    E x_h theta_h / sum_g x_g theta_g to second order; of every cell they sum to one. along (k, width) is room.
    """
    k, width = cells.shape[1], cells.shape[2]
    for t in range((p + width - 1) // width):
        m = min(width, p - t * width)
        _gather_squares(cells, t, m, mean, spread, mix, square, along)
        for c in range(m):
            square[c] = 1.0 + square[c] * mix[c] * mix[c]
        for h in range(k):
            for c in range(m):
                share = mean[h] * square[c] - along[h, c] * mix[c]
                cells[t, h, c] *= mix[c] * max(share, 0.0)


@kernel
def integrated_pass(
    codes, starts, absent, table, alpha, steps, tolerance, influence, weights, first_block, x, means, partials, squares
):
    """Fill what a round of EM with memberships integrated out needs of row blocks first_block, first_block + 1, ….

    codes (n, q); a cell's likelihoods are table[starts[c] + code], table (rows, k); absent (q,) the codes of missing
    cells; alpha (k,). Of every row the mode x (n, k) is found by at most so many Newton steps from where it is, and
    means (n, k) receives the posterior mean, both with its own share in the table taken off: influence (k, k) times its
    mean as given, times one minus a cell's probability. partials[b] (rows, k) receives the cells expected in each
    component, squares[b] (k,) the sums of their squares, both times the rows' weights (n,).
    """
    n, q = codes.shape
    k = x.shape[1]
    width = min(q, _TILE)
    cells, along = np.empty(((q + width - 1) // width, k, width)), np.empty((k, width))
    mix, square, own, slope = np.empty(width), np.empty(width), np.empty(k), np.empty(k)
    hessian, spread, room = np.empty((k, k)), np.empty((k, k)), np.empty((k, k + 3))
    for b in range(partials.shape[0]):
        first = (first_block + b) * ROW_BLOCK
        part, purity = partials[b], squares[b]
        part[:] = 0.0
        purity[:] = 0.0
        for i in range(first, min(n, first + ROW_BLOCK)):
            p = _lay_out(codes, i, starts, absent, table, cells)
            for h in range(k):
                own[h] = 0.0
                for g in range(k):
                    own[h] += influence[h, g] * means[i, g]
            _take_off_own(cells, p, means[i], own, mix)
            _climb(cells, p, alpha, steps, tolerance, x[i], hessian)
            if p < LEAST_CELLS:
                means[i] = x[i]
                spread[:] = 0.0
            else:
                _posterior(cells, p, hessian, x[i], alpha, slope, means[i], spread, room, mix, square, along)
            _lay_out(codes, i, starts, absent, table, cells)
            _expect(cells, p, means[i], spread, mix, square, along)
            c = 0
            for j in range(q):
                if codes[i, j] != absent[j]:
                    row, t, u = starts[j] + codes[i, j], c // width, c % width
                    for h in range(k):
                        part[row, h] += weights[i] * cells[t, h, u]
                        purity[h] += weights[i] * cells[t, h, u] ** 2
                    c += 1
