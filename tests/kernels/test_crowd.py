"""The crowd's passes against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import crowd, reference
from tests.kernels.cases import agree, empty

SHAPES = [(1, 1, 1, 2), (9, 5, 30, 2), (9, 5, 40, 4), (6, 3, 0, 3)]  # tasks, workers, labels, classes


def labels_of(n, n_workers, m, k):
    """Tasks, workers and labels as they come; the last of several tasks has no label."""
    rng = np.random.default_rng(m)
    tasks = rng.integers(0, max(n - 1, 1), m)
    return tasks, rng.integers(0, n_workers, m), rng.integers(0, k, m)


def sorted_labels(n, n_workers, m, k):
    """Starts, workers, labels by task, and the task blocks' bounds, one of them empty."""
    starts, workers, labels, *_ = reference.by_task(*labels_of(n, n_workers, m, k), n, n_workers)
    return starts, workers, labels, np.array([0, n // 2, n // 2, n])


def probabilities(n, k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(k), n)


@pytest.mark.parametrize("shape", SHAPES)
def test_by_task(shape):
    """Many pairs repeat: there are few workers."""
    n, n_workers, _, _ = shape
    agree(crowd.by_task, reference.by_task, *labels_of(*shape), n, n_workers)


@pytest.mark.parametrize("shape", SHAPES)
def test_vote_shares(shape):
    starts, _, labels, _ = sorted_labels(*shape)
    agree(crowd.vote_shares, reference.vote_shares, starts, labels, empty(shape[0], shape[3]))


@pytest.mark.parametrize("shape", SHAPES)
def test_expected_labels(shape):
    n, n_workers, _, k = shape
    starts, workers, labels, bounds = sorted_labels(*shape)
    cells = (workers * k + labels).astype(np.uint32)
    for first, last in ((0, 3), (1, 2)):
        agree(
            crowd.expected_labels, reference.expected_labels, starts, cells, bounds, probabilities(n, k), first, last,
            empty(3, n_workers * k, k),
        )  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("some_known", [False, True])
def test_label_pass(shape, some_known):
    n, n_workers, _, k = shape
    starts, workers, labels, bounds = sorted_labels(*shape)
    cells = (workers * k + labels).astype(np.uint32)
    known = np.where(np.arange(n) % 3 == 0, np.arange(n) % k, -1) if some_known else np.full(n, -1)
    scores, prior = np.log(probabilities(n_workers * k, k, 1)), np.log(probabilities(1, k, 2)[0])
    for first, last in ((0, 3), (2, 3)):
        agree(
            crowd.label_pass, reference.label_pass, starts, cells, known, 1, scores, prior, bounds, first, last,
            probabilities(n, k), empty(3, n_workers * k, k), empty(3), empty(3),
        )  # fmt: skip


@pytest.mark.parametrize("k", [2, 3])
def test_values_of_many_tasks_do_not_overflow(k):
    """Tasks without labels and equal classes: each adds log k, more than a product of them can hold."""
    n = 800
    filled = agree(
        crowd.label_pass, reference.label_pass, np.zeros(n + 1, int), np.empty(0, np.uint32), np.full(n, -1), 1,
        np.zeros((k, k)), np.zeros(k), np.array([0, n]), 0, 1, probabilities(n, k), empty(1, k, k), empty(1), empty(1),
    )  # fmt: skip
    assert filled[-2][0] == pytest.approx(n * np.log(k))


@pytest.mark.parametrize("width", [1, 3])
def test_label_pass_with_subtypes(width):
    n, n_workers, _, k = shape = SHAPES[2]
    starts, workers, labels, bounds = sorted_labels(*shape)
    cells = (workers * k + labels).astype(np.uint32)
    known = np.where(np.arange(n) % 3 == 0, np.arange(n) % k, -1)
    columns = k * width
    filled = agree(
        crowd.label_pass, reference.label_pass, starts, cells, known, width,
        np.log(probabilities(n_workers * k, columns, 1)), np.log(probabilities(1, columns, 2)[0]), bounds, 0, 3,
        probabilities(n, columns), empty(3, n_workers * k, columns), empty(3), empty(3),
    )  # fmt: skip
    by_class = filled[-4].reshape(n, k, width).sum(axis=2)
    assert np.allclose(by_class[known >= 0], np.eye(k)[known[known >= 0]])


@pytest.mark.parametrize(("known", "width"), [(-1, 1), (-1, 2), (1, 1), (2, 2)])
def test_to_probabilities(known, width):
    own = np.random.default_rng(0).normal(0.0, 5.0, 6)
    agree(crowd.to_probabilities, reference.to_probabilities, own, known, width)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pull", [0.0, 1.5])
def test_vote_pass(shape, pull):
    n, n_workers, _, k = shape
    starts, workers, labels, bounds = sorted_labels(*shape)
    weights = np.random.default_rng(1).gamma(1.0, 1.0, n_workers)
    known = np.where(np.arange(n) % 4 == 1, np.arange(n) % k, -1)
    for first, last in ((0, 3), (2, 3)):
        agree(
            crowd.vote_pass, reference.vote_pass, starts, workers, labels, known, weights, probabilities(1, k)[0], pull,
            bounds, first, last, probabilities(n, k), empty(3, n_workers), empty(3),
        )  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_excess_agreement(shape):
    n, n_workers, _, k = shape
    starts, workers, labels, _ = sorted_labels(*shape)
    right = np.random.default_rng(2).uniform(0.1, 0.9, (n_workers, k))
    agree(
        crowd.excess_agreement, reference.excess_agreement, starts, workers, labels, right, probabilities(n, k),
        empty(n, 2),
    )  # fmt: skip
