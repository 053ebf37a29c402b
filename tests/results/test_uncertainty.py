"""Standard errors and intervals: right where the answer is known, kept with the model, refused where there are none."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
from scipy import stats

from mixmem import GDLM, Coding, InputError, Schema, Variable, align_components, load, simulate_gdlm
from mixmem.data.encode import Encoded
from mixmem.progress import Progress
from mixmem.refinement.choose import choose_method
from mixmem.results.uncertainty import (
    GROUPS,
    beta_interval,
    effective_draws,
    jackknife,
    of_draws,
    symmetric_interval,
)

pytestmark = pytest.mark.usefixtures("quick_halves")

TABLE = simulate_gdlm(1000, 15, 3, random_state=5)


def model(**options):
    return GDLM(3, **{"alpha0": 0.3, "random_state": 0, **options}).fit(TABLE.encoded)


@cache
def default():
    """Return one default fit, for tests that leave it as it is."""
    return model()


@cache
def refined(refine):
    """Return one fit per way of refining, for tests that leave it as it is but for its errors, once asked for."""
    return model(refine=refine)


def coverage(fitted):
    order = np.argsort(align_components(TABLE.theta, fitted._theta))
    table = fitted.intervals(level=0.95)
    table = table[table.parameter == "theta"]
    truth = TABLE.theta[:, order].ravel()
    return np.mean((table.lower <= truth) & (truth <= table.upper))


def test_errors_of_one_component_are_those_of_shares():
    fitted = GDLM(1, alpha0=1.0, refine=None, random_state=0).fit(TABLE.encoded)
    table = fitted.intervals()
    theta = table[table.parameter == "theta"]
    expected = np.sqrt(theta.estimate * (1 - theta.estimate) / 1000)
    assert abs(np.median(theta.standard_error / expected) - 1.0) < 0.15


def test_the_jackknife_of_a_mean_is_the_error_of_a_mean_of_groups():
    """Guards the factor sqrt(groups - 1). Theta of one component is the mean of cells; for a mean over groups of one
    size the jackknife's error is that of the mean of the groups' means, exactly."""
    shares = np.eye(4)[TABLE.codes].mean(axis=0).reshape(-1, 1)
    groups = np.array([np.eye(4)[TABLE.codes[g::GROUPS]].mean(axis=0).ravel() for g in range(GROUPS)])
    found = jackknife(
        TABLE.encoded, shares, np.ones(1), tol=1e-6, seed=np.random.SeedSequence(0), progress=Progress()
    )  # fmt: skip
    usual = shares[:, 0] > 0.05  # small entries have no error below their median
    assert usual.sum() > 40
    assert np.allclose(found.theta[usual, 0], (groups.std(axis=0, ddof=1) / np.sqrt(GROUPS))[usual], rtol=1e-9)
    assert found.degrees == GROUPS - 1


def test_few_degrees_of_freedom_take_students_quantile():
    """Guards against the normal quantile, 1.96 at any number of degrees. Quantiles from printed tables of t."""
    for degrees, quantile in ((1, 12.706), (4, 2.776), (19, 2.093), (np.inf, 1.960)):
        low, high = symmetric_interval(np.array([3.0]), np.array([0.5]), degrees, 0.95)
        assert low[0] == pytest.approx(3.0 - 0.5 * quantile, abs=5e-4)
        assert high[0] == pytest.approx(3.0 + 0.5 * quantile, abs=5e-4)


@pytest.mark.parametrize("refine", [None, pytest.param("gibbs", marks=pytest.mark.slow)])
def test_intervals_hold_the_truth(refine):
    assert 0.9 < coverage(refined(refine)) < 0.995


@pytest.mark.slow
def test_the_table_of_intervals():
    table = default().intervals(level=0.9)
    assert table.columns.tolist() == [
        "parameter", "variable", "level", "statistic", "component", "estimate", "standard_error", "lower", "upper",
    ]  # fmt: skip
    assert table.parameter.value_counts().to_dict() == {"theta": 180, "alpha": 3, "alpha0": 1, "contamination": 1}
    assert (table.lower <= table.upper).all()
    inside = table[table.parameter == "theta"]
    assert (inside.lower >= 0).all()
    assert (inside.upper <= 1).all()
    wider = default().intervals(level=0.99)
    assert ((wider.upper - wider.lower) >= (table.upper - table.lower) - 1e-12).all()


@pytest.mark.slow
def test_intervals_stay_with_the_file_and_need_the_table_otherwise(tmp_path):
    sampled, moments = refined("gibbs"), model(refine=None)
    for fitted in (sampled, moments):
        fitted.save(tmp_path / "m.mixmem")
        again = load(tmp_path / "m.mixmem")
        if fitted is sampled:
            assert again.intervals().equals(sampled.intervals())
            assert again.contamination_ == sampled.contamination_
            assert (again.transform(TABLE.encoded) == sampled.transform(TABLE.encoded)).all()
    with pytest.raises(InputError, match=r"need the table it came from.*intervals\(X=table\)"):
        again.intervals()
    with pytest.raises(InputError, match="of 1000 rows; this one has 40"):
        again.intervals(X=TABLE.frame[:40])
    assert again.intervals(X=TABLE.encoded).equals(moments.intervals())
    moments.save(tmp_path / "m.mixmem")
    assert load(tmp_path / "m.mixmem").intervals().equals(moments.intervals())


def test_a_copied_model_leaves_its_table_behind():
    fitted = refined(None)
    assert copy.deepcopy(fitted)._training is None
    assert len(fitted.intervals()) == 183


@pytest.mark.slow
def test_nonsense_is_refused():
    with pytest.raises(InputError, match="between 0 and 1; got 95"):
        default().intervals(level=95)
    with pytest.raises(InputError, match="no standard errors after refine='em'"):
        model(refine="em").intervals()


@pytest.mark.parametrize(("a", "b"), [(2.0, 5.0), (0.3, 0.4), (40.0, 2.0)])
def test_beta_quantiles_are_those_of_the_beta_of_this_mean_and_variance(a, b):
    """Guards against shapes made of the variance in place of the size a + b."""
    low, high = beta_interval(np.array([stats.beta(a, b).mean()]), np.array([stats.beta(a, b).var()]), 0.9)
    assert low[0] == pytest.approx(stats.beta(a, b).ppf(0.05), rel=1e-6)
    assert high[0] == pytest.approx(stats.beta(a, b).ppf(0.95), rel=1e-6)


def test_beta_quantiles_without_variance_are_the_mean():
    low, high = beta_interval(np.array([0.2, 0.0, 1.0, 0.3]), np.array([0.01, 0.0, 0.0, 0.0]), 0.95)
    assert low[0] < 0.2 < high[0]
    assert np.allclose(low[1:], [0.0, 1.0, 0.3], atol=1e-3)
    assert np.allclose(high[1:], [0.0, 1.0, 0.3], atol=1e-3)


@pytest.mark.slow
def test_membership_intervals_are_a_table_by_row_and_component():
    fitted = default()
    rows = TABLE.frame[:4].set_axis(["a", "b", "c", "d"])
    table = fitted.membership_intervals(rows)
    assert table.row.tolist() == [name for name in "abcd" for _ in range(3)]
    assert np.allclose(table.estimate.to_numpy().reshape(4, 3).sum(axis=1), 1.0)
    assert (table.lower <= table.estimate).all()
    assert (table.estimate <= table.upper).all()


def table_of(n_rows, n_variables, kind="categorical", weights=None):
    """A table of this shape, of which every cell is the same byte."""
    coding = Coding.of(Schema(tuple(Variable(f"v{j}", ("0", "1"), kind=kind) for j in range(n_variables))))
    codes = np.broadcast_to(np.zeros(1, np.uint8), (n_rows, n_variables))
    return Encoded(codes, coding, np.broadcast_to(0, n_rows), weights)


def test_auto_refines_short_rows_and_long_ones_and_says_why():
    assert choose_method("auto", table_of(1000, 25), 5)[0] == "gibbs"
    method, reason, _ = choose_method("auto", table_of(2000, 1000), 5)
    assert method == "integrated"
    assert "1000 variables" in reason
    method, reason, _ = choose_method("auto", table_of(10_000_000, 100), 5)
    assert method is None
    assert "minutes" in reason
    assert choose_method("auto", table_of(1000, 25), 1)[0] is None
    assert choose_method("em", table_of(10, 10), 2)[:2] == ("em", "asked for")


def test_how_weighted_rows_and_genotypes_are_refined():
    whole, halves = np.full(1000, 3.0), np.full(1000, 0.5)
    assert choose_method("auto", table_of(1000, 25, weights=whole), 5)[0] == "gibbs"
    method, reason, _ = choose_method("auto", table_of(1000, 25, weights=halves), 5)
    assert method is None
    assert "no whole numbers" in reason
    with pytest.raises(InputError, match="weights that are no whole numbers"):
        choose_method("gibbs", table_of(1000, 25, weights=halves), 5)
    assert choose_method("auto", table_of(1000, 25, kind="dosage"), 5)[0] == "em"


def test_given_contamination_is_taken_off_and_put_back():
    plain, cleaned = refined(None), model(refine=None, contamination=0.1)
    assert cleaned.contamination_ == 0.1
    inside = plain._theta > 0.03
    assert np.allclose(cleaned._noisy[inside], plain._theta[inside], atol=0.05)
    assert cleaned._theta.min() == 0.0


@pytest.mark.slow
def test_components_are_put_into_the_order_of_another_model():
    one, two = default(), model(random_state=1)
    before = two.theta_.copy()
    two._set(two.coding_, two._theta[:, [2, 0, 1]], two.alpha_[[2, 0, 1]], two.contamination_, two.report_)
    two._errors = two._errors.ordered(np.array([2, 0, 1]))
    assert two.align_to(one) is two
    assert np.abs(two._theta - one._theta).max() < 0.1
    assert (np.sort(two._theta, axis=1) == np.sort(before.iloc[:, 3:].to_numpy(), axis=1)).all()
    table = two.intervals()
    assert np.allclose(table[table.parameter == "theta"].estimate, two._theta.ravel())


@pytest.mark.slow
def test_goodness_of_fit_names_a_copied_question():
    frame = TABLE.frame.copy()
    frame["copy"] = frame["x3"]
    fitted = GDLM(3, alpha0=0.3, random_state=0).fit(frame)
    assert set(fitted.goodness_of_fit(frame).variables.variable[:2]) == {"x3", "copy"}


def slow_draws(correlation, size, rng):
    """Return two chains of a standard normal law, each draw correlated with the one before, above 5."""
    steps = rng.normal(size=(2, size))
    draws = np.empty((2, size))
    draws[:, 0] = steps[:, 0]
    for t in range(1, size):
        draws[:, t] = correlation * draws[:, t - 1] + np.sqrt(1.0 - correlation**2) * steps[:, t]
    return 5.0 + draws.ravel()


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_effective_draws_are_those_of_the_correlation(correlation):
    rng = np.random.default_rng(0)
    found = np.mean([effective_draws(slow_draws(correlation, 2000, rng)) for _ in range(20)])
    assert found == pytest.approx(4000 * (1 - correlation) / (1 + correlation), rel=0.15)


def test_draws_that_are_all_the_same_count_as_they_are():
    assert effective_draws(np.zeros(300)) == 300
    assert of_draws(np.zeros(300), 0.95, 1.0) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("correlation", [0.0, 0.9, 0.98])
def test_intervals_from_slow_chains_hold_the_truth(correlation):
    """Plain quantiles of 2 x 150 draws hold another draw of the law in 95, 92 and 83 % of 1,000 such chains."""
    rng = np.random.default_rng(1)
    held = []
    for _ in range(400):
        _, low, high = of_draws(slow_draws(correlation, 150, rng), 0.95, np.inf)
        held.append(low <= 5.0 + rng.normal() <= high)
    assert 0.92 <= np.mean(held) <= 0.99


def test_the_interval_of_a_share_ends_at_its_bounds():
    draws = np.random.default_rng(2).uniform(0.0, 1.0, 8).repeat(50)
    _, low, high = of_draws(draws, 0.95, 1.0)
    assert (low, high) == (0.0, 1.0)
