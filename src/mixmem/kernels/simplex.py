"""Memberships of rows given theta: a concave problem per row, by Newton steps on the simplex."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel, vector_kernel

_TILE = 128  # cells handled together, by vector instructions, while what is computed of them stays in the cache
_FOLD = 16  # tiles whose probabilities are multiplied before a logarithm is taken: theta is at least 1e-6


@kernel
def _lay_out(codes, i, starts, absent, table, cells):
    """Set cells[t, h, c] to the likelihood in component h of row i's present cell t * width + c; return their number.

    cells (tiles, k, width).
    """
    width, k = cells.shape[2], table.shape[1]
    p = 0
    for j in range(codes.shape[1]):
        if codes[i, j] != absent[j]:
            row = starts[j] + codes[i, j]
            tile, c = p // width, p % width
            for h in range(k):
                cells[tile, h, c] = table[row, h]
            p += 1
    return p


@vector_kernel
def _derivatives(cells, p, x, mix, product, share, hessian):
    """Return the log-likelihood at x of a row of p cells; fill minus its Hessian (k, k; lower half).

    That times x is the gradient: over the cells, the Hessian sums theta_h theta_g / mix^2 and the gradient
    theta_h / mix, with mix = sum_g x_g theta_g.
    """
    k, width = cells.shape[1], cells.shape[2]
    tiles = (p + width - 1) // width
    hessian[:, :] = 0.0
    product[:] = 1.0
    likelihood = 0.0
    for t in range(tiles):
        m = min(width, p - t * width)
        for c in range(m):
            mix[c] = 0.0
        for h in range(k):
            for c in range(m):
                mix[c] += cells[t, h, c] * x[h]
        for c in range(m):
            product[c] *= mix[c]
            mix[c] = 1.0 / mix[c]
        for h in range(k):
            for c in range(m):
                share[h, c] = cells[t, h, c] * mix[c]
            for g in range(h + 1):
                total = 0.0
                for c in range(m):
                    total += share[h, c] * share[g, c]
                hessian[h, g] += total
        if t % _FOLD == _FOLD - 1:
            likelihood += _take_logarithm(product)
    return likelihood + _take_logarithm(product)


@kernel
def _take_logarithm(product):
    """Return the logarithm of the product of all entries, each above 1e-100, which are set to one."""
    total, running = 0.0, 1.0
    for c in range(product.shape[0]):
        running *= product[c]
        product[c] = 1.0
        if running < 1e-200:  # one logarithm for many cells; taken before the product can underflow
            total += np.log(running)
            running = 1.0
    return total + np.log(running)


@kernel
def cholesky(system):
    """Factor a positive definite matrix (k, k) in place, lower half.

    LAPACK through numba takes longer to call, row after row, than a matrix of this size takes to factor.
    """
    k = system.shape[0]
    for h in range(k):
        for g in range(h + 1):
            value = system[h, g]
            for f in range(g):
                value -= system[h, f] * system[g, f]
            if g < h:
                system[h, g] = value / system[g, g]
            else:
                system[h, h] = np.sqrt(max(value, 1e-300))


@kernel
def _solve(lower, right):
    """Solve L L' x = right in place, for the factor that cholesky leaves."""
    k = right.shape[0]
    for h in range(k):
        value = right[h]
        for g in range(h):
            value -= lower[h, g] * right[g]
        right[h] = value / lower[h, h]
    for h in range(k - 1, -1, -1):
        value = right[h]
        for g in range(h + 1, k):
            value -= lower[g, h] * right[g]
        right[h] = value / lower[h, h]


@kernel
def _climb(cells, p, alpha, steps, tolerance, x, hessian):
    """Maximise log p(row | x) + sum_h alpha_h log x_h on the simplex from x, in place; return (steps, gap, loglik).

    In the variables x_h the Newton system is bordered by sum(d) = 0. At the maximum x_h (gradient_h + alpha_h / x_h) is
    x_h (p + alpha0) for every h: the gap is the largest relative miss of that. On return hessian is that of the
    likelihood at the final x.
    """
    k, width = cells.shape[1], cells.shape[2]
    mix, product, share = np.empty(width), np.empty(width), np.empty((k, width))
    change, border, start, slope = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    system = np.empty((k, k))
    weight = float(p)
    for h in range(k):
        weight += alpha[h]
    value = _derivatives(cells, p, x, mix, product, share, hessian)
    gap = np.inf
    for step in range(steps):
        gap = 0.0
        objective = value
        for h in range(k):
            gradient = 0.0
            for g in range(k):
                gradient += x[g] * (hessian[h, g] if g <= h else hessian[g, h])
            slope[h] = gradient + alpha[h] / x[h]
            gap = max(gap, x[h] * abs(slope[h] - weight) / weight)
            objective += alpha[h] * np.log(x[h])
            for g in range(h + 1):
                # scaled by x on both sides: the barrier's alpha / x^2 becomes alpha, and the system well conditioned
                system[h, g] = hessian[h, g] * x[h] * x[g]
            # the curvature along log x_h, which is alpha_h at the maximum: far from it a component without support
            # goes to its place in one step, where alpha_h would send it beyond zero; held near alpha_h for the others
            system[h, h] += min(max(x[h] * (weight - gradient), 0.1 * alpha[h]), 10.0 * alpha[h])
            change[h] = x[h] * slope[h]
            border[h] = x[h]
        if gap <= tolerance:
            return step, gap, value
        cholesky(system)
        _solve(system, change)
        _solve(system, border)
        along, across = 0.0, 0.0
        for h in range(k):
            along += x[h] * change[h]
            across += x[h] * border[h]
        decrement, most = 0.0, 0.0
        for h in range(k):
            change[h] -= along / across * border[h]  # relative change of x_h
            decrement += change[h] * x[h] * slope[h]
            most = max(most, -change[h])
            start[h] = x[h]
        size = 1.0 if most < 0.95 else 0.95 / most
        for _ in range(30):
            total = 0.0
            for h in range(k):
                x[h] = start[h] * (1.0 + size * change[h])
                total += x[h]
            for h in range(k):
                x[h] /= total
            value = _derivatives(cells, p, x, mix, product, share, hessian)
            reached = value
            for h in range(k):
                reached += alpha[h] * np.log(x[h])
            if reached >= objective + 1e-4 * size * decrement - 1e-10 * abs(objective):
                break
            size *= 0.5
    return steps, gap, value


@kernel
def memberships(codes, starts, absent, table, alpha, steps, tolerance, x, loglik, done, gaps):
    """Find the memberships of every row by Newton steps, from x, in place.

    codes (n, q), starts (q,) where a column's codes begin in the table of likelihoods (rows, k), each at least 1e-6,
    absent (q,) the code of a missing cell, alpha (k,), x (n, k) positive with rows that sum to one. Per row:
    loglik (n,) the log-likelihood at x; done (n,) Newton steps; gaps (n,) the optimality gap.
    """
    n, q = codes.shape
    k = x.shape[1]
    width = min(q, _TILE)
    cells = np.empty(((q + width - 1) // width, k, width))
    hessian = np.empty((k, k))
    for i in range(n):
        p = _lay_out(codes, i, starts, absent, table, cells)
        done[i], gaps[i], loglik[i] = _climb(cells, p, alpha, steps, tolerance, x[i], hessian)
