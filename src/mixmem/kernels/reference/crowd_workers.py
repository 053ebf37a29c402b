"""Slow forms of :mod:`mixmem.kernels.crowd_workers`: one worker after another."""

from __future__ import annotations

import numpy as np

from mixmem.kernels.crowd_workers import WORKER_BLOCK
from mixmem.kernels.reference.crowd import to_probabilities
from mixmem.kernels.reference.nqp import exact_row


def digamma(x):
    """Return the derivative of log Gamma at x > 0."""
    from scipy.special import psi

    return psi(x)


def community_pass(
    counts, alpha, log_gammas, digammas, log_weights, first_block, last_block, memberships, means, partials
):
    """Fill each worker's communities and confusion matrix, and the sums that move the communities' priors.

    In class j of community g, counts n_l have the Dirichlet-multinomial log-likelihood
    sum_l [log Gamma(alpha_l + n_l) - log Gamma(alpha_l)] - [log Gamma(sum (alpha + n)) - log Gamma(sum alpha)].
    """
    from scipy.special import gammaln

    def with_sums(a):
        """Return a (..., K, K) with the sums over labels below it: (..., K + 1, K)."""
        return np.concatenate([a, a.sum(axis=-2, keepdims=True)], axis=-2)

    for b in range(first_block, last_block):
        partials[b] = 0.0
        for w in range(b * WORKER_BLOCK, min(len(counts), (b + 1) * WORKER_BLOCK)):
            counted = with_sums(counts[w]) > 0.0
            posterior = with_sums(alpha + counts[w])
            rise = np.where(counted, gammaln(posterior) - log_gammas, 0.0)
            slopes = np.where(counted, digamma(posterior) - digammas, 0.0)
            joint = log_weights + rise[:, :-1].sum(axis=(1, 2)) - rise[:, -1].sum(axis=1)
            to_probabilities(joint, -1, 1)
            memberships[w] = joint
            means[w] = np.einsum("g,glj->lj", memberships[w], posterior[:, :-1] / posterior[:, -1:])
            partials[b] += memberships[w][:, None, None] * slopes


def worker_programs(q, z, x, cycles, tolerance):
    """Minimise 1/2 x'Qx + z'x over x >= 0 for every worker w and label l, in place."""
    for w in range(len(x)):
        for label in range(x.shape[1]):
            exact_row(q[w], z[w, label], x[w, label], cycles, tolerance)


def strength_pass(counts, right, wrong, strengths, habit, log_weights, first_block, last_block, memberships, means):
    """Fill how strongly each worker follows one accuracy, and each worker's confusion matrix."""
    from scipy.special import gammaln

    def evidence(n, a):
        """Return the Dirichlet-multinomial log-likelihood of counts by column."""
        rise = np.where(n > 1e-9, gammaln(a + n) - gammaln(np.where(a > 0.0, a, 1.0)), 0.0).sum(axis=0)
        total, strength = n.sum(axis=0), a.sum(axis=0)
        return (rise - np.where(total > 1e-9, gammaln(strength + total) - gammaln(strength), 0.0)).sum()

    eye = np.eye(counts.shape[1])
    for b in range(first_block, last_block):
        for w in range(b * WORKER_BLOCK, min(len(counts), (b + 1) * WORKER_BLOCK)):
            center = right[w] * eye + (1.0 - right[w]) * wrong * (1.0 - eye)
            given = counts[w].sum(axis=1)
            joint = log_weights + np.array(
                [*(evidence(counts[w], s * center) for s in strengths), evidence(given, habit)]
            )
            to_probabilities(joint, -1, 1)
            memberships[w] = joint
            tables = [(counts[w] + s * center) / (counts[w].sum(axis=0) + s) for s in strengths]
            tables.append(np.repeat((given + habit)[:, None] / (given + habit).sum(), len(eye), axis=1))
            means[w] = np.einsum("g,glj->lj", joint, tables)
