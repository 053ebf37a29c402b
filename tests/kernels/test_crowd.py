"""The crowd's passes against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln, psi

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
            crowd.label_pass, reference.label_pass, starts, cells, known, scores, prior, bounds, first, last,
            probabilities(n, k), empty(3, n_workers * k, k), empty(3), empty(3),
        )  # fmt: skip


@pytest.mark.parametrize("k", [2, 3])
def test_values_of_many_tasks_do_not_overflow(k):
    """Tasks without labels and equal classes: each adds log k, more than a product of them can hold."""
    n = 800
    filled = agree(
        crowd.label_pass, reference.label_pass, np.zeros(n + 1, int), np.empty(0, np.uint32), np.full(n, -1),
        np.zeros((k, k)), np.zeros(k), np.array([0, n]), 0, 1, probabilities(n, k), empty(1, k, k), empty(1), empty(1),
    )  # fmt: skip
    assert filled[-2][0] == pytest.approx(n * np.log(k))


@pytest.mark.parametrize("x", [1e-4, 0.3, 1.0, 5.99, 6.0, 123.4, 1e6])
def test_digamma(x):
    assert crowd.digamma(x) == pytest.approx(reference.digamma(x), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(("n_workers", "n_groups", "k"), [(1, 1, 2), (crowd.WORKER_BLOCK + 3, 2, 2), (7, 3, 4)])
def test_community_pass(n_workers, n_groups, k):
    rng = np.random.default_rng(k)
    counts, alpha = rng.gamma(1.0, 4.0, (n_workers, k, k)), rng.gamma(1.0, 3.0, (n_groups, k, k)) + 0.05
    counts[rng.random(counts.shape) < 0.2] = 0.0
    counts[0] = 0.0  # a worker without labels
    whole = np.concatenate([alpha, alpha.sum(axis=1, keepdims=True)], axis=1)
    blocks = -(-n_workers // crowd.WORKER_BLOCK)
    for first in range(blocks):
        agree(
            crowd.community_pass, reference.community_pass, counts, alpha, gammaln(whole), psi(whole),
            np.log(probabilities(1, n_groups)[0]), first, blocks, empty(n_workers, n_groups),
            empty(n_workers, k, k), empty(blocks, n_groups, k + 1, k), atol=1e-9,
        )  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("frozen", [False, True])
def test_minimax_pass(shape, frozen):
    n, n_workers, _, k = shape
    starts, workers, labels, bounds = sorted_labels(*shape)
    known = np.where(np.arange(n) % 4 == 0, np.arange(n) % k, -1)
    rng = np.random.default_rng(3)
    sigma, tau = rng.standard_normal((n_workers, k, k)), rng.standard_normal((n, k, k))
    posterior = probabilities(n, k)
    for first, last in ((0, 3), (2, 3)):
        agree(
            crowd.minimax_pass, reference.minimax_pass, starts, workers, labels, known, sigma, tau, 0.3, frozen, bounds,
            first, last, posterior, empty(3, n_workers, k + 1, k), empty(3), empty(3),
        )  # fmt: skip


def test_a_minimax_pass_gives_the_slope_of_the_likelihood():
    """The slope in sigma by differences of sum_i q_ij log p, the class probabilities held."""
    n, n_workers, m, k = 6, 3, 20, 3
    starts, workers, labels, _ = sorted_labels(n, n_workers, m, k)
    rng = np.random.default_rng(4)
    sigma, tau = rng.standard_normal((n_workers, k, k)), rng.standard_normal((n, k, k))
    posterior, partials, bounds = probabilities(n, k), empty(1, n_workers, k + 1, k), np.array([0, n])

    def value(sigma):
        total = 0.0
        for i in range(n):
            for c in range(starts[i], starts[i + 1]):
                score = sigma[workers[c]] + tau[i]
                total += posterior[i] @ (score[labels[c]] - np.log(np.exp(score).sum(axis=0)))
        return total

    expected = np.empty_like(sigma)
    for place in np.ndindex(sigma.shape):
        step = np.zeros_like(sigma)
        step[place] = 1e-6
        expected[place] = (value(sigma + step) - value(sigma - step)) / 2e-6
    crowd.minimax_pass(
        starts, workers, labels, np.full(n, -1), sigma, tau.copy(), 0.3, True, bounds, 0, 1, posterior, partials,
        empty(1), empty(1),
    )  # fmt: skip
    assert np.allclose(partials[0, :, :k], expected, atol=1e-7)


@pytest.mark.parametrize(("n_workers", "k"), [(1, 1), (5, 3)])
def test_worker_programs(n_workers, k):
    rng = np.random.default_rng(5)
    factors = rng.random((n_workers, k + 4, k))
    q = np.einsum("wrh,wrg->whg", factors, factors)
    agree(
        crowd.worker_programs, reference.worker_programs, q, rng.standard_normal((n_workers, k, k)),
        np.zeros((n_workers, k, k)), 1000, 1e-12,
    )  # fmt: skip
