"""The laws of theta's levels under noise against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import noise, reference
from mixmem.refinement.noise_draw import NoiseCounts
from tests.kernels.cases import agree, empty


@pytest.mark.parametrize("eta", [0.05, 0.5, 1.0, 2.5, 40.0, "by level"])
@pytest.mark.parametrize(("sizes", "k", "cells"), [((2,), 1, 5), ((3, 2, 6), 3, 40), ((4,) * 5, 2, 3000)])
@pytest.mark.parametrize("delta", [1e-5, 0.02, 0.4])
def test_noise_evidence_and_levels(sizes, k, cells, delta, eta):
    rng = np.random.default_rng(0)
    shares = np.concatenate([rng.dirichlet(np.full(size, 0.3), k).T for size in sizes])
    counts = rng.poisson(cells * shares).astype(float)
    held = NoiseCounts(counts, np.array(sizes), rng.uniform(0.1, 4.0, counts.shape) if eta == "by level" else eta)
    laws = held._laws(delta)
    *_, evidence = agree(noise.noise_evidence, reference.noise_evidence, *laws, empty(len(sizes), k), rtol=1e-8)
    assert np.isfinite(evidence).all()
    chances = rng.random(counts.shape)
    *_, kept = agree(noise.kept_cells, reference.kept_cells, *laws[:4], chances, empty(*counts.shape))
    few = np.repeat(np.add.reduceat(counts, held.bounds[:-1]) <= noise.FEW, sizes, axis=0)
    assert ((kept >= 0.0) == few).all()
    assert (kept[few] <= counts[few]).all()
    *_, theta = agree(noise.noise_levels, reference.noise_levels, *laws, chances, empty(*counts.shape))
    assert np.allclose(np.add.reduceat(np.where(few, 0.0, theta), held.bounds[:-1]).round(9) % 1.0, 0.0)
    assert np.isnan(theta[few]).all()


def test_nearly_all_cells_may_be_noise():
    """Weights that rise far above that of no noise are scaled down on the way."""
    counts = np.array([[250.0], [0.0], [3.0]])
    held = NoiseCounts(counts, np.array([3]), 0.05)
    laws = held._laws(0.99)
    agree(noise.noise_evidence, reference.noise_evidence, *laws, empty(1, 1), rtol=1e-10)
    agree(noise.kept_cells, reference.kept_cells, *laws[:4], np.full(counts.shape, 0.3), empty(3, 1))
