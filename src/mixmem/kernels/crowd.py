"""One round over crowd labels: what the labels say of each task's class, and of each worker."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import parallel_kernel, prange


@parallel_kernel
def label_pass(starts, workers, labels, known, scores, prior, bounds, posterior, partials, values):
    """Class probabilities of the tasks, and the labels expected of every worker in every class, in one pass.

    Labels lie sorted by task: task i owns starts[i] to starts[i + 1] of workers and labels (m,). scores (W, K, K) holds
    log p(label l | class j) of worker w at [w, l, j], prior (K,) the log class prior, known (n,) a task's class or -1.
    posterior (n, K) receives p(class j | labels of task i); block b of tasks, bounds[b] to bounds[b + 1], adds
    posterior[i, j] to partials[b, w, l, j] for each of its labels, and its log-likelihood to values[b].
    NumPy: ``s = prior + np.add.reduceat(scores[workers, labels], starts[:-1]); posterior = softmax(s, axis=1)``.
    """
    n_classes = prior.shape[0]
    for b in prange(partials.shape[0]):
        partials[b] = 0.0
        part, own = partials[b], np.empty(n_classes)
        value = 0.0
        for i in range(bounds[b], bounds[b + 1]):
            for j in range(n_classes):
                own[j] = prior[j]
            for c in range(starts[i], starts[i + 1]):
                w, label = workers[c], labels[c]
                for j in range(n_classes):
                    own[j] += scores[w, label, j]
            if known[i] >= 0:
                value += own[known[i]]
                for j in range(n_classes):
                    own[j] = 0.0
                own[known[i]] = 1.0
            else:
                largest = own[0]
                for j in range(1, n_classes):
                    largest = max(largest, own[j])
                total = 0.0
                for j in range(n_classes):
                    own[j] = np.exp(own[j] - largest)
                    total += own[j]
                value += largest + np.log(total)
                for j in range(n_classes):
                    own[j] /= total
            for j in range(n_classes):
                posterior[i, j] = own[j]
            for c in range(starts[i], starts[i + 1]):
                w, label = workers[c], labels[c]
                for j in range(n_classes):
                    part[w, label, j] += own[j]
        values[b] = value
