"""Slow forms of :mod:`mixmem.kernels.crowd_tasks`: one task after another."""

from __future__ import annotations

import numpy as np

from mixmem.kernels.reference.crowd import to_probabilities


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
            largest, total = to_probabilities(joint, known[i], 1)
            values[b] += largest + np.log(total)
            if not frozen:
                changes[b] += np.abs(joint - posterior[i]).sum()
                posterior[i] = joint
            rises = posterior[i] * (np.eye(n_classes)[what][:, :, None] - p)
            np.add.at(partials[b][:, :n_classes], who, rises)
            np.add.at(partials[b][:, n_classes], who, posterior[i])
            tau[i] += (rises.sum(axis=0) - ridge * tau[i]) / (len(what) * posterior[i] + ridge)


def glad_pass(
    starts, workers, labels, known, ability, ease, bounds, first_block, last_block, posterior, partials, values, changes
):
    """Take one round of GLAD: a label is right with probability 1 / (1 + exp(-ability_w exp(ease_i)))."""
    n_classes = posterior.shape[1]
    for b in range(first_block, last_block):
        partials[b], values[b], changes[b] = 0.0, 0.0, 0.0
        for i in range(bounds[b], bounds[b + 1]):
            who, what = workers[starts[i] : starts[i + 1]], labels[starts[i] : starts[i + 1]]
            factor = np.exp(ease[i])
            x = ability[who] * factor
            right = 1.0 / (1.0 + np.exp(-x))
            wrong = (1.0 - right) / max(n_classes - 1, 1)
            chosen = what[:, None] == np.arange(n_classes)
            joint = np.log(np.where(chosen, right[:, None], wrong[:, None])).sum(axis=0) - np.log(n_classes)
            largest, total = to_probabilities(joint, known[i], 1)
            values[b] += largest + np.log(total)
            changes[b] += np.abs(joint - posterior[i]).sum()
            posterior[i] = joint
            rise, bend = joint[what] - right, right * (1.0 - right)
            np.add.at(partials[b], who, np.stack([rise * factor, bend * factor**2], axis=1))
            slope, curvature = (rise * x).sum() - ease[i], (bend * x**2).sum() + 1.0
            ease[i] += np.clip(slope / curvature, -1.0, 1.0)
