"""The particle filter against its slow form, and against the likelihood it estimates."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import particles, reference
from tests.kernels.cases import agree, empty, random_cells


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("n", "levels", "k"), [(1, (3,), 1), (12, (2, 3, 5, 4), 3), (3, (2,) * 30, 2)])
def test_marginal_likelihood(n, levels, k, missing):
    cells = random_cells(n, levels, missing=missing)
    marks = np.random.default_rng(3).integers(0, 2**64, cells.n_rows, dtype=np.uint64)
    table = cells.likelihoods(k) ** 4  # weights grow uneven: particles are resampled before the end
    *_, out = agree(
        particles.marginal_likelihood, reference.marginal_likelihood, cells.codes, cells.starts, cells.absent, table,
        marks, np.full(k, 0.2), 25, 2**62 + 1, empty(n),
    )  # fmt: skip
    assert (out[(cells.codes == cells.absent).all(axis=1)] == 0.0).all()  # a row with nothing observed is certain


def test_the_likelihood_is_estimated():
    cells = random_cells(5, (4,) * 5)
    theta, alpha = cells.likelihoods(3), np.full(3, 0.5)
    prior = np.random.default_rng(0).dirichlet(alpha, size=100_000)
    exact = [np.log(np.prod(prior @ theta[cells.starts + row].T, axis=1).mean()) for row in cells.codes]
    out, marks = empty(5), np.arange(cells.n_rows, dtype=np.uint64)
    particles.marginal_likelihood(cells.codes, cells.starts, cells.absent, theta, marks, alpha, 2000, 0, out)
    assert np.abs(out - exact).max() < 0.05


def test_a_missing_cell_is_as_if_its_column_were_not_there():
    """In expectation: the streams differ."""
    cells = random_cells(6, (4,) * 5)
    theta, alpha, marks = cells.likelihoods(3), np.full(3, 0.5), np.arange(cells.n_rows, dtype=np.uint64)
    gone, kept = cells.codes.copy(), [0, 2, 3]
    gone[:, [1, 4]] = 4
    with_gaps, without = empty(6), empty(6)
    absent = np.array([-1, 4, -1, -1, 4])
    particles.marginal_likelihood(gone, cells.starts, absent, theta, marks, alpha, 4000, 0, with_gaps)
    few = np.ascontiguousarray(cells.codes[:, kept])
    particles.marginal_likelihood(few, cells.starts[kept], absent[kept], theta, marks, alpha, 4000, 0, without)
    assert np.abs(with_gaps - without).max() < 0.05
