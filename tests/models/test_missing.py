"""Missing cells through the whole model: left out, not filled in, whichever rows and columns they are in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mixmem import GDLM, encode, goodness_of_fit, rmse, simulate_gdlm
from mixmem.results.simulate import simulate_mixed

pytestmark = pytest.mark.usefixtures("quick_halves")

TABLE = simulate_gdlm(2000, 25, 3, random_state=0)
LOST = TABLE.frame.mask(np.random.default_rng(0).random(TABLE.frame.shape) < 0.3)
MIXED = simulate_mixed(600, 3, n_categorical=5, n_count=5, n_continuous=5, missing=0.15, random_state=2)
KINDS = {variable.name: variable.kind for variable in MIXED.schema.variables}


def fitted(table, refine=None, **options):
    return GDLM(3, **{"alpha0": 0.3, "refine": refine, "random_state": 0, **options}).fit(table)


@pytest.fixture(scope="module")
def mixed():
    return fitted(MIXED.frame, alpha0=0.9, variables=KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("refine", [None, "gibbs"])
def test_cells_lost_at_random_cost_accuracy_but_add_no_bias(refine):
    """Theta was off by 0.0163 (sampled 0.0151) with all cells, by 0.0204 (0.0171) with 30 % lost; filled in with the
    most frequent level by 0.123."""
    complete, lost = fitted(TABLE.frame, refine), fitted(LOST, refine)
    error = rmse(TABLE.theta, lost._theta)
    assert error < 1.5 * rmse(TABLE.theta, complete._theta)
    assert error < 0.026
    assert rmse(TABLE.memberships, lost.transform(LOST)) < 1.4 * rmse(
        TABLE.memberships, complete.transform(TABLE.frame)
    )
    if refine is None:
        filled = fitted(LOST.fillna(LOST.mode().iloc[0]).astype(int))
        assert error < 0.3 * rmse(TABLE.theta, filled._theta)


@pytest.mark.slow
def test_more_is_lost_in_some_columns_than_in_others():
    """From 0 to 80 %: the moments of each variable are made up for its own share."""
    rng = np.random.default_rng(3)
    frame = TABLE.frame.mask(rng.random(TABLE.frame.shape) < np.linspace(0.0, 0.8, 25))
    model = fitted(frame)
    assert rmse(TABLE.theta, model._theta) < 0.04
    assert np.abs(model.alpha_ - 0.1).max() < 0.02


def test_a_table_without_gaps_is_fitted_as_if_none_could_be():
    """To the last bit: floats that could hold NaN, and integers that could not."""
    frame = TABLE.frame[:300]
    one, other = fitted(frame), fitted(frame.astype(float))
    assert (one._theta == other._theta).all()
    assert (one.transform(frame) == other.transform(frame.astype(float))).all()


def test_values_declared_missing_are_missing():
    lost = LOST[:300]
    model = fitted(lost)
    marked = lost.fillna(-9).astype(int)
    declared = fitted(marked, missing=[-9])
    assert (declared._theta == model._theta).all()
    assert (declared.transform(marked) == model.transform(lost)).all()
    one_column = fitted(TABLE.frame[:300].replace({"x0": {3: 7}}), missing={"x0": [7]})
    assert one_column.schema_.variables[0].levels == ("0", "1", "2")


@pytest.mark.parametrize(
    "form", [lambda frame: frame, lambda frame: frame.astype(object), lambda frame: frame.astype("Int64")]
)
def test_gaps_in_any_form(form):
    expected = fitted(LOST[:200])
    assert (fitted(form(LOST[:200]))._theta == expected._theta).all()


def test_a_row_of_which_nothing_is_known_gets_the_mean(mixed):
    nothing = MIXED.frame[:4].astype(float)
    nothing.iloc[1] = np.nan
    x = mixed.transform(nothing)
    assert np.allclose(x[1], mixed.alpha_ / mixed.alpha0_, atol=1e-9)
    assert mixed.score_samples(nothing)[1] == 0.0
    assert (x[[0, 2, 3]] == mixed.transform(MIXED.frame[:4])[[0, 2, 3]]).all()
    everything = nothing.mask(np.ones(nothing.shape, dtype=bool))
    assert np.allclose(mixed.transform(everything), mixed.alpha_ / mixed.alpha0_, atol=1e-9)
    assert (mixed.score_samples(everything) == 0.0).all()
    assert np.isfinite(mixed.membership_intervals(everything)["estimate"]).all()


@pytest.mark.parametrize("convert", [lambda frame: frame, lambda frame: frame.astype(object)])
def test_single_rows_with_missing_cells(mixed, convert):
    """A column of which the new rows hold nothing is no error, in whatever form it comes."""
    together = mixed.transform(MIXED.frame[:20])
    for i in range(20):
        assert (mixed.transform(convert(MIXED.frame[i : i + 1])) == together[i]).all()


def test_single_rows_with_missing_texts(tmp_path):
    names = np.array(["red", "green", "blue", "none"])
    frame = pd.DataFrame({name: names[TABLE.codes[:300, j]] for j, name in enumerate(TABLE.schema.names)})
    model = fitted(frame)
    row = frame[:1].copy()
    row[["x1", "x4"]] = None
    row.to_csv(tmp_path / "row.csv", index=False)
    expected = model.transform(pd.concat([row, frame[1:5]]))[0]
    assert (model.transform(row)[0] == expected).all()
    assert (model.transform(tmp_path / "row.csv")[0] == expected).all()
    assert not np.allclose(model.transform(frame[:1])[0], expected)


@pytest.mark.slow
def test_a_model_of_complete_rows_takes_incomplete_ones():
    model = fitted(TABLE.frame)
    x = model.transform(LOST)
    assert rmse(TABLE.memberships, x) < 0.13
    whole = LOST.notna().all(axis=1).to_numpy()
    some = TABLE.frame.astype(float)
    some.loc[::2, "x3"] = np.nan
    both = model.transform(some)
    assert (both[1::2] == model.transform(TABLE.frame)[1::2]).all()
    assert whole.sum() < 20


@pytest.mark.slow
def test_samples_of_a_model_have_no_gaps():
    drawn = fitted(LOST).sample(5000, random_state=0)
    assert not drawn.isna().any(axis=None)
    assert (drawn.dtypes == LOST.dtypes).all()
    assert ((drawn == 0).mean() - (TABLE.frame == 0).mean()).abs().max() < 0.05


@pytest.mark.slow
def test_intervals_grow_where_cells_are_lost():
    rng = np.random.default_rng(5)
    frame = TABLE.frame.mask(rng.random(TABLE.frame.shape) < np.where(np.arange(25) < 5, 0.7, 0.0))
    table = fitted(frame).intervals()
    error = table[table.parameter == "theta"].groupby("variable", sort=False)["standard_error"].mean().to_numpy()
    assert error[:5].mean() > 1.4 * error[5:].mean()


@pytest.mark.slow
def test_standard_errors_where_a_variable_is_known_in_one_group_of_rows_only():
    """Left out in turn, that group leaves nothing of the variable; the others' errors stay what they are."""
    frame = TABLE.frame[:400].astype(float)
    frame.loc[np.arange(400) % 20 != 3, "x3"] = np.nan
    table, without = fitted(frame).intervals(), fitted(frame.drop(columns="x3")).intervals()
    assert np.isfinite(table[["estimate", "standard_error", "lower", "upper"]].to_numpy(float)).all()
    error = {name: part[part.parameter == "theta"] for name, part in (("with", table), ("without", without))}
    error = {name: part[part.variable != "x3"]["standard_error"].mean() for name, part in error.items()}
    assert error["with"] == pytest.approx(error["without"], rel=0.25)


def test_goodness_of_fit_of_rows_that_lack_a_column(mixed):
    frame = MIXED.frame.assign(x1=np.nan, count2=np.nan, real3=np.nan)
    found = mixed.goodness_of_fit(frame)
    assert np.isfinite(found.misfit)
    assert 0.7 < found.misfit < 1.1
    assert found.n_beyond_chance == 0


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_goodness_of_fit_is_about_one_whatever_is_lost(share):
    """Over 18 tables 0.96 to 1.04; means over other rows than the pair's made it 1.07 and 1.17."""
    drawn = simulate_mixed(3000, 4, n_count=0, n_continuous=0, missing=share, random_state=1)
    found = goodness_of_fit(drawn.encoded, drawn.theta, drawn.alpha)
    assert 0.95 < found.misfit < 1.05
    assert found.n_beyond_chance == 0


def test_goodness_counts_the_rows_in_which_both_were_observed():
    """The worst pair's observed share is that of these rows."""
    frame = LOST[:500].assign(copy=LOST["x3"])
    model = fitted(frame)
    worst = model.goodness_of_fit(frame).pairs.iloc[0]
    assert {worst.variable, worst.partner} == {"x3", "copy"}
    both = frame[["x3", "copy"]].dropna()
    assert worst.observed == pytest.approx(
        ((both["x3"] == int(worst.level)) & (both["copy"] == int(worst.partner_level))).mean()
    )


def test_missing_cells_of_a_table_do_not_change_its_schema():
    texts = TABLE.frame.astype(str)
    learned = encode(texts.where(LOST.notna(), None)).coding
    assert learned.schema == encode(texts).schema
    assert learned.missing.all()
    assert not learned.complete.missing.any()
