"""Numbers as tables have them: values that half of the rows hold, cells far out, few distinct values, whole numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mixmem import GDLM, align_components, encode, learn_coding, load
from mixmem.cli import main
from mixmem.results.distinctive import spread_of_variables

pytestmark = pytest.mark.usefixtures("quick_halves")

K, ALPHA = 3, 0.3
WAYS = [None, "em", pytest.param("gibbs", marks=pytest.mark.slow)]
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


def drawn(seed, n_rows=1500, n_columns=10):
    """Continuous columns, and a function that draws a component for a cell of every row."""
    rng = np.random.default_rng(seed)
    memberships = rng.dirichlet(np.full(K, ALPHA), n_rows)
    edges = np.cumsum(memberships, axis=1)[:, :-1]

    def component():
        return np.sum(rng.random((n_rows, 1)) > edges, axis=1)

    means = rng.normal(0.0, 2.0, (n_columns, K))
    frame = pd.DataFrame({f"y{j}": means[j][component()] + rng.standard_normal(n_rows) for j in range(n_columns)})
    return frame, component, rng, memberships


def with_hours(seed):
    """Beside them weekly hours: 40 in half of the rows, whole numbers about 30, 40 or 50 in the others."""
    frame, component, rng, memberships = drawn(seed)
    of = component()
    others = np.clip(np.rint(np.array([30.0, 40.0, 50.0])[of] + 10.0 * rng.standard_normal(len(frame))), 1, 99)
    usual = rng.random(len(frame)) < np.array([0.7, 0.5, 0.3])[of]
    return frame.assign(hours=np.where(usual, 40, others).astype(int)), memberships


def fitted(frame, refine, **others):
    return GDLM(K, alpha0=K * ALPHA, refine=refine, random_state=0, **others).fit(frame)


# --- Atoms


@pytest.mark.parametrize("refine", WAYS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_value_that_half_of_the_rows_hold_spends_no_component(seed, refine):
    frame, memberships = with_hours(seed)
    model = fitted(frame, refine)
    order = align_components(memberships, model.memberships_)
    own = model.theta_[model.theta_["variable"] == "hours"]
    assert list(zip(own["level"], own["statistic"], strict=True)) == [
        ("40", "probability"), ("other", "probability"), ("other", "mean"), ("other", "variance"),
    ]  # fmt: skip
    found = own.filter(like="component_").to_numpy()[:, order]
    assert np.allclose(found[:2].sum(axis=0), 1.0)
    assert np.abs(found[0] - [0.7, 0.5, 0.3]).max() < 0.12  # sampling error is about 0.03
    assert np.abs(found[2] - [30.0, 40.0, 50.0]).max() < 5.0  # about 1
    assert (np.sqrt(found[3]) > 6.0).all()
    assert (np.sqrt(found[3]) < 14.0).all()


@pytest.fixture(scope="module")
def hours():
    frame, _ = with_hours(0)
    frame["hours"] = frame["hours"].astype(float).mask(np.random.default_rng(1).random(len(frame)) < 0.1)
    return frame


@pytest.fixture(scope="module")
def model(hours):
    return fitted(hours, None)


@pytest.mark.slow
def test_atoms_go_through_every_stage(hours, model, tmp_path):
    filled = model.impute(hours)["hours"]
    assert not filled.isna().any()
    assert (filled[hours["hours"].notna()] == hours["hours"].dropna()).all()
    put = filled[hours["hours"].isna()]
    assert 0.2 < (put == 40.0).mean() < 0.9
    rows = model.sample(2000, random_state=0)
    assert (rows["hours"] == 40.0).mean() == pytest.approx(0.5, abs=0.08)
    assert model.goodness_of_fit(hours).misfit < 1.5
    intervals = model.intervals()
    own = intervals[intervals["variable"] == "hours"]
    assert len(own) == 4 * K
    assert ((own["lower"] <= own["estimate"]) & (own["estimate"] <= own["upper"])).all()
    assert (own.loc[own["statistic"] == "probability", "upper"] <= 1.0).all()
    model.save(tmp_path / "m.mixmem")
    again = load(tmp_path / "m.mixmem")
    assert again.coding_ == model.coding_
    assert np.array_equal(again.transform(hours), model.transform(hours))
    assert np.array_equal(model.transform(hours[:7]), model.transform(hours)[:7])  # whatever other rows there are
    assert model.score_samples(hours[:7]).shape == (7,)
    assert np.isfinite(model.score_samples(hours[:7])).all()
    assert model.membership_intervals(hours[:3]).shape == (3 * K, 6)


def test_atoms_in_rows_that_hold_none(model, hours):
    """A new table need not hold the atom, nor anything but it."""
    without, alone = hours[hours["hours"] != 40.0][:20], hours[hours["hours"] == 40.0][:20]
    for part in (without, alone):
        assert np.allclose(model.transform(part), model.transform(hours)[part.index], atol=1e-9)


def test_atoms_on_the_command_line(hours, tmp_path, capsys):
    hours.to_csv(tmp_path / "d.csv", index=False)
    assert main(["info", str(tmp_path / "d.csv")]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("hours"))
    assert "continuous" in line
    assert ", 40 in 5" in line
    out = tmp_path / "fit"
    words = ["fit", str(tmp_path / "d.csv"), "-k", "3", "--alpha0", "0.9", "--refine", "none", "--quiet"]
    assert main([*words, "--out", str(out)]) == 0
    theta = pd.read_csv(out / "theta.csv", dtype={"level": str})
    assert theta[theta["variable"] == "hours"]["level"].tolist() == ["40", "other", "other", "other"]
    page = (out / "report.html").read_text()
    assert '["40","other"]' in page
    assert "the mean of a number" in page
    assert main(["report", str(out)]) == 0


def test_atoms_give_the_same_bits_at_any_number_of_threads(hours, model):
    assert np.array_equal(fitted(hours, None, n_jobs=1)._theta, model._theta)
    assert np.array_equal(fitted(hours, None, n_jobs=2)._theta, model._theta)


def test_rows_that_stand_for_two_are_two_rows(hours):
    twice = np.where(np.arange(len(hours)) % 3 == 0, 2, 1)
    weighted = GDLM(K, alpha0=0.9, refine=None, random_state=0).fit(hours, sample_weight=twice)
    repeated = fitted(hours.loc[np.repeat(hours.index, twice)].reset_index(drop=True), None)
    assert weighted.coding_ == repeated.coding_
    assert np.allclose(weighted._theta, repeated._theta, rtol=1e-6, atol=1e-9)


def test_codings_of_parts_and_files_agree(hours):
    whole = encode(hours).coding
    assert learn_coding(hours[:700], hours[700:]) == whole
    column = whole.columns[-1]
    assert column.levels == ("40",)
    assert column.resolution == 1.0
    new = encode(hours.assign(hours=40.4), coding=whole).codes[0, -1]
    assert column.values[new] != 40.0  # nothing is rounded to an atom


# --- Resolution


@pytest.mark.parametrize("refine", WAYS, ids=str)
def test_no_spread_below_the_resolution(refine):
    """A component that holds one whole number alone."""
    frame, component, rng, _ = drawn(5)
    of = component()
    years = np.where(of == 0, 20.0, np.rint(35.0 + 12.0 * rng.standard_normal(len(frame))))
    model = fitted(frame.assign(years=years), refine, variables={"years": "continuous"})
    theta = model.theta_
    own = theta[(theta["variable"] == "years") & (theta["statistic"] == "variance")].filter(like="component_")
    assert (np.sqrt(own.to_numpy()) >= 1.0 / np.sqrt(12.0) - 1e-12).all()


# --- Cells far out


@pytest.mark.parametrize("refine", WAYS, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_far_cell_leaves_the_other_rows_as_they_are(seed, refine):
    frame, *_ = drawn(seed)
    before = fitted(frame, refine).transform(frame)
    for far in (85.0, 1e6):
        changed = frame.copy()
        changed.loc[7, "y3"] = frame["y3"].mean() + far * frame["y3"].std()
        after = fitted(changed, refine).transform(changed)
        change = np.abs(before - after[:, align_components(before, after)])
        change[7] = 0.0
        assert change.max() < 0.02


# --- Few distinct values


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_of_few_values_are_categories(seed):
    frame, component, rng, _ = drawn(seed)
    half = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]])[component()]
    level = np.sum(rng.random((len(frame), 1)) > np.cumsum(half, axis=1)[:, :-1], axis=1)
    model = fitted(frame.assign(share=level / 2.0), None)
    variable = model.schema_.variables[-1]
    assert (variable.levels, variable.value_type) == (("0", "0.5", "1"), "float")
    spread = spread_of_variables(model._theta, model.schema_.labels, model.alpha_)
    assert spread[-1] < np.median(spread[:-1])


def test_what_numbers_of_few_values_are_taken_for(tmp_path, capsys):
    rng = np.random.default_rng(0)
    grades = rng.choice(np.arange(2.0, 6.5, 0.5), 400)
    frame = pd.DataFrame({"grade": grades, "share": rng.choice([0.0, 0.5, 1.0], 400), "size": rng.normal(size=400)})
    kinds = {variable.name: variable.kind for variable in encode(frame).schema.variables}
    assert kinds == {"grade": "categorical", "share": "categorical", "size": "continuous"}
    few = {variable.name: variable.kind for variable in encode(frame[:60]).schema.variables}
    assert few == {"grade": "continuous", "share": "categorical", "size": "continuous"}  # too few cells per value
    declared = encode(frame, kinds={"share": "continuous"}).coding.columns[1]
    assert (declared.levels, declared.resolution) == ((), 0.5)
    frame.to_csv(tmp_path / "d.csv", index=False)
    assert main(["info", str(tmp_path / "d.csv")]) == 0
    said = "".join(capsys.readouterr())
    assert (
        "'grade' holds 9 distinct numbers and is taken for categories: if it is a measurement, say "
        "--kind grade=continuous" in said
    )
    assert "'share' holds" not in said


@pytest.mark.slow
def test_a_value_that_one_component_never_holds_can_be_sampled():
    """The moments give it no chance at all there; categories beside it have noise to be drawn."""
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=400)
    columns = {f"c{j}": np.where(rng.random(400) < 0.9, group, 1 - group).astype(str) for j in range(8)}
    columns["x"] = np.where((group == 1) & (rng.random(400) < 0.8), 0.0, rng.normal(3.0, 1.0, 400))
    model = GDLM(2, alpha0=0.3, refine="gibbs", random_state=0).fit(pd.DataFrame(columns))
    share = model.theta_.query("variable == 'x' and level == '0'").filter(like="component_").to_numpy().ravel()
    assert share.min() < 0.05
    assert share.max() > 0.6
