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
def _row(codes, i, offsets, theta, alpha, steps, tolerance, x, gradient, hessian):
    """Maximise log p(row i | x) + sum_h alpha_h log x_h on the simplex from x, in place; returns (steps, gap, loglik).

    In the variables x_h the Newton system is bordered by sum(d) = 0. At the maximum x_h (gradient_h + alpha_h / x_h) is
    x_h (p + alpha0) for every h: the gap is the largest relative miss of that. On return gradient and hessian are those
    of the likelihood at the final x.
    """
    k = x.shape[0]
    weight = alpha.sum() + codes.shape[1]
    system = np.empty((k, k))
    right = np.empty((k, 2))
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
                system[g, h] = system[h, g]
            system[h, h] += alpha[h]
            right[h, 0] = x[h] * slope
            right[h, 1] = x[h]
        if gap <= tolerance:
            return step, gap, value
        solved = np.linalg.solve(system, right)
        along, border = 0.0, 0.0
        for h in range(k):
            along += x[h] * solved[h, 0]
            border += x[h] * solved[h, 1]
        multiplier = along / border
        decrement, most = 0.0, 0.0
        for h in range(k):
            right[h, 0] = solved[h, 0] - multiplier * solved[h, 1]  # relative change of x_h
            decrement += right[h, 0] * x[h] * (gradient[h] + alpha[h] / x[h])
            most = max(most, -right[h, 0])
        size = 1.0 if most < 0.95 else 0.95 / most
        start = x.copy()
        for _ in range(30):
            total = 0.0
            for h in range(k):
                x[h] = start[h] * (1.0 + size * right[h, 0])
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
                    system[g, h] = system[h, g]
                system[h, h] += alpha[h]
                shapes[i, h] = system[h, h]
            curvature[i] = np.linalg.slogdet(system)[1]
