"""The sampler: its draws follow the distributions they should, and its answers are the same on any machine."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import cumulative_trapezoid
from scipy.special import gammaln

from mixmem import GDLM, Coding, Encoded, Schema, Variable, rmse, simulate_gdlm
from mixmem.engine.local import threads
from mixmem.kernels.gibbs import assign_cells, membership_posterior, rows_above
from mixmem.likelihood.contamination import clean_theta, noisy_theta
from mixmem.likelihood.table import LikelihoodTable
from mixmem.progress import Progress
from mixmem.refinement import gibbs
from mixmem.refinement.gibbs import LOG_ETA, Batch, Chain, Unknowns, sample_posterior
from mixmem.refinement.slice_sampling import draw_slice

TABLE = simulate_gdlm(700, 12, 3, noise=0.1, random_state=1)


def exact_shares(theta, alpha, row_of):
    """Probability of every assignment of one row's cells, memberships integrated out, and E[x] under it."""
    k, p = len(alpha), len(row_of)
    weights, means = [], []
    for z in product(range(k), repeat=p):
        n = np.bincount(z, minlength=k)
        log = gammaln(alpha + n).sum() + np.log([theta[row, h] for row, h in zip(row_of, z, strict=True)]).sum()
        weights.append(np.exp(log))
        means.append((alpha + n) / (alpha.sum() + p))
    weights = np.array(weights) / np.sum(weights)
    return weights @ np.array(means)


@pytest.mark.slow
def test_cells_are_drawn_from_their_posterior_and_counted():
    theta = np.array([[0.8, 0.1], [0.2, 0.9], [0.6, 0.3], [0.4, 0.7], [0.5, 0.9], [0.5, 0.1]])
    alpha, starts, absent = np.array([0.7, 0.4]), np.array([0, 2, 4]), np.full(3, -1)
    columns = np.repeat(np.array([[0], [1], [1]], np.uint8), 20_000, axis=1)
    assigned, row_counts = np.full(columns.shape, 255, np.uint8), np.zeros((20_000, 2))
    counts = np.zeros((6, 2), np.int64)
    for step in range(30):
        assign_cells(columns, starts, absent, theta, alpha, 7, step, assigned, row_counts, counts)
    assert (row_counts == np.stack([(assigned == h).sum(axis=0) for h in range(2)], axis=1)).all()
    for row in range(6):
        j = row // 2
        assert (counts[row] == [((columns[j] == row % 2) & (assigned[j] == h)).sum() for h in range(2)]).all()
    expected = exact_shares(theta, alpha, [0, 3, 5])
    found = ((alpha + row_counts) / (alpha.sum() + 3)).mean(axis=0)
    assert np.abs(found - expected).max() < 0.005
    above = np.zeros((2, 3), np.int64)
    rows_above(row_counts, above)
    assert (above == (row_counts[:, :, None] > np.arange(3)).sum(axis=0)).all()


@pytest.mark.slow
def test_memberships_of_a_row_are_those_of_the_exact_posterior():
    theta = np.array([[0.8, 0.1], [0.2, 0.9], [0.6, 0.3], [0.4, 0.7], [0.5, 0.9], [0.5, 0.1]])
    alpha, starts, absent = np.array([0.7, 0.4]), np.array([0, 2, 4]), np.full(3, -1)
    codes = np.array([[0, 1, 1], [1, 0, 0], [0, 1, 1]], np.uint8)
    mean, error, bounds = np.empty((3, 2)), np.empty((3, 2)), np.empty((3, 2, 2))
    marks = np.tile(np.arange(2, dtype=np.uint64), 3)
    membership_posterior(
        codes, starts, absent, theta, marks, alpha, 50, 40_000, np.array([0.025, 0.975]), mean, error, bounds
    )  # fmt: skip
    assert np.abs(mean[0] - exact_shares(theta, alpha, [0, 3, 5])).max() < 0.01
    assert (mean[0] == mean[2]).all()
    assert np.allclose(mean.sum(axis=1), 1.0)
    assert ((bounds[:, 0] < mean) & (mean < bounds[:, 1])).all()
    assert np.allclose(error[:, 0], error[:, 1])


def test_slice_draws_keep_their_density():
    rng = np.random.default_rng(0)
    at, draws = 0.0, []
    for _ in range(6000):
        at = draw_slice(lambda x: -0.5 * x * x, at, 1.0, (-1.0, np.inf), rng)
        draws.append(at)
    assert min(draws) >= -1.0
    assert stats.kstest(draws[::3], stats.truncnorm(-1.0, np.inf).cdf).pvalue > 1e-3


@pytest.mark.slow
def test_prior_is_the_posterior_of_a_table_that_says_nothing():
    """One row of one answer to each of two questions: alpha's shares and delta keep their priors, almost."""
    table = simulate_gdlm(2, 2, 2, n_levels=2, random_state=0)
    chain = Chain(
        LikelihoodTable(table.encoded), np.full((4, 2), 0.5), np.array([0.5, 0.5]), Unknowns(False, True),
        np.random.SeedSequence(0),
    )  # fmt: skip
    chain.run(10_000, keep=True)
    delta = chain.batches[0].delta
    assert abs(chain.batches[0].alpha[:, 0].mean() - 0.5) < 0.05
    assert 0.3 < (delta == 0.0).mean() < 0.8
    assert abs(delta[delta > 0.0].mean() - 0.4) < 0.15
    assert np.allclose(chain.batches[0].alpha.sum(axis=1), 1.0)


def test_moments_of_theta_given_the_cells_are_those_of_its_dirichlet():
    """Guards the conditional mean and variance against any other scale: a level's marginal is a Beta of scipy's."""
    chain = Chain(
        LikelihoodTable(TABLE.encoded), TABLE.theta, TABLE.alpha, Unknowns(False, False), np.random.SeedSequence(1)
    )  # fmt: skip
    for _ in range(3):
        eta = chain.eta
        mean, variance = chain.sweep()
        shapes = chain.counts.reshape(12, 4, 3) + eta
        exact = stats.beta(shapes, shapes.sum(axis=1, keepdims=True) - shapes)
        assert np.allclose(mean, exact.mean().reshape(48, 3), rtol=1e-9)
        assert np.allclose(variance, exact.var().reshape(48, 3), rtol=1e-9)


@pytest.mark.parametrize("theta", [[0.5, 0.5, 0.3, 0.3, 0.4], [0.999, 0.001, 0.98, 0.015, 0.005]])
def test_eta_is_drawn_given_theta_and_its_own_prior(theta):
    """Guards the prior log eta ~ Normal(log 0.5, 1). Two variables say little of eta: without the prior it would sit
    at a bound. Draws against their distribution function, integrated over a grid."""
    coding = Coding.of(Schema((Variable("a", ("0", "1")), Variable("b", ("0", "1", "2")))))
    theta = np.array(theta)
    cells = LikelihoodTable(Encoded.of(np.zeros((2, 2), np.uint8), coding))
    chain = Chain(
        cells, theta[:, None], np.ones(1), Unknowns(False, False),
        np.random.SeedSequence(0),
    )  # fmt: skip
    chain.theta = theta[:, None]
    draws = np.empty(2000)
    for t in range(len(draws)):
        chain._draw_eta()
        draws[t] = np.log(chain.eta)
    grid = np.linspace(*LOG_ETA, 401)
    log = stats.norm(np.log(0.5), 1.0).logpdf(grid)
    for part in (theta[:2], theta[2:]):
        log += [stats.dirichlet(np.full(len(part), np.exp(at))).logpdf(part) for at in grid]
    reached = cumulative_trapezoid(np.exp(log - log.max()), grid, initial=0.0)
    # every other draw: neighbours of a slice sampler are alike, and the test takes them to be independent
    assert stats.kstest(draws[::2], lambda at: np.interp(at, grid, reached / reached[-1])).pvalue > 1e-3


def chains_of(means, inner=1.0, spread=0.0):
    """What is asked of chains whose batches had these means (chains, batches, rows, k) of theta."""
    cells = SimpleNamespace(units=np.ones((means.shape[2], 1)))
    empty = np.empty(0)
    return [
        SimpleNamespace(
            cells=cells,
            batches=[Batch(m, np.full_like(m, spread), np.full_like(m, inner), empty, empty, empty) for m in chain],
        )
        for chain in means
    ]


def apart(n_rows=100):
    """Two chains of eight batches, one at 1 and one at -1 in every row of theta."""
    return np.broadcast_to(np.array([1.0, -1.0])[:, None, None, None], (2, 8, n_rows, 1))


def drifting(n_rows=100):
    """Two chains that both went from 1 to -1 halfway."""
    return np.broadcast_to(np.repeat([1.0, -1.0], 4)[None, :, None, None], (2, 8, n_rows, 1))


@pytest.mark.parametrize("means", [apart(), drifting()], ids=["apart", "drifting"])
def test_chains_that_differ_do_not_agree(means):
    """Guards against an agreement that is taken for granted, and against R-hat of whole chains, which sees no drift.

    Halves at 1, 1, -1, -1 have the variance 4 / 3, each has 1 inside: R-hat is sqrt(1 + 4 / 3) = 1.53.
    """
    assert gibbs._rhat(chains_of(means)) == pytest.approx(np.sqrt(7 / 3))
    assert not gibbs._agree(chains_of(means))


def test_chains_that_differ_in_fewer_than_one_entry_of_twenty_agree():
    alike = np.random.default_rng(0).normal(0.0, 0.1, (2, 8, 100, 1))  # a tenth of the posterior's deviation
    for n_apart, agree in ((0, True), (4, True), (10, False)):
        means = alike.copy()
        means[:, :, :n_apart] += apart(n_apart)
        assert gibbs._agree(chains_of(means)) is agree


def test_sampling_goes_on_until_the_chains_agree(monkeypatch):
    """Guards against an end at small noise alone; the batches are of one sweep here."""
    table = simulate_gdlm(40, 3, 2, random_state=0)
    monkeypatch.setattr(gibbs, "BATCH", 1)
    monkeypatch.setattr(gibbs, "_noise_share", lambda chains: 0.0)
    for agree, n_sweeps in ((True, gibbs.LEAST_BATCHES), (False, gibbs.LEAST_BATCHES + 3)):
        monkeypatch.setattr(gibbs, "_agree", lambda chains, agree=agree: agree)
        found = sample_posterior(
            table.encoded, table.theta, table.alpha, Unknowns(False, False),
            seed=np.random.SeedSequence(0), progress=Progress(), most_batches=gibbs.LEAST_BATCHES + 3,
        )  # fmt: skip
        assert (found.converged, found.n_sweeps) == (agree, n_sweeps)


@pytest.mark.parametrize(
    ("paths", "still"),
    [
        ([[0.09, 0.07, 0.06], [0.04, 0.03, 0.02]], False),  # both fall
        ([[0.01, 0.02, 0.03], [0.02, 0.03, 0.04]], False),  # both rise
        ([[0.09, 0.07, 0.06], [0.04, 0.05, 0.02]], True),  # one goes up and down
        ([[0.0203, 0.0202, 0.0201], [0.0206, 0.0203, 0.0201]], True),  # by next to nothing
    ],
)
def test_chains_on_their_way_are_not_still(paths, still):
    """Of the contamination, and of alpha0, which is held beside it."""
    for column in (0, 1):
        scale = (1.0, gibbs.STILL[1] / gibbs.STILL[0])[column]
        path = np.zeros((2, 3, 2))
        path[:, :, column] = scale * np.array(paths)
        assert gibbs._still([SimpleNamespace(path=[tuple(at) for at in chain]) for chain in path]) is still


def test_noise_of_the_mean_counts_how_chains_differ():
    """Guards the part between chains: 1 for chains at 1 and -1, where the sixteen batches alone say 1 / 15."""
    assert gibbs._noise(apart(1)) == pytest.approx((1 + 1 / 15) / 2)
    assert gibbs._noise(drifting(1)) == pytest.approx(1 / 15)  # no less than the batches say


def test_noise_of_the_mean_of_independent_batches_is_a_sixteenth_of_their_variance():
    """Almost: the larger of two estimates is taken. With exact ones from batches the ratio would be 1 + E max(0, z^2 -
    1) / 2 = 1.24 for a normal z; over 4,000 entries its mean has a standard error of 0.01."""
    found = gibbs._noise(np.random.default_rng(0).standard_normal((2, 8, 4000, 1)))
    assert abs(16 * found.mean() - 1.24) < 0.05


def test_variance_of_theta_has_all_its_parts():
    """Inside sweeps 1, between the sweeps of a batch 0.5, between batches at 1 and -1 another 1."""
    assert gibbs._variance(chains_of(apart(1), 1.0, 0.5), apart(1)) == pytest.approx(2.5)


@pytest.mark.slow
def test_noise_is_found_and_taken_off():
    moments = GDLM(3, alpha0=0.3, refine=None, random_state=0).fit(TABLE.encoded)
    model = GDLM(3, alpha0=0.3, refine="gibbs", random_state=0).fit(TABLE.encoded)
    assert abs(model.contamination_ - 0.1) < 0.06
    errors = [rmse(TABLE.theta, found.theta_.iloc[:, 3:]) for found in (model, moments)]
    assert errors[0] < 0.95 * errors[1]
    chains = model.report_.refine.gibbs
    assert chains.rhat.median < 1.1
    assert chains.effective_sample_size.median > 50
    assert model.report_.contamination.estimated


@pytest.mark.slow
def test_the_same_on_any_number_of_threads():
    arguments = (TABLE.encoded, TABLE.theta, TABLE.alpha, Unknowns(True, True))
    found = []
    for n_jobs in (1, 2):
        with threads(n_jobs):
            found.append(
                sample_posterior(*arguments, seed=np.random.SeedSequence(3), progress=Progress(), most_batches=8)
            )
    assert (found[0].theta == found[1].theta).all()
    assert (found[0].alpha_draws == found[1].alpha_draws).all()
    assert found[0].alpha_draws.shape == (2 * found[0].n_sweeps, 3)


def test_cleaning_undoes_noise():
    noisy = noisy_theta(TABLE.theta, 0.2, TABLE.schema)
    assert np.allclose(clean_theta(noisy, 0.2, TABLE.schema), TABLE.theta)
    assert clean_theta(TABLE.theta, 0.2, TABLE.schema).min() == 0.0


@pytest.mark.slow
def test_alpha_is_free_where_it_is_not_given():
    table = simulate_gdlm(1500, 30, 2, alpha=[0.9, 0.4], random_state=2)
    model = GDLM(2, random_state=0).fit(table.encoded)
    assert model.report_.refine.method == "gibbs"
    assert abs(np.log(model.alpha0_ / 1.3)) < 0.25
    assert np.abs(model.alpha_ - [0.9, 0.4]).max() < 0.25


@pytest.mark.slow
def test_noise_is_not_drawn_where_no_table_could_tell_it():
    """Two groups that say yes in 20 and in 80 of a hundred: not groups of certain answers with a third of noise."""
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=800)
    codes = (rng.random((800, 8)) < np.where(group == 1, 0.8, 0.2)[:, None]).astype(int)
    model = GDLM(2, random_state=0).fit(codes)
    assert model.contamination_ == 0.0
    yes = model.theta_.filter(like="component_").to_numpy()[1::2]
    assert np.abs(np.sort(yes.mean(axis=0)) - [0.2, 0.8]).max() < 0.08


def test_chains_of_small_tables_may_go_on_longer(monkeypatch):
    monkeypatch.setattr(gibbs, "BATCH", 25)  # as shipped; shorter where kernels are plain Python (conftest.py)
    small, large = gibbs.batches_for(500, 3), gibbs.batches_for(10_000_000, 5)
    assert small == gibbs.MORE_BATCHES
    assert large == gibbs.MOST_BATCHES
    assert gibbs.MOST_BATCHES < gibbs.batches_for(200_000, 5) < gibbs.MORE_BATCHES
