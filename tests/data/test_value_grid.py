"""Columns of numbers: codes, values that are gathered, and knots."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.data.value_grid import EXTREMES, MOST_VALUES, Taken, measure, rounded

RNG = np.random.default_rng(0)


def test_few_values_are_kept_as_they_are():
    column = np.array([3.0, np.nan, -1.5, 3.0, 0.0])
    found = measure(column)
    assert found.values.tolist() == [-1.5, 0.0, 3.0]
    assert found.codes.tolist() == [2, 3, 0, 2, 1]
    assert found.missing
    assert not measure(column[[0, 2, 3]]).missing


def test_exactly_as_many_as_are_kept():
    column = RNG.permutation(np.arange(MOST_VALUES) ** 1.5)
    found = measure(column)
    assert (found.values[found.codes] == column).all()


@pytest.mark.parametrize("draw", [RNG.standard_normal(100_000), RNG.lognormal(0.0, 1.0, 100_000)])
def test_gathered_values_keep_mean_and_variance(draw):
    found = measure(draw)
    assert len(found.values) <= MOST_VALUES
    assert (np.diff(found.values) > 0).all()
    assert (np.diff(found.knots) > 0).all()
    held = found.values[found.codes]
    assert held.mean() == pytest.approx(draw.mean(), abs=1e-12)
    assert held.var() == pytest.approx(draw.var(), rel=1e-3)
    order = np.sort(draw)
    assert (found.values[:EXTREMES] == order[:EXTREMES]).all()  # the extremes are kept
    assert (found.values[-EXTREMES:] == order[-EXTREMES:]).all()
    assert (np.diff(held[np.argsort(draw)]) >= 0).all()  # and so is the order


def test_gathering_where_one_value_is_most_of_the_column():
    column = np.where(RNG.random(50_000) < 0.7, 0.0, RNG.lognormal(0.0, 1.0, 50_000))
    found = measure(column)
    assert len(found.values) <= MOST_VALUES
    assert found.values[0] == 0.0
    assert (found.values[found.codes] == 0.0).sum() == (column == 0.0).sum()
    assert found.values[found.codes].mean() == pytest.approx(column.mean(), abs=1e-12)


def test_far_from_zero_no_digits_are_lost():
    column = 1e9 + RNG.standard_normal(20_000)
    held = measure(column)
    assert held.values[held.codes].var() == pytest.approx(column.var(), rel=1e-3)
    assert (np.diff(held.values) > 0).all()


def test_knots_split_the_cells():
    found = measure(np.arange(300.0))
    assert found.knots == (0.0, pytest.approx(100, abs=1.5), pytest.approx(200, abs=1.5), 299.0)


@pytest.mark.parametrize(
    "column",
    [
        np.array([0.0, 1.0] * 20),
        np.array([0.0] * 50 + [1.0]),
        np.array([0.0] * 50 + [1.0, 2.0]),
        RNG.poisson(0.3, 99) * 1.0,
    ],
)
def test_knots_are_strictly_increasing(column):
    found = measure(column)
    assert (np.diff(found.knots) > 0).all()
    assert (found.knots[0], found.knots[-1]) == (column.min(), column.max())


def test_counts_of_rare_events_get_inner_knots():
    """Three quarters are zero: the quantiles of all cells say nothing, those of the others do."""
    column = np.where(RNG.random(4000) < 0.75, 0, 1 + RNG.poisson(6.0, 4000)).astype(float)
    found = measure(column)
    assert len(found.knots) == 4
    assert (np.diff(found.knots) > 0).all()
    assert np.mean(column[column > 0] <= found.knots[1]) == pytest.approx(1 / 3, abs=0.15)


# --- Resolution, atoms, cells far out


def test_the_resolution_is_the_step_in_which_values_differ():
    assert measure(RNG.poisson(30.0, 500).astype(float)).resolution == 1.0
    assert measure(np.append(RNG.poisson(30.0, 500), 30.01)).resolution == 1.0  # whatever an odd one does
    assert measure(np.array([0.0, 0.5, 1.0, 0.5])).resolution == 0.5
    assert measure(RNG.standard_normal(5000)).resolution < 1e-2
    assert measure(np.array([3.0, 3.0])).resolution == 0.0
    weights = np.array([1.0, 1.0, 9.0, 9.0])
    assert measure(np.array([0.0, 1.0, 10.0, 20.0]), weights).resolution == 9.0


def atoms_of(column, **others):
    return measure(np.asarray(column, dtype=float), taken=Taken(atoms=None, **others)).atoms


def test_atoms_are_values_that_a_large_share_holds_and_no_neighbour_does():
    whole = np.rint(RNG.normal(38.0, 12.0, 2000))
    assert atoms_of(whole) == ()
    assert atoms_of(np.rint(RNG.normal(0.0, 0.8, 2000))) == ()  # narrow, not an atom: its neighbours have their share
    assert atoms_of(np.where(RNG.random(2000) < 0.3, 40.0, whole)) == (40.0,)
    readings = RNG.normal(130.0, 18.0, 2000)
    assert (
        atoms_of(np.where(RNG.random(2000) < 0.6, 10.0 * np.rint(0.1 * readings), np.rint(readings))) == ()
    )  # to tens
    ends = np.where(RNG.random(2000) < 0.5, RNG.choice([0.0, 1.0], 2000), RNG.random(2000))
    assert atoms_of(ends) == (0.0, 1.0)
    assert atoms_of(np.where(RNG.random(2000) < 0.05, 40.0, RNG.normal(38.0, 12.0, 2000))) == ()  # few
    assert atoms_of([0.0] * 9 + [0.3, 1.7]) == ()  # few cells
    assert atoms_of([0.0] * 50 + [1.0] * 40 + [5.0]) == ()  # nothing would be left to be a number
    assert measure(np.array([40.0] * 50 + [1.0, 2.5])).atoms == ()  # not asked for


def test_nothing_is_gathered_with_an_atom_nor_rounded_to_it():
    column = np.where(RNG.random(30_000) < 0.02, 0.0, RNG.standard_normal(30_000))
    found = measure(column, taken=Taken(atoms=(0.0,)))
    assert len(found.values) <= MOST_VALUES + 2
    at = int(np.flatnonzero(found.values == 0.0)[0])
    assert ((found.codes == at) == (column == 0.0)).all()
    near = np.nextafter(0.0, [-1.0, 1.0])
    assert rounded(np.array([near[0], 0.0, near[1]]), found.edges, len(found.values)).tolist() == [at - 1, at, at + 1]


@pytest.mark.parametrize("n", [100, 2000])
def test_far_cells_leave_the_knots_where_they_are(n):
    column = RNG.standard_normal(n)
    fenced = Taken(fenced=True)
    before = measure(column, taken=fenced).knots
    assert (before[0], before[-1]) == (column.min(), column.max())
    column[7] = 85.0
    after = measure(column, taken=fenced).knots
    assert after[-1] < 5.0
    assert np.allclose(before, after, atol=0.3)
    assert measure(column).knots[-1] == 85.0
    tailed = RNG.lognormal(0.0, 1.0, 2000)  # a long tail is not far out
    assert np.mean(tailed > measure(tailed, taken=fenced).knots[-1]) < 0.002


@pytest.mark.parametrize("column", [RNG.standard_normal(5000), RNG.poisson(3.0, 5000).astype(float)])
def test_units_do_not_matter(column):
    one, thousand = measure(column), measure(1024.0 * column)
    assert (one.codes == thousand.codes).all()
    assert np.allclose(1024.0 * one.values, thousand.values, rtol=1e-14)
    assert np.allclose(1024.0 * np.array(one.knots), thousand.knots, rtol=1e-14)
    moved = measure(column + 100.0)
    assert np.allclose(np.array(one.knots) + 100.0, moved.knots)


def test_missing_cells_do_not_move_the_others():
    column = RNG.standard_normal(3000)
    gone = RNG.random(3000) < 0.3
    found, rest = measure(np.where(gone, np.nan, column)), measure(column[~gone])
    assert found.knots == rest.knots
    assert (found.values == rest.values).all()
    assert (found.codes[~gone] == rest.codes).all()
    assert (found.codes[gone] == len(found.values)).all()


def test_a_column_of_which_nothing_is_known():
    found = measure(np.full(4, np.nan))
    assert found.codes.tolist() == [0, 0, 0, 0]
    assert found.missing
    assert found.knots == ()
