"""Rounds over crowd labels in which tasks have parameters of their own: they mislead, or are hard."""

from __future__ import annotations

import math

import numpy as np

from mixmem.kernels._numba import kernel
from mixmem.kernels.crowd import to_probabilities


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
            largest, total = to_probabilities(own, known[i], 1)
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
def glad_pass(
    starts, workers, labels, known, ability, ease, bounds, first_block, last_block, posterior, partials, values, changes
):
    """Take one round of GLAD: a label is right with probability 1 / (1 + exp(-ability_w exp(ease_i))).

    Labels, known, posterior (n, K), bounds, values and changes as in label_pass; wrong labels are equally likely, and
    so are the classes. After the class probabilities, ease (n,) takes one Newton step on the expected log-likelihood
    with a standard normal prior, at most 1 long; partials[b, w] receives slope and curvature in ability.
    """
    n_classes = posterior.shape[1]
    own = np.empty(n_classes)
    off = math.log(max(n_classes - 1, 1))
    for b in range(first_block, last_block):
        part, value, change = partials[b], 0.0, 0.0
        part[:] = 0.0
        for i in range(bounds[b], bounds[b + 1]):
            factor = math.exp(ease[i])
            own[:] = -math.log(n_classes)
            for c in range(starts[i], starts[i + 1]):
                x = ability[workers[c]] * factor
                value += -_softplus(x) - off  # log p(wrong label)
                own[labels[c]] += x + off
            largest, total = to_probabilities(own, known[i], 1)
            value += largest + math.log(total)
            for j in range(n_classes):
                change += abs(own[j] - posterior[i, j])
                posterior[i, j] = own[j]
            slope, curvature = -ease[i], 1.0
            for c in range(starts[i], starts[i + 1]):
                w = workers[c]
                x = ability[w] * factor
                p = math.exp(-_softplus(-x))
                rise, bend = own[labels[c]] - p, p * (1.0 - p)
                part[w, 0] += rise * factor
                part[w, 1] += bend * factor * factor
                slope += rise * x
                curvature += bend * x * x
            ease[i] += min(1.0, max(-1.0, slope / curvature))
        values[b], changes[b] = value, change


@kernel
def _softplus(x):
    """Return log(1 + exp(x)) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))
