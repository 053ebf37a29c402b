"""The sampler: its draws follow the distributions they should, and its answers are the same on any machine."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from mixmem import GDLM, rmse, simulate_gdlm
from mixmem.engine.local import threads
from mixmem.kernels.gibbs import assign_cells, membership_posterior, rows_above
from mixmem.likelihood.contamination import clean_theta, noisy_theta
from mixmem.likelihood.table import Evidence
from mixmem.progress import Progress
from mixmem.refinement.gibbs import Chain, Unknowns, draw_slice, sample_posterior

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


def test_cells_are_drawn_from_their_posterior_and_counted():
    theta = np.array([[0.8, 0.1], [0.2, 0.9], [0.6, 0.3], [0.4, 0.7], [0.5, 0.9], [0.5, 0.1]])
    alpha, starts, absent = np.array([0.7, 0.4]), np.array([0, 2, 4]), np.full(3, -1)
    codes = np.tile(np.array([[0, 1, 1]], np.uint8), (20_000, 1))
    assigned, row_counts = np.full(codes.shape, 255, np.uint8), np.zeros((len(codes), 2))
    counts = np.zeros((6, 2), np.int64)
    for step in range(30):
        assign_cells(codes, starts, absent, theta, alpha, 7, step, assigned, row_counts, counts)
    assert (row_counts == np.stack([(assigned == h).sum(axis=1) for h in range(2)], axis=1)).all()
    for row in range(6):
        j = row // 2
        assert (counts[row] == [((codes[:, j] == row % 2) & (assigned[:, j] == h)).sum() for h in range(2)]).all()
    expected = exact_shares(theta, alpha, [0, 3, 5])
    found = ((alpha + row_counts) / (alpha.sum() + 3)).mean(axis=0)
    assert np.abs(found - expected).max() < 0.005
    above = np.zeros((2, 3), np.int64)
    rows_above(row_counts, above)
    assert (above == (row_counts[:, :, None] > np.arange(3)).sum(axis=0)).all()


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
        Evidence(table.codes, table.schema), np.full((4, 2), 0.5), np.array([0.5, 0.5]), Unknowns(False, True),
        np.random.SeedSequence(0),
    )  # fmt: skip
    chain.run(3000, keep=True)
    assert abs(chain.batches[0].alpha[:, 0].mean() - 0.5) < 0.05
    assert abs(chain.batches[0].delta.mean() - 0.5) < 0.1
    assert np.allclose(chain.batches[0].alpha.sum(axis=1), 1.0)


@pytest.mark.slow
def test_noise_is_found_and_taken_off():
    moments = GDLM(3, alpha0=0.3, refine=None, random_state=0).fit(TABLE.encoded)
    model = GDLM(3, alpha0=0.3, refine="gibbs", random_state=0).fit(TABLE.encoded)
    assert abs(model.contamination_ - 0.1) < 0.06
    errors = [rmse(TABLE.theta, found.theta_.iloc[:, 3:]) for found in (model, moments)]
    assert errors[0] < 0.95 * errors[1]
    chains = model.report_["refine"]["gibbs"]
    assert chains["rhat"]["median"] < 1.1
    assert chains["effective_sample_size"]["median"] > 50
    assert model.report_["contamination"]["estimated"]


@pytest.mark.slow
def test_the_same_on_any_number_of_threads():
    arguments = (TABLE.codes, TABLE.schema, TABLE.theta, TABLE.alpha, Unknowns(True, True))
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
    assert model.report_["refine"]["method"] == "gibbs"
    assert abs(np.log(model.alpha0_ / 1.3)) < 0.25
    assert np.abs(model.alpha_ - [0.9, 0.4]).max() < 0.25
