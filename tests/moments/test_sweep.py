from __future__ import annotations

import numpy as np
import pytest

from mixmem import first_moments, rmse, simulate_gdlm
from mixmem.moments.collective import Left
from mixmem.moments.sweep import FullTensor, _moved_by_few, groups_for, sweep
from mixmem.progress import Progress
from tests import naive


@pytest.mark.parametrize(("seed", "group"), [(0, [2]), (1, [0, 3, 4]), (2, [1, 6])])
def test_z_is_the_mttkrp_of_the_formed_tensor(seed, group):
    """Over all pairs of distinct variables outside the group, to 1e-10, on tables longer than one row block."""
    rng = np.random.default_rng(seed)
    table = simulate_gdlm(1100, 7, 3, n_levels=3, alpha=0.4, random_state=seed)
    theta = rng.dirichlet(np.ones(3), size=(7, 4)).transpose(0, 2, 1).reshape(21, 4)
    group = np.array(group)
    tensor = FullTensor(table.encoded, first_moments(table.encoded), theta, 0.9)
    q, z = tensor.program(table.coding.soft.part(group))
    expected_q, expected_z = naive.mttkrp_distinct(table.codes, table.schema, theta, group, 0.9)
    assert np.abs(z - expected_z).max() < 1e-10
    assert np.abs(q - expected_q).max() < 1e-10


def test_unknown_variables_add_nothing():
    """With theta known for two variables a side, Z of the others is the MTTKRP over just those."""
    table = simulate_gdlm(800, 6, 2, n_levels=3, random_state=3)
    theta = table.theta.copy()
    theta[9:] = 0.0
    group = np.array([3, 4, 5])
    tensor = FullTensor(table.encoded, first_moments(table.encoded), theta, 0.2)
    q, z = tensor.program(table.coding.soft.part(group))
    expected_q, expected_z = naive.mttkrp_distinct(table.codes, table.schema, theta, group, 0.2)
    assert np.abs(z - expected_z).max() < 1e-10
    assert np.abs(q - expected_q).max() < 1e-10


def test_state_after_steps_is_the_state_from_scratch():
    table = simulate_gdlm(600, 12, 3, random_state=4)
    first = first_moments(table.encoded)
    start = np.full_like(table.theta, 0.25) + 0.1 * table.theta
    start /= np.repeat(start.reshape(12, 4, 3).sum(axis=1), 4, axis=0)
    stepped = FullTensor(table.encoded, first, start, 0.3)
    for group in (np.array([0, 5]), np.array([7]), np.array([1, 2, 3])):
        stepped.step(table.coding.soft.part(group))
    fresh = FullTensor(table.encoded, first, stepped.theta, 0.3)
    assert np.allclose(stepped.totals, fresh.totals, atol=1e-10)
    for kept, new in zip(stepped.sums, fresh.sums, strict=True):
        assert np.allclose(kept, new, atol=1e-10)


def test_one_pass_from_the_true_anchors_finds_the_rest():
    table = simulate_gdlm(20_000, 30, 3, random_state=5)
    known = table.theta.copy()
    known[4 * 12 :] = 0.0
    tensor = FullTensor(table.encoded, first_moments(table.encoded), known, 0.3)
    tensor.extend()
    found = tensor.theta
    assert (found[: 4 * 12] == table.theta[: 4 * 12]).all()
    assert np.allclose(found.reshape(30, 4, 3).sum(axis=1), 1)
    assert np.sqrt(((found - table.theta) ** 2).mean()) < 0.02  # 0.0077 when written


@pytest.mark.slow
def test_error_falls_as_rows_grow():
    """Root-n: a sixteen-fold table has a quarter of the error, here within a factor of two."""
    errors = []
    for n in (1_000, 16_000):
        table = simulate_gdlm(n, 20, 3, random_state=6)
        first = first_moments(table.encoded)
        tensor = FullTensor(table.encoded, first, table.theta, 0.3)
        swept = sweep(tensor, n_sweeps=50, tol=1e-6, rng=np.random.default_rng(0), progress=Progress())
        assert swept.converged
        errors.append(rmse(table.theta, swept.theta))
    assert 2 < errors[0] / errors[1] < 8


def test_sweeps_say_when_they_run_out():
    table = simulate_gdlm(300, 20, 3, random_state=6)
    first = first_moments(table.encoded)
    tensor = FullTensor(table.encoded, first, table.theta, 0.3)
    swept = sweep(tensor, n_sweeps=1, tol=0.0, rng=np.random.default_rng(0), progress=Progress())
    assert not swept.converged
    assert "stopped after 1 sweep" in swept.reason


@pytest.mark.parametrize(
    ("n", "p", "k", "alpha"),
    [
        (1_000, 25, 3, 0.1),
        pytest.param(2_000, 40, 5, 0.7, marks=pytest.mark.slow),
        pytest.param(500, 50, 3, 3.0, marks=pytest.mark.slow),
    ],
)
def test_sweeps_end_where_plain_ones_do(n, p, k, alpha):
    table = simulate_gdlm(n, p, k, alpha=alpha, random_state=8)
    tensor = FullTensor(table.encoded, first_moments(table.encoded), table.theta, alpha * k)
    tol = 0.02 * np.sqrt(k / n)
    swept = sweep(tensor, n_sweeps=60, tol=tol, rng=np.random.default_rng(0), progress=Progress())
    plain = sweep(tensor, n_sweeps=150, tol=0.0, early=False, rng=np.random.default_rng(0), progress=Progress())
    assert swept.converged
    assert len(swept.changes) < 15
    assert plain.changes[-1] < tol / 100
    assert np.sqrt(((swept.theta - plain.theta) ** 2).mean()) <= swept.left <= tol
    shares = [each.weights / each.weights.sum() for each in (swept, plain)]
    assert np.abs(shares[0] - shares[1]).max() < 2e-3


def test_a_component_too_many_is_named_soon():
    table = simulate_gdlm(2_000, 30, 4, alpha=0.25, random_state=1)
    rng = np.random.default_rng(0)
    theta = np.column_stack([table.theta, rng.dirichlet(np.ones(4), size=30).ravel()])
    tensor = FullTensor(table.encoded, first_moments(table.encoded), theta, 1.0)
    swept = sweep(tensor, n_sweeps=60, tol=1e-4, rng=np.random.default_rng(0), progress=Progress())
    assert not swept.converged
    assert len(swept.changes) < 40
    assert "may be one too many" in swept.reason


def test_groups():
    assert [groups_for(p) for p in (3, 25, 50, 100, 500, 10_000)] == [3, 25, 50, 25, 5, 3]


def test_sweeps_are_given_up_sooner_where_one_component_drifts_than_where_all_move():
    """One too many drifts for hundreds of sweeps; away from a poor start of many components all of them move."""

    def left(*by_component):
        return Left(np.zeros((1, 1)), 1.0, 1.0, np.ones(1), np.array(by_component))

    assert _moved_by_few(left(1.0, 0.1, 0.2, 0.1, 0.1))
    assert _moved_by_few(left(1.0, 0.9, 0.2, 0.1, 0.1))
    assert _moved_by_few(left(1.0, 0.9, 1.1))
    assert not _moved_by_few(left(*np.full(6, 0.3)))
