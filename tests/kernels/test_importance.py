"""Importance sampling against its slow form, and against the likelihood it estimates."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import importance, reference
from mixmem.likelihood.nodes import nodes_for
from tests.kernels.cases import agree, empty, random_cells


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("n", "levels", "k"), [(1, (3,), 1), (6, (2, 3, 5, 4), 3), (2, (2,) * 30, 2)])
def test_importance_sums(n, levels, k, missing):
    cells = random_cells(n, levels, missing=missing)
    marks = np.random.default_rng(3).integers(0, 2**64, cells.n_rows, dtype=np.uint64)
    *_, out, variances = agree(
        importance.importance_sums, reference.importance_sums, cells.codes, cells.starts, cells.absent,
        cells.likelihoods(k), marks, np.full(k, 0.2), 40, empty(n), empty(n),
    )  # fmt: skip
    nothing = (cells.codes == cells.absent).all(axis=1)
    assert (out[nothing] == 0.0).all()  # a row with nothing observed is certain
    assert (variances[nothing] == 0.0).all()


@pytest.mark.parametrize("strength", [0.02, 1.0])
def test_the_likelihood_is_estimated_within_its_error(strength):
    cells = random_cells(40, (4,) * 8)
    theta, alpha = cells.likelihoods(3) ** 3, np.full(3, strength)
    nodes = nodes_for(alpha, 8)
    assert nodes.exact
    exact = [np.log(np.prod(theta[cells.starts + row] @ nodes.points, axis=0) @ nodes.weights) for row in cells.codes]
    out, variances, marks = empty(40), empty(40), np.arange(cells.n_rows, dtype=np.uint64)
    importance.importance_sums(cells.codes, cells.starts, cells.absent, theta, marks, alpha, 1000, out, variances)
    misses = (out - exact) / np.sqrt(variances)
    assert np.abs(misses).max() < 5.0
    assert abs(misses.mean()) < 0.6
    assert 0.6 < misses.std() < 1.6
