"""The sampler's passes against their slow forms: the same streams, so the same draws."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import gibbs, reference
from tests.kernels.cases import agree, empty, random_cells

SHAPES = [(1, (3,), 1), (30, (2, 3, 5, 4), 3), (4, (2,) * 40, 2), (300, (3, 2), 4)]


def test_drawn():
    weights = np.array([0.5, 0.0, 1.5, 2.0])
    for target in (0.0, 0.49, 0.5, 1.99, 2.0, 3.99, 4.0, 9.0):  # the end belongs to the last component
        agree(gibbs.drawn, reference.drawn, weights, target)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("n", "levels", "k"), SHAPES)
def test_assign_cells(n, levels, k, missing):
    cells = random_cells(n, levels, missing=missing)
    table, alpha = cells.likelihoods(k), np.random.default_rng(1).random(k) + 0.1
    columns = np.ascontiguousarray(cells.codes.T)
    assigned, held = np.full(columns.shape, 255, np.uint8), np.zeros((n, k))
    counts = np.full((cells.n_rows, k), 7)
    for step in range(4):  # the first step finds no components, the others those of the one before
        *_, assigned, held, counts = agree(
            gibbs.assign_cells, reference.assign_cells, columns, cells.starts, cells.absent, table, alpha,
            np.uint64(2**63 + 5), step, assigned, held, counts,
        )  # fmt: skip
    present = cells.codes != cells.absent
    assert (assigned.T[~present] == 255).all()
    assert (held.sum(axis=1) == present.sum(axis=1)).all()
    assert counts.sum() == present.sum()


@pytest.mark.parametrize(("n", "k", "p"), [(1, 1, 1), (50, 3, 6)])
def test_rows_above(n, k, p):
    held = np.random.default_rng(2).multinomial(p, np.full(k + 1, 1 / (k + 1)), n)[:, :k]
    agree(gibbs.rows_above, reference.rows_above, held.astype(float), np.full((k, p), 9))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("n", "levels", "k"), SHAPES)
def test_membership_posterior(n, levels, k, missing):
    cells = random_cells(n, levels, missing=missing)
    marks = np.random.default_rng(3).integers(0, 2**64, cells.n_rows, dtype=np.uint64)
    *_, mean, _, bounds = agree(
        gibbs.membership_posterior, reference.membership_posterior, cells.codes, cells.starts, cells.absent,
        cells.likelihoods(k), marks, np.full(k, 0.4), 3, 12, np.array([0.05, 0.95]), empty(n, k), empty(n, k),
        empty(n, 2, k),
    )  # fmt: skip
    assert np.allclose(mean.sum(axis=1), 1.0)
    assert (bounds[:, 0] <= bounds[:, 1]).all()


def test_equal_rows_get_equal_posteriors():
    cells = random_cells(1, (2, 3, 4))
    marks = np.arange(cells.n_rows, dtype=np.uint64)
    mean, error, bounds = empty(3, 2), empty(3, 2), empty(3, 2, 2)
    gibbs.membership_posterior(
        np.repeat(cells.codes, 3, axis=0), cells.starts, cells.absent, cells.likelihoods(2), marks, np.ones(2), 2, 9,
        np.array([0.1, 0.9]), mean, error, bounds,
    )  # fmt: skip
    assert (mean == mean[0]).all()
    assert (error == error[0]).all()
    assert (bounds == bounds[0]).all()


def test_posteriors_of_rows_with_nothing_observed_and_a_small_alpha():
    """Gamma draws of shape 0.001 are often below the smallest number, in every component at once."""
    cells = random_cells(9, (2, 3), missing=1.0)
    *_, mean, error, bounds = agree(
        gibbs.membership_posterior, reference.membership_posterior, cells.codes, cells.starts, cells.absent,
        cells.likelihoods(2), np.arange(cells.n_rows, dtype=np.uint64), np.full(2, 1e-3), 1, 400,
        np.array([0.05, 0.95]), empty(9, 2), empty(9, 2), empty(9, 2, 2),
    )  # fmt: skip
    assert np.allclose(mean, 0.5, atol=0.1)
    assert np.allclose(error, 0.5, atol=0.05)
    assert np.isfinite(bounds).all()
