"""Nonnegative factorization of many small third-order tensors, algorithm 1 of the paper, in one compiled call."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel, parallel_kernel, prange
from mixmem.kernels.nqp import exact_row, pqp_rows


@kernel
def _objective(norm, x, z, q):
    """||T - [[A, B, C]]||^2 from one mode's pieces: norm + 2 <x, z> + <x'x, q>, with z = -MTTKRP."""
    k = x.shape[1]
    total = norm
    for r in range(x.shape[0]):
        for h in range(k):
            total += 2.0 * x[r, h] * z[r, h]
    gram = x.T @ x
    for h in range(k):
        for g in range(k):
            total += gram[h, g] * q[h, g]
    return total


@kernel
def _rescale(x, into):
    """Move the column sums of x into another factor; the product is unchanged, the modes stay of one size."""
    for h in range(x.shape[1]):
        total = x[:, h].sum()
        if total > 0.0:
            x[:, h] /= total
            into[:, h] *= total


@kernel
def _update(q, z, x, inner, epsilon):
    """One mode's update: ``inner`` PQP steps of every row, or -inner cycles towards its minimiser."""
    if inner > 0:
        pqp_rows(q, z, x, inner, epsilon, 1e-15)
    else:
        for r in range(x.shape[0]):
            exact_row(q, z[r], x[r], -inner, 1e-13)


@kernel
def _change(x, before):
    """Largest change of an entry relative to the largest entry; both (d, k), with columns that sum to one."""
    largest = 0.0
    change = 0.0
    for r in range(x.shape[0]):
        for h in range(x.shape[1]):
            largest = max(largest, abs(x[r, h]))
            change = max(change, abs(x[r, h] - before[r, h]))
    return change / max(largest, 1e-300)


@kernel
def factorize_one(t, a, b, c, sweeps, inner, epsilon, tolerance, history):
    """Alternating updates of one tensor's factors, in place; returns (sweeps done, converged).

    t (d_a, d_b, d_c), a (d_a, k), b (d_b, k), c (d_c, k); history (3 * sweeps,) receives the squared residual after
    every mode's update. Modes 1 and 2 share the product T x_3 C, since C does not change between them.
    """
    d_a, d_b, d_c = t.shape
    k = a.shape[1]
    flat = t.reshape(d_a * d_b, d_c)
    norm = 0.0
    for r in range(flat.shape[0]):
        for w in range(d_c):
            norm += flat[r, w] * flat[r, w]
    pairs = np.empty((d_a * d_b, k))
    previous = np.inf
    for sweep in range(sweeps):
        before_a, before_b = a.copy(), b.copy()
        product = flat @ c
        gram_c = c.T @ c
        z = np.zeros((d_a, k))
        for u in range(d_a):
            for v in range(d_b):
                for h in range(k):
                    z[u, h] -= product[u * d_b + v, h] * b[v, h]
        q = gram_c * (b.T @ b)
        _update(q, z, a, inner, epsilon)
        history[3 * sweep] = _objective(norm, a, z, q)

        z = np.zeros((d_b, k))
        for u in range(d_a):
            for v in range(d_b):
                for h in range(k):
                    z[v, h] -= product[u * d_b + v, h] * a[u, h]
        q = gram_c * (a.T @ a)
        _update(q, z, b, inner, epsilon)
        history[3 * sweep + 1] = _objective(norm, b, z, q)

        _rescale(a, c)
        _rescale(b, c)
        for u in range(d_a):
            for v in range(d_b):
                for h in range(k):
                    pairs[u * d_b + v, h] = a[u, h] * b[v, h]
        z = -(flat.T @ pairs)
        q = (a.T @ a) * (b.T @ b)
        _update(q, z, c, inner, epsilon)
        objective = _objective(norm, c, z, q)
        history[3 * sweep + 2] = objective
        if objective > 1e-12 * norm:
            ended = previous - objective <= tolerance * objective
        else:  # an exact fit: the residual is rounding error, so the factors themselves must have come to rest
            ended = max(_change(a, before_a), _change(b, before_b)) <= tolerance
        if ended:
            return sweep + 1, True
        previous = objective
    return sweeps, False


@parallel_kernel
def factorize_many(tensors, which, a, b, c, sweeps, inner, epsilon, tolerance, history, done, converged):
    """Factorize ``tensors[which[r]]`` from the start a[r], b[r], c[r], for every r, in parallel and in place.

    tensors (blocks, d_a, d_b, d_c), zero-padded to one shape; which (runs,); a (runs, d_a, k) and so on, zero in padded
    rows, where a multiplicative update leaves them; history (runs, 3 * sweeps), done (runs,), converged (runs,).
    """
    for r in prange(which.shape[0]):
        count, ended = factorize_one(tensors[which[r]], a[r], b[r], c[r], sweeps, inner, epsilon, tolerance, history[r])
        done[r] = count
        converged[r] = ended
