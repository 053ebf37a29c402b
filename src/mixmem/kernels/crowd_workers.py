"""Workers of a crowd: their communities, the strength of their habits, and the programs of a moment start."""

from __future__ import annotations

import math

import numpy as np

from mixmem.kernels._numba import kernel
from mixmem.kernels.crowd import to_probabilities
from mixmem.kernels.nqp import exact_row

WORKER_BLOCK = 256
"""Workers summed together before anything is added across blocks; part of the last bits, so it is fixed."""


@kernel
def digamma(x):
    """Return the derivative of log Gamma at x > 0: recurrence up to 6, then the asymptotic series (11 digits)."""
    below = 0.0
    while x < 6.0:
        below -= 1.0 / x
        x += 1.0
    inverse = 1.0 / (x * x)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    return below + math.log(x) - 0.5 / x - series


@kernel
def community_pass(
    counts, alpha, log_gammas, digammas, log_weights, first_block, last_block, memberships, means, partials
):
    """Fill each worker's communities and confusion matrix, and the sums that move the communities' priors.

    counts (W, K, K) are the labels expected, [w, l, j] for label l in class j; alpha (G, K, K) the communities'
    Dirichlet parameters, [g, l, j]; log_gammas and digammas (G, K + 1, K) those functions of alpha, and of its sums
    over labels in row l = K. memberships (W, G) receives p(g | counts) by the Dirichlet-multinomial likelihood,
    means (W, K, K) the posterior mean sum_g p(g) (alpha_glj + n_wlj) / sum_l(...). Block b of workers puts into
    partials[b, g, l, j] the sums of p(g) (psi(alpha + n) - psi(alpha)), in row l = K those of the sums over labels
    (numerators and denominators of Minka's fixed point). Blocks first_block to last_block are taken.
    """
    n_workers, n_classes = counts.shape[0], counts.shape[1]
    n_groups = alpha.shape[0]
    for b in range(first_block, last_block):
        part = partials[b]
        part[:] = 0.0
        own = np.empty(n_groups)
        slopes = np.empty((n_groups, n_classes + 1, n_classes))
        for w in range(b * WORKER_BLOCK, min(n_workers, (b + 1) * WORKER_BLOCK)):
            for g in range(n_groups):
                own[g] = log_weights[g] + _evidence(counts[w], alpha[g], log_gammas[g], digammas[g], slopes[g])
            to_probabilities(own, -1, 1)
            means[w] = 0.0
            for g in range(n_groups):
                memberships[w, g] = own[g]
                for j in range(n_classes):
                    total = 0.0
                    for label in range(n_classes):
                        total += alpha[g, label, j] + counts[w, label, j]
                    for label in range(n_classes):
                        means[w, label, j] += own[g] * (alpha[g, label, j] + counts[w, label, j]) / total
                for label in range(n_classes + 1):
                    for j in range(n_classes):
                        part[g, label, j] += own[g] * slopes[g, label, j]


@kernel
def _evidence(counts, alpha, log_gammas, digammas, slopes):
    """Return the Dirichlet-multinomial log-likelihood of counts (K, K) by column; fill its slopes (K + 1, K)."""
    value = 0.0
    n_classes = counts.shape[0]
    for j in range(n_classes):
        total, strength = 0.0, 0.0
        for label in range(n_classes):
            n, a = counts[label, j], alpha[label, j]
            total += n
            strength += a
            slopes[label, j] = 0.0
            if n > 0.0:
                value += math.lgamma(a + n) - log_gammas[label, j]
                slopes[label, j] = digamma(a + n) - digammas[label, j]
        slopes[n_classes, j] = 0.0
        if total > 0.0:
            value -= math.lgamma(strength + total) - log_gammas[n_classes, j]
            slopes[n_classes, j] = digamma(strength + total) - digammas[n_classes, j]
    return value


@kernel
def worker_programs(q, z, x, cycles, tolerance):
    """Minimise 1/2 x'Qx + z'x over x >= 0 for every worker w and label l, in place: q (W, K, K), z and x (W, K, K)."""
    for w in range(x.shape[0]):
        for label in range(x.shape[1]):
            exact_row(q[w], z[w, label], x[w, label], cycles, tolerance)


@kernel
def strength_pass(counts, right, wrong, strengths, habit, log_weights, first_block, last_block, memberships, means):
    """Fill how strongly each worker follows one accuracy, and each worker's confusion matrix.

    counts (W, K, K) are the labels expected, [w, l, j] for label l in class j. Kind g < G of worker has the Dirichlet
    prior strengths[g] m in every class, m = right[w] on the diagonal and (1 - right[w]) wrong[l, j] off it; kind G
    labels at random, by a habit with Dirichlet prior habit (K,). memberships (W, G + 1) receives p(kind | counts) under
    the log prior log_weights, means (W, K, K) the mean confusion matrix. Blocks of workers as in community_pass.
    """
    n_kinds = strengths.shape[0]
    own = np.empty(n_kinds + 1)
    for b in range(first_block, last_block):
        for w in range(b * WORKER_BLOCK, min(counts.shape[0], (b + 1) * WORKER_BLOCK)):
            for g in range(n_kinds):
                own[g] = log_weights[g] + _strength_evidence(counts[w], right[w], wrong, strengths[g])
            own[n_kinds] = log_weights[n_kinds] + _habit_evidence(counts[w], habit)
            to_probabilities(own, -1, 1)
            for g in range(n_kinds + 1):
                memberships[w, g] = own[g]
            _mean_table(counts[w], right[w], wrong, strengths, habit, own, means[w])


@kernel
def _strength_evidence(counts, right, wrong, strength):
    """Return the Dirichlet-multinomial log-likelihood of counts (K, K) around one accuracy."""
    value = 0.0
    for j in range(counts.shape[1]):
        total = 0.0
        for label in range(counts.shape[0]):
            n = counts[label, j]
            total += n
            if n > 1e-9:
                a = strength * (right if label == j else (1.0 - right) * wrong[label, j])
                value += math.lgamma(a + n) - math.lgamma(a)
        if total > 1e-9:
            value -= math.lgamma(strength + total) - math.lgamma(strength)
    return value


@kernel
def _habit_evidence(counts, habit):
    """Return the Dirichlet-multinomial log-likelihood of labels that do not depend on the class."""
    value, total, strength = 0.0, 0.0, 0.0
    for label in range(counts.shape[0]):
        n = 0.0
        for j in range(counts.shape[1]):
            n += counts[label, j]
        total += n
        strength += habit[label]
        if n > 1e-9:
            value += math.lgamma(habit[label] + n) - math.lgamma(habit[label])
    if total > 1e-9:
        value -= math.lgamma(strength + total) - math.lgamma(strength)
    return value


@kernel
def _mean_table(counts, right, wrong, strengths, habit, own, mean):
    """Fill mean (K, K) with the posterior mean confusion matrix, kinds weighted by own (G + 1,)."""
    n_classes, n_kinds = counts.shape[0], strengths.shape[0]
    given, imagined = 0.0, 0.0
    for label in range(n_classes):
        imagined += habit[label]
        for j in range(n_classes):
            given += counts[label, j]
    for label in range(n_classes):
        n = habit[label]
        for j in range(n_classes):
            n += counts[label, j]
        for j in range(n_classes):
            mean[label, j] = own[n_kinds] * n / (given + imagined)
    for j in range(n_classes):
        total = 0.0
        for label in range(n_classes):
            total += counts[label, j]
        for label in range(n_classes):
            m = right if label == j else (1.0 - right) * wrong[label, j]
            for g in range(n_kinds):
                mean[label, j] += own[g] * (counts[label, j] + strengths[g] * m) / (total + strengths[g])
