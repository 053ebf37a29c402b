"""Slow forms of :mod:`mixmem.kernels.crowd`: one task after another."""

from __future__ import annotations

import numpy as np


def by_task(tasks, workers, labels, n_tasks, n_workers):
    """Return the labels in the order of their tasks, and how many repeat a (task, worker) pair."""
    order = np.argsort(tasks, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(tasks, minlength=n_tasks))])
    repeats, contradictions = 0, 0
    first: dict[tuple[int, int], int] = {}
    for c in order:
        pair = (tasks[c], workers[c])
        repeats += pair in first
        contradictions += first.setdefault(pair, labels[c]) != labels[c]
    return starts, workers[order], labels[order], repeats, int(contradictions)


def vote_shares(starts, labels, shares):
    """Fill shares (n, K) with each class's share among a task's labels; equal shares where a task has none."""
    n_classes = shares.shape[1]
    for i in range(len(shares)):
        own = labels[starts[i] : starts[i + 1]]
        shares[i] = np.bincount(own, minlength=n_classes) / len(own) if len(own) else 1.0 / n_classes


def expected_labels(starts, cells, bounds, posterior, first_block, last_block, partials):
    """Sum posterior[i, j] into partials[b, cell, j] over the labels of the tasks of blocks first to last."""
    for b in range(first_block, last_block):
        partials[b] = 0.0
        for i in range(bounds[b], bounds[b + 1]):
            np.add.at(partials[b], cells[starts[i] : starts[i + 1]], posterior[i])


def label_pass(
    starts, cells, known, width, scores, prior, bounds, first_block, last_block, posterior, partials, values, changes
):
    """Fill the class probabilities of the tasks, and the labels then expected of every worker in every class."""
    for b in range(first_block, last_block):
        values[b], changes[b] = 0.0, 0.0
        for i in range(bounds[b], bounds[b + 1]):
            joint = prior + scores[cells[starts[i] : starts[i + 1]]].sum(axis=0)
            largest, total = to_probabilities(joint, known[i], width)
            values[b] += largest + np.log(total)
            changes[b] += np.abs(joint - posterior[i]).sum()
            posterior[i] = joint
    expected_labels(starts, cells, bounds, posterior, first_block, last_block, partials)


def to_probabilities(own, known, width):
    """Turn log joint probabilities (C,) into probabilities in place, all in ``known``'s ``width`` columns unless -1."""
    inside = np.ones(len(own), dtype=bool) if known < 0 else np.arange(len(own)) // width == known
    largest = own[inside].max()
    own[:] = np.where(inside, np.exp(np.where(inside, own, largest) - largest), 0.0)
    total = own.sum()
    own /= total
    return largest, total


def vote_pass(
    starts, workers, labels, known, weights, mean, pull, bounds, first_block, last_block, shares, partials, changes
):
    """Fill the weighted votes of tasks, and sum how far every worker's labels are from them."""
    eye = np.eye(len(mean))
    for b in range(first_block, last_block):
        partials[b], changes[b] = 0.0, 0.0
        for i in range(bounds[b], bounds[b + 1]):
            given = slice(starts[i], starts[i + 1])
            votes = pull * mean + weights[workers[given]] @ eye[labels[given]]
            new = eye[known[i]] if known[i] >= 0 else votes / votes.sum() if votes.sum() > 0.0 else mean
            changes[b] += np.abs(new - shares[i]).sum()
            shares[i] = new
            np.add.at(partials[b], workers[given], ((eye[labels[given]] - new) ** 2).sum(axis=1))


def excess_agreement(starts, workers, labels, right, posterior, excess):
    """Fill what pairs of a task's labels are right together beyond chance, and the most they could be."""
    for i in range(len(posterior)):
        who, what = workers[starts[i] : starts[i + 1]], labels[starts[i] : starts[i + 1]]
        excess[i] = 0.0
        for j in np.flatnonzero(posterior[i] >= 1e-3):
            p = right[who, j]
            x, s = (what == j) - p, np.sqrt(p * (1.0 - p))
            pairs = ~np.eye(len(who), dtype=bool)
            excess[i] += posterior[i, j] * np.array([np.outer(x, x)[pairs].sum(), np.outer(s, s)[pairs].sum()])
