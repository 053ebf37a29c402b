"""The likelihood of rows with their memberships integrated out: exact, or within the error that is said."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from mixmem import row_likelihood, simulate_gdlm
from mixmem.engine.local import threads
from mixmem.likelihood import marginal
from mixmem.likelihood.nodes import gauss_beta, nodes_for
from mixmem.likelihood.table import LikelihoodTable


def brute_force(drawn, n_draws, seed=0):
    """log p(row) of a plain table by the mean over draws of the memberships."""
    cells = LikelihoodTable(drawn.encoded)
    likely = np.log(cells.likelihoods(drawn.theta) @ np.random.default_rng(seed).dirichlet(drawn.alpha, n_draws).T)
    return np.array([logsumexp(likely[cells.starts + row].sum(axis=0)) for row in cells.codes]) - np.log(n_draws)


@pytest.mark.parametrize(("a", "b"), [(0.01, 0.02), (1.0, 1.0), (0.3, 7.0), (40.0, 90.0)])
def test_gauss_rule_has_the_moments_of_the_beta_distribution(a, b):
    nodes, weights = gauss_beta(5, a, b)
    moment = 1.0
    for power in range(10):
        assert weights @ nodes**power == pytest.approx(moment, rel=1e-9)
        moment *= (a + power) / (a + b + power)


def test_scattered_nodes_have_the_moments_of_the_dirichlet_distribution():
    alpha = np.array([0.5, 1.0, 0.1, 2.0, 0.3, 0.4])
    nodes = nodes_for(alpha, 50)
    assert not nodes.exact
    assert np.allclose(nodes.points.sum(axis=0), 1.0)
    assert np.allclose(nodes.points @ nodes.weights, alpha / alpha.sum(), atol=2e-3)
    second = (nodes.points * nodes.weights) @ nodes.points.T
    exact = (np.outer(alpha, alpha) + np.diag(alpha)) / (alpha.sum() * (alpha.sum() + 1.0))
    assert np.allclose(second, exact, atol=3e-3)


def test_long_rows_of_many_components_have_no_nodes():
    assert nodes_for(np.full(3, 0.2), 1_000) is None
    assert nodes_for(np.full(2, 0.2), 1_000).exact


@pytest.mark.parametrize("strength", [0.05, 0.5])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_few_components_are_integrated_exactly(k, strength):
    drawn = simulate_gdlm(20, 8, k, alpha=strength, random_state=1)
    values, errors = row_likelihood(drawn.encoded, drawn.theta, drawn.alpha, return_std=True)
    assert (errors == 0.0).all()
    assert np.abs(values - brute_force(drawn, 50_000)).max() < 0.15  # the draws' own error
    total = simulate_gdlm(1, 3, k, n_levels=2, alpha=strength, random_state=2)
    codes = np.stack(np.meshgrid(*[np.arange(2)] * 3, indexing="ij"), axis=-1).reshape(-1, 3).astype(np.uint8)
    every = LikelihoodTable(simulate_gdlm(8, 3, k, n_levels=2, random_state=0).encoded)
    every.codes = codes
    assert np.exp(row_likelihood(every, total.theta, total.alpha)).sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("p", "k", "strength"), [(16, 7, 0.1), (60, 8, 0.3)])
def test_many_components_are_integrated_within_the_error_said(p, k, strength):
    """Scattered nodes, and importance sampling for rows that they leave open."""
    drawn = simulate_gdlm(40, p, k, alpha=strength, random_state=3)
    values, errors = row_likelihood(drawn.encoded, drawn.theta, drawn.alpha, return_std=True)
    misses = values - brute_force(drawn, 60_000)
    assert 0.0 < errors.max() < 0.3
    assert np.sqrt((misses**2).mean()) < 0.15


def test_sampling_and_exact_nodes_agree(monkeypatch):
    drawn = simulate_gdlm(60, 30, 3, alpha=0.3, random_state=4)
    exact = row_likelihood(drawn.encoded, drawn.theta, drawn.alpha)
    monkeypatch.setattr(marginal, "nodes_for", lambda alpha, n_draws, rough: None)
    values, errors = row_likelihood(drawn.encoded, drawn.theta, drawn.alpha, return_std=True)
    assert (errors > 0.0).all()
    assert np.abs((values - exact) / errors).mean() < 1.5
    assert abs((values - exact).mean()) < 0.02


@pytest.mark.parametrize(("p", "k"), [(10, 2), (20, 7), (170, 3)])
def test_a_rows_value_does_not_depend_on_company_or_threads(p, k):
    """By exact nodes, scattered ones and sampling."""
    drawn = simulate_gdlm(50, p, k, alpha=0.2, random_state=5)
    twice = drawn.encoded.take(np.r_[0:50, 20:30])
    with threads(1):
        together = row_likelihood(twice, drawn.theta, drawn.alpha)
    with threads(2):
        alone = row_likelihood(drawn.encoded.take(np.arange(20, 30)), drawn.theta, drawn.alpha)
    assert (together[50:] == together[20:30]).all()
    assert (together[50:] == alone).all()


@pytest.mark.parametrize(("p", "alike"), [(3, True), (40, False)])
def test_equal_rows_are_sorted_out_where_there_are_many(p, alike):
    drawn = simulate_gdlm(5_000, p, 2, random_state=5)
    codes, place = marginal._distinct(drawn.encoded.codes)
    assert (codes[place] == drawn.encoded.codes).all()
    assert (len(codes) < 5_000) == alike
    values = row_likelihood(drawn.encoded, drawn.theta, drawn.alpha)
    assert (values[:50] == row_likelihood(drawn.encoded.take(slice(0, 50)), drawn.theta, drawn.alpha)).all()


def test_a_component_of_no_weight_changes_nothing():
    drawn = simulate_gdlm(20, 12, 2, alpha=0.4, random_state=6)
    two = row_likelihood(drawn.encoded, drawn.theta, drawn.alpha)
    theta = np.column_stack([drawn.theta, drawn.theta.mean(axis=1)])
    assert np.allclose(row_likelihood(drawn.encoded, theta, np.append(drawn.alpha, 0.0)), two, atol=1e-5)


@pytest.mark.parametrize(("k", "strength"), [(5, 50.0), (10, 500.0)])
def test_long_rows_that_are_all_alike(k, strength):
    """With so large an alpha memberships hardly vary: brute force is sharp, whatever the row's length."""
    drawn = simulate_gdlm(4, 200, k, alpha=strength, random_state=1)
    values, errors = row_likelihood(drawn.encoded, drawn.theta, drawn.alpha, return_std=True)
    assert np.abs(values - brute_force(drawn, 5_000)).max() < 0.1
    assert errors.max() < 0.05


@pytest.mark.parametrize("strength", [pytest.param(1e-6, marks=pytest.mark.slow), 1e-4])
def test_long_rows_of_next_to_one_component(strength):
    drawn = simulate_gdlm(20, 200, 12, alpha=strength, random_state=1)
    values, errors = row_likelihood(drawn.encoded, drawn.theta, drawn.alpha, return_std=True)
    pure = np.log(drawn.theta[4 * np.arange(200) + drawn.codes]).sum(axis=1)  # every row in one component
    assert np.abs(values - logsumexp(pure, axis=1, b=1 / 12)).max() < 0.2
    assert errors.max() < 0.2


@pytest.mark.parametrize(("p", "k"), [(12, 3), (30, 4), (25, 8), pytest.param(120, 6, marks=pytest.mark.slow)])
def test_rough_likelihoods_rank_as_sharp_ones_do(p, k):
    drawn = simulate_gdlm(200, p, k, alpha=0.3, random_state=6)
    sharp, rough = (row_likelihood(drawn.encoded, drawn.theta, drawn.alpha, rough=way) for way in (False, True))
    assert abs((sharp - rough).mean()) < 0.03
    assert np.sqrt(((sharp - rough) ** 2).mean()) < 0.4


def test_half_the_variance_of_scattered_nodes_is_added():
    """The logarithm of a mean is too low by as much."""
    drawn = simulate_gdlm(20, 25, 7, alpha=0.1, random_state=1)
    cells = LikelihoodTable(drawn.encoded)
    plain, errors, explaining, _ = marginal._by_nodes(
        cells, cells.codes, cells.likelihoods(drawn.theta), nodes_for(drawn.alpha, 25)
    )
    by_nodes = explaining >= marginal.EXPLAINING
    values = row_likelihood(drawn.encoded, drawn.theta, drawn.alpha)
    np.testing.assert_allclose(values[by_nodes], (plain + 0.5 * errors**2)[by_nodes], rtol=1e-12)
    assert by_nodes.any()
    assert errors.max() > 0.0


def test_long_rows_of_few_components_have_exact_means():
    """A hundred cells and more: two components have nodes that serve exactly, five have not."""
    for k, exact in ((2, True), (5, False)):
        drawn = simulate_gdlm(40, 120, k, alpha=0.3, random_state=0)
        _, known = marginal.mean_memberships(LikelihoodTable(drawn.encoded), drawn.theta, drawn.alpha)
        assert known.all() == known.any() == exact
