"""Slow forms of whole stages, written for reading; those of kernels are in ``mixmem.kernels.reference``."""

from __future__ import annotations

from itertools import product

import numpy as np


def onehot(codes, schema, variables):
    """(n, rows): the encoded cells b_ij of the given variables, side by side."""
    return np.hstack([np.eye(schema.sizes[j])[codes[:, j]] for j in variables])


def corrected_third(codes, schema, modes, alpha0):
    """M^{jst} of section 3.2 term by term, for three groups of variables."""
    return corrected_dense(*(onehot(codes, schema, mode) for mode in modes), alpha0)


def corrected_dense(a, b, c, alpha0):
    """The same from the rows' encoded cells of each group (n, d)."""
    n = len(a)
    ma, mb, mc = a.mean(0), b.mean(0), c.mean(0)
    out = np.einsum("ia,ib,ic->abc", a, b, c) / n
    out += 2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)) * np.einsum("a,b,c->abc", ma, mb, mc)
    crossed = np.einsum("a,ib,ic->abc", ma, b, c) / n
    crossed += np.einsum("ia,b,ic->abc", a, mb, c) / n
    crossed += np.einsum("ia,ib,c->abc", a, b, mc) / n
    return out - alpha0 / (alpha0 + 2) * crossed


def mttkrp_distinct(codes, schema, theta, group, alpha0):
    """Z and Q of the step for a group: one variable pair at a time, over the formed moment blocks M^{jst}."""
    k = theta.shape[1]
    others = [j for j in range(schema.n_variables) if j not in set(group.tolist())]

    def rows(j):
        return slice(schema.offsets[j], schema.offsets[j + 1])

    z = np.zeros((sum(int(schema.sizes[j]) for j in group), k))
    q = np.zeros((k, k))
    for s, t in product(others, others):
        if s == t:
            continue
        block = corrected_third(codes, schema, (group, [s], [t]), alpha0)
        z += np.einsum("abc,bh,ch->ah", block, theta[rows(s)], theta[rows(t)])
        q += (theta[rows(s)].T @ theta[rows(s)]) * (theta[rows(t)].T @ theta[rows(t)])
    return q, z
