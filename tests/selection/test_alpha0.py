from __future__ import annotations

import numpy as np
import pytest

from mixmem import GDLM, simulate_gdlm
from mixmem.selection.alpha0 import _peak


@pytest.mark.slow
@pytest.mark.parametrize("alpha0", [0.3, 3.0])
def test_alpha0_is_found_within_a_third(alpha0):
    """Ratios to the truth were 0.84 and 0.94 when written."""
    shares = np.array([0.2, 0.3, 0.5])
    table = simulate_gdlm(2000, 30, 3, alpha=alpha0 * shares, random_state=0)
    model = GDLM(3, random_state=0).fit(table.codes)
    assert 0.67 < model.alpha0_ / alpha0 < 1.5
    said = model.report_.alpha0
    assert said.estimated
    assert said.value == pytest.approx(model.alpha0_)
    assert len(said.tried) == 9  # sampling does the rest


def test_without_sampling_the_search_is_finer():
    table = simulate_gdlm(300, 12, 2, random_state=0)
    assert len(GDLM(2, refine=None, random_state=0).fit(table.codes).report_.alpha0.tried) > 9


def test_the_peak_of_a_parabola_is_found_between_points():
    points = np.linspace(-2, 3, 11)
    best, error = _peak({float(x): -1.5 * (x - 0.37) ** 2 for x in points}, n_rows=100)
    assert best == pytest.approx(0.37)
    assert error == pytest.approx(1 / np.sqrt(300))


def test_a_likelihood_that_only_rises_has_no_error_and_ends_at_the_bound():
    best, error = _peak({float(x): float(x) ** 2 for x in range(6)}, n_rows=10)
    assert best == 5
    assert error == float("inf")
