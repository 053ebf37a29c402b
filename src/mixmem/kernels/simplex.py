"""Memberships of rows given theta: a concave problem a row, by Newton steps on the simplex."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import ROW_BLOCK, kernel, parallel_kernel, prange


@kernel
def _derivatives(codes, i, offsets, theta, x, gradient, hessian):
    """Log-likelihood of row i at x; fills its gradient (k,) and minus its Hessian (k, k; lower half)."""
    k = x.shape[0]
    gradient[:] = 0.0
    hessian[:, :] = 0.0
    likelihood = 0.0
    product = 1.0
    share = np.empty(k)
    for j in range(codes.shape[1]):
        row = offsets[j] + codes[i, j]
        mix = 0.0
        for h in range(k):
            mix += theta[row, h] * x[h]
        product *= mix
        if product < 1e-200:  # one logarithm for many cells; taken before the product can underflow
            likelihood += np.log(product)
            product = 1.0
        inverse = 1.0 / mix
        for h in range(k):
            share[h] = theta[row, h] * inverse
            gradient[h] += share[h]
        for h in range(k):
            for g in range(h + 1):
                hessian[h, g] += share[h] * share[g]
    return likelihood + np.log(product)


@kernel
def _cholesky(system):
    """Factor a positive definite matrix (k, k) in place, lower half; returns the logarithm of its determinant.

    LAPACK through numba takes longer to call, row after row, than a matrix of this size takes to factor.
    """
    k = system.shape[0]
    logdet = 0.0
    for h in range(k):
        for g in range(h + 1):
            value = system[h, g]
            for f in range(g):
                value -= system[h, f] * system[g, f]
            if g < h:
                system[h, g] = value / system[g, g]
            else:
                system[h, h] = np.sqrt(max(value, 1e-300))
                logdet += 2.0 * np.log(system[h, h])
    return logdet


@kernel
def _solve(lower, right):
    """Solve L L' x = right in place, for the factor that _cholesky leaves."""
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
def _row(codes, i, offsets, theta, alpha, steps, tolerance, x, gradient, hessian):
    """Maximise log p(row i | x) + sum_h alpha_h log x_h on the simplex from x, in place; returns (steps, gap, loglik).

    In the variables x_h the Newton system is bordered by sum(d) = 0. At the maximum x_h (gradient_h + alpha_h / x_h) is
    x_h (p + alpha0) for every h: the gap is the largest relative miss of that. On return gradient and hessian are those
    of the likelihood at the final x.
    """
    k = x.shape[0]
    weight = alpha.sum() + codes.shape[1]
    system = np.empty((k, k))
    change, border = np.empty(k), np.empty(k)
    start = np.empty(k)
    value = _derivatives(codes, i, offsets, theta, x, gradient, hessian)
    gap = np.inf
    for step in range(steps):
        gap = 0.0
        objective = value
        for h in range(k):
            slope = gradient[h] + alpha[h] / x[h]
            gap = max(gap, x[h] * abs(slope - weight) / weight)
            objective += alpha[h] * np.log(x[h])
            for g in range(h + 1):
                # scaled by x on both sides: the barrier's alpha / x^2 becomes alpha, and the system well conditioned
                system[h, g] = hessian[h, g] * x[h] * x[g]
            system[h, h] += alpha[h]
            change[h] = x[h] * slope
            border[h] = x[h]
        if gap <= tolerance:
            return step, gap, value
        _cholesky(system)
        _solve(system, change)
        _solve(system, border)
        along, across = 0.0, 0.0
        for h in range(k):
            along += x[h] * change[h]
            across += x[h] * border[h]
        decrement, most = 0.0, 0.0
        for h in range(k):
            change[h] -= along / across * border[h]  # relative change of x_h
            decrement += change[h] * x[h] * (gradient[h] + alpha[h] / x[h])
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
            value = _derivatives(codes, i, offsets, theta, x, gradient, hessian)
            reached = value
            for h in range(k):
                reached += alpha[h] * np.log(x[h])
            if reached >= objective + 1e-4 * size * decrement - 1e-10 * abs(objective):
                break
            size *= 0.5
    return steps, gap, value


@parallel_kernel
def memberships(codes, offsets, theta, alpha, steps, tolerance, x, loglik, curvature, shapes, done, gaps):
    """Memberships of every row by Newton steps, from x, in place.

    codes (n, p), theta (rows, k) positive, alpha (k,), x (n, k) positive with rows that sum to one. Per row:
    loglik (n,) the log-likelihood at x; curvature (n,) the log-determinant of diag(alpha) + (x x') * K with K minus
    the Hessian of the log-likelihood; shapes (n, k) that matrix's diagonal (mixmem.memberships says what they are
    for); done (n,) Newton steps; gaps (n,) the optimality gap.
    """
    n = codes.shape[0]
    k = x.shape[1]
    for block in prange((n + ROW_BLOCK - 1) // ROW_BLOCK):
        gradient = np.empty(k)
        hessian = np.empty((k, k))
        system = np.empty((k, k))
        for i in range(block * ROW_BLOCK, min(n, block * ROW_BLOCK + ROW_BLOCK)):
            count, gap, value = _row(codes, i, offsets, theta, alpha, steps, tolerance, x[i], gradient, hessian)
            done[i] = count
            gaps[i] = gap
            loglik[i] = value
            for h in range(k):
                for g in range(h + 1):
                    system[h, g] = hessian[h, g] * x[i, h] * x[i, g]
                system[h, h] += alpha[h]
                shapes[i, h] = system[h, h]
            curvature[i] = _cholesky(system)
