"""Crowd labels: sorting them by task, and one round over them."""

from __future__ import annotations

import math

import numpy as np

from mixmem.kernels._numba import kernel


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
    starts, cells, known, width, scores, prior, bounds, first_block, last_block, posterior, partials, values, changes
):
    """Fill class probabilities of tasks and the labels then expected of every worker in every class, in one pass.

    Labels lie sorted by task: task i owns starts[i] to starts[i + 1] of cells (m,), unsigned, where label l of worker w
    is the cell w K + l. Classes come in C = K width columns, ``width`` subtypes of a class side by side. scores
    (W K, C) holds log p(label l | column j) of worker w at [w K + l, j], prior (C,) the log prior of the columns, known
    (n,) a task's class or -1. posterior (n, C) receives p(column j | labels of task i); block b of tasks, bounds[b] to
    bounds[b + 1], adds posterior[i, j] to partials[b, cell, j] for each of its labels, its log-likelihood to values[b],
    and the sum of the absolute changes of posterior to changes[b]; blocks first_block to last_block are taken.
    """
    for b in range(first_block, last_block):
        part, first, last = partials[b], bounds[b], bounds[b + 1]
        part[:] = 0.0
        if prior.shape[0] == 2 and width == 1:
            value, change = _two_classes(starts, cells, known, scores, prior, first, last, posterior, part)
        else:
            value, change = _many_classes(starts, cells, known, width, scores, prior, first, last, posterior, part)
        values[b], changes[b] = value, change


@kernel
def _many_classes(starts, cells, known, width, scores, prior, first, last, posterior, part):
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
        largest, total = to_probabilities(own, known[i], width)
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
def to_probabilities(own, known, width):
    """Turn log joint probabilities (C,) into probabilities in place, all in ``known``'s ``width`` columns unless -1.

    Returns (a, t) such that a + log t is the log of their sum, t from 1 to the number of columns.
    """
    first, last = 0, own.shape[0]
    if known >= 0:
        first, last = known * width, (known + 1) * width
        own[:first] = 0.0
        own[last:] = 0.0
    best = first
    for j in range(first + 1, last):
        if own[j] > own[best]:
            best = j
    largest, total = own[best], 1.0
    for j in range(first, last):
        if j != best:
            own[j] = math.exp(own[j] - largest)
            total += own[j]
    own[best] = 1.0
    inverse = 1.0 / total
    for j in range(first, last):
        own[j] *= inverse
    return largest, total


@kernel
def vote_pass(
    starts, workers, labels, known, weights, mean, pull, bounds, first_block, last_block, shares, partials, changes
):
    """Fill shares (n, K) with the weighted votes of tasks, and sum how far every worker's labels are from them.

    Worker w's labels count weights[w], beside ``pull`` votes split as mean (K,); labels lie as in :func:`label_pass`.
    A task without any weight gets the mean, one of known class only that. partials[b, w] receives the sum of
    |e_l - shares_i|^2 over the labels l of worker w in block b, changes[b] that of the shares' absolute changes.
    """
    n_classes = mean.shape[0]
    own = np.empty(n_classes)
    for b in range(first_block, last_block):
        part, change = partials[b], 0.0
        part[:] = 0.0
        for i in range(bounds[b], bounds[b + 1]):
            total = pull
            for j in range(n_classes):
                own[j] = pull * mean[j]
            for c in range(starts[i], starts[i + 1]):
                own[labels[c]] += weights[workers[c]]
                total += weights[workers[c]]
            square = 0.0
            for j in range(n_classes):
                own[j] = own[j] / total if total > 0.0 else mean[j]
                if known[i] >= 0:
                    own[j] = 1.0 if known[i] == j else 0.0
                change += abs(own[j] - shares[i, j])
                shares[i, j] = own[j]
                square += own[j] * own[j]
            for c in range(starts[i], starts[i + 1]):
                part[workers[c]] += 1.0 - 2.0 * own[labels[c]] + square
        changes[b] = change


@kernel
def excess_agreement(starts, workers, labels, right, posterior, excess):
    """Fill excess (n, 2): what pairs of a task's labels are right together beyond chance, and the most they could be.

    right (W, K) is the probability that a worker is right in a class. With x = [label is j] - right and s its standard
    deviation, task i's entries are sum_j posterior_ij of the sums over pairs of x x' and of s s'.
    """
    for i in range(posterior.shape[0]):
        found, most = 0.0, 0.0
        for j in range(posterior.shape[1]):
            if posterior[i, j] < 1e-3:  # hardly anything: not worth a pass over the labels
                continue
            total, square, spread, variance = 0.0, 0.0, 0.0, 0.0
            for c in range(starts[i], starts[i + 1]):
                p = right[workers[c], j]
                x = (1.0 if labels[c] == j else 0.0) - p
                total += x
                square += x * x
                spread += math.sqrt(p * (1.0 - p))
                variance += p * (1.0 - p)
            found += posterior[i, j] * (total * total - square)
            most += posterior[i, j] * (spread * spread - variance)
        excess[i, 0], excess[i, 1] = found, most
