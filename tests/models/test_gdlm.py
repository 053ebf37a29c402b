from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import (
    check_dict_unchanged,
    check_estimators_pickle,
    check_fit_idempotent,
    check_methods_sample_order_invariance,
    parametrize_with_checks,
)

from mixmem import GDLM, FitWarning, InputError, TableWarning, load, rmse, simulate_gdlm

pytestmark = pytest.mark.usefixtures("quick_halves")

TABLE = simulate_gdlm(800, 20, 3, random_state=0)
SMALL = simulate_gdlm(150, 9, 3, random_state=0)


def fit(**options):
    return GDLM(3, alpha0=0.3, random_state=0, **options).fit(TABLE.frame)


@cache
def fitted():
    """Return one default fit, for tests that leave it as it is."""
    return fit()


@cache
def small():
    """Return a default fit of few rows, for tests that ask for the form of an answer only."""
    return GDLM(3, alpha0=0.3, random_state=0).fit(SMALL.frame)


# 1.6 hands sparse matrices to estimators that take none
SPARSE = {"check_sample_weight_equivalence_on_sparse_data": "sparse matrices are refused"}


@parametrize_with_checks(
    [GDLM(2, alpha0=1.0, refine=None, random_state=0)],
    expected_failed_checks=lambda estimator: SPARSE if sklearn.__version__.startswith("1.6.") else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [check_fit_idempotent, check_dict_unchanged, check_methods_sample_order_invariance, check_estimators_pickle],
)
def test_scikit_learn_checks_of_a_refined_model(check):
    """What sampling could break: answers that come again, methods that change nothing, models that can be kept."""
    check("GDLM", GDLM(2, alpha0=1.0, random_state=0))


def test_theta_alpha_and_report_have_their_documented_shape():
    model = small()
    assert list(model.theta_.columns) == ["variable", "level", "statistic", *(f"component_{h}" for h in (1, 2, 3))]
    columns = model.theta_.groupby("variable")[["component_1", "component_2", "component_3"]].sum()
    assert np.allclose(columns, 1)
    assert (model.theta_.iloc[:, 3:] >= 0).all(axis=None)
    assert model.alpha_.sum() == pytest.approx(0.3)
    assert model.alpha0_ == pytest.approx(0.3)
    assert (np.diff(model.alpha_) <= 0).all()
    report = model.report_
    assert report.converged
    assert 0 < report.start.blocks.negative_fraction < 0.6
    assert abs(report.start.discrepancy) < 0.1
    assert report.start.matching.anchors_kept.permutation == [0, 1, 2]
    assert {"read", "moments", "anchor block", "sweeps"} <= report.seconds.keys()


@pytest.mark.slow
def test_recovery():
    model = fitted()
    assert rmse(TABLE.theta, model.theta_.iloc[:, 3:]) < 0.045  # 0.0294 when written; sampling error alone
    assert rmse(TABLE.memberships, model.transform(TABLE.frame)) < 0.15


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        lambda frame: pl.DataFrame(frame.to_dict("list")),
        lambda frame: frame.astype(str),
        lambda frame: frame.astype("category"),
        lambda frame: frame[frame.columns[::-1]],
    ],
    ids=["pandas", "polars", "text", "category", "reordered"],
)
def test_new_rows_come_in_any_form(convert):
    model = small()
    assert (model.transform(convert(SMALL.frame)) == model.transform(SMALL.frame)).all()


@pytest.mark.slow
def test_arrays_and_frames_give_the_same_model():
    assert (fitted().alpha_ == GDLM(3, alpha0=0.3, random_state=0).fit(TABLE.codes).alpha_).all()


@pytest.mark.usefixtures("halves_looked_at")
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"n_partitions": 4, "sweeps": 0, "refine": None},
        {"n_partitions": 4, "sweeps": 2, "refine": None},
    ],
)
def test_the_same_bits_at_any_number_of_threads(options):
    table = simulate_gdlm(600, 40, 3, random_state=1).codes  # more than a block of rows
    one, two = (GDLM(3, alpha0=0.3, random_state=0, n_jobs=jobs, **options).fit(table) for jobs in (1, 2))
    assert (one.theta_.iloc[:, 3:].to_numpy() == two.theta_.iloc[:, 3:].to_numpy()).all()
    assert (one.alpha_ == two.alpha_).all()
    assert (one.transform(table) == two.transform(table)).all()
    assert (one.score_samples(table) == two.score_samples(table)).all()


@pytest.mark.slow
def test_the_same_bits_with_alpha0_estimated_and_another_seed_differs():
    one, two, other = (
        GDLM(3, random_state=seed, n_jobs=jobs).fit(TABLE.codes) for seed, jobs in ((0, 1), (0, 2), (1, 2))
    )
    assert one.alpha0_ == two.alpha0_ != other.alpha0_
    assert (one.alpha_ == two.alpha_).all()


def test_blocks_that_start_at_random_are_matched_to_what_the_anchors_start_gives():
    table = simulate_gdlm(2000, 60, 3, random_state=2)
    options = {"alpha0": 0.3, "n_partitions": 8, "sweeps": 0, "refine": None, "random_state": 0}
    found = {way: GDLM(3, block_start=way, **options).fit(table.encoded) for way in ("random", "anchors")}
    matching = {way: model.report_.start.matching for way, model in found.items()}
    assert matching["random"].permuted >= 3  # of 8; a random order of three is another one in 5 of 6
    assert matching["anchors"].permuted == 0
    assert matching["random"].guaranteed == 8
    assert np.abs(found["random"]._theta - found["anchors"]._theta).max() < 1e-2


def test_rounds_and_tolerance_reach_the_blocks():
    table = simulate_gdlm(500, 60, 3, random_state=2).encoded
    options = {"alpha0": 0.3, "n_partitions": 3, "sweeps": 0, "refine": None, "random_state": 0}
    with pytest.warns(FitWarning, match="max_iter=2"):
        short = GDLM(3, max_rounds=2, **options).fit(table)
    assert {block.sweeps for block in short.report_.start.blocks.each} == {2}
    loose, tight = (GDLM(3, tol=tol, **options).fit(table).report_.start.blocks for tol in (1e-2, 1e-7))
    assert sum(block.sweeps for block in loose.each) < sum(block.sweeps for block in tight.each)


def test_the_anchors_condition_is_reported():
    table = simulate_gdlm(500, 9, 3, random_state=2)
    groups = [list(table.schema.names[3 * m : 3 * m + 3]) for m in range(3)]
    model = GDLM(3, alpha0=0.3, anchors=groups, refine=None, random_state=0).fit(table.encoded)
    for condition, rows in zip(model.report_.start.plan.condition, np.split(model._theta, 3), strict=True):
        assert condition == pytest.approx(np.linalg.cond(rows / np.linalg.norm(rows, axis=0)), rel=1e-6)


def test_alpha0_is_checked_beside_a_given_one():
    table = simulate_gdlm(600, 15, 2, alpha=0.1, random_state=0)
    model = GDLM(2, alpha0=8.0, check_alpha0=True, refine=None, random_state=0).fit(table.encoded)
    assert model.alpha0_ == pytest.approx(8.0)
    assert model.report_.alpha0.checked < 1.0
    assert not model.report_.alpha0.estimated
    assert "alpha0-differs" in [notice.code for notice in model.report_.warnings]
    assert GDLM(2, alpha0=8.0, refine=None, random_state=0).fit(table.encoded).report_.alpha0.checked is None


@pytest.mark.slow
def test_the_papers_way_matches_every_block():
    table = simulate_gdlm(3000, 80, 3, random_state=2)
    model = GDLM(3, alpha0=0.3, n_partitions=10, sweeps=0, refine=None, random_state=0).fit(table.codes)
    start = model.report_.start
    assert start.blocks.count == 11
    assert start.blocks.converged == 11
    assert start.matching.blocks == 10
    assert start.matching.guaranteed == 10
    assert start.sweeps is None
    assert rmse(table.theta, model.theta_.iloc[:, 3:]) < 0.02  # 0.0133 when written


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["wnmf", "pqp", "hals", "tpm", "nojd0", "nojd1", "meld"])
@pytest.mark.parametrize("matching", ["angle", "procrustes"])
def test_solvers_and_matchings_in_the_papers_way(solver, matching):
    table = simulate_gdlm(3000, 40, 3, random_state=2)
    model = GDLM(
        3, alpha0=0.3, n_partitions=3, sweeps=0, solver=solver, matching=matching, n_restarts=4, refine=None,
        random_state=0,
    ).fit(table.codes)  # fmt: skip
    assert rmse(table.theta, model.theta_.iloc[:, 3:]) < 0.02  # 0.0134 to 0.0140 when written


def test_one_component_is_the_mean():
    model = GDLM(1, alpha0=1.0, random_state=0).fit(TABLE.codes)
    shares = np.concatenate([np.bincount(TABLE.codes[:, j], minlength=4) / 800 for j in range(20)])
    assert np.allclose(model.theta_["component_1"], shares)
    assert (model.transform(TABLE.codes) == 1).all()


@pytest.mark.slow
def test_likelihood_prefers_the_model_that_made_the_rows():
    model = fitted()
    fresh = simulate_gdlm(800, 20, 3, random_state=9).frame
    assert model.score(TABLE.frame) > model.score(fresh) + 1
    assert model.score(TABLE.frame) == pytest.approx(model.score_samples(TABLE.frame).mean())


@pytest.mark.slow
def test_samples_look_like_the_table():
    model = fitted()
    drawn = model.sample(20_000, random_state=0)
    assert list(drawn.columns) == list(TABLE.frame.columns)
    gap = (drawn == 0).mean() - (TABLE.frame == 0).mean()
    assert gap.abs().max() < 0.05
    assert model.sample(5, random_state=1).equals(model.sample(5, random_state=1))


def test_saved_models_come_back_whole(tmp_path):
    model = small()
    model.save(tmp_path / "m.mixmem")
    again = load(tmp_path / "m.mixmem")
    assert again.get_params() == model.get_params()
    assert again.report_ == model.report_
    pd.testing.assert_frame_equal(again.theta_, model.theta_)
    assert (again.transform(SMALL.frame) == model.transform(SMALL.frame)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1; got 0"),
        ({"n_components": 2.5}, "n_components must be an integer"),
        ({"alpha0": -1}, "alpha0 must be 'auto' or a positive number from 1e-6 to 1e6; got -1"),
        ({"alpha0": 1e300}, "alpha0 must be 'auto' or a positive number from 1e-6 to 1e6; got 1e"),
        ({"alpha0": "some"}, "alpha0 must be 'auto'"),
        ({"sweeps": -1}, "sweeps must be 'auto' or an integer of at least 0"),
        ({"n_partitions": 0}, "n_partitions must be 'auto' or an integer of at least 1"),
        ({"solver": "magic"}, "solver must be one of 'pqp'"),
        ({"matching": "luck"}, "matching must be one of 'procrustes', 'angle'; got 'luck'"),
        ({"refine": "magic"}, "refine must be None, 'auto', 'gibbs', 'integrated' or 'em'; got 'magic'"),
        ({"contamination": 1.0}, "contamination must be 'auto' or a share from 0 to less than 1; got 1.0"),
        ({"n_jobs": 0}, "n_jobs must be None"),
        ({"memory_limit": "much"}, "memory_limit must be None or a number of bytes, such as 2000000000 or '2GB'"),
        ({"memory_limit": 0}, "memory_limit must be None"),
        ({"memory_limit": True}, "memory_limit must be None"),
        ({"random_state": "x"}, "random_state must be None"),
        ({"variables": {"x99": "ordinal"}}, "no variable 'x99'"),
        ({"variables": {"x1": "vague"}}, "'x1' is declared 'vague'; expected one of categorical"),
        ({"n_components": 40, "n_partitions": 2}, "more than the anchors can carry"),
        ({"solver": "lee_seung"}, "'lee_seung' needs a tensor without negative entries"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        GDLM(**{"n_components": 3, "alpha0": 0.3, "random_state": 0, **options}).fit(TABLE.frame)


def test_unknown_levels_count_as_missing_or_are_refused_by_name():
    new, gap = SMALL.frame.copy(), SMALL.frame.astype(float)
    new.loc[7, "x3"], gap.loc[7, "x3"] = 9, np.nan
    model = small()
    with pytest.warns(TableWarning, match="1 cell of column 'x3' holds a level that .* such as '9'"):
        found = model.transform(new)
    np.testing.assert_array_equal(found, model.transform(gap))
    with pytest.raises(InputError, match=r"'x3', row 8 .*holds '9', a level the model does not know"):
        model.impute(new)  # what a cell holds is not overwritten
    model.set_params(handle_unknown="error")
    with pytest.raises(InputError, match=r"'x3', row 8 .*holds '9', a level the model does not know"):
        model.transform(new)
    model.set_params(handle_unknown="missing")


def test_columns_of_no_use_are_left_out_of_bare_arrays_too(tmp_path):
    useless = np.column_stack(
        [SMALL.codes[:, :4], np.ones(len(SMALL.codes)), SMALL.codes[:, 4:], np.zeros(len(SMALL.codes))]
    )
    with pytest.warns(TableWarning, match="column 'x4' is constant"):
        model = GDLM(2, alpha0=0.5, refine=None, random_state=0).fit(useless)
    assert model.schema_.left_out == ("x4", f"x{useless.shape[1] - 1}")
    assert model.n_features_in_ == useless.shape[1]
    model.save(tmp_path / "m.mixmem")
    np.testing.assert_array_equal(load(tmp_path / "m.mixmem").transform(useless), model.transform(useless))
    np.testing.assert_array_equal(
        model.transform(np.delete(useless, [4, useless.shape[1] - 1], axis=1)), model.transform(useless)
    )
    with pytest.raises(InputError, match="features"):
        model.transform(useless[:, :3])


def test_a_fit_that_does_not_settle_warns(monkeypatch):
    monkeypatch.setattr("mixmem.moments.estimate.MOST_SWEEPS", 1)
    with pytest.warns(ConvergenceWarning, match="did not converge: stopped after 1 sweep,"):
        assert not fit(refine=None).report_.converged


def test_equal_rows_get_equal_likelihoods():
    model = small()
    twice = pd.concat([SMALL.frame[:50], SMALL.frame[:50][::-1]])
    scores = model.score_samples(twice)
    assert (scores[:50] == scores[50:][::-1]).all()


def test_declared_kinds_stand_in_the_schema():
    assert fit(variables={"x3": "ordinal"}, refine=None).schema_.variables[3].kind == "ordinal"


def test_verbose_speaks_on_standard_error_only(capfd):
    fit(verbose=True, refine=None)
    out, err = capfd.readouterr()
    assert out == ""
    assert "mixmem: sweeps:" in err


def test_importing_the_package_is_light():
    code = "import mixmem, sys; sys.exit(any(m in sys.modules for m in ('numba', 'pandas', 'polars', 'sklearn')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_one_component_has_no_alpha0_to_look_for():
    model = GDLM(1, random_state=0).fit(TABLE.frame)
    assert model.alpha0_ == 1.0
    assert not model.report_.alpha0.estimated


def test_blocks_by_joblib_have_the_same_bits():
    settings = {"n_partitions": 4, "sweeps": 0, "refine": None}
    plain = fit(**settings)
    with joblib.parallel_config(backend="threading", n_jobs=3):
        other = fit(**settings)
    assert np.array_equal(plain._theta, other._theta)


def test_numbers_that_are_none_are_not_handed_out(monkeypatch):
    import mixmem.models._learner as learner

    honest = learner.refine

    def broken(*given, **options):
        found = honest(*given, **options)
        return replace(found, theta=np.full_like(found.theta, np.nan))

    monkeypatch.setattr(learner, "refine", broken)
    with pytest.raises(InputError, match=r"the fit broke down.*try fewer components, give alpha0"):
        GDLM(2, alpha0=0.4, refine=None, random_state=0).fit(np.random.default_rng(0).integers(0, 3, (60, 6)))
