"""Each kind: its soft levels, what follows from them, and its densities, fits and draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mixmem import InputError, Variable
from mixmem.data.coding import ColumnCoding
from mixmem.data.kinds import KINDS
from mixmem.data.kinds.base import LEAST_VARIANCE, NumberColumns, Sums
from mixmem.data.kinds.continuous import DEGREES, FAR, NEAR_SHARE, NEAR_SQUARE, _far_share
from mixmem.data.kinds.count import SIZES, _log_rising
from mixmem.data.value_grid import Taken, measure

RNG = np.random.default_rng(0)
COLUMNS = {
    "normal": RNG.normal(10.0, 3.0, 900),
    "lognormal": RNG.lognormal(0.0, 1.5, 900),
    "far": 1e6 + RNG.normal(0.0, 1.0, 900),
    "tiny": 1e-9 * RNG.standard_normal(900),
    "two values": RNG.choice([-1.0, 4.0], 900),
    "poisson": RNG.poisson(4.0, 900).astype(float),
    "rare": np.where(RNG.random(900) < 0.9, 0.0, RNG.poisson(6.0, 900)).astype(float),
}


def number(column, kind="continuous"):
    found = measure(column)
    return ColumnCoding(Variable("y", kind=kind), found.values, found.edges, found.knots), found


def genotype(alleles, ploidy=2):
    return ColumnCoding(Variable("g", tuple("ACGT"[:alleles]), kind="dosage", ploidy=ploidy))


def soft_levels(variable):
    """(codes, soft levels): the shares as a matrix."""
    kind = KINDS[variable.kind]
    where, shares = kind.soften(variable)
    out = np.zeros((kind.n_codes(variable), kind.n_soft(variable)))
    for code in range(len(where)):
        np.add.at(out[code], where[code], shares[code])
    return out


VARIABLES = [
    ColumnCoding(Variable("c", ("a", "b", "c"))),
    ColumnCoding(Variable("o", ("1", "2", "3", "4"), "int", "ordinal")),
    ColumnCoding(Variable("b", ("no", "yes"), kind="binary")),
    genotype(2),
    genotype(2, ploidy=4),
    genotype(3),
    *(number(column)[0] for column in COLUMNS.values()),
    *(number(COLUMNS[name], "count")[0] for name in ("poisson", "rare")),
]


@pytest.mark.parametrize("variable", VARIABLES)
def test_soft_levels_of_every_code_sum_to_one(variable):
    soft = soft_levels(variable)
    assert soft.shape[0] == KINDS[variable.kind].n_codes(variable)
    assert (soft >= 0).all()
    assert np.abs(soft.sum(axis=1) - 1).max() < 1e-12
    if not variable.is_number or len(variable.values) > 2:  # two values leave the spline between them idle
        assert (soft.max(axis=0) > 0.2).all()


def test_categories_are_levels_of_their_own():
    for variable in VARIABLES[:3]:
        assert (soft_levels(variable) == np.eye(len(variable.levels))).all()


@pytest.mark.parametrize("name", COLUMNS)
def test_mean_and_variance_of_a_sample_follow_from_its_soft_levels(name):
    """Exactly: quadratic splines hold y and y^2."""
    column = COLUMNS[name]
    variable, found = number(column)
    mean, variance = KINDS["continuous"].raw_moments(variable, soft_levels(variable)[found.codes].mean(axis=0)[:, None])
    unit = column.std()
    assert abs(mean[0] - column.mean()) < 1e-9 * max(unit, abs(column.mean()))
    assert abs(variance[0] - column.var()) < 1e-9 * (np.abs(column - column.mean()).max() ** 2)
    if name == "normal":
        assert abs(mean[0] - column.mean()) < 1e-9
        assert abs(variance[0] - column.var()) < 1e-9


def test_parameters_are_the_moments_and_stay_positive():
    variable, found = number(COLUMNS["poisson"], "count")
    share = soft_levels(variable)[found.codes].mean(axis=0)[:, None]
    held = np.bincount(found.codes).astype(float)
    assert KINDS["count"].parameters(variable, share, held)[0, 0] == pytest.approx(COLUMNS["poisson"].mean(), abs=1e-9)
    variable, found = number(COLUMNS["normal"])
    pure = np.eye(KINDS["continuous"].n_soft(variable))  # all of one soft level: the variance may be negative
    _, raw = KINDS["continuous"].raw_moments(variable, pure)
    theta = KINDS["continuous"].parameters(variable, pure, np.bincount(found.codes).astype(float))
    assert raw.min() <= 0.0
    assert (theta[1] >= LEAST_VARIANCE * COLUMNS["normal"].var() - 1e-9).all()
    assert (theta[0] >= variable.knots[0] - 1e-9).all()
    assert (theta[0] <= variable.knots[-1] + 1e-9).all()
    shares = np.array([[0.2], [0.8]])
    assert (KINDS["dosage"].parameters(genotype(2), shares, np.ones(3)) == shares).all()


def test_copies_of_two_alleles():
    assert KINDS["dosage"].draws(genotype(2)).tolist() == [[0, 0], [0, 1], [1, 1]]
    four = KINDS["dosage"].draws(genotype(2, ploidy=4))
    assert four.sum(axis=1).tolist() == [0, 1, 2, 3, 4]
    assert (np.diff(four, axis=1) >= 0).all()
    assert soft_levels(genotype(2, ploidy=4))[:, 1].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert genotype(2, ploidy=4).held() == [0, 1, 2, 3, 4, None]


def test_copies_of_three_alleles():
    """The code of a pair a <= b is b (b + 1) / 2 + a."""
    pairs = KINDS["dosage"].draws(genotype(3))
    assert pairs.tolist() == [[0, 0], [0, 1], [1, 1], [0, 2], [1, 2], [2, 2]]
    assert (pairs[:, 1] * (pairs[:, 1] + 1) // 2 + pairs[:, 0] == np.arange(6)).all()
    assert genotype(3).held() == ["A/A", "A/C", "C/C", "A/G", "C/G", "G/G", None]
    with pytest.raises(InputError, match="3 alleles in 4 copies; expected two alleles, or two copies"):
        genotype(3, ploidy=4)


def test_densities_are_those_of_scipy():
    values = np.array([0.0, 1.0, 7.0, 30.0])[:, None]
    rate = np.array([0.01, 2.0, 12.0])
    count, continuous = KINDS["count"], KINDS["continuous"]
    for size, exact in ((2.5, stats.nbinom(2.5, 2.5 / (2.5 + rate))), (np.inf, stats.poisson(rate))):
        theta = np.broadcast_to(np.stack([rate, rate + rate**2 / size])[:, None, :], (2, 4, 3))
        close = {"rtol": 1e-9, "atol": 1e-9} if size == 2.5 else {"rtol": 1e-3, "atol": 1e-3}
        assert np.allclose(count.log_density(values, theta), exact.logpmf(values), **close)
        assert np.allclose(count.upper_tail(values, theta[:, :1]), exact.sf(values), **close)
        assert (count.upper_tail(np.array([[-1.0]]), theta[:, :1]) == 1).all()
    mean, variance = np.array([-1.0, 2.0, 30.0]), np.array([0.5, 4.0, 100.0])
    near, far = stats.norm(mean, np.sqrt(variance)), stats.t(DEGREES, mean, np.sqrt(variance))
    theta = np.broadcast_to(np.stack([mean, variance])[:, None, :], (2, 4, 3))
    density = (1.0 - FAR) * near.pdf(values) + FAR * far.pdf(values)
    assert np.allclose(continuous.log_density(values, theta), np.log(density), rtol=1e-12)
    tail = (1.0 - FAR) * near.sf(values) + FAR * far.sf(values)
    assert np.allclose(continuous.upper_tail(values, theta[:, :1]), tail, atol=1e-12)


def sums_of(values, weights, *, least=0.0, kept=None, masses=None):
    """Sums of values (n,) that two components hold by weights (n, 2), about the column's mean."""
    center, spread = values.mean(), values.var()
    about = (values - center)[:, None]
    weighed = weights if masses is None else masses
    parts = (weights, weighed, weighed * about, weighed * about**2)
    columns = NumberColumns(*(np.array([[fact]]) for fact in (center, spread, least)), kept)
    return Sums(*(np.sum(part, axis=0)[None] for part in parts), columns)


def repeated(sums, times):
    """The sums of a column, ``times`` times."""

    def many(record, **others):
        parts = {name: part for name, part in vars(record).items() if isinstance(part, np.ndarray)}
        return replace(record, **{name: np.repeat(part, times, axis=0) for name, part in parts.items()}, **others)

    return many(sums, columns=many(sums.columns))


def test_fitted_counts_have_their_mean_and_one_size():
    rng = np.random.default_rng(1)
    values, weights = rng.negative_binomial(3.0, 0.4, 4000).astype(float), rng.random((4000, 2))
    mean, variance = KINDS["count"].fitted(sums_of(values, weights))[:, 0]
    assert np.allclose(mean, (weights * values[:, None]).sum(axis=0) / weights.sum(axis=0))
    size = mean**2 / (variance - mean)
    assert np.allclose(size, size[0])
    assert size[0] == pytest.approx(3.0, rel=0.15)


def test_fitted_is_the_most_likely_theta():
    """Also where cells are far out, once their masses no longer change."""
    kind, weights = "continuous", np.random.default_rng(1).random((900, 2))
    values = np.append(COLUMNS["normal"][:-2], [80.0, 300.0])
    theta = np.array([[9.0, 11.0], [20.0, 3.0]])
    for _ in range(60):
        own = np.broadcast_to(theta[:, None, :], (2, 900, 2))
        masses = KINDS[kind].masses(weights, values[:, None], own)
        theta = KINDS[kind].fitted(sums_of(values, weights, masses=masses))[:, 0]

    def likelihood(candidate):
        logs = KINDS[kind].log_density(
            values[:, None], np.broadcast_to(candidate[:, None, :], (len(candidate), 900, 2))
        )
        return (weights * logs).sum(axis=0)

    best = likelihood(theta)
    without = (weights[:-2] * values[:-2, None]).sum(axis=0) / weights[:-2].sum(axis=0)
    assert np.allclose(theta[0], without, atol=0.02)
    assert (masses[-2:] < 0.01).all()
    for row in range(len(theta)):
        for factor in (0.98, 1.02):
            moved = theta.copy()
            moved[row] *= factor
            assert (likelihood(moved) < best).all()


def test_draws_of_counts_are_those_of_the_posterior():
    """Mean and size of one component against sums over a grid of both."""
    values = np.random.default_rng(2).negative_binomial(2.0, 0.3, 60).astype(float)
    levels, numbers = np.unique(values, return_counts=True)
    count = KINDS["count"]
    kept = count.kept(levels[:, None], numbers[:, None].astype(float), np.array([0]))
    sums = sums_of(values, np.ones((60, 1)), kept=kept)
    rng, theta, found = np.random.default_rng(3), count.fitted(sums), []
    sums, theta = repeated(sums, 40), np.repeat(theta, 40, axis=1)  # 40 chains of 500 draws
    for _ in range(500):
        theta = count.draw(sums, theta, rng).theta
        found.append((theta[0, :, 0], np.log(theta[0, :, 0] ** 2 / (theta[1, :, 0] - theta[0, :, 0]))))
    mean, size = np.linspace(1.0, 14.0, 800)[:, None], SIZES[None]
    logs = stats.nbinom(size, size / (size + mean)).logpmf(values[:, None, None]).sum(axis=0)
    logs += stats.gamma(0.5, scale=2.0 * values.mean()).logpdf(mean)
    share = np.exp(logs - logs.max())
    share /= share.sum()
    for draws, grid in zip(np.concatenate(found, axis=1), (mean, np.log(size)), strict=True):
        expected = (share * grid).sum()
        deviation = np.sqrt((share * (grid - expected) ** 2).sum())
        assert abs(draws.mean() - expected) < 0.06 * deviation
        assert draws.std() == pytest.approx(deviation, rel=0.06)


def test_draws_have_the_mean_and_variance_they_say():
    kind, values = "continuous", COLUMNS["normal"][:40]
    sums = sums_of(values, np.random.default_rng(2).random((40, 2)))
    rng = np.random.default_rng(3)
    drawn = KINDS[kind].draw(repeated(sums, 40_000), np.empty(0), rng)  # of as many equal columns
    mean, variance = drawn.mean[:, 0], drawn.variance[:, 0]
    assert np.abs((drawn.theta.mean(axis=1) - mean) / np.sqrt(variance)).max() < 0.02
    assert np.abs(drawn.theta.var(axis=1) / variance - 1).max() < 0.06
    # with hundreds of rows the posterior is about the fit
    many = sums_of(np.tile(values, 100), np.ones((4000, 2)))
    assert np.allclose(KINDS[kind].draw(many, np.empty(0), rng).mean, KINDS[kind].fitted(many), rtol=0.01)


def test_draws_of_empty_components_are_proper():
    """A component without cells has its prior, at the column's size."""
    columns = NumberColumns(*(np.array([[fact]]) for fact in (5.0, 2.0, 0.1)), np.zeros((1, len(SIZES))))
    empty = Sums(*np.zeros((4, 1, 1)), columns)
    rng = np.random.default_rng(0)
    for kind in ("count", "continuous"):
        draws = [KINDS[kind].draw(empty, np.full((2, 1, 1), 5.0), rng) for _ in range(2000)]
        assert np.isfinite([drawn.theta for drawn in draws]).all()
        assert np.isfinite([draws[0].mean, draws[0].variance]).all()
        assert abs(np.median([drawn.theta[0] for drawn in draws]) - 5.0) < 3.0


def test_samples_follow_theta():
    rng = np.random.default_rng(4)
    counts = KINDS["count"].numbers(np.full((2, 20_000), 3.5), rng)
    few = np.bincount(counts[counts < 12].astype(int), minlength=12)
    shares = stats.poisson(3.5).pmf(np.arange(12))
    assert stats.chisquare(few, shares / shares.sum() * few.sum()).pvalue > 1e-3
    spread = KINDS["count"].numbers(np.tile([[3.5], [14.0]], 200_000), rng)
    assert spread.var() == pytest.approx(14.0, rel=0.03)
    reals = KINDS["continuous"].numbers(np.tile([[2.0], [9.0]], 20_000), rng)
    assert stats.kstest(reals, stats.norm(2.0, 3.0).cdf).pvalue > 1e-3


def test_numbers_have_no_levels():
    with pytest.raises(InputError, match="'y' is a number and has no levels; got 2"):
        Variable("y", ("1", "2"), kind="count")
    for levels in (("2", "1"), ("1", "1"), ("a",), ("nan",)):
        with pytest.raises(InputError, match=r"'y' is a number with the levels .*; expected rising numbers"):
            Variable("y", levels, kind="continuous")


# --- Far cells, resolution, atoms


def test_masses_drawn_are_on_average_those_expected():
    kind, rng = KINDS["continuous"], np.random.default_rng(5)
    values = np.array([0.0, 2.0, 3.9, 5.4, 6.0, 6.8, 30.0])[:, None]
    held, theta = np.full((7, 1), 5000.0), np.stack([np.zeros((7, 1)), np.ones((7, 1))])
    held[:3] = 2e8  # of cells near the mean hardly any are far out
    drawn = np.array([kind.masses(held, values, theta, rng) for _ in range(600)])
    expected = kind.masses(held, values, theta)
    assert (expected[:4] > 0.999 * held[:4]).all()
    assert _far_share(np.linspace(0.0, NEAR_SQUARE, 100)).max() < NEAR_SHARE
    assert expected[-1, 0] < 0.01 * held[-1, 0]
    error = drawn.std(axis=0) / np.sqrt(600)
    assert (np.abs(drawn.mean(axis=0) - expected) < 4.0 * error + 1e-9).all()


def test_no_variance_below_that_of_the_resolution():
    """Drawn, too, and then as the inverse Gamma distribution is above it."""
    kind, values = KINDS["continuous"], np.append(np.full(300, 40.0), [39.0, 41.0])
    sums = sums_of(values, np.ones((302, 1)), least=1.0 / 12.0)
    assert kind.fitted(sums)[1, 0, 0] == pytest.approx(1.0 / 12.0)
    drawn = kind.draw(repeated(sums, 5000), np.empty(0), np.random.default_rng(0)).theta[1, :, 0]
    assert drawn.min() >= 1.0 / 12.0
    few = sums_of(np.array([1.0, 2.0, 4.0, 3.0, 2.0]), np.ones((5, 1)), least=1.2)
    drawn = kind.draw(repeated(few, 40_000), np.empty(0), np.random.default_rng(1)).theta[1, :, 0]
    middle = few.first / 5.1
    exact = stats.invgamma(3.0, scale=(0.25 * few.columns.spread + 0.5 * (few.second - 5.1 * middle**2))[0, 0])
    above = exact.sf(1.2)
    assert stats.kstest(drawn, lambda at: (exact.cdf(at) - exact.cdf(1.2)) / above).pvalue > 1e-3


HOURS = np.where(RNG.random(900) < 0.5, 40.0, np.rint(RNG.normal(38.0, 12.0, 900)))


def atomic(column=HOURS):
    found = measure(column, taken=Taken(atoms=None, fenced=True))
    variable = Variable("y", tuple(f"{atom:g}" for atom in found.atoms), "int", "continuous")
    return ColumnCoding(variable, found.values, found.edges, found.knots, resolution=found.resolution), found


def test_an_atom_is_a_soft_level_of_its_own():
    variable, found = atomic()
    kind, soft = KINDS["continuous"], soft_levels(variable)
    assert variable.levels == ("40",)
    assert variable.resolution == 1.0
    assert np.abs(soft.sum(axis=1) - 1).max() < 1e-12
    assert ((soft[:, 0] == 1.0) == (variable.values == 40.0)).all()
    held = np.bincount(found.codes).astype(float)
    theta = kind.parameters(variable, soft[found.codes].mean(axis=0)[:, None], held)[:, 0]
    others = HOURS[HOURS != 40.0]
    assert np.allclose(theta, [(HOURS == 40).mean(), (HOURS != 40).mean(), others.mean(), others.var()], rtol=1e-4)
    assert variable.variable.labels == [
        ("40", "probability"), ("other", "probability"), ("other", "mean"), ("other", "variance"),
    ]  # fmt: skip
    assert "40 in 5" in kind.describe(variable, held)


def test_components_that_are_all_atoms_have_the_columns_other_numbers():
    variable, found = atomic()
    soft = np.zeros((soft_levels(variable).shape[1], 2))
    soft[0] = 1.0
    theta = KINDS["continuous"].parameters(variable, soft, np.bincount(found.codes).astype(float))
    others = HOURS[HOURS != 40.0]
    assert np.allclose(theta, [[1.0] * 2, [0.0] * 2, [others.mean()] * 2, [others.var()] * 2], rtol=1e-4)


def test_atoms_are_drawn_filled_and_counted():
    variable, found = atomic()
    kind, rng = KINDS["continuous"], np.random.default_rng(0)
    theta = np.array([[0.8, 0.1], [0.2, 0.9], [40.0, 30.0], [100.0, 25.0]])
    memberships = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert kind.most_likely(variable, theta, memberships) == [40.0, 30.0, 32.0]  # others: (0.2 40 + 0.9 30) / 1.1
    drawn = kind.sample(variable, theta, np.tile([[1.0, 0.0]], (4000, 1)), rng)
    assert (drawn == 40.0).mean() == pytest.approx(0.8, abs=0.03)
    assert drawn[drawn != 40.0].std() == pytest.approx(10.0, rel=0.1)
    seen = kind.as_categories(variable, theta, np.bincount(found.codes).astype(float))
    assert seen.levels[0] == "40"
    assert len(seen.levels) == 5
    assert np.allclose(seen.theta.sum(axis=0), 1.0)
    assert (seen.of_code[variable.values == 40.0] == 0).all()
    assert (seen.of_code[variable.values != 40.0] > 0).all()


@pytest.mark.parametrize("size", [0.5, 10.0, 49.0, 51.0, 300.0, 1e5])
def test_counts_of_any_size_are_summed_without_cancellation(size):
    """log Gamma(size + v) - log Gamma(size) is the sum of log(size + i), i < v."""
    values = np.array([0.0, 1.0, 3.0, 50.0, 1000.0])
    exact = [np.log(size + np.arange(int(value))).sum() for value in values]
    assert np.allclose(_log_rising(values, np.full(5, size)), exact, rtol=1e-14, atol=1e-13)
