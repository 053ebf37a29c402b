from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from mixmem import GDLM, Coding, Encoded, InputError, Schema, Variable, goodness_of_fit, simulate_gdlm, simulate_mixed
from mixmem.engine.local import threads
from mixmem.plots import goodness_figure
from mixmem.results.goodness import MOST_PAIRS, pair_counts, tile_pairs
from mixmem.results.simulate import draw_codes

pytestmark = pytest.mark.usefixtures("quick_halves")


def compared(drawn, theta=None, alpha=None, **options):
    return goodness_of_fit(
        drawn.encoded,
        drawn.theta if theta is None else theta,
        drawn.alpha if alpha is None else alpha,
        **options,
    )


def fitted_model(drawn, k):
    return GDLM(k, alpha0=float(drawn.alpha.sum()), refine=None, random_state=0).fit(drawn.encoded)


@pytest.fixture(scope="module")
def survey():
    return simulate_gdlm(5000, 25, 4, random_state=1)


def mixed_table(n=400, seed=0):
    """Variables of 1 to 5 levels, one of them constant, drawn from a model."""
    rng = np.random.default_rng(seed)
    sizes = [2, 3, 1, 5, 2, 4]
    coding = Coding.of(Schema(tuple(Variable(f"v{j}", tuple("abcde"[:d])) for j, d in enumerate(sizes))))
    theta = np.vstack([rng.dirichlet(np.ones(d), size=2).T for d in sizes])
    alpha = np.array([0.6, 0.9])
    codes = draw_codes(coding, theta, rng.dirichlet(alpha, size=n), 0.0, rng)
    return Encoded.of(codes, coding), theta, alpha


def test_every_figure_against_the_slow_form():
    """Loops over pairs and levels; the variance is that of the centred product, by summing over its four values."""
    table, theta, alpha = mixed_table()
    codes, schema = table.codes, table.schema
    n, alpha0 = len(codes), alpha.sum()
    found = goodness_of_fit(table, theta, alpha)
    pairs = found.pairs.set_index(["variable", "partner"])
    sums = dict.fromkeys(schema.names, np.zeros(2))
    for j, s in combinations(range(schema.n_variables), 2):
        squares, expected, cells = 0.0, 0.0, []
        for a in range(schema.sizes[j]):
            for b in range(schema.sizes[s]):
                row, other = theta[schema.offsets[j] + a], theta[schema.offsets[s] + b]
                moment = (alpha @ (row * other) + (alpha @ row) * (alpha @ other)) / (alpha0 * (alpha0 + 1))
                m, w = np.mean(codes[:, j] == a), np.mean(codes[:, s] == b)
                covariance = moment - (alpha @ row) * (alpha @ other) / alpha0**2
                fit = max(0.0, m * w + covariance)
                cell_shares = {(1, 1): fit, (1, 0): m - fit, (0, 1): w - fit, (0, 0): 1 - m - w + fit}
                square = sum(share * ((x - m) * (y - w)) ** 2 for (x, y), share in cell_shares.items())
                variance = square - covariance**2
                observed = np.mean((codes[:, j] == a) & (codes[:, s] == b))
                z = (observed - fit) / np.sqrt(max(variance, 5 / n) / n)
                squares += z**2
                expected += min(1.0, max(0.0, variance * n / 5))
                cells.append((abs(z), observed, fit))
        got = pairs.loc[(schema.names[j], schema.names[s])]
        assert got["misfit"] == pytest.approx(np.sqrt(squares / len(cells)), abs=1e-6)
        assert abs(got["z"]) == pytest.approx(max(cells)[0], abs=1e-6)
        assert any(got[["observed", "fitted"]].tolist() == pytest.approx(list(cell[1:])) for cell in cells)
        for name in (schema.names[j], schema.names[s]):
            sums[name] = sums[name] + (squares, expected)
    of_variable = found.variables.set_index("variable")["misfit"]
    for name, (squares, expected) in sums.items():
        assert of_variable[name] == pytest.approx(np.sqrt((squares + 1) / (expected + 1)), abs=1e-6)


def test_counts_of_pairs(monkeypatch):
    table, *_ = mixed_table()
    codes, schema = table.codes, table.schema
    monkeypatch.setattr("mixmem.results.goodness.CHUNK_BYTES", 4 * 17 * 33)  # rows in chunks of 33
    everything = np.arange(schema.n_variables)
    onehot = np.hstack([np.eye(d)[codes[:, j]] for j, d in enumerate(schema.sizes)])
    assert (pair_counts(table, everything[:3], everything) == onehot[:, : schema.offsets[3]].T @ onehot).all()


@pytest.mark.parametrize(("n_levels", "alpha", "seed"), [(4, 0.1, 1), (4, 1.0, 2), (10, 0.1, 0)])
def test_about_one_where_the_model_holds(n_levels, alpha, seed):
    """Over 40 tables of 4 levels the misfit was 0.95 to 1.04, of single variables 0.81 to 1.15."""
    found = compared(simulate_gdlm(2000, 25, 4, n_levels=n_levels, alpha=alpha, random_state=seed))
    assert 0.95 < found.misfit < 1.05
    assert found.variables["misfit"].between(0.8, 1.2).all()
    assert found.n_beyond_chance == 0
    assert "No pair of variables" in found.summary
    assert found.variables["share_misfit"].mean() == pytest.approx(1.0, abs=0.3)


def test_rare_levels_do_not_cry_misfit():
    """Shares of about 1 %, expected together in 0.03 rows of 300: three such rows are no discovery."""
    rng = np.random.default_rng(0)
    coding = Coding.of(Schema(tuple(Variable(f"v{j}", ("no", "yes")) for j in range(20))))
    theta = np.tile([[0.985, 0.995], [0.015, 0.005]], (20, 1))
    found = [
        goodness_of_fit(
            Encoded.of(draw_codes(coding, theta, rng.dirichlet([0.5, 0.5], size=300), 0.0, rng), coding),
            theta,
            np.full(2, 0.5),
        )
        for _ in range(20)
    ]
    assert sum(goodness.n_beyond_chance > 0 for goodness in found) <= 2
    assert np.mean([goodness.misfit**2 for goodness in found]) == pytest.approx(1.0, abs=0.25)


@pytest.mark.slow
def test_a_column_that_copies_another_is_ranked_first(survey):
    """Column 7 repeats column 3 in 70 % of the rows, beyond what the components explain."""
    codes = survey.codes.copy()
    copied = np.random.default_rng(0).random(len(codes)) < 0.7
    codes[copied, 7] = codes[copied, 3]
    table = replace(survey, codes=codes)
    model = fitted_model(table, 4)
    found = compared(table, model._theta, model.alpha_)
    assert found.pairs.iloc[0][["variable", "partner"]].tolist() == ["x3", "x7"]
    assert set(found.variables["variable"][:2]) == {"x3", "x7"}
    assert found.variables["misfit"][1] > 3 * found.variables["misfit"][2]
    assert found.variables["worst_partner"][:2].tolist() == found.variables["variable"][:2].tolist()[::-1]
    worst = found.pairs.iloc[0]
    together = np.mean((codes[:, 3] == int(worst.level)) & (codes[:, 7] == int(worst.partner_level)))
    assert worst.observed == pytest.approx(together)
    assert worst.level == worst.partner_level
    assert worst.z > 10
    assert "how 1 of 300 pairs" in found.summary
    assert "'x3' and 'x7'" in found.summary
    assert "more components" not in found.summary


@pytest.mark.slow
def test_too_few_components_show(survey):
    found = {}
    for k in (3, 4):
        model = fitted_model(survey, k)
        found[k] = compared(survey, model._theta, model.alpha_)
    assert found[3].misfit > 2.5
    assert found[3].n_beyond_chance > 100
    assert "more components" in found[3].summary
    assert 0.7 < found[4].misfit < 0.95  # below 1: theta was learned from the same rows
    assert found[4].n_beyond_chance == 0


def test_level_shares_are_judged_by_themselves(survey):
    """Theta of one variable with two levels exchanged: its shares are wrong."""
    theta = survey.theta.copy()
    theta[[0, 3]] = theta[[3, 0]]
    found = compared(survey, theta)
    assert found.variables.sort_values("share_misfit").iloc[-1]["variable"] == "x0"
    assert found.variables.iloc[0]["variable"] == "x0"


def test_binary_pairs_tell_of_levels_found_together():
    """All four pairs of levels have one |z|; the one told is the first of those more frequent than fitted."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 500)
    codes = np.column_stack([first, np.where(rng.random(500) < 0.8, first, 1 - first)]).astype(np.uint8)
    coding = Coding.of(Schema((Variable("a", ("no", "yes")), Variable("b", ("no", "yes")))))
    found = goodness_of_fit(Encoded.of(codes, coding), np.full((4, 1), 0.5), np.ones(1))
    assert found.pairs.iloc[0][["level", "partner_level"]].tolist() == ["no", "no"]
    assert found.pairs.iloc[0]["z"] > 10


@pytest.mark.parametrize("n_variables", [2, 19, 20, 41, 150, 201])
def test_all_pairs_are_compared_once(n_variables):
    seen = [pair for left, right in tile_pairs(n_variables, 200) for pair in _later(left, right)]
    assert sorted(seen) == list(combinations(range(n_variables), 2))


def test_wide_tables_compare_neighbours_and_a_spread():
    seen = [pair for left, right in tile_pairs(1000, 200) for pair in _later(left, right)]
    assert len(set(seen)) == len(seen)
    assert {(j, j + 1) for j in range(999)} <= set(seen)
    partners = np.bincount(np.ravel(seen))
    assert partners.min() >= 150
    assert partners.max() <= 200
    of_first = [s for j, s in seen if j == 0]
    assert max(np.diff(of_first)) < 250


def _later(left, right):
    return [(j, s) for j in left.tolist() for s in right.tolist() if j < s]


def test_wide_tables_say_what_was_compared():
    found = compared(simulate_gdlm(200, 220, 2, n_levels=2, random_state=0), max_partners=60)
    assert found.n_partners == 59
    assert found.n_pairs == 220 * 59 // 2
    assert len(found.pairs) == MOST_PAIRS
    assert len(found.variables) == 220
    assert "compared with 59 of 219 others" in found.summary


def test_the_same_at_any_number_of_threads(survey):
    results = []
    for jobs in (1, 2):
        with threads(jobs):
            results.append(compared(survey))
    assert results[0].misfit == results[1].misfit
    pd.testing.assert_frame_equal(results[0].variables, results[1].variables, check_exact=True)
    pd.testing.assert_frame_equal(results[0].pairs, results[1].pairs, check_exact=True)


def test_figure_names_the_worst_pairs(survey, tmp_path):
    theta = survey.theta.copy()
    theta[[0, 3]] = theta[[3, 0]]
    found = compared(survey, theta)
    figure = goodness_figure(found.pairs, found.misfit, found.n_beyond_chance, names=3)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["1", "2", "3"]
    assert all("x0 = " in text.get_text() for text in figure.legends[0].get_texts())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("fitted share of the rows", "observed share of the rows")
    figure.savefig(tmp_path / "goodness.png")


def test_refusals(survey):
    with pytest.raises(InputError, match=r"codes have shape \(5000, 24\); expected rows of 25 variables"):
        goodness_of_fit(Encoded.of(survey.codes[:, 1:], survey.coding), survey.theta, survey.alpha)
    with pytest.raises(InputError, match=r"theta has shape \(99, 4\).*needs \(100, k\)"):
        compared(survey, survey.theta[1:])
    with pytest.raises(InputError, match="max_partners must be at least 1; got 0"):
        compared(survey, max_partners=0)
    with pytest.raises(InputError, match="one variable only"):
        goodness_of_fit(survey.encoded.take_variables(np.arange(1)), survey.theta[:4], survey.alpha)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [20_240_100.0, 1e6, 1e9])
def test_numbers_that_agree_in_six_digits_have_levels_of_their_own(shift):
    """The quarters of dates written as numbers, or of 1e6 +- 1, read alike in six digits."""
    drawn = simulate_mixed(400, 2, n_categorical=6, n_continuous=3, random_state=0)
    table = drawn.frame
    moved = table.assign(real0=table["real0"] + shift)
    model = GDLM(2, alpha0=0.4, refine=None, random_state=0).fit(moved)
    found = model.goodness_of_fit(moved)
    assert sorted(found.variables["variable"]) == sorted(table.columns)
    own = found.pairs.query("variable == 'real0'")
    assert len(own) == 2  # the two numbers after it; those before it come first in their pairs
    texts = {*own["level"], *found.pairs.query("partner == 'real0'")["partner_level"]}
    for text in texts:
        low, high = map(float, text.split(" to "))
        assert moved["real0"].min() <= low <= high <= moved["real0"].max()
    plain = GDLM(2, alpha0=0.4, refine=None, random_state=0).fit(table).goodness_of_fit(table)
    assert plain.misfit == pytest.approx(found.misfit, abs=0.05)
