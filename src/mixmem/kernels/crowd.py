"""Crowd labels: sorting them by task, one round over them, and what the workers say of their communities."""

from __future__ import annotations

import math

import numpy as np

from mixmem.kernels._numba import kernel
from mixmem.kernels.nqp import exact_row

WORKER_BLOCK = 256
"""Workers summed together before anything is added across blocks; part of the last bits, so it is fixed."""


@kernel
def by_task(tasks, workers, labels, n_tasks, n_workers):
    """Return the labels in the order of their tasks, then in the order they came; and how many repeat a pair.

    tasks, workers, labels (m,) -> starts (n + 1,), workers (m,), labels (m,), repeats, contradictions: labels beyond
    the first of a (task, worker) pair, and those of them that differ from the first.
    """
    starts = np.zeros(n_tasks + 1, dtype=np.int64)
    for task in tasks:
        starts[task + 1] += 1
    for i in range(n_tasks):
        starts[i + 1] += starts[i]
    place = starts[:-1].copy()
    sorted_workers, sorted_labels = np.empty_like(workers), np.empty_like(labels)
    for c in range(tasks.shape[0]):
        at = place[tasks[c]]
        sorted_workers[at], sorted_labels[at] = workers[c], labels[c]
        place[tasks[c]] += 1
    last_task, first_label = np.full(n_workers, -1, dtype=np.int64), np.zeros(n_workers, dtype=np.int64)
    repeats, contradictions = 0, 0
    for i in range(n_tasks):
        for c in range(starts[i], starts[i + 1]):
            w = sorted_workers[c]
            if last_task[w] != i:
                last_task[w], first_label[w] = i, sorted_labels[c]
            else:
                repeats += 1
                contradictions += int(first_label[w] != sorted_labels[c])
    return starts, sorted_workers, sorted_labels, repeats, contradictions


@kernel
def vote_shares(starts, labels, shares):
    """Fill shares (n, K) with each class's share among a task's labels; equal shares where a task has none.

    starts (n + 1,), labels (m,) as by_task leaves them.
    """
    n_classes = shares.shape[1]
    for i in range(shares.shape[0]):
        votes = starts[i + 1] - starts[i]
        for j in range(n_classes):
            shares[i, j] = 0.0 if votes else 1.0 / n_classes
        for c in range(starts[i], starts[i + 1]):
            shares[i, labels[c]] += 1.0 / votes


@kernel
def expected_labels(starts, cells, bounds, posterior, first_block, last_block, partials):
    """Sum posterior[i, j] into partials[b, cell, j] by task blocks: the labels expected of workers in every class.

    Cells and blocks as in :func:`label_pass`, posterior (n, K), partials (B, W K, K), of which blocks first_block to
    last_block are filled.
    """
    for b in range(first_block, last_block):
        part = partials[b]
        part[:] = 0.0
        for i in range(bounds[b], bounds[b + 1]):
            for c in range(starts[i], starts[i + 1]):
                for j in range(posterior.shape[1]):
                    part[cells[c], j] += posterior[i, j]


@kernel
def label_pass(
    starts, cells, known, scores, prior, bounds, first_block, last_block, posterior, partials, values, changes
):
    """Fill class probabilities of tasks and the labels then expected of every worker in every class, in one pass.

    Labels lie sorted by task: task i owns starts[i] to starts[i + 1] of cells (m,), unsigned, where label l of worker w
    is the cell w K + l. scores (W K, K) holds log p(label l | class j) of worker w at [w K + l, j], prior (K,) the log
    class prior, known (n,) a task's class or -1. posterior (n, K) receives p(class j | labels of task i); block b of
    tasks, bounds[b] to bounds[b + 1], adds posterior[i, j] to partials[b, cell, j] for each of its labels, its
    log-likelihood to values[b], and the sum of the absolute changes of posterior to changes[b]; blocks first_block to
    last_block are taken.
    """
    for b in range(first_block, last_block):
        part, first, last = partials[b], bounds[b], bounds[b + 1]
        part[:] = 0.0
        if prior.shape[0] == 2:
            value, change = _two_classes(starts, cells, known, scores, prior, first, last, posterior, part)
        else:
            value, change = _many_classes(starts, cells, known, scores, prior, first, last, posterior, part)
        values[b], changes[b] = value, change


@kernel
def _many_classes(starts, cells, known, scores, prior, first, last, posterior, part):
    """Take the pass over tasks first to last; return log-likelihood and change."""
    n_classes = prior.shape[0]
    own = np.empty(n_classes)
    value, change, product = 0.0, 0.0, 1.0
    for i in range(first, last):
        for j in range(n_classes):
            own[j] = prior[j]
        for c in range(starts[i], starts[i + 1]):
            cell = cells[c]
            for j in range(n_classes):
                own[j] += scores[cell, j]
        largest, total = _to_probabilities(own, known[i])
        value += largest
        product *= total
        if product > 1e200:  # one logarithm for many tasks; taken before the product can overflow
            value += math.log(product)
            product = 1.0
        for j in range(n_classes):
            change += abs(own[j] - posterior[i, j])
            posterior[i, j] = own[j]
        for c in range(starts[i], starts[i + 1]):
            cell = cells[c]
            for j in range(n_classes):
                part[cell, j] += own[j]
    return value + math.log(product), change


@kernel
def _two_classes(starts, cells, known, scores, prior, first, last, posterior, part):
    """Do the same for two classes, the most common case, without inner loops: twice as fast."""
    value, change, product = 0.0, 0.0, 1.0
    for i in range(first, last):
        a, b = prior[0], prior[1]
        for c in range(starts[i], starts[i + 1]):
            cell = cells[c]
            a += scores[cell, 0]
            b += scores[cell, 1]
        if known[i] >= 0:
            value += b if known[i] else a
            p, q = (0.0, 1.0) if known[i] else (1.0, 0.0)
        else:
            small = math.exp(-abs(a - b))
            value += max(a, b)
            product *= 1.0 + small
            if product > 1e200:
                value += math.log(product)
                product = 1.0
            large, small = 1.0 / (1.0 + small), small / (1.0 + small)
            p, q = (large, small) if a >= b else (small, large)
        change += 2.0 * abs(p - posterior[i, 0])
        posterior[i, 0], posterior[i, 1] = p, q
        for c in range(starts[i], starts[i + 1]):
            cell = cells[c]
            part[cell, 0] += p
            part[cell, 1] += q
    return value + math.log(product), change


@kernel
def _to_probabilities(own, known):
    """Turn log joint probabilities (K,) into probabilities in place, all on ``known`` unless -1.

    Returns (a, t) such that a + log t is the log of their sum, t from 1 to K.
    """
    if known >= 0:
        value = own[known]
        own[:] = 0.0
        own[known] = 1.0
        return value, 1.0
    best = 0
    for j in range(1, own.shape[0]):
        if own[j] > own[best]:
            best = j
    largest, total = own[best], 1.0
    for j in range(own.shape[0]):
        if j != best:
            own[j] = math.exp(own[j] - largest)
            total += own[j]
    own[best] = 1.0
    inverse = 1.0 / total
    for j in range(own.shape[0]):
        own[j] *= inverse
    return largest, total


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
            _to_probabilities(own, -1)
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
def minimax_pass(
    starts,
    workers,
    labels,
    known,
    sigma,
    tau,
    ridge,
    frozen,
    bounds,
    first_block,
    last_block,
    posterior,
    partials,
    values,
    changes,
):
    """Take one round of minimax conditional entropy: p(label l | class j) = softmax over l of sigma_wlj + tau_ilj.

    Labels, known, posterior, bounds, values and changes as in :func:`label_pass`; sigma (W, K, K), tau (n, K, K). The
    class probabilities are renewed unless ``frozen``; then tau takes one bounded ascent step on sum q_ij log p -
    ridge/2 |tau|^2, and partials[b, w, l, j] receives the slope in sigma, row l = K the labels expected in class j.
    """
    n_classes = sigma.shape[1]
    for b in range(first_block, last_block):
        part, own = partials[b], np.empty(n_classes)
        slope, rows = np.empty((n_classes, n_classes)), np.empty((n_classes, n_classes))
        part[:] = 0.0
        value, change = 0.0, 0.0
        for i in range(bounds[b], bounds[b + 1]):
            own[:] = -math.log(n_classes)
            for c in range(starts[i], starts[i + 1]):
                _label_probabilities(sigma[workers[c]], tau[i], rows)
                for j in range(n_classes):
                    own[j] += math.log(rows[labels[c], j])
            largest, total = _to_probabilities(own, known[i])
            value += largest + math.log(total)
            for j in range(n_classes):
                if frozen:
                    own[j] = posterior[i, j]
                change += abs(own[j] - posterior[i, j])
                posterior[i, j] = own[j]
            slope[:] = 0.0
            for c in range(starts[i], starts[i + 1]):
                w = workers[c]
                _label_probabilities(sigma[w], tau[i], rows)
                for j in range(n_classes):
                    for label in range(n_classes):
                        rise = own[j] * ((1.0 if label == labels[c] else 0.0) - rows[label, j])
                        slope[label, j] += rise
                        part[w, label, j] += rise
                    part[w, n_classes, j] += own[j]
            votes = starts[i + 1] - starts[i]
            for j in range(n_classes):
                for label in range(n_classes):
                    step = slope[label, j] - ridge * tau[i, label, j]
                    tau[i, label, j] += step / (votes * own[j] + ridge)
        values[b], changes[b] = value, change


@kernel
def _label_probabilities(sigma, tau, rows):
    """Fill rows with the softmax over l of sigma_lj + tau_lj, into rows (K, K)."""
    for j in range(sigma.shape[1]):
        largest = -np.inf
        for label in range(sigma.shape[0]):
            rows[label, j] = sigma[label, j] + tau[label, j]
            largest = max(largest, rows[label, j])
        total = 0.0
        for label in range(sigma.shape[0]):
            rows[label, j] = math.exp(rows[label, j] - largest)
            total += rows[label, j]
        for label in range(sigma.shape[0]):
            rows[label, j] /= total


@kernel
def worker_programs(q, z, x, cycles, tolerance):
    """Minimise 1/2 x'Qx + z'x over x >= 0 for every worker w and label l, in place: q (W, K, K), z and x (W, K, K)."""
    for w in range(x.shape[0]):
        for label in range(x.shape[1]):
            exact_row(q[w], z[w, label], x[w, label], cycles, tolerance)
