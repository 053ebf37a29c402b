"""The posterior of long rows' memberships against its slow form, and against what is known of it exactly."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import ROW_BLOCK, long_rows, reference, simplex
from tests.kernels.cases import agree, empty, random_cells

LONG = (2, 3, 4, 3) * 30


def outputs(n):
    """Arrays for what is found per row: loglik, done, gaps."""
    return empty(n), np.full(n, -1), empty(n)


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("strength", [0.03, 0.7, 2.0])
@pytest.mark.parametrize(("levels", "k"), [((3,), 1), (LONG, 1), (LONG, 3), (LONG, 6), ((2, 3), 2)])
def test_posterior_memberships(levels, k, strength, missing):
    cells = random_cells(5, levels, missing=missing)
    table, alpha = cells.likelihoods(k), strength * (1.0 + 0.1 * np.arange(k))
    arguments = cells.codes, cells.starts, cells.absent, table, alpha, 50, 1e-10
    agree(
        long_rows.posterior_memberships, reference.posterior_memberships, *arguments, np.full((5, k), 1 / k),
        *outputs(5), rtol=1e-6, atol=1e-9,
    )  # fmt: skip
    means, modes = np.full((5, k), 1 / k), np.full((5, k), 1 / k)
    long_rows.posterior_memberships(*arguments, means, *outputs(5))
    simplex.memberships(*arguments, modes, *outputs(5))
    assert np.allclose(means.sum(axis=1), 1.0)
    assert (means > 0.0).all()
    short = (cells.codes != cells.absent).sum(axis=1) < long_rows.LEAST_CELLS
    assert (means[short] == modes[short]).all()


@pytest.mark.parametrize("strength", [0.1, 1.0, 3.0])
def test_the_mean_of_two_components_is_that_of_the_density(strength):
    """With two components the posterior is a curve, which can be summed on a grid."""
    cells, alpha = random_cells(20, (3,) * 150), np.array([strength, 0.6 * strength])
    table, means, modes = cells.likelihoods(2), np.full((20, 2), 0.5), np.full((20, 2), 0.5)
    arguments = cells.codes, cells.starts, cells.absent, table, alpha, 50, 1e-10
    long_rows.posterior_memberships(*arguments, means, *outputs(20))
    simplex.memberships(*arguments, modes, *outputs(20))
    grid = (np.arange(20_000) + 0.5) / 20_000
    own = table[cells.starts + cells.codes]
    logs = np.log(own[:, :, :1] * grid + own[:, :, 1:] * (1.0 - grid)).sum(axis=1)
    logs += (alpha[0] - 1.0) * np.log(grid) + (alpha[1] - 1.0) * np.log(1.0 - grid)
    density = np.exp(logs - logs.max(axis=1, keepdims=True))
    exact = density @ grid / density.sum(axis=1)
    error = np.sqrt(density @ grid**2 / density.sum(axis=1) - exact**2)
    miss, before = (np.sqrt((((found[:, 0] - exact) / error) ** 2).mean()) for found in (means, modes))
    assert miss < 0.1
    assert miss < 0.5 * before


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(("n", "levels", "k"), [(1, LONG, 1), (12, LONG, 4), (ROW_BLOCK + 5, (2, 4), 2)])
def test_integrated_pass(n, levels, k, missing):
    cells = random_cells(n, levels, missing=missing)
    rng = np.random.default_rng(1)
    x, weights, blocks = rng.dirichlet(np.full(k, 5.0), n), rng.random(n), -(-n // ROW_BLOCK)
    influence, alpha = 0.02 * (np.eye(k) - 0.2), np.full(k, 0.7)
    for first in range(blocks):
        *_, means, partials, squares = agree(
            long_rows.integrated_pass, reference.integrated_pass, cells.codes, cells.starts, cells.absent,
            cells.likelihoods(k), alpha, 20, 1e-10, influence, weights, first, x.copy(), x.copy(),
            empty(blocks - first, cells.n_rows, k), empty(blocks - first, k), rtol=1e-6, atol=1e-9,
        )  # fmt: skip
        assert np.allclose(means.sum(axis=1), 1.0)
        present = (cells.codes != cells.absent).sum(axis=1)[first * ROW_BLOCK :]
        assert np.isclose(partials.sum(), weights[first * ROW_BLOCK :] @ present, rtol=1e-3)
        assert (squares <= partials.sum(axis=1) * (1.0 + 1e-9)).all()
