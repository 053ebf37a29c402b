"""Corners that move together: nearer to the truth in very long rows, the same at any threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mixmem import GDLM, align_components, fit_rows, rmse, simulate_gdlm
from mixmem.engine.local import threads
from mixmem.refinement.choose import choose_method
from mixmem.refinement.corners import _columns_of_one, _continued, can_move, move_corners

LONG = simulate_gdlm(1100, 2100, 3, n_levels=2, alpha=0.5, random_state=0)


def turned():
    """Return the true theta with its corners moved: columns towards each other and aside, by some hundredths."""
    matrix = np.eye(3) + np.array([[-0.05, 0.02, 0.0], [0.04, -0.02, 0.03], [0.01, 0.0, -0.03]])
    return LONG.theta @ matrix


@pytest.mark.slow
def test_corners_that_were_moved_are_found_again():
    moved = move_corners(LONG.encoded, turned(), LONG.alpha)
    assert moved.moved > 0.005
    assert rmse(LONG.theta, moved.theta) < 0.3 * rmse(LONG.theta, turned())  # 0.22, and 0.15 from the truth
    memberships = [fit_rows(LONG.encoded, theta, LONG.alpha).memberships for theta in (turned(), moved.theta)]
    before, after = (np.sqrt(((found - LONG.memberships) ** 2).mean()) for found in memberships)
    assert after < 0.9 * before


@pytest.mark.slow
def test_the_truth_hardly_moves_and_theta_stays_on_the_simplex():
    moved = move_corners(LONG.encoded, LONG.theta, LONG.alpha)
    assert moved.moved < 0.004
    assert np.allclose(moved.theta.reshape(-1, 2, 3).sum(axis=1), 1.0)
    assert (moved.theta >= 0.0).all()
    assert moved.alpha.sum() == pytest.approx(LONG.alpha.sum())


@pytest.mark.slow
def test_the_same_at_any_number_of_threads():
    found = []
    for n_jobs in (1, 3):
        with threads(n_jobs):
            found.append(move_corners(LONG.encoded, turned(), LONG.alpha))
    assert (found[0].theta == found[1].theta).all()
    assert (found[0].alpha == found[1].alpha).all()


def test_rows_that_stand_for_several_count_as_often():
    times = 1 + np.arange(60) % 3
    part = LONG.encoded.take(slice(0, 60))
    tables = replace(part, weights=times.astype(float)), part.take(np.repeat(np.arange(60), times))
    found = [move_corners(table, turned(), LONG.alpha) for table in tables]
    assert np.allclose(found[0].theta, found[1].theta, atol=1e-8)


@pytest.mark.slow
def test_auto_moves_corners_of_very_long_rows_that_are_too_few_for_rounds():
    choice = choose_method("auto", LONG.encoded, 3)
    assert (choice.method, choice.rounds) == ("integrated", 0)
    assert "corners" in choice.reason
    assert not can_move(LONG.encoded.take_variables(np.arange(500)), 3)
    assert not can_move(LONG.encoded, 1)
    assert not can_move(LONG.encoded.take(slice(0, 1000)), 3)
    model = GDLM(3, alpha0=1.5, random_state=0).fit(LONG.encoded)
    plain = GDLM(3, alpha0=1.5, refine=None, random_state=0).fit(LONG.encoded)
    assert model.report_.refine.integrated.changes == []
    assert model.report_.refine.integrated.corners > 0.0
    errors = []
    for fitted in (plain, model):
        order = align_components(LONG.theta, fitted._theta)
        errors.append(np.sqrt(((fitted.memberships_[:, order] - LONG.memberships) ** 2).mean()))
    assert errors[1] < errors[0]


def test_least_squares_with_columns_of_one():
    rng = np.random.default_rng(0)
    roots, pulls = rng.normal(size=(30, 9)), rng.normal(size=(3, 3))
    curvature = roots.T @ roots
    found = _columns_of_one(curvature, pulls)
    assert np.allclose(found.sum(axis=0), 1.0)
    gradient = (pulls.ravel() - curvature @ found.ravel()).reshape(3, 3)
    assert np.allclose(gradient, gradient[0])  # the same all along a column: only its sum could gain


def test_steps_that_shrink_by_a_constant_share_are_continued_to_their_end():
    start, first = np.zeros((2, 2)), np.array([[1.0, -1.0], [0.5, 2.0]])
    assert np.allclose(_continued(start, first, 0.8 * first), first / (1.0 - 0.8))
