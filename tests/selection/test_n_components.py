"""Choosing k: what each figure says, the rule, and what is refused."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import pytest

from mixmem import InputError, choose_k, encode, simulate_gdlm
from mixmem.engine.local import threads
from mixmem.results.simulate import simulate_mixed
from mixmem.selection import n_components as choice
from mixmem.selection.compare_k import Compared, recommend
from mixmem.selection.copies import copied_variables
from mixmem.selection.n_components import Spectrum, _covariance, _notes, _reasons, _table, moment_spectrum

COLUMNS = [
    "k", "held_out", "held_out_se", "stability", "stability_worst", "splits", "worst_split", "best_split",
    "singular_value", "noise",
]  # fmt: skip


DRAWN = simulate_gdlm(30, 6, 2, random_state=0).encoded


@pytest.fixture(scope="module")
def table():
    return simulate_gdlm(500, 16, 3, random_state=0)


@pytest.fixture(scope="module")
def found(table):
    return choose_k(table.frame, (2, 5), random_state=0, n_jobs=1)


@pytest.mark.slow
def test_the_true_k_is_found_by_all_three(found):
    assert found.k == found.spectrum_k == 3
    assert list(found.table.columns) == [*COLUMNS, "recommended", "why"]
    by_k = found.table.set_index("k")
    assert list(by_k.index) == [1, 2, 3, 4, 5]
    assert by_k.index[by_k["recommended"]].tolist() == [3]
    assert by_k["held_out"].idxmax() == by_k.loc[2:, "stability_worst"].idxmax() == 3
    assert by_k.loc[:3, "why"].tolist() == ["less likely", "less likely", "recommended"]
    assert by_k.loc[4, "why"].startswith("not found again (")
    assert by_k.loc[3, "held_out_se"] == 0.0
    assert (by_k["singular_value"] > by_k["noise"]).tolist() == [False, True, True, False, False]
    assert by_k.loc[3, "stability"] > 0.9
    assert (by_k["worst_split"] <= by_k["stability_worst"]).all()
    assert (by_k["stability_worst"] <= by_k["best_split"]).all()
    assert by_k.loc[[1, 2, 5], "splits"].tolist() == [2, 2, 2]
    assert 0.1 < found.alpha0 < 0.9  # the truth is 0.3
    assert (found.n_rows, found.n_variables, found.seed) == (500, 16, 0)


@pytest.mark.slow
def test_the_reason_is_in_words(found):
    assert found.reason.startswith(
        "k = 3 is the largest number that holds: every component is found again on other rows"
    )
    assert "(the weakest agrees by 0.9" in found.reason
    assert "(than under 2 by " in found.reason
    assert "The spectrum shows the same number (2 of 5 singular values" in found.reason


@pytest.mark.slow
def test_the_same_on_any_number_of_threads_and_from_any_kind_of_table(found, table, tmp_path):
    table.frame.to_csv(tmp_path / "data.csv", index=False)
    for same in (table.frame.to_numpy(), tmp_path / "data.csv"):
        again = choose_k(same, range(2, 6), random_state=0, n_jobs=2)
        pd.testing.assert_frame_equal(again.table, found.table, check_exact=True)
        assert again.reason == found.reason


def test_alpha0_given_is_used_and_kinds_are_checked(table):
    given = choose_k(table.frame[:200], [2, 3], alpha0=0.3, variables={"x1": "ordinal"}, n_splits=1, random_state=1)
    assert given.alpha0 == 0.3
    assert "alpha0" not in given.seconds
    with pytest.raises(InputError, match="no variable 'nothing'"):
        choose_k(table.encoded, [2, 3], variables={"nothing": "ordinal"})
    with pytest.raises(InputError, match="declares 'x1' 'continuous', but the table is encoded already"):
        choose_k(table.encoded, [2, 3], variables={"x1": "continuous"})


@pytest.mark.slow
def test_tables_of_all_kinds_with_missing_cells():
    drawn = simulate_mixed(600, 3, n_categorical=6, n_count=6, n_continuous=6, missing=0.1, random_state=0)
    found = choose_k(drawn.encoded, (2, 4), alpha0=0.9, n_splits=1, random_state=0)
    assert found.k == found.spectrum_k == 3
    assert np.isfinite(found.table["held_out"]).all()


@pytest.mark.slow
def test_no_structure_gives_the_smallest_k():
    """One component is enough for independent variables, and the spectrum shows none beside it."""
    codes = np.random.default_rng(0).integers(0, 3, (400, 9))
    none = choose_k(codes, (1, 4), alpha0=1.0, n_splits=1, random_state=0)
    assert none.k == none.spectrum_k == 1
    assert np.isnan(none.table["singular_value"][0])
    assert none.table["stability"][0] == 1.0
    assert none.reason.startswith("k = 1: the variables vary as if they were independent of each other (chance alone")
    unasked = choose_k(codes, (2, 4), alpha0=1.0, n_splits=1, random_state=0)  # one is always a candidate
    pd.testing.assert_frame_equal(unasked.table, none.table)


@pytest.mark.slow
def test_the_figure_is_written(found, tmp_path):
    figure = found.plot(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert len(figure.axes) == 3


# --- The parts


def test_the_largest_k_that_holds():
    """Differences of 0 to 2 with a mean of 0.01 or 0.2, over 1000 rows: a standard error of 0.03."""
    row = np.random.default_rng(0).normal(-30.0, 5.0, 1000)  # what a row has under every k cancels
    swing = np.resize([1.0, -1.0], 1000)
    rising = np.array([row - 3.0, row - 0.2, row + swing, row + 0.01])
    chosen, held_out, error = recommend(rising, np.ones(4))
    assert chosen == 2  # the last is no better by more than the error
    np.testing.assert_allclose(held_out, rising.mean(axis=1))
    np.testing.assert_allclose(error, [*[np.sqrt(1 / 999)] * 2, 0.0, np.sqrt(1 / 999)], atol=1e-12)
    # what other rows do not show again does not hold, however likely it makes them
    assert recommend(rising, np.array([1.0, 0.9, 0.2, 0.9]))[0] == 3
    assert recommend(rising, np.array([1.0, 0.9, 0.2, 0.2]))[0] == 1
    assert recommend(rising, np.array([1.0, 0.2, 0.2, 0.2]))[0] == 0
    # what holds and makes rows less likely is passed over
    assert recommend(np.array([row - 3.0, row, row - 1.0, row + 0.5]), np.ones(4))[0] == 3


def shown(*agreements):
    """What halves show where the agreements of every k in each split, mean and least, are these."""
    return Compared(np.zeros((len(agreements), 1)), np.ones(1), [list(each) for each in agreements])


def test_reasons_for_what_is_not_plain():
    held_out, error = np.array([-9.0, -5.01, -5.0, -5.2]), np.array([0.1, 0.0, 0.002, 0.1])
    splits = [(0.9, -0.1), (0.95, 0.88), (0.97, 0.95)]
    found = [[(1.0, 1.0)], [(0.95, 0.9)], [(0.6, 0.3)], [(0.99, 0.95)]]
    spectrum = Spectrum(np.array([3.0, 2.0, 0.1, 0.1]), np.ones(4))
    table = _table([1, 4, 6, 7], 1, held_out, error, shown(*found), spectrum)
    assert table["why"].tolist() == ["less likely", "recommended", "not found again (0.30)", "less likely"]
    said = " ".join(_reasons(table, spectrum, 500, None))
    assert "(than under 1 by 3.990 ± 0.100 per row)" in said
    assert (
        "more likely still under k = 6, by 0.010 ± 0.002 per row, but its weakest component agrees by only 0.30:"
        in said
    )
    assert "in every split" not in said
    assert "The spectrum shows 3 (2 of 4 singular values" in said
    full = Spectrum(np.array([3.0, 2.0]), np.ones(2))
    table = _table([1, 4], 1, held_out[:2], error[:2], shown(found[0], splits), full)
    said = " ".join(_reasons(table, full, 500, None))
    assert "(the weakest agrees by 0.88 in the middle one of 3 splits, from 0.00 to 0.95; 0.85 is asked for" in said
    assert "But not in every split of the rows: they do not settle whether it is 4 or 1." in said
    two = [(0.97, 0.97), (0.9, 0.8), (0.99, 0.98)]  # holds, though not in every split either
    table = _table([1, 2, 4], 2, held_out[[0, 0, 1]], error[[0, 0, 1]], shown(found[0], two, splits), full)
    assert "whether it is 4 or 2." in " ".join(_reasons(table, full, 500, None))
    assert _notes([1, 4], [1, 4], 1, DRAWN, DRAWN) == ["The number is the largest tried: try larger ones."]
    assert _notes([1, 4], [1, 4], 0, DRAWN, DRAWN) == []
    assert _notes([1, 4, 5], [1, 4], 1, DRAWN, DRAWN) == ["Not tried: k = 5, more than halves of 30 rows can show."]
    assert "The spectrum shows 3 components or more (2 of 2 singular values" in said


def test_one_component_that_is_no_good_fit_says_so():
    spectrum, error = Spectrum(np.array([3.0]), np.ones(1)), np.array([0.0, 0.1])
    table = _table([1, 4], 0, np.array([-9.0, -5.0]), error, shown([(1.0, 1.0)], [(0.5, 0.3)]), spectrum)
    (said, _) = _reasons(table, spectrum, 50, None)
    assert said.startswith("k = 1 is what holds, not what fits best")
    assert (
        "more likely under k = 4, by 4.000 ± 0.100 per row (its weakest component agrees by 0.30; 0.85 is asked" in said
    )
    assert "halves of the rows, 25 each, are too few to show" in said


def test_copies_are_named_where_k_is_chosen():
    copied = encode(np.column_stack([DRAWN.codes, DRAWN.codes[:, :1]]))
    copies = copied_variables(copied, np.arange(copied.n_variables))
    (note,) = _notes([1, 4], [1, 4], 0, copied, copied, copies)
    assert note.endswith(
        "say the same in every row: copies make components of their own; leave all but one out and choose again."
    )


def test_a_table_of_counts_is_the_rows_it_stands_for():
    rows = simulate_gdlm(400, 5, 2, n_levels=2, random_state=0).frame
    counts = rows.value_counts().reset_index(name="n")
    by_weight = choose_k(encode(counts, weight="n"), (2, 3), alpha0=0.3, n_splits=1, random_state=0)
    repeated = counts.loc[counts.index.repeat(counts["n"])].drop(columns="n").reset_index(drop=True)
    by_rows = choose_k(repeated, (2, 3), alpha0=0.3, n_splits=1, random_state=0)
    pd.testing.assert_frame_equal(by_weight.table, by_rows.table)
    assert by_weight.n_rows == 400
    assert "Looked at" not in by_weight.reason


def test_two_variables_are_too_few(table):
    with pytest.raises(InputError, match="2 variables cannot tell how many components there are"):
        choose_k(table.codes[:, :2], (1, 4))


def test_covariance_is_that_of_the_levels(table):
    left, right = np.array([0, 3]), np.array([1, 2, 5])
    levels = np.arange(4)
    one, other = ((table.codes[:, side, None] == levels).reshape(500, -1) for side in (left, right))
    expected = np.cov(one.T, other.T, bias=True)[: one.shape[1], one.shape[1] :]
    np.testing.assert_allclose(_covariance(table.encoded, left, right), expected, atol=1e-14)


@pytest.mark.parametrize("k", [2, 4])
def test_singular_values_above_noise_count_the_components(k):
    drawn = simulate_gdlm(1000, 20, k, n_levels=3, alpha=0.2, random_state=3)
    with threads(1):
        spectrum = moment_spectrum(drawn.encoded, 8, np.random.default_rng(0))
    assert len(spectrum.values) == len(spectrum.noise) == 8
    assert (np.diff(spectrum.values) <= 0).all()
    assert spectrum.n_components == k


# --- Bounds and refusals


def test_of_a_large_table_a_part_is_taken_and_said(monkeypatch, table):
    monkeypatch.setattr(choice, "MOST_ROWS", 200)
    monkeypatch.setattr(choice, "MOST_VARIABLES", 12)
    monkeypatch.setattr(choice, "SPECTRUM_ROWS", 16)
    part = choose_k(table.encoded, (2, 3), alpha0=0.3, n_splits=1, random_state=0)
    assert (part.n_rows, part.n_variables) == (200, 12)
    assert part.reason.endswith("Looked at 200 of 500 rows and 12 of 16 variables.")


def test_numbers_the_variables_cannot_carry_are_left_out(table):
    few = choose_k(table.codes[:250, :4], (2, 12), alpha0=0.3, n_splits=1, random_state=0)
    assert few.table["k"].max() < 12
    assert "Not tried: k = " in few.reason
    assert few.table["singular_value"].notna().sum() < len(few.table) + 1
    with pytest.raises(InputError, match="the variables carry at most"):
        choose_k(table.codes[:, :4], (20, 30))


def test_numbers_that_halves_of_the_rows_cannot_show_are_left_out(table):
    few = choose_k(table.codes[:40], (1, 20), alpha0=0.3, n_splits=1, random_state=0)
    assert few.table["k"].tolist() == [1, 2, 3, 4, 5]
    assert "Not tried: k = 6 to 20, more than halves of 40 rows can show" in few.reason
    with pytest.raises(InputError, match="halves of 40 rows show at most 5 components, and those to try are 8 to 12"):
        choose_k(table.codes[:40], (8, 12))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k_range": (5, 3)}, "at least two numbers of components to choose from; got \\(5, 3\\)"),
        ({"k_range": [4, 4]}, "at least two numbers"),
        ({"k_range": (0, 3)}, "each at least 1"),
        ({"k_range": 5}, "got 5"),
        ({"k_range": "23"}, "got '23'"),
        ({"k_range": []}, "a list of integers"),
        ({"k_range": (2.0, 3)}, "a list of integers"),
        ({"n_splits": 0}, "n_splits must be an integer of at least 1"),
        ({"alpha0": -1}, "alpha0 must be 'auto' or a positive number"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_nonsense_is_refused(table, options, message):
    with pytest.raises(InputError, match=message):
        choose_k(table.encoded, **options)


def test_too_few_rows_are_refused(table):
    with pytest.raises(InputError, match="the table has 19 rows; choosing k compares halves of the rows"):
        choose_k(table.codes[:19] % 2, (2, 3))


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_candidates_by_joblib_have_the_same_bits(backend):
    """Processes of their own do not know of the short chains of `make coverage` (conftest.py)."""
    table, asked = simulate_gdlm(300, 9, 2, random_state=0).frame, {"alpha0": 0.3, "n_splits": 1, "random_state": 0}
    plain = choose_k(table, (2, 3), **asked)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        other = choose_k(table, (2, 3), **asked)
    pd.testing.assert_frame_equal(plain.table, other.table, check_exact=True)
