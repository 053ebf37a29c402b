"""What one half of the rows shows is held against the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mixmem import encode, simulate_gdlm, simulate_mixed
from mixmem.moments.sums import first_moments
from mixmem.selection import halves
from mixmem.selection.halves import (
    HOLDS,
    FoundAgain,
    Halves,
    agreement,
    found_again,
    gains,
    in_order,
    memory_of_halves,
)

pytestmark = pytest.mark.usefixtures("halves_looked_at")
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


def looked(table, k, alpha0=0.6, limit=None) -> FoundAgain | None:
    return found_again(table, first_moments(table), k, alpha0, memory_limit=limit)


def test_agreement_is_the_cosine_of_matched_components():
    one = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    assert agreement(one, one[:, ::-1]) == pytest.approx([1.0, 1.0])
    assert agreement(one, one * [1.0, -1.0]) == pytest.approx([1.0, -1.0])
    assert agreement(one[:, :1], -one[:, :1]) == pytest.approx([1.0])  # one component is the mean


def test_gains_weigh_rows():
    differences = np.array([[1.0, 3.0, 3.0]])
    mean, error = gains(differences[:, :2], np.array([1.0, 2.0]))
    assert mean == pytest.approx([7.0 / 3.0])
    assert gains(differences, None)[0] == pytest.approx(mean)
    assert gains(differences, None)[1] == pytest.approx(differences.std(ddof=1) / np.sqrt(3.0))
    assert error > 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_components_that_are_there_are_found_again(seed):
    for drawn in (
        simulate_gdlm(800, 20, 3, alpha=0.2, random_state=seed),
        simulate_mixed(800, 3, n_categorical=5, n_count=5, n_continuous=5, missing=0.1, random_state=seed),
    ):
        found = looked(drawn.encoded, 3)
        assert found.holds
        assert len(found.thetas) == 1
        assert found.agreements[0].min() > HOLDS
        assert found.thetas[0].shape == drawn.theta.shape
        gain, error = found.gain
        assert gain > error


def test_whole_weights_are_the_rows_that_they_stand_for():
    """Halves of counted patterns would have none in common."""
    drawn = simulate_gdlm(600, 5, 2, n_levels=2, alpha=0.1, random_state=0)
    patterns, counts = np.unique(drawn.codes, axis=0, return_counts=True)
    counted = replace(drawn.encoded.take(slice(len(patterns))), codes=patterns, weights=counts.astype(float))
    found, expected = looked(counted, 2), looked(counted.repeated("a test"), 2)
    assert np.array_equal(found.agreements[0], expected.agreements[0])
    assert found.gain == expected.gain
    assert looked(replace(counted, weights=1e7 * counted.weights), 2) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_components_too_many_make_other_rows_less_likely(seed):
    drawn = simulate_gdlm(800, 20, 2, alpha=0.05, random_state=seed)
    for k in (3, 4):
        found = looked(drawn.encoded, k, alpha0=0.1)
        gain, _ = found.gain
        assert gain < 0.0
        assert not found.holds
        assert len(found.thetas) == len(found.agreements) >= 3  # more looks, of which two are scored
        assert len(found.differences) == 2
        np.testing.assert_allclose(gain, np.mean(found.differences))


@pytest.mark.slow
def test_latent_classes_are_learned_where_moments_cannot():
    drawn = simulate_gdlm(4_000, 8, 6, n_levels=2, alpha=0.01, random_state=1)  # three groups of binary items carry 4
    found = looked(drawn.encoded, 6, alpha0=0.06)
    assert found.agreements[0].shape == (6,)
    assert np.median(found.agreements[0]) > 0.9


def test_long_rows_are_not_scored():
    drawn = simulate_gdlm(200, 250, 3, alpha=0.2, random_state=0)
    found = looked(drawn.encoded, 3)
    assert found.gain is None
    assert found.holds


def test_tables_too_small_or_too_large_are_not_looked_at(monkeypatch):
    table = simulate_gdlm(100, 12, 3, random_state=0).encoded
    assert looked(table, 3) is not None
    assert looked(table, 1) is None
    assert looked(table.take(np.arange(19)), 2) is None
    assert looked(encode(np.random.default_rng(0).integers(0, 3, (100, 2))), 2) is None
    monkeypatch.setattr("mixmem.selection.halves.MOST_WORK", 3_599)
    assert looked(table, 3) is None


def test_a_look_that_takes_more_memory_than_the_limit_is_left_and_costs_nothing():
    table = simulate_gdlm(600, 6, 2, alpha=0.2, random_state=0).encoded
    most = memory_of_halves(table, 2)
    assert looked(table, 2, limit=most) is not None
    assert looked(table, 2, limit=most - 1) is None


def sampled(table, k, **options):
    return found_again(table, first_moments(table), k, 1.0, memory_limit=None, sampled=True, **options)


@pytest.mark.slow  # chains are long enough to agree only where kernels are compiled
def test_halves_of_small_tables_are_sampled_and_end_where_chains_may_start():
    drawn = simulate_gdlm(300, 15, 2, alpha=0.2, random_state=1)
    found = sampled(drawn.encoded, 2)
    assert found.holds
    assert found.sampled
    assert len(found.starts) == 2 * len(found.thetas)
    for start in found.starts:
        assert start.account.way == "half of the rows"
        assert start.theta.shape == drawn.theta.shape
        assert start.alpha.sum() == pytest.approx(0.4, rel=1.0)  # alpha0 is drawn, not the 1 given
    fixed = sampled(drawn.encoded, 2, free_alpha0=False)
    assert [start.alpha.sum() for start in fixed.starts] == pytest.approx(np.ones(len(fixed.starts)))


@pytest.mark.parametrize(
    ("weakest", "expected"),
    [
        ([0.95], 1),
        ([0.9, 0.95, 0.9], 3),
        ([0.2, 0.3, 0.4], 3),
        ([0.2, 0.9, 0.3, 0.9, 0.9], 5),
        ([0.2, 0.9, 0.9, 0.9], 4),
        ([0.9, 0.2, 0.7, 0.3, 0.6], 5),
    ],
)
def test_splits_are_taken_until_most_say_the_same(weakest, expected, monkeypatch):
    """One that was sampled is enough only where it leaves no doubt; the middle one is what counts."""
    left, scored = iter(weakest), []

    def once(*_, scoring=True):
        scored.append(scoring)
        return FoundAgain((np.zeros((4, 2)),), (np.array([1.0, next(left)]),), None, np.ones(3), (), True)

    monkeypatch.setattr(halves, "_once", once)
    found = sampled(simulate_gdlm(100, 6, 2, random_state=0).encoded, 2)
    assert len(found.agreements) == expected
    assert found.weakest == pytest.approx(np.median(weakest))
    assert found.holds == (np.median(weakest) >= HOLDS)
    assert scored == [True, True, False, False, False][:expected]


def test_splits_depend_on_what_rows_hold_alone():
    """Neither the order of the rows nor a seed decides what is said of a table."""
    table = simulate_gdlm(200, 8, 2, alpha=0.3, random_state=3).encoded
    shuffled = table.take(np.random.default_rng(0).permutation(200))
    one, other = sampled(table, 2), sampled(shuffled, 2)
    assert len(one.thetas) == len(other.thetas)
    for each, again in zip(one.agreements, other.agreements, strict=True):
        assert np.array_equal(each, again)
    assert not np.array_equal(one.agreements[0], sampled(table, 2, splits=1).agreements[0])


def test_equal_rows_are_ordered_by_their_weights():
    rng = np.random.default_rng(0)
    table = simulate_gdlm(60, 3, 2, n_levels=2, random_state=0).encoded
    weighted = replace(table, weights=rng.uniform(0.5, 2.0, 60))
    one, other = in_order(weighted), in_order(weighted.take(rng.permutation(60)))
    assert np.array_equal(one.codes, other.codes)
    assert np.array_equal(one.weights, other.weights)


@pytest.mark.slow
def test_moments_that_leave_doubts_are_followed_by_sampling(monkeypatch):
    """Two components too weak for the moments of a half, and shown by chains."""
    table = simulate_gdlm(1500, 20, 3, alpha=0.3, random_state=5).encoded
    ways = []
    learn = Halves.learn

    def noted(self, k, alpha0, memory_limit, way="moments", free_alpha0=True):
        ways.append(way)
        found = learn(self, k, alpha0, memory_limit, way, free_alpha0)
        return replace(found, agreement=0.0 * found.agreement) if way == "moments" else found

    monkeypatch.setattr(Halves, "learn", noted)
    assert sampled(table, 3).holds
    assert ways == ["moments"] * 2 + ["sampling"] * 2


def test_long_tails_do_not_count_where_components_agree():
    rng = np.random.default_rng(0)
    which = rng.integers(0, 2, 600)
    columns = {f"c{j}": np.where(rng.random(600) < 0.9, which, 1 - which).astype(str) for j in range(8)}
    columns["size"] = np.exp(3.0 * rng.standard_normal(600))
    found = sampled(encode(pd.DataFrame(columns)), 2)
    assert min(each.min() for each in found.agreements) > 0.9
