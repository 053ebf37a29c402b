"""Slow forms of :mod:`mixmem.kernels.crowd`: one task or one worker after another."""

from __future__ import annotations

import numpy as np

from mixmem.kernels.crowd import WORKER_BLOCK
from mixmem.kernels.reference.nqp import exact_row


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
    starts, cells, known, scores, prior, bounds, first_block, last_block, posterior, partials, values, changes
):
    """Fill the class probabilities of the tasks, and the labels then expected of every worker in every class."""
    for b in range(first_block, last_block):
        values[b], changes[b] = 0.0, 0.0
        for i in range(bounds[b], bounds[b + 1]):
            joint = prior + scores[cells[starts[i] : starts[i + 1]]].sum(axis=0)
            value, new = posterior_of(joint, known[i])
            values[b] += value
            changes[b] += np.abs(new - posterior[i]).sum()
            posterior[i] = new
    expected_labels(starts, cells, bounds, posterior, first_block, last_block, partials)


def posterior_of(joint, known):
    """Return the log of the sum, and the probabilities, of log joint probabilities (K,); all on ``known`` unless -1."""
    if known >= 0:
        return joint[known], np.eye(len(joint))[known]
    shares = np.exp(joint - joint.max())
    return joint.max() + np.log(shares.sum()), shares / shares.sum()


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
            memberships[w] = posterior_of(joint, -1)[1]
            means[w] = np.einsum("g,glj->lj", memberships[w], posterior[:, :-1] / posterior[:, -1:])
            partials[b] += memberships[w][:, None, None] * slopes


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

    With q_j the class probabilities of task i, label l of worker w rises in both by q_j ([l given] - p(l | j)); tau
    takes the step (rise - ridge tau) / (labels of the task * q_j + ridge).
    """
    n_classes = sigma.shape[1]
    for b in range(first_block, last_block):
        partials[b], values[b], changes[b] = 0.0, 0.0, 0.0
        for i in range(bounds[b], bounds[b + 1]):
            given = slice(starts[i], starts[i + 1])
            who, what = workers[given], labels[given]
            weights = np.exp(sigma[who] + tau[i])  # (labels of the task, l, j)
            p = weights / weights.sum(axis=1, keepdims=True)
            joint = np.log(p[np.arange(len(what)), what]).sum(axis=0) - np.log(n_classes)
            value, q = posterior_of(joint, known[i])
            values[b] += value
            if not frozen:
                changes[b] += np.abs(q - posterior[i]).sum()
                posterior[i] = q
            rises = posterior[i] * (np.eye(n_classes)[what][:, :, None] - p)
            np.add.at(partials[b][:, :n_classes], who, rises)
            np.add.at(partials[b][:, n_classes], who, posterior[i])
            tau[i] += (rises.sum(axis=0) - ridge * tau[i]) / (len(what) * posterior[i] + ridge)


def worker_programs(q, z, x, cycles, tolerance):
    """Minimise 1/2 x'Qx + z'x over x >= 0 for every worker w and label l, in place."""
    for w in range(len(x)):
        for label in range(x.shape[1]):
            exact_row(q[w], z[w, label], x[w, label], cycles, tolerance)
