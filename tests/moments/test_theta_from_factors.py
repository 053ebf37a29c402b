"""From factors to theta and alpha: scales that the normalisation afterwards would hide."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.moments.dirichlet import weights_of
from mixmem.moments.theta_from_factors import LEAST_SHARE, concentration, simplex_rows


def test_every_column_of_a_variable_is_divided_by_its_own_sum():
    """Guards against row sums, and against sums over all variables."""
    theta = np.array([[0.2, 0.5], [0.8, 0.5], [0.1, 0.6], [0.3, 0.3], [0.6, 0.1]])
    scales = np.array([[2.0, 0.5], [4.0, 0.1]])
    found, sums = simplex_rows(theta * np.repeat(scales, [2, 3], axis=0), np.array([2, 3]), np.zeros(5))
    assert np.allclose(found, theta)
    assert np.allclose(sums, scales)


def test_a_column_of_zeros_gets_the_means_of_its_variable():
    x = np.array([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0], [2.0, 0.0]])
    found, _ = simplex_rows(x, np.array([2, 2]), np.array([0.4, 0.6, 0.7, 0.3]))
    assert np.allclose(found, [[0.4, 0.25], [0.6, 0.75], [0.5, 0.7], [0.5, 0.3]])


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_the_moments_own_alpha_has_the_sum_alpha0(scale):
    """Guards the factor 1 / 2 of equation 3, which shows in the discrepancy only: alpha is brought to its sum."""
    alpha = np.array([0.2, 0.5, 0.6])
    found = concentration(scale * weights_of(alpha), 1.3)
    assert np.allclose(found.alpha, alpha)
    assert found.discrepancy == pytest.approx(scale - 1.0, abs=1e-12)


def test_a_component_without_weight_keeps_a_small_alpha():
    found = concentration(np.array([1.0, -0.5]), 2.0).alpha
    assert found.sum() == pytest.approx(2.0)
    assert found[1] / found[0] == pytest.approx(LEAST_SHARE)
    assert np.allclose(concentration(np.zeros(4), 2.0).alpha, 0.5)
