"""Nonnegative factorization of a small third-order tensor, algorithm 1 of the paper, in one compiled call."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel, vector_kernel
from mixmem.kernels.nqp import descend_rows, pqp_rows

# Loops are written out where an array expression would do: each of those takes numba a second or more to compile.


@kernel
def _gram(x, out):
    """Set out = x'x; x (d, k), out (k, k)."""
    k = x.shape[1]
    out[:, :] = 0.0
    for r in range(x.shape[0]):
        for h in range(k):
            for g in range(k):
                out[h, g] += x[r, h] * x[r, g]


@kernel
def _program(x, y, gram, q):
    """Set q = (x'x) * (y'y); x (d, k), y (e, k), gram (k, k) scratch, q (k, k)."""
    _gram(x, q)
    _gram(y, gram)
    for h in range(q.shape[0]):
        for g in range(q.shape[0]):
            q[h, g] *= gram[h, g]


@kernel
def _objective(norm, x, z, q, gram):
    """Return ||T - [[A, B, C]]||^2 from one mode's pieces: norm + 2 <x, z> + <x'x, q>, with z = -MTTKRP."""
    k = x.shape[1]
    total = norm
    for r in range(x.shape[0]):
        for h in range(k):
            total += 2.0 * x[r, h] * z[r, h]
    _gram(x, gram)
    for h in range(k):
        for g in range(k):
            total += gram[h, g] * q[h, g]
    return total


@kernel
def _rescale(x, into):
    """Move the column sums of x into another factor; the product is unchanged, the modes stay of one size."""
    for h in range(x.shape[1]):
        total = 0.0
        for r in range(x.shape[0]):
            total += x[r, h]
        if total > 0.0:
            for r in range(x.shape[0]):
                x[r, h] /= total
            for r in range(into.shape[0]):
                into[r, h] *= total


@kernel
def _update(q, z, x, inner, epsilon):
    """Update one mode: ``inner`` PQP steps of every row, or -inner cycles towards its minimiser."""
    if inner > 0:
        pqp_rows(q, z, x, inner, epsilon, 1e-15)
    else:
        descend_rows(q, z, x, -inner)


@kernel
def _copy(x, into):
    """Set into = x, both (d, k)."""
    for r in range(x.shape[0]):
        for h in range(x.shape[1]):
            into[r, h] = x[r, h]


@kernel
def _change(x, before):
    """Return the largest change of an entry relative to the largest entry; both (d, k)."""
    largest = 0.0
    change = 0.0
    for r in range(x.shape[0]):
        for h in range(x.shape[1]):
            largest = max(largest, abs(x[r, h]))
            change = max(change, abs(x[r, h] - before[r, h]))
    return change / max(largest, 1e-300)


# Products are written out too: numba's come from SciPy, whose import would take longer than many a fit.


@vector_kernel
def _times(a, b, turned, out):
    """Set out = a @ b; a (r, w), b (w, k), turned (k, w) scratch, out (r, k)."""
    w, k = b.shape
    for i in range(w):
        for h in range(k):
            turned[h, i] = b[i, h]
    for r in range(a.shape[0]):
        for h in range(k):
            total = 0.0
            for i in range(w):
                total += a[r, i] * turned[h, i]
            out[r, h] = total


@kernel
def _transposed_times(a, b, turned, out):
    """Set out = a.T @ b; a (r, w), b (r, k), turned (k, w) scratch, out (w, k)."""
    w, k = out.shape
    turned[:, :] = 0.0
    for r in range(a.shape[0]):
        for h in range(k):
            value = b[r, h]
            for i in range(w):
                turned[h, i] += a[r, i] * value
    for i in range(w):
        for h in range(k):
            out[i, h] = turned[h, i]


@kernel
def factorize_one(t, a, b, c, sweeps, inner, epsilon, tolerance, history):
    """Update one tensor's factors in turn, in place; return (sweeps done, converged).

    t (d_a, d_b, d_c), a (d_a, k), b (d_b, k), c (d_c, k); history (3 * sweeps,) receives the squared residual after
    every mode's update. Modes 1 and 2 share the product T x_3 C, since C does not change between them. PQP steps
    (``inner`` > 0) are taken as algorithm 1 is printed; for cycles of descent the modes are kept of one size.
    """
    d_a, d_b, d_c = t.shape
    k = a.shape[1]
    flat = t.reshape(d_a * d_b, d_c)
    norm = 0.0
    for r in range(flat.shape[0]):
        for w in range(d_c):
            norm += flat[r, w] * flat[r, w]
    pairs, product, turned = np.empty((d_a * d_b, k)), np.empty((d_a * d_b, k)), np.empty((k, d_c))
    q, gram = np.empty((k, k)), np.empty((k, k))
    z_a, z_b, z_c = np.empty((d_a, k)), np.empty((d_b, k)), np.empty((d_c, k))
    before_a, before_b = np.empty((d_a, k)), np.empty((d_b, k))
    previous = np.inf
    for sweep in range(sweeps):
        _copy(a, before_a)
        _copy(b, before_b)
        _times(flat, c, turned, product)
        z_a[:, :] = 0.0
        for u in range(d_a):
            for v in range(d_b):
                for h in range(k):
                    z_a[u, h] -= product[u * d_b + v, h] * b[v, h]
        _program(c, b, gram, q)
        _update(q, z_a, a, inner, epsilon)
        history[3 * sweep] = _objective(norm, a, z_a, q, gram)

        z_b[:, :] = 0.0
        for u in range(d_a):
            for v in range(d_b):
                for h in range(k):
                    z_b[v, h] -= product[u * d_b + v, h] * a[u, h]
        _program(c, a, gram, q)
        _update(q, z_b, b, inner, epsilon)
        history[3 * sweep + 1] = _objective(norm, b, z_b, q, gram)

        if inner < 0:
            _rescale(a, c)
            _rescale(b, c)
        for u in range(d_a):
            for v in range(d_b):
                for h in range(k):
                    pairs[u * d_b + v, h] = -a[u, h] * b[v, h]
        _transposed_times(flat, pairs, turned, z_c)
        _program(a, b, gram, q)
        _update(q, z_c, c, inner, epsilon)
        objective = _objective(norm, c, z_c, q, gram)
        history[3 * sweep + 2] = objective
        if objective > 1e-12 * norm:
            ended = previous - objective <= tolerance * objective
        else:  # an exact fit: the residual is rounding error, so the factors themselves must have come to rest
            ended = max(_change(a, before_a), _change(b, before_b)) <= tolerance
        if ended:
            return sweep + 1, True
        previous = objective
    return sweeps, False
