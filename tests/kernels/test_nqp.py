"""Quadratic programs against their slow forms, against LAPACK and against nonnegative least squares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from mixmem.kernels import nqp, reference
from tests.kernels.cases import agree


def program(m, k, seed=0):
    """Q of full rank with nonnegative entries, z of both signs, x positive."""
    rng = np.random.default_rng(seed)
    factor = rng.random((k + 5, k))
    return factor.T @ factor, rng.standard_normal((m, k)), rng.random((m, k))


@pytest.mark.parametrize("k", [1, 2, 6])
def test_eigenvalues_and_vectors(k):
    q, vectors = program(1, k)[0], np.empty((k, k))
    values = nqp._eigen(q, vectors)
    assert np.allclose(np.sort(values), reference.nqp.eigen(q)[0], rtol=1e-12)
    assert np.allclose(vectors * values @ vectors.T, q, rtol=1e-12)
    assert np.allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)


@pytest.mark.parametrize(("m", "k"), [(1, 1), (6, 4), (3, 9)])
@pytest.mark.parametrize(("steps", "tolerance"), [(1, 0.0), (40, 0.0), (1000, 1e-3)])
def test_pqp_rows(m, k, steps, tolerance):
    q, z, x = program(m, k)
    agree(nqp.pqp_rows, reference.pqp_rows, q, z, x, steps, 1e-10, tolerance)


def test_pqp_rows_of_a_singular_program():
    """Both hold the eigenvalues that are zero, whose computed values differ, at the same floor."""
    q, z, x = np.ones((3, 3)), np.array([[-1.0, -1.0, -1.0], [1.0, 2.0, 3.0]]), np.ones((2, 3))
    agree(nqp.pqp_rows, reference.pqp_rows, q, z, x, 5, 1e-10, 0.0, rtol=1e-6)


@pytest.mark.parametrize(("m", "k"), [(1, 1), (6, 4), (40, 9), (5, 30)])
def test_exact_rows(m, k):
    q, z, x = program(m, k)
    agree(nqp.exact_rows, reference.exact_rows, q, z, x, 100, 1e-12, rtol=1e-7)
    x[:, ::2] = 0.0
    agree(nqp.exact_rows, reference.exact_rows, q, z, x, 100, 1e-12, rtol=1e-7)


def test_exact_rows_of_a_singular_program():
    """Where no equation can be solved, coordinate descent goes on."""
    q, z, x = np.ones((3, 3)), np.array([[-1.0, -1.0, -1.0], [1.0, 2.0, 3.0]]), np.ones((2, 3))
    agree(nqp.exact_rows, reference.exact_rows, q, z, x, 50, 1e-12)


@pytest.mark.parametrize(("m", "k"), [(1, 1), (6, 4)])
@pytest.mark.parametrize("cycles", [1, 3, 10_000])
def test_exact_row(m, k, cycles):
    q, z, x = program(m, k)
    agree(nqp.exact_row, reference.exact_row, q, z[0], x[0], cycles, 1e-14)
    agree(nqp.descend_rows, reference.descend_rows, q, z, x, min(cycles, 50))


def test_a_variable_without_curvature_is_left_alone():
    q, z = np.diag([2.0, 0.0]), np.array([[-2.0, -1.0]])
    assert agree(nqp.exact_rows, reference.exact_rows, q, z, np.full((1, 2), 0.5), 50, 1e-14)[2].tolist() == [[1, 0.5]]


def test_exact_rows_are_nonnegative_least_squares():
    rng = np.random.default_rng(5)
    design, target = rng.random((30, 5)), rng.standard_normal((30, 20))
    x = np.full((20, 5), 0.1)
    nqp.exact_rows(design.T @ design, -(target.T @ design), x, 10_000, 1e-14)
    assert np.allclose(x, [nnls(design, column)[0] for column in target.T], atol=1e-9)


def test_pqp_steps_converge_to_the_exact_rows():
    q, z, _ = program(3, 2, seed=6)
    steps, exact = np.ones((3, 2)), np.ones((3, 2))
    nqp.pqp_rows(q, z, steps, 20_000, 1e-10, 1e-12)
    nqp.exact_rows(q, z, exact, 10_000, 1e-14)
    assert np.allclose(steps, exact, atol=1e-5)
