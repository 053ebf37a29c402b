"""Likelihood of rows by importance sampling around each row's own mode."""

from __future__ import annotations

import math

import numpy as np

from mixmem.kernels._numba import kernel, vector_kernel
from mixmem.kernels.simplex import cholesky
from mixmem.kernels.streams import log_gamma_draw, mixed, unit

_STEPS, _CLOSE = 500, 1e-4  # rounds towards the mode, and the relative change at which they end
_LEAST_TAIL = 0.02  # the tail's least share, and the body's
_FAR = 5.0  # how far, in log g, other components may move a component's center


@vector_kernel
def _mixtures(cells, p, g, mix):
    """Set mix[c] = sum_h g_h cells[h, c] of the first p cells."""
    for c in range(p):
        mix[c] = 0.0
    for h in range(cells.shape[0]):
        for c in range(p):
            mix[c] += cells[h, c] * g[h]


@vector_kernel
def _ascend(cells, p, alpha, g, mix):
    """Bring g (k,) to the mode g_h = alpha_h + sum_j r_jh, r_jh = g_h theta_jh / sum; leave mix = 1 / sum there."""
    k = alpha.shape[0]
    for h in range(k):
        g[h] = alpha[h] + p / k
    for _ in range(_STEPS):
        _mixtures(cells, p, g, mix)
        for c in range(p):
            mix[c] = 1.0 / mix[c]
        change = 0.0
        for h in range(k):
            held = 0.0
            for c in range(p):
                held += cells[h, c] * mix[c]
            new = alpha[h] + g[h] * held
            change = max(change, abs(new - g[h]) / (0.1 + new))
            g[h] = new
        if change < _CLOSE:
            break
    _mixtures(cells, p, g, mix)
    for c in range(p):
        mix[c] = 1.0 / mix[c]


@kernel
def _sort_by_mode(cells, p, alpha, g, own, spare):
    """Put components by rising g: cells, g, and alpha into own; spare (k, q) is room for that.

    Those that carry the row are then drawn first, and those of which it shows little fit themselves to them.
    """
    order = np.argsort(g, kind="mergesort")
    spare[:, :p] = cells[:, :p]
    modes = g.copy()
    for h in range(len(g)):
        cells[h, :p] = spare[order[h], :p]
        g[h], own[h] = modes[order[h]], alpha[order[h]]


@vector_kernel
def _curve(cells, p, alpha, g, mix, factor):
    """Set factor (k, k) to the lower Cholesky factor of diag(alpha) + R'R."""
    k = alpha.shape[0]
    for h in range(k):
        for f in range(h + 1):
            total = 0.0
            for c in range(p):
                total += cells[h, c] * cells[f, c] * mix[c] * mix[c]
            factor[h, f] = total * g[h] * g[f]
        factor[h, h] += alpha[h]
    cholesky(factor)


@kernel
def _log_product(values, p):
    """Return the logarithm of the product of the first p values, with one logarithm for many of them."""
    total, running = 0.0, 1.0
    for c in range(p):
        running *= values[c]
        if running < 1e-200 or running > 1e200:
            total += np.log(running)
            running = 1.0
    return total + np.log(running)


@kernel
def _tails(cells, p, alpha, g, mix, factor, norms, tails):
    """Fill norms and tails (k,): of each component's body the logarithm of Gamma(shape), and the share of its tail.

    A component is on (near its mode) or off (none of the row's cells is its own). Along t_h, the others held, the mass
    of the one is exp(-g_h) Gamma(a) (e/a)^a, of the other Gamma(alpha_h) g_h^-alpha_h prod_j (1 - r_jh).
    """
    for h in range(alpha.shape[0]):
        shape = factor[h, h] ** 2
        norms[h] = math.lgamma(shape)
        off = math.lgamma(alpha[h]) - alpha[h] * np.log(g[h])
        for c in range(p):
            off += np.log(max(1.0 - cells[h, c] * g[h] * mix[c], 1e-12))
        on = -g[h] + norms[h] - shape * np.log(shape) + shape
        share = 1.0 / (1.0 + np.exp(min(on - off, 50.0)))
        tails[h] = min(max(share, _LEAST_TAIL), 1.0 - _LEAST_TAIL)


@kernel
def _propose(state, alpha, mode, factor, norms, tails, moved, g):
    """Draw log g_h from the last component to the first, each given those after it; fill g (k,) with the draw.

    Return the logarithm of the prior over the proposal. A component's body is the logarithm of a Gamma variable of the
    conditional mode and curvature; its tail to the left is exponential, of rate alpha_h. ``moved`` (k,) holds how far a
    component is from its mode: in log g above it, in g over the mode's below, so that one that is off has gone by one.
    """
    k = alpha.shape[0]
    ratio = 0.0
    for h in range(k - 1, -1, -1):
        pull = 0.0
        for f in range(h + 1, k):
            pull += factor[f, h] * moved[f]
        shape = factor[h, h] ** 2
        center = mode[h] - min(max(pull / factor[h, h], -_FAR), _FAR)
        state, bits = mixed(state)
        if unit(bits) < tails[h]:
            state, bits = mixed(state)
            away = np.log(1.0 - unit(bits)) / alpha[h]
        else:
            state, drawn = log_gamma_draw(state, shape)
            away = drawn - np.log(shape)
        proposal = np.log(1.0 - tails[h]) + shape * np.log(shape) - norms[h] + shape * away - shape * np.exp(away)
        if away < 0.0:
            tail = np.log(tails[h]) + np.log(alpha[h]) + alpha[h] * away
            top = max(proposal, tail)
            proposal = top + np.log(np.exp(proposal - top) + np.exp(tail - top))
        place = center + away
        g[h] = np.exp(place)
        step = place - mode[h]
        moved[h] = step if step > 0.0 else np.exp(step) - 1.0
        ratio += alpha[h] * place - g[h] - math.lgamma(alpha[h]) - proposal
    return ratio


@kernel
def importance_sums(codes, starts, absent, table, marks, alpha, n_draws, out, variances):
    """Fill out (n,) with log p(row) by importance sampling, and variances (n,) with the variance of that logarithm.

    codes (n, p), starts (p,) where a column's codes begin in the table of likelihoods (rows, k), absent (p,) the code
    of a missing cell, which is left out, marks (rows,) what tells the table's rows apart, alpha (k,). Memberships are
    x = g / sum(g) with g_h ~ Gamma(alpha_h, 1), and p(row) = E prod_j sum_h g_h theta_jh times Gamma(alpha0) /
    Gamma(alpha0 + cells). Draws of log g are proposed around the mode of what is integrated. The logarithm of a mean is
    too low by half its variance, which is added. A row's stream is seeded by what it holds, and that of a draw by its
    number: equal rows get equal values in any company, and close ones at another alpha.
    """
    n, q = codes.shape
    k = alpha.shape[0]
    cells, mix, logs = np.empty((k, q)), np.empty(q), np.empty(n_draws)
    g, mode, moved, norms, tails = np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    factor, own, spare = np.empty((k, k)), np.empty(k), np.empty((k, q))
    alpha0 = alpha.sum()
    for i in range(n):
        seed = np.uint64(0)
        p = 0
        for j in range(q):
            row = starts[j] + codes[i, j]
            _, seed = mixed(seed ^ marks[row])
            if codes[i, j] != absent[j]:
                for h in range(k):
                    cells[h, p] = table[row, h]
                p += 1
        if p == 0:
            out[i], variances[i] = 0.0, 0.0
            continue
        _ascend(cells, p, alpha, g, mix)
        _sort_by_mode(cells, p, alpha, g, own, spare)
        _curve(cells, p, own, g, mix, factor)
        _tails(cells, p, own, g, mix, factor, norms, tails)
        for h in range(k):
            mode[h] = np.log(g[h])
        top = -np.inf
        for d in range(n_draws):
            _, state = mixed(seed ^ (np.uint64(d + 1) * np.uint64(0xD1342543DE82EF95)))
            logs[d] = _propose(state, own, mode, factor, norms, tails, moved, g)
            _mixtures(cells, p, g, mix)
            logs[d] += _log_product(mix, p)
            top = max(top, logs[d])
        total, square = 0.0, 0.0
        for d in range(n_draws):
            share = np.exp(logs[d] - top)
            total += share
            square += share * share
        variances[i] = square / (total * total) - 1.0 / n_draws
        out[i] = top + np.log(total / n_draws) + 0.5 * variances[i] + math.lgamma(alpha0) - math.lgamma(alpha0 + p)
