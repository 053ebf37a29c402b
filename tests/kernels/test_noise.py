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
    *_, theta = agree(noise.noise_levels, reference.noise_levels, *laws, rng.random(counts.shape), empty(*counts.shape))
    assert np.allclose(np.add.reduceat(theta, held.bounds[:-1]), 1.0)
