"""Sums from which the components' corners move against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import ROW_BLOCK, corners, reference
from mixmem.kernels.long_rows import LEAST_CELLS
from tests.kernels.cases import agree, empty, random_cells

LONG = (2, 3, 4, 3) * 30


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize(("n", "levels", "k"), [(4, LONG, 2), (5, LONG, 5), (3, (2, 3), 2)])
def test_row_gaussians(n, levels, k, missing):
    cells = random_cells(n, levels, missing=missing)
    *_, hessians, slopes, factors = agree(
        corners.row_gaussians, reference.row_gaussians, cells.codes, cells.starts, cells.absent, cells.likelihoods(k),
        np.full(k, 0.7), 30, 1e-10, np.full((n, k), 1 / k), empty(n, k, k), empty(n, k), empty(n, k, 2),
        rtol=1e-6, atol=1e-9,
    )  # fmt: skip
    long = (cells.codes != cells.absent).sum(axis=1) >= LEAST_CELLS
    assert (hessians[long] > 0.0).all()
    assert not hessians[~long].any()
    assert not slopes[~long].any()
    assert not factors[~long].any()


@pytest.mark.parametrize(("n", "k"), [(3, 3), (ROW_BLOCK + 4, 2)])
def test_corner_sums(n, k):
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(n, 40, k)) + 2.0
    hessians = roots.transpose(0, 2, 1) @ roots
    slopes = 2.0 * (hessians @ rng.dirichlet(np.ones(k), n)[:, :, None])[:, :, 0]
    hessians[1], slopes[1] = 0.0, 0.0  # a row that is not long
    matrix = np.eye(k) + 0.03 * (np.ones((k, k)) / k - np.eye(k))
    factors, weights, blocks = np.full((n, k, 2), 0.5), rng.random(n), -(-n // ROW_BLOCK)
    for first in range(blocks):
        count = blocks - first
        *_, sums, _, pulls = agree(
            corners.corner_sums, reference.corner_sums, hessians, slopes, np.full(k, 0.6), matrix, weights, first,
            factors, empty(count, k), empty(count, k, k, k, k), empty(count, k, k), rtol=1e-6, atol=1e-7,
        )  # fmt: skip
        taken = np.delete(weights, 1) if first == 0 else weights[ROW_BLOCK:]
        assert sums.sum() == pytest.approx(taken.sum(), rel=1e-3)
        assert np.isfinite(pulls).all()
