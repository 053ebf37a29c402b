"""Tables of categories, counts and continuous numbers, a fifth of the cells missing, through the whole model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mixmem import GDLM, InputError, align_components, encode, goodness_of_fit, load
from mixmem.likelihood.table import LikelihoodTable
from mixmem.results.simulate import simulate_mixed

TABLE = simulate_mixed(3000, 4, missing=0.2, random_state=1)
SMALL = simulate_mixed(800, 3, n_categorical=6, n_count=6, n_continuous=6, missing=0.1, random_state=5)
FEW = SMALL.frame[:300]
KINDS = {variable.name: variable.kind for variable in SMALL.schema.variables}
FIGURES = ["estimate", "standard_error", "lower", "upper"]

pytestmark = pytest.mark.usefixtures("quick_halves")


@pytest.fixture(scope="module")
def moments():
    return GDLM(4, alpha0=1.2, refine=None, random_state=0).fit(TABLE.encoded)


@pytest.fixture(scope="module")
def sampled():
    return GDLM(4, alpha0=1.2, refine="gibbs", random_state=0).fit(TABLE.encoded)


@pytest.fixture(scope="module")
def few_sampled():
    return small("gibbs", FEW)


def small(refine=None, table=SMALL.frame, **options):
    kinds = {name: KINDS[name] for name in table}
    return GDLM(3, alpha0=0.9, refine=refine, variables=kinds, random_state=0).fit(table, **options)


def order_of(model):
    units = LikelihoodTable(TABLE.encoded).units
    return align_components(TABLE.theta / units, model._theta / units)


def rows_of_kinds(schema):
    """Which rows of theta are probabilities, rates, means and variances."""
    counts = {"mean": "rate", "variance": "of counts"}
    labels = [
        counts[statistic] if v.kind == "count" else statistic for v in schema.variables for _, statistic in v.labels
    ]
    return {name: np.array(labels) == name for name in ("probability", "rate", "mean", "variance")}


def errors(model):
    """Root mean square errors by kind of parameter, and of the memberships."""
    order = order_of(model)
    squares = (model._theta[:, order] - TABLE.theta) ** 2
    found = {name: float(np.sqrt(squares[rows].mean())) for name, rows in rows_of_kinds(TABLE.schema).items()}
    found["memberships"] = float(np.sqrt(((model.transform(TABLE.encoded)[:, order] - TABLE.memberships) ** 2).mean()))
    return found


@pytest.mark.slow
def test_moments_recover_every_kind(moments):
    """0.0207, 0.129, 0.105, 0.295 and 0.083 when written; rates are about 4, means spread by 2, variances about 1."""
    found = errors(moments)
    assert found["probability"] < 0.03
    assert found["rate"] < 0.2
    assert found["mean"] < 0.15
    assert found["variance"] < 0.4
    assert found["memberships"] < 0.1
    assert moments.report_.converged
    assert np.abs(moments.alpha_ - 0.3).max() < 0.02


@pytest.mark.slow
def test_sampling_recovers_them_better(moments, sampled):
    """0.0200, 0.089, 0.066, 0.097 and 0.083 when written."""
    found, before = errors(sampled), errors(moments)
    assert found["probability"] < 0.025
    assert found["rate"] < 0.12
    assert found["mean"] < 0.09
    assert found["variance"] < 0.13
    assert found["memberships"] < 0.1
    assert all(found[name] < before[name] for name in ("probability", "rate", "mean", "variance"))
    assert sampled.contamination_ < 0.02
    assert sampled.score(TABLE.encoded) > moments.score(TABLE.encoded)


@pytest.mark.slow
def test_theta_is_told_by_statistic(moments):
    theta = moments.theta_
    assert theta["statistic"].value_counts().to_dict() == {"probability": 80, "mean": 40, "variance": 40}
    assert (theta[theta.variable == "real3"]["statistic"] == ["mean", "variance"]).all()
    assert (theta[theta.statistic == "variance"].iloc[:, 3:] > 0).all(axis=None)
    sums = theta[theta.statistic == "probability"].groupby("variable").sum(numeric_only=True)
    assert np.allclose(sums, 1)


@pytest.mark.parametrize("refine", [None, pytest.param("gibbs", marks=pytest.mark.slow)])
def test_units_change_nothing_but_the_units(refine, request):
    """Continuous columns times 1000: memberships differed by 2e-15 when written."""
    frame = SMALL.frame if refine is None else FEW
    reals = [name for name in frame if name.startswith("real")]
    large = frame.assign(**{name: 1000.0 * frame[name] for name in reals})
    one = small(refine, frame) if refine is None else request.getfixturevalue("few_sampled")
    other = small(refine, large)
    assert np.abs(one.transform(frame) - other.transform(large)).max() < 1e-6
    scale = [{"mean": 1e3, "variance": 1e6}[s] if v in reals else 1.0 for v, _, s in one.schema_.labels]
    assert np.allclose(other._theta, one._theta * np.array(scale)[:, None], rtol=1e-6, atol=1e-9)
    assert np.allclose(one.alpha_, other.alpha_, rtol=1e-6)
    seen = frame[reals].notna().sum(axis=1).to_numpy()
    gap = one.score_samples(frame) - other.score_samples(large) - seen * np.log(1000.0)
    assert abs(gap.mean()) < 0.05


def test_chains_are_judged_in_the_units_of_the_column():
    frame = FEW.filter(like="real")
    one, tiny = (GDLM(2, alpha0=0.9, refine="gibbs", random_state=0).fit(scale * frame) for scale in (1.0, 1e-8))
    assert tiny.report_.refine.gibbs.rhat.most > 1.001
    for figure in ("rhat", "effective_sample_size"):
        found = tiny.report_["refine"]["gibbs"][figure].to_plain()
        assert found == pytest.approx(one.report_["refine"]["gibbs"][figure].to_plain(), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("table", [SMALL, simulate_mixed(500, 3, n_categorical=50, missing=0.1, random_state=2)])
def test_weights_of_whole_numbers_are_repeated_rows(table):
    """Theta differed by 5e-14 when written; the second table is wide, so that its anchors are chosen by the rows."""
    frame = table.frame
    kinds = {variable.name: variable.kind for variable in table.schema.variables}
    weights = np.random.default_rng(0).integers(0, 4, len(frame))
    repeated = frame.loc[np.repeat(frame.index, weights)].reset_index(drop=True)
    one, other = (GDLM(3, alpha0=0.9, refine=None, variables=kinds, random_state=0) for _ in range(2))
    one.fit(frame, sample_weight=weights)
    other.fit(repeated)
    assert np.abs(one._theta - other._theta).max() < 1e-10
    assert np.abs(one.alpha_ - other.alpha_).max() < 1e-10
    assert one.score(frame, sample_weight=weights) == pytest.approx(other.score(repeated), abs=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("halves_looked_at")
def test_sampling_weighted_rows_is_sampling_repeated_ones():
    weights = np.random.default_rng(0).integers(0, 3, len(FEW))
    repeated = FEW.loc[np.repeat(FEW.index, weights)].sample(frac=1.0, random_state=0)
    one, other = small("gibbs", FEW, sample_weight=weights), small("gibbs", repeated)
    assert np.abs(one._theta - other._theta).max() < 1e-6


def test_weights_are_shares_of_the_rows():
    """Twice the weight everywhere is the same model; a row that counts for nothing is not there."""
    weights = np.random.default_rng(1).random(300) + 0.1
    one, twice = (small(table=FEW, sample_weight=times * weights) for times in (1, 2))
    assert np.abs(one._theta - twice._theta).max() < 1e-10
    weights[:100] = 0.0
    without = small(table=FEW[100:], sample_weight=weights[100:])
    assert np.abs(small(table=FEW, sample_weight=weights)._theta - without._theta).max() < 1e-10


def test_two_columns_have_no_standard_errors_without_sampling():
    model = GDLM(2, alpha0=1.0, refine=None, random_state=0).fit(TABLE.frame[["real0", "real1"]])
    with pytest.raises(InputError, match=r"two variables have no third moments.*refine='gibbs'"):
        model.intervals()


def test_the_order_of_rows_is_of_no_account():
    shuffled = FEW.sample(frac=1.0, random_state=0)
    one, other = small(table=FEW), small(table=shuffled)
    assert np.abs(one._theta - other._theta).max() < 1e-10


@pytest.mark.usefixtures("halves_looked_at")
@pytest.mark.parametrize("refine", [None, pytest.param("gibbs", marks=pytest.mark.slow)])
def test_the_same_bits_at_any_number_of_threads(refine):
    table = SMALL.frame.iloc[:530, ::2]  # more than a block of rows
    kinds = {name: KINDS[name] for name in table}
    one, two = (
        GDLM(3, alpha0=0.9, refine=refine, variables=kinds, random_state=0, n_jobs=jobs).fit(table) for jobs in (1, 2)
    )
    assert (one._theta == two._theta).all()
    assert (one.alpha_ == two.alpha_).all()
    assert (one.transform(table) == two.transform(table)).all()
    assert (one.score_samples(table) == two.score_samples(table)).all()


@pytest.mark.parametrize("refine", [None, "gibbs"])
def test_saved_models_come_back_whole(refine, tmp_path, request):
    table = FEW
    model = small(refine, table) if refine is None else request.getfixturevalue("few_sampled")
    model.save(tmp_path / "m.mixmem")
    again = load(tmp_path / "m.mixmem")
    pd.testing.assert_frame_equal(again.theta_, model.theta_, check_exact=True)
    assert again.schema_ == model.schema_
    assert again.get_params() == model.get_params()
    assert (again.transform(table) == model.transform(table)).all()
    assert (again.score_samples(table) == model.score_samples(table)).all()
    assert again.sample(50, random_state=3).equals(model.sample(50, random_state=3))
    rows = None if refine == "gibbs" else table
    pd.testing.assert_frame_equal(again.intervals(X=rows), model.intervals(), check_exact=refine == "gibbs")


@pytest.mark.slow
def test_samples_have_the_columns_types_and_means_of_the_table(moments):
    drawn, frame = moments.sample(20_000, random_state=0), TABLE.frame
    assert list(drawn.columns) == list(frame.columns)
    kinds = {variable.name: variable.kind for variable in TABLE.schema.variables}
    for name, kind in kinds.items():
        assert drawn[name].dtype == (np.float64 if kind == "continuous" else np.int64)
    assert not drawn.isna().any(axis=None)
    assert (drawn.min() >= [0 if kind != "continuous" else -np.inf for kind in kinds.values()]).all()
    assert ((drawn.mean() - frame.mean()) / frame.std()).abs().max() < 0.06  # 0.025 when written
    numbers = [name for name, kind in kinds.items() if kind != "categorical"]
    assert (drawn[numbers].std() / frame[numbers].std()).between(0.93, 1.07).all()
    assert moments.sample(5, random_state=1).equals(moments.sample(5, random_state=1))
    assert encode(drawn, moments.schema_).schema == moments.schema_


def coverage(model):
    """Share of the intervals of each kind of parameter that hold the truth."""
    table = model.intervals(level=0.95)
    assert np.isfinite(table[FIGURES].to_numpy(float)).all()
    assert (table.lower <= table.upper).all()
    theta = table[table.parameter == "theta"]
    assert (theta.standard_error > 0).all()
    truth = TABLE.theta[:, np.argsort(order_of(model))].ravel()
    holds = ((theta.lower <= truth) & (truth <= theta.upper)).to_numpy()
    return {name: holds[np.repeat(rows, 4)].mean() for name, rows in rows_of_kinds(TABLE.schema).items()}


@pytest.mark.slow
def test_intervals_of_the_moment_estimate(moments):
    """0.97, 0.98, 0.86 and 0.93 when written."""
    found = coverage(moments)
    assert all(share > 0.8 for share in found.values())
    assert found["probability"] > 0.9


@pytest.mark.slow
def test_intervals_of_the_posterior(sampled):
    """0.95, 0.98, 0.96 and 0.95 when written."""
    assert all(0.88 < share <= 1.0 for share in coverage(sampled).values())


def test_intervals_lie_where_their_statistic_can():
    table = small(table=FEW).intervals(level=0.999)
    theta = table[table.parameter == "theta"]
    assert theta.columns.tolist() == ["parameter", "variable", "level", "statistic", "component", *FIGURES]
    probability = theta[theta.statistic == "probability"]
    assert probability.lower.min() >= 0
    assert probability.upper.max() <= 1
    assert theta[theta.statistic == "variance"].lower.min() >= 0
    means = theta[theta.statistic == "mean"]
    assert means[means.variable.str.startswith("count")].lower.min() >= 0
    assert means[means.variable.str.startswith("real")].lower.min() < 0


@pytest.mark.slow
def test_membership_intervals(moments):
    table = moments.membership_intervals(TABLE.frame[:50])
    assert np.isfinite(table[FIGURES].to_numpy()).all()
    assert np.allclose(table.estimate.to_numpy().reshape(50, 4).sum(axis=1), 1)
    truth = TABLE.memberships[:50][:, np.argsort(order_of(moments))].ravel()
    assert ((table.lower <= truth + 0.02) & (truth - 0.02 <= table.upper)).mean() > 0.85


@pytest.mark.slow
def test_goodness_of_fit_is_about_one_where_the_model_holds(moments):
    """At the truth 0.99 when written; over 18 tables of one kind each, half of the cells missing, 0.98 to 1.04."""
    found = goodness_of_fit(TABLE.encoded, TABLE.theta, TABLE.alpha)
    assert 0.95 < found.misfit < 1.05
    assert found.variables["misfit"].between(0.8, 1.2).all()
    assert found.n_beyond_chance == 0
    assert found.variables["share_misfit"].mean() == pytest.approx(1.0, abs=0.3)
    fitted = moments.goodness_of_fit(TABLE.encoded)
    assert 0.7 < fitted.misfit < 1.1
    assert fitted.n_beyond_chance == 0


def test_goodness_of_fit_names_a_copied_number():
    frame = SMALL.frame.assign(copy=2.0 * SMALL.frame["real2"] + 1.0)
    model = GDLM(3, alpha0=0.9, refine=None, variables=KINDS, random_state=0).fit(frame)
    found = model.goodness_of_fit(frame)
    assert set(found.variables["variable"][:2]) == {"real2", "copy"}
    assert found.pairs.iloc[0]["z"] > 10


def test_models_of_overlapping_tables_are_aligned():
    one = small(table=SMALL.frame[:400])
    kept = SMALL.frame.iloc[400:, ::2]
    kinds = {name: kind for name, kind in KINDS.items() if name in kept}
    other = GDLM(3, alpha0=0.9, refine=None, variables=kinds, random_state=1).fit(kept)
    other.align_to(one)
    rows = one.theta_.merge(other.theta_, on=["variable", "level", "statistic"])
    means = rows[rows.statistic == "mean"]
    for h in (1, 2, 3):
        assert np.corrcoef(means[f"component_{h}_x"], means[f"component_{h}_y"])[0, 1] > 0.8
