"""The crowd's passes with parameters of tasks against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import crowd_tasks, reference
from tests.kernels.cases import agree, empty
from tests.kernels.test_crowd import SHAPES, probabilities, sorted_labels


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
            crowd_tasks.minimax_pass, reference.minimax_pass, starts, workers, labels, known, sigma, tau, 0.3, frozen,
            bounds, first, last, posterior, empty(3, n_workers, k + 1, k), empty(3), empty(3),
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
    crowd_tasks.minimax_pass(
        starts, workers, labels, np.full(n, -1), sigma, tau.copy(), 0.3, True, bounds, 0, 1, posterior, partials,
        empty(1), empty(1),
    )  # fmt: skip
    assert np.allclose(partials[0, :, :k], expected, atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_glad_pass(shape):
    n, n_workers, _, k = shape
    starts, workers, labels, bounds = sorted_labels(*shape)
    known = np.where(np.arange(n) % 4 == 0, np.arange(n) % k, -1)
    rng = np.random.default_rng(3)
    for first, last in ((0, 3), (2, 3)):
        agree(
            crowd_tasks.glad_pass, reference.glad_pass, starts, workers, labels, known, rng.normal(1.0, 1.0, n_workers),
            rng.normal(0.0, 0.3, n), bounds, first, last, probabilities(n, k), empty(3, n_workers, 2), empty(3),
            empty(3),
        )  # fmt: skip
