from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import polar

from mixmem import InputError, match_columns
from mixmem.moments.matching import METHODS, angle_guarantee, procrustes_guarantee


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from(METHODS))
def test_any_permutation_is_undone(seed, k, method):
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(12, 0.5), size=k).T
    order = rng.permutation(k)
    matched = match_columns(theta, theta[:, order], method)
    assert (theta[:, order][:, matched.permutation] == theta).all()


def unit(matrix):
    return matrix / np.linalg.norm(matrix, axis=0)


@pytest.mark.parametrize(("method", "condition"), [("angle", angle_guarantee), ("procrustes", procrustes_guarantee)])
def test_permutation_is_right_whenever_the_theorem_applies(method, condition):
    """3,000 perturbed matrices, at perturbations up to where the condition fails: it held in 1,240 (angle) and 2,050
    (procrustes) of them when written, so a condition that is met in fewer than 1,000 is not the theorem's."""
    rng = np.random.default_rng(0)
    held = tight = 0
    for _ in range(3000):
        k, d = int(rng.integers(2, 9)), int(rng.integers(10, 60))
        theta = unit(rng.dirichlet(np.full(d, rng.uniform(0.1, 1.0)), size=k).T)
        noise = rng.standard_normal((d, k))
        size = 10 ** rng.uniform(-3, 0.5)
        other = unit(np.maximum(theta + size * noise / np.linalg.norm(noise, axis=0), 0.0))
        guarantee = condition(theta, other)
        if not guarantee.holds:
            continue
        held += 1
        tight += guarantee.margin < 0.05
        order = rng.permutation(k)
        matched = match_columns(theta, other[:, order], method)
        assert (order[matched.permutation] == np.arange(k)).all()
        assert not matched.assigned
        assert matched.guaranteed
    assert held >= 1000
    assert tight > 50  # the cases reach up to the theorem's edge


@pytest.mark.parametrize("angle", [0.2, 1.0, np.pi / 2])
def test_the_smallest_angle_guarantees_errors_up_to_the_bound_of_theorem_5(angle):
    """A column turned by t has the error 2 sin(t / 2); the bound is 1 - cos(angle / 4), no more and no less."""
    theta = np.array([[1.0, np.cos(angle)], [0.0, np.sin(angle)]])
    for share in (0.999, 1.001):
        turn = 2 * np.arcsin(share * (1 - np.cos(angle / 4)) / 2)
        aligned = np.stack([[np.cos(turn), np.sin(turn)], theta[:, 1]], axis=1)
        assert angle_guarantee(theta, aligned).holds == (share < 1)


@pytest.mark.parametrize("method", METHODS)
def test_repeated_argmax_becomes_an_assignment_and_is_said(method):
    """Both other columns lie nearest the first reference column: the argmax alone would give it to both."""
    theta = np.array([[1.0, 0.6], [0.0, 0.8], [0.0, 0.0]])
    other = np.array([[1.0, 0.95], [0.1, 0.0], [0.0, 0.5]])
    matched = match_columns(theta, other, method)
    assert sorted(matched.permutation.tolist()) == [0, 1]
    if method == "angle":
        assert matched.assigned
        assert not matched.guaranteed


@pytest.mark.parametrize("method", METHODS)
def test_the_permutation_is_the_argmax_or_the_best_assignment_of_the_methods_own_affinity(method):
    """Guards against the worst assignment in place of the best, and against one method with the other's affinity.

    Columns so noisy that the argmax often repeats, and often does not; all 24 permutations are tried.
    """
    rng = np.random.default_rng(2)
    everything = np.array(list(permutations(range(4))))
    n_assigned = 0
    for _ in range(200):
        theta, noise = (unit(rng.dirichlet(np.ones(5), size=4).T) for _ in range(2))
        other = unit(theta[:, rng.permutation(4)] + noise)
        affinity = other.T @ theta
        if method == "procrustes":
            affinity = polar(affinity)[0]
        matched = match_columns(theta, other, method)
        argmax = affinity.argmax(axis=0)
        assert matched.assigned == (len(set(argmax)) < 4)
        n_assigned += matched.assigned
        best = everything[affinity[everything, np.arange(4)].sum(axis=1).argmax()]
        assert (matched.permutation == (best if matched.assigned else argmax)).all()
    assert 20 < n_assigned < 180  # of 200: both ways are taken


def test_margins_fall_as_the_error_grows():
    rng = np.random.default_rng(1)
    theta = unit(rng.dirichlet(np.full(20, 0.3), size=4).T)
    noise = rng.standard_normal(theta.shape)
    found = [match_columns(theta, theta + size * noise) for size in (0.0, 0.001, 0.01, 0.1)]
    for theorem in ("angle", "procrustes"):
        margins = [getattr(match, theorem).margin for match in found]
        assert margins == sorted(margins, reverse=True)
        assert getattr(found[0], theorem).holds
        assert not getattr(match_columns(theta, noise), theorem).holds


def test_a_condition_met_at_the_permutation_found_is_met_at_no_other():
    """Which is all that a guarantee says where the truth is not known: see Guarantee."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        theta = unit(rng.dirichlet(np.full(9, 0.4), size=3).T)
        other = unit(np.maximum(theta + 10 ** rng.uniform(-3, -0.5) * rng.standard_normal(theta.shape), 0.0))
        met = [procrustes_guarantee(theta, other[:, list(order)]).holds for order in permutations(range(3))]
        assert sum(met) <= 1
        assert match_columns(theta, other).guaranteed == any(met)


def test_the_order_is_said_to_be_another():
    assert match_columns(np.eye(3), np.eye(3)[:, [2, 0, 1]]).permuted
    assert not match_columns(np.eye(3), np.eye(3)).permuted


def test_refusals():
    with pytest.raises(InputError, match="'procrustes', 'angle'; got 'nearest'"):
        match_columns(np.eye(2), np.eye(2), "nearest")
    with pytest.raises(InputError, match=r"one shape; got \(2, 2\) and \(3, 3\)"):
        match_columns(np.eye(2), np.eye(3))
