"""Memberships by Newton steps against their slow form, LAPACK and the optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import reference, simplex
from tests.kernels.cases import agree, empty, random_cells


def outputs(n):
    """Arrays for what is found per row: loglik, done, gaps."""
    return empty(n), np.full(n, -1), empty(n)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("strength", [0.05, 1.5])
@pytest.mark.parametrize(("n", "levels", "k"), [(1, (3,), 1), (15, (2, 3, 5, 4), 3), (4, (2,) * 150, 2)])
def test_memberships(n, levels, k, strength, missing):
    cells = random_cells(n, levels, missing=missing)
    table, alpha = cells.likelihoods(k), strength * (1.0 + np.arange(k))
    *_, gaps = agree(
        simplex.memberships, reference.memberships, cells.codes, cells.starts, cells.absent, table, alpha, 50, 1e-9,
        np.full((n, k), 1 / k), *outputs(n), rtol=1e-8, atol=1e-10,
    )  # fmt: skip
    assert gaps.max() <= 1e-9


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_memberships_when_steps_run_out(steps):
    cells = random_cells(15, (2, 3, 5, 4), missing=0.2)
    agree(
        simplex.memberships, reference.memberships, cells.codes, cells.starts, cells.absent, cells.likelihoods(3),
        np.full(3, 0.1), steps, 1e-12, np.full((15, 3), 1 / 3), *outputs(15),
    )  # fmt: skip


def test_memberships_satisfy_the_optimality_conditions():
    cells = random_cells(40, (4,) * 12)
    theta, alpha, x = cells.likelihoods(4), np.full(4, 0.3), np.full((40, 4), 0.25)
    simplex.memberships(cells.codes, cells.starts, cells.absent, theta, alpha, 50, 1e-10, x, *(found := outputs(40)))
    own = theta[cells.starts + cells.codes]
    mix = np.einsum("ijh,ih->ij", own, x)
    counts = alpha + x * (own / mix[:, :, None]).sum(axis=1)
    assert np.allclose(counts / counts.sum(axis=1, keepdims=True), x, atol=1e-8)
    assert np.allclose(found[0], np.log(mix).sum(axis=1))


def test_missing_cells_are_as_if_their_columns_were_not_there():
    cells = random_cells(20, (4,) * 6)
    theta, alpha, kept = cells.likelihoods(3), np.full(3, 0.5), [0, 2, 3, 4]
    gone = cells.codes.copy()
    gone[:, [1, 5]] = 4
    absent = np.array([-1, 4, -1, -1, -1, 4])
    found = []
    for codes, some in ((gone, slice(None)), (np.ascontiguousarray(cells.codes[:, kept]), kept)):
        x, others = np.full((20, 3), 1 / 3), outputs(20)
        simplex.memberships(codes, cells.starts[some], absent[some], theta, alpha, 50, 1e-10, x, *others)
        found.append((x, *others))
    for one, other in zip(*found, strict=True):
        assert (one == other).all()


@pytest.mark.parametrize("k", [1, 2, 7])
def test_cholesky_and_solve(k):
    rng = np.random.default_rng(k)
    factor, right = rng.standard_normal((k + 2, k)), rng.standard_normal(k)
    system = factor.T @ factor
    (found,) = agree(simplex.cholesky, reference.cholesky, system)
    solved = right.copy()
    simplex._solve(found, solved)
    assert np.allclose(solved, np.linalg.solve(system, right), rtol=1e-8)
