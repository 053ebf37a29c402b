"""Reasons to doubt a fit, each with a fit that has it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mixmem import GDLM, FitWarning, simulate_gdlm
from mixmem.results.doubts import Evidence, LookedBack, doubts
from mixmem.selection.structure import Structure

DRAWN = simulate_gdlm(400, 8, 3, alpha=0.2, random_state=0)
THERE = Structure(1e-9, 400, 8, [])


def told(theta=DRAWN.theta, alpha=DRAWN.alpha, *, structure=THERE, memberships=None, **changes):
    looked = LookedBack(structure, None, memberships)
    known = {
        "weights": np.ones(400),
        "converged": True,
        "reason": "the reason",
        "way": "moments",
        "at_bound": False,
    } | changes
    return doubts(Evidence(DRAWN.schema, theta, alpha, looked=looked, **known))


def codes(notices):
    return [(notice.code, notice.severity) for notice in notices]


def test_a_good_fit_has_none():
    assert told() == told(memberships=DRAWN.memberships) == []


def test_no_structure_comes_first():
    found = told(structure=Structure(0.4, 400, 8, ["x1"]), converged=False)
    assert codes(found) == [("no-structure", "serious"), ("not-converged", "serious")]
    assert "40%" in found[0].text


def test_one_component_is_held_against_nothing():
    assert told(DRAWN.theta[:, :1], np.ones(1), structure=None) == []


def test_empty_components():
    found = told(alpha=np.array([0.5, 0.3, 1e-5]))
    assert codes(found) == [("empty-component", "serious")]
    assert found[0].text.startswith("component 3 is empty")
    assert found[0].remedy == "fit 2 components instead"
    memberships = np.column_stack([np.full(400, 0.999), np.full((400, 2), 0.0005)])
    assert told(memberships=memberships)[0].text.startswith("components 2 and 3 are empty")


def test_components_of_one_or_two_rows():
    memberships = np.column_stack([np.full((400, 2), 0.5), np.zeros(400)])
    memberships[:2] = [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    found = told(memberships=memberships)
    assert codes(found) == [("few-rows", "serious")]
    assert found[0].text.startswith("component 3 is owned by one or two rows")


def test_rows_count_as_often_as_they_stand_for():
    """Two rows of weight 200 are four hundred rows, not two."""
    memberships = np.column_stack([np.full((400, 2), 0.5), np.zeros(400)])
    memberships[:2] = [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    weights = np.where(np.arange(400) < 2, 200.0, 1.0)
    assert told(memberships=memberships, weights=weights) == []
    assert codes(told(memberships=memberships, weights=1.0 / weights)) == [("empty-component", "serious")]


def test_components_that_coincide():
    theta = DRAWN.theta.copy()
    theta[:, 2] = theta[:, 0]
    found = told(theta)
    assert codes(found) == [("equal-components", "serious")]
    assert "components 1 and 3 are the same" in found[0].text


def test_a_start_without_guarantee_is_told():
    assert codes(told(way="latent classes")) == [("no-guarantee", "minor")]


def test_minor_ones_come_last():
    found = told(structure=Structure(1e-9, 400, 8, ["x1", "x4"]), at_bound=True, converged=False)
    assert codes(found) == [("not-converged", "serious"), ("idle-variables", "minor"), ("alpha0-at-bound", "minor")]
    assert "'x1' and 'x4' show no relation to any other variable" in found[1].text


def test_python_warns_of_serious_ones_by_our_class():
    noise = np.random.default_rng(0).integers(0, 3, (300, 8))
    with pytest.warns(FitWarning, match="does not show more than one component"):
        model = GDLM(2, alpha0=0.5, refine=None, random_state=0).fit(noise)
    assert model.report_.warnings[0].code == "no-structure"
    assert not model.report_.structure.found
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert GDLM(3, alpha0=0.6, refine=None, random_state=0).fit(DRAWN.codes).report_.warnings == []
