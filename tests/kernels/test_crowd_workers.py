"""The crowd's workers against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln, psi

from mixmem.kernels import crowd_workers, reference
from tests.kernels.cases import agree, empty
from tests.kernels.test_crowd import probabilities


@pytest.mark.parametrize("x", [1e-4, 0.3, 1.0, 5.99, 6.0, 123.4, 1e6])
def test_digamma(x):
    assert crowd_workers.digamma(x) == pytest.approx(reference.digamma(x), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(("n_workers", "n_groups", "k"), [(1, 1, 2), (crowd_workers.WORKER_BLOCK + 3, 2, 2), (7, 3, 4)])
def test_community_pass(n_workers, n_groups, k):
    rng = np.random.default_rng(k)
    counts, alpha = rng.gamma(1.0, 4.0, (n_workers, k, k)), rng.gamma(1.0, 3.0, (n_groups, k, k)) + 0.05
    counts[rng.random(counts.shape) < 0.2] = 0.0
    counts[0] = 0.0  # a worker without labels
    whole = np.concatenate([alpha, alpha.sum(axis=1, keepdims=True)], axis=1)
    blocks = -(-n_workers // crowd_workers.WORKER_BLOCK)
    for first in range(blocks):
        agree(
            crowd_workers.community_pass, reference.community_pass, counts, alpha, gammaln(whole), psi(whole),
            np.log(probabilities(1, n_groups)[0]), first, blocks, empty(n_workers, n_groups),
            empty(n_workers, k, k), empty(blocks, n_groups, k + 1, k), atol=1e-9,
        )  # fmt: skip


@pytest.mark.parametrize(("n_workers", "k"), [(1, 1), (5, 3)])
def test_worker_programs(n_workers, k):
    rng = np.random.default_rng(5)
    factors = rng.random((n_workers, k + 4, k))
    q = np.einsum("wrh,wrg->whg", factors, factors)
    agree(
        crowd_workers.worker_programs, reference.worker_programs, q, rng.standard_normal((n_workers, k, k)),
        np.zeros((n_workers, k, k)), 1000, 1e-12,
    )  # fmt: skip


@pytest.mark.parametrize(("n_workers", "k"), [(1, 2), (crowd_workers.WORKER_BLOCK + 2, 2), (6, 4)])
def test_strength_pass(n_workers, k):
    rng = np.random.default_rng(k)
    counts = rng.gamma(1.0, 4.0, (n_workers, k, k))
    counts[rng.random(counts.shape) < 0.2] = 0.0
    counts[0] = 0.0  # a worker without labels
    wrong = rng.random((k, k)) * (1.0 - np.eye(k))
    strengths = np.array([1.0, 16.0, 256.0])
    blocks = -(-n_workers // crowd_workers.WORKER_BLOCK)
    for first in range(blocks):
        agree(
            crowd_workers.strength_pass, reference.strength_pass, counts, rng.uniform(0.2, 0.9, n_workers),
            wrong / wrong.sum(axis=0), strengths, rng.gamma(2.0, 1.0, k), np.log(probabilities(1, 4)[0]), first, blocks,
            empty(n_workers, 4), empty(n_workers, k, k), atol=1e-9,
        )  # fmt: skip
