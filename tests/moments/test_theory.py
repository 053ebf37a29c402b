"""The paper's theorems that no other test shows, as docs/theory.md states them; it names the others."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixmem import factorize, match_columns, solve_nqp
from mixmem.moments.solvers import random_start
from mixmem.moments.solvers.nqp import pqp_phi
from mixmem.moments.solvers.wnmf import EPSILON

TESTS = Path(__file__).parents[1]


def test_the_tests_that_the_page_of_theory_names_are_there():
    named = set(re.findall(r"`(test_\w+)`", (TESTS.parent / "docs" / "theory.md").read_text()))
    there = {name for path in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())}
    assert len(named) > 15
    assert named <= there


def unit(matrix):
    return matrix / np.linalg.norm(matrix, axis=0)


def noisy_columns(rng, k, noise):
    """Return columns on the simplex, and the same in another order with noise."""
    theta = rng.dirichlet(np.ones(8), size=k).T
    return theta, np.maximum(theta[:, rng.permutation(k)] + noise * rng.standard_normal(theta.shape), 1e-3)


def loss(theta, other, order):
    return float(((unit(other)[:, order] - unit(theta)) ** 2).sum())


# --- Theorem 1: the argmax of the polar factor, and the least squared distance


def test_an_argmax_that_theorem_6_covers_is_the_best_permutation():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        k = int(rng.integers(2, 5))
        theta, other = noisy_columns(rng, k, 10 ** rng.uniform(-3, -1))
        matched = match_columns(theta, other)
        if matched.guaranteed:
            covered += 1
            best = min(loss(theta, other, list(order)) for order in permutations(range(k)))
            assert loss(theta, other, matched.permutation) <= best + 1e-12
    assert covered > 100


def test_a_valid_argmax_need_not_be_the_best_permutation():
    """As printed, theorem 1 claims that it is; its proof takes the columns of E for those of E V."""
    theta = np.array([[0.75, 0.1, 0.2], [0.2, 0.4, 0.5], [0.05, 0.5, 0.3]])
    rng = np.random.default_rng(1)
    found = False
    for _ in range(2000):
        other = np.maximum(theta + 0.4 * rng.standard_normal(theta.shape), 1e-3)
        matched = match_columns(theta, other)
        best = min(loss(theta, other, list(order)) for order in permutations(range(3)))
        if not matched.assigned and loss(theta, other, matched.permutation) > best + 1e-3:
            found = True
            assert not matched.guaranteed
    assert found


# --- Theorems 2 and 3: WNMF does not rise, and is PQP


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_wnmf_never_rises_on_tensors_half_negative(seed, k):
    tensor = np.random.default_rng(seed).standard_normal((5, 6, 4))
    found = factorize(tensor, k, solver="wnmf", max_iter=40, tol=0.0, random_state=seed)
    assert (np.diff(found.history) <= 1e-9 * found.history[0]).all()


@pytest.mark.parametrize(("solver", "epsilon"), [("wnmf", EPSILON), ("lee_seung", 0.0)])
def test_multiplicative_updates_are_pqp_with_gamma_0_and_phi_epsilon(solver, epsilon):
    """A round of the solver against equation 15 on every row's own program: Q of the entries that count, z <= 0."""
    rng = np.random.default_rng(2)
    tensor = rng.standard_normal((4, 5, 3)) if solver == "wnmf" else rng.random((4, 5, 3))
    tensor /= np.abs(tensor).max()
    factors = list(random_start(tensor.shape, 2, rng))
    found = factorize(tensor, 2, solver=solver, starts=[tuple(factors)], max_iter=1, tol=0.0)
    for m in range(3):
        one, two = (factors[other] for other in range(3) if other != m)
        design = (one[:, None] * two[None]).reshape(-1, 2)
        rows = np.moveaxis(tensor, m, 0).reshape(tensor.shape[m], -1)
        for r, row in enumerate(rows):
            counts = row >= 0.0
            q, z = design[counts].T @ design[counts], -design[counts].T @ row[counts]
            x = factors[m][r]
            factors[m][r] = x * (np.maximum(-z, 0.0) + epsilon) / (q @ x + np.maximum(z, 0.0) + epsilon)
    for mine, theirs in zip(factors, found.factors, strict=True):
        np.testing.assert_allclose(mine / mine.sum(axis=0), theirs, rtol=1e-10)


# --- Theorem 7: the rate


@pytest.mark.parametrize("seed", range(5))
def test_an_update_brings_one_entry_nearer_to_the_minimum(seed):
    """The ratio that the proof bounds by one: an entry of the minimiser is moved, and one update taken."""
    rng = np.random.default_rng(seed)
    factor = rng.random((7, 4))
    q, z = factor.T @ factor, rng.standard_normal(4)
    best = solve_nqp(q, z, tol=1e-15, max_iter=200_000).x
    phi = pqp_phi(q, z)
    for i in range(4):
        for move in (-0.5 * best[i], 0.1, 1.0, 10.0):
            x = best.copy()
            x[i] += move
            if x[i] > 1e-6 and abs(move) > 1e-6:
                new = x[i] * (max(-z[i], 0.0) + phi[i]) / (q[i] @ x + max(z[i], 0.0) + phi[i])
                assert abs(new - best[i]) < abs(move)
