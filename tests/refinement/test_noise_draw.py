from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln, gammaln, logsumexp

from mixmem import GDLM, simulate_gdlm
from mixmem.refinement.noise_draw import NoiseCounts, draw_noise


def evidence(counts: np.ndarray, delta: float, eta: float) -> float:
    """Sum over the numbers of noise cells in all levels, each a Dirichlet-multinomial: exact."""
    d, n = len(counts), int(counts.sum())
    logs = np.zeros(1)
    for count in counts.astype(int):
        noise = np.arange(count + 1)
        of_level = gammaln(count + 1) - gammaln(noise + 1) - gammaln(count - noise + 1) + noise * np.log(delta / d)
        of_level += gammaln(eta + count - noise) - gammaln(eta)
        both = np.add.outer(logs, of_level)
        logs = np.array([logsumexp(both[::-1].diagonal(m)) for m in range(1 - len(logs), count + 1)])
    kept = n - np.arange(n + 1)
    return float(logsumexp(logs + gammaln(d * eta) - gammaln(d * eta + kept) + kept * np.log1p(-delta)))


@pytest.mark.parametrize("eta", [0.05, 0.5, 2.0, 20.0])
@pytest.mark.parametrize(
    ("counts", "error"),
    [
        ([30.0, 3.0], 1e-8),
        ([40.0, 12.0, 0.0, 1.0], 1e-8),
        ([0.0, 200.0, 3.0, 2.0], 1e-8),
        ([5.0, 0.0, 2.0], 1e-8),
        ([0.0, 0.0], 1e-8),
        ([300.0, 40.0, 0.0, 2.0], 0.05),
    ],
)
def test_the_evidence_is_the_integral_over_theta(counts, error, eta):
    held = NoiseCounts(np.array(counts)[:, None], np.array([len(counts)]), eta)
    for delta in (0.001, 0.05, 0.3):
        assert held.with_noise(delta) == pytest.approx(evidence(np.array(counts), delta, eta), abs=error)
    assert held.with_noise(1e-6) == pytest.approx(held.without_noise(), abs=0.01)


def test_a_prior_much_stronger_than_the_cells_is_no_trouble():
    """Levels with an order may have prior shapes of thousands."""
    counts = np.array([[33.0], [189.0], [251.0], [80.0], [7.0]])
    for strength in (4e3, 1e5):
        held = NoiseCounts(counts, np.array([5]), strength * np.array([[0.05], [0.32], [0.47], [0.15], [0.01]]))
        assert held.with_noise(1e-6) == pytest.approx(held.without_noise(), abs=0.01)
        drawn = held.theta(0.01, np.random.default_rng(0))
        assert drawn[:, 0] == pytest.approx(held.shapes[:, 0] / strength, abs=0.05)


def test_without_noise_the_evidence_is_exact_and_theta_sums_to_one():
    for eta in (0.5, 2.0):
        held = NoiseCounts(np.array([[30.0], [3.0]]), np.array([2]), eta)
        assert held.without_noise() == pytest.approx(betaln(30 + eta, 3 + eta) - betaln(eta, eta))
        assert np.allclose(held.theta(0.05, np.random.default_rng(0)).sum(axis=0), 1.0)


@pytest.mark.parametrize("times", [1, 8])
def test_theta_given_noise_has_the_mean_that_gibbs_steps_have(times):
    """Noise cells given theta, theta given noise cells, in turns: the same mean, with few cells and with many."""
    counts, eta, delta = times * np.array([[40.0], [6.0], [3.0], [2.0]]), 0.5, 0.2
    held, rng = NoiseCounts(counts, np.array([4]), eta), np.random.default_rng(0)
    nodes = np.mean([held.theta(delta, rng) for _ in range(400)], axis=0)[:, 0]
    theta, total = np.full(4, 0.25), np.zeros(4)
    for _ in range(4000):
        noise = rng.binomial(counts[:, 0].astype(int), delta / 4 / ((1 - delta) * theta + delta / 4))
        theta = rng.dirichlet(counts[:, 0] - noise + eta)
        total += theta
    assert np.abs(nodes - total / 4000).max() < 0.015


def test_few_cells_do_not_pass_for_noise():
    """Ten cells per variable and component, none of them noise: in nearly every table the likeliest share is small."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        theta = rng.dirichlet(np.full(4, 0.5), size=250)
        counts = np.array([rng.multinomial(10, row) for row in theta]).reshape(25, 10, 4).transpose(0, 2, 1)
        held = NoiseCounts(counts.reshape(100, 10).astype(float), np.full(25, 4), 0.5)
        assert held.with_noise(0.2) < held.without_noise() - 20.0


def test_noise_is_found_from_far_and_from_near():
    rng = np.random.default_rng(1)
    theta = rng.dirichlet(np.full(4, 0.2), size=(40, 3)).transpose(0, 2, 1).reshape(160, 3)
    for delta in (0.0, 0.2):
        counts = np.array(
            [
                rng.multinomial(500, column)
                for column in ((1 - delta) * theta + delta / 4).reshape(40, 4, 3).transpose(0, 2, 1).reshape(-1, 4)
            ]
        )
        held = NoiseCounts(
            counts.reshape(40, 3, 4).transpose(0, 2, 1).reshape(160, 3).astype(float), np.full(40, 4), 0.2
        )
        drawn, at = np.empty(25), 0.05
        for i in range(25):
            drawn[i] = at = draw_noise(held, at, 0.5, rng, far=True)
        drawn = drawn[5:]  # a step starts where the last one ended
        assert abs(drawn.mean() - delta) < 0.03
        assert (drawn == 0.0).all() == (delta == 0.0)
    assert np.mean([draw_noise(held, 0.0, 0.5, rng, far=True) > 0.0 for _ in range(10)]) == 1.0
    near = [draw_noise(held, 0.2, 0.5, rng, far=False) for _ in range(10)]
    assert abs(np.mean(near) - 0.2) < 0.03
    assert draw_noise(held, 0.0, 0.5, rng, far=False) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "low", "high"), [(0.0, 0.0, 0.0), (0.1, 0.06, 0.14)])
def test_a_fit_says_zero_where_there_is_none(noise, low, high):
    table = simulate_gdlm(1000, 25, 3, noise=noise, random_state=2)
    model = GDLM(3, alpha0=0.3, random_state=0).fit(table.encoded)
    assert low <= model.contamination_ <= high
