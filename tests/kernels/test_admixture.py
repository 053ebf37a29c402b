"""Newton steps for genotypes against their slow forms and against SciPy's bounded least squares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from mixmem.kernels import admixture, reference
from tests.kernels.cases import agree

SHAPES = [(1, 1, 1), (20, 9, 3), (37, 6, 2)]  # loci, rows, components


def genotypes_of(m, n, k, missing=0.3):
    """Genotypes with missing ones, memberships (k, n), frequencies (m, k) up to their bounds."""
    rng = np.random.default_rng(m)
    genotypes = rng.integers(0, 3, (m, n))
    genotypes[rng.random((m, n)) < missing] = 3
    if n > 1:
        genotypes[:, 1] = 3  # a row with nothing observed
        genotypes[0] = 3  # a locus seen in no row
    p = rng.uniform(0.01, 0.99, (m, k))
    p[0] = 1e-6
    return genotypes.astype(np.uint8), np.ascontiguousarray(rng.dirichlet(np.ones(k), n).T), p


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_locus_sums(m, n, k):
    genotypes, x, p = genotypes_of(m, n, k)
    rng = np.random.default_rng(1)
    gradients, hessians = rng.random((m, k)), rng.random((m, k * (k + 1) // 2))
    for first, last in ((0, n), (n // 2, n)):
        agree(
            admixture.locus_sums, reference.locus_sums, genotypes, x, p, rng.random(n), first, last, gradients,
            hessians,
        )  # fmt: skip


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_row_sums(m, n, k):
    genotypes, x, p = genotypes_of(m, n, k)
    hessians, values = np.random.default_rng(1).random((k * (k + 1) // 2, n)), np.zeros(n)
    for first, last in ((0, n), (n // 2, n)):
        agree(admixture.row_sums, reference.row_sums, genotypes, x, p, first, last, hessians, values)


def test_likelihoods_of_many_loci_do_not_underflow():
    genotypes, x, _ = genotypes_of(200, 4, 2, missing=0.0)
    genotypes[:] = 2
    p = np.full((200, 2), 1e-6)
    hessians = np.zeros((3, 4))
    *_, values = agree(admixture.row_sums, reference.row_sums, genotypes, x, p, 0, 4, hessians, np.zeros(4))
    assert np.allclose(values, 400 * np.log(1e-6))


def systems(m, k):
    """Lower halves of m positive definite matrices, the matrices, gradients, and points inside the unit box."""
    rng = np.random.default_rng(k)
    factors = rng.standard_normal((m, k + 3, k))
    matrices = np.einsum("jrh,jrg->jhg", factors, factors)
    h, g = np.tril_indices(k)
    return matrices[:, h, g], matrices, 5 * rng.standard_normal((m, k)), rng.uniform(0.1, 0.9, (m, k))


@pytest.mark.parametrize("damped", [False, True])
@pytest.mark.parametrize(("m", "k"), [(1, 1), (8, 3)])
def test_box_steps(m, k, damped):
    halves, _, gradients, x = systems(m, k)
    agree(admixture.box_steps, reference.box_steps, halves, gradients, 1e-6, 1 - 1e-6, damped, 1e-10, x)


def test_box_steps_reach_the_bounded_maximum():
    halves, matrices, gradients, x = systems(8, 3)
    stepped = x.copy()
    admixture.box_steps(halves, gradients, 0.0, 1.0, False, 1e-13, stepped)
    for j in range(8):
        lower = np.linalg.cholesky(matrices[j])
        target = np.linalg.solve(lower, gradients[j])  # |L'd - L^-1 g|^2 is d'Hd - 2 g'd and a constant
        found = lsq_linear(lower.T, target, (-x[j], 1.0 - x[j]), tol=1e-14).x
        assert np.allclose(stepped[j], x[j] + found, atol=1e-6)
