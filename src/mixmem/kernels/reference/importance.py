"""Slow form of :mod:`mixmem.kernels.importance`: the same draws, from the same streams."""

from __future__ import annotations

import numpy as np

from mixmem.kernels.reference.special import log_gamma
from mixmem.kernels.reference.streams import log_gamma_draw, mixed, unit


def importance_sums(codes, starts, absent, table, marks, alpha, n_draws, out, variances):
    """Fill out with log p(row) by importance sampling around the row's mode, variances with that of the logarithm."""
    for i, row in enumerate(codes):
        seed = 0
        for mark in marks[starts + row]:
            seed = mixed(seed ^ int(mark))[1]
        cells = table[(starts + row)[row != absent]]
        if not len(cells):
            out[i], variances[i] = 0.0, 0.0
            continue
        g = mode_of(cells, alpha)
        order = np.argsort(g, kind="stable")  # drawn from the last: those that carry the row first
        cells, g, own = cells[:, order], g[order], alpha[order]
        shares = cells * g / (cells @ g)[:, None]
        factor = np.linalg.cholesky(np.diag(own) + shares.T @ shares)
        tails = tail_shares(shares, own, g, np.diag(factor) ** 2)
        logs = np.empty(n_draws)
        for d in range(n_draws):
            state = mixed(seed ^ ((d + 1) * 0xD1342543DE82EF95 % 2**64))[1]
            ratio, drawn = propose(state, own, np.log(g), factor, tails)
            logs[d] = ratio + np.log(cells @ drawn).sum()
        weights = np.exp(logs - logs.max())
        variances[i] = (weights**2).sum() / weights.sum() ** 2 - 1.0 / n_draws
        moved = log_gamma(alpha.sum()) - log_gamma(alpha.sum() + len(cells))
        out[i] = logs.max() + np.log(weights.mean()) + 0.5 * variances[i] + moved


def mode_of(cells, alpha):
    """Return g (k,) with g_h = alpha_h + sum_j r_jh, the shares of cells (p, k) that component h has."""
    g = alpha + len(cells) / len(alpha)
    for _ in range(500):
        new = alpha + (cells * g / (cells @ g)[:, None]).sum(axis=0)
        close = (np.abs(new - g) / (0.1 + new)).max() < 1e-4
        g = new
        if close:
            break
    return g


def tail_shares(shares, alpha, g, shapes):
    """Return how often each component is to be proposed off (k,): its mass there against that near the mode."""
    off = np.log(np.maximum(1.0 - shares, 1e-12)).sum(axis=0) + log_gamma(alpha) - alpha * np.log(g)
    on = -g + log_gamma(shapes) - shapes * np.log(shapes) + shapes
    return np.clip(1.0 / (1.0 + np.exp(np.minimum(on - off, 50.0))), 0.02, 0.98)


def propose(state, alpha, mode, factor, tails):
    """Return the logarithm of prior over proposal, and a draw of g (k,), from the last component to the first."""
    k = len(alpha)
    g, moved, ratio = np.empty(k), np.zeros(k), 0.0
    for h in range(k - 1, -1, -1):
        shape = factor[h, h] ** 2
        center = mode[h] - np.clip(factor[h + 1 :, h] @ moved[h + 1 :] / factor[h, h], -5.0, 5.0)
        state, bits = mixed(state)
        if unit(bits) < tails[h]:
            state, bits = mixed(state)
            away = np.log(1.0 - unit(bits)) / alpha[h]
        else:
            state, drawn = log_gamma_draw(state, shape)
            away = drawn - np.log(shape)
        body = shape * np.log(shape) - log_gamma(shape) + shape * (away - np.exp(away))
        density = np.log(1.0 - tails[h]) + body
        if away < 0.0:
            density = np.logaddexp(density, np.log(tails[h] * alpha[h]) + alpha[h] * away)
        step = center + away - mode[h]
        moved[h] = step if step > 0.0 else np.expm1(step)
        g[h] = np.exp(center + away)
        ratio += alpha[h] * (center + away) - g[h] - log_gamma(alpha[h]) - density
    return ratio, g
