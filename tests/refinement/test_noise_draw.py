from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln

from mixmem import GDLM, simulate_gdlm
from mixmem.refinement import noise_draw
from mixmem.refinement.noise_draw import NoiseCounts, draw_noise


@pytest.mark.parametrize(("delta", "eta"), [(0.05, 0.5), (0.3, 0.5), (0.1, 2.0)])
def test_the_evidence_is_the_integral_over_theta(monkeypatch, delta, eta):
    """Two levels, one component: theta is one number, and the integral one of scipy's."""
    monkeypatch.setattr(noise_draw, "DRAWS", 4_000)
    held = NoiseCounts(np.array([[30.0], [3.0]]), np.array([2]))

    def integrand(x: float) -> float:
        levels = (1.0 - delta) * np.array([x, 1.0 - x]) + delta / 2.0
        return float(np.exp((held.counts[:, 0] * np.log(levels)).sum() + 10.0) * (x * (1 - x)) ** (eta - 1.0))

    exact = np.log(quad(integrand, 0.0, 1.0, limit=200)[0]) - 10.0 - betaln(eta, eta)
    value, theta = held.with_noise(delta, eta, np.random.default_rng(0))
    assert value == pytest.approx(exact, abs=0.05)
    assert np.allclose(theta.sum(axis=0), 1.0)
    assert held.without_noise(eta) == pytest.approx(betaln(30 + eta, 3 + eta) - betaln(eta, eta))


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
        held = NoiseCounts(counts.reshape(40, 3, 4).transpose(0, 2, 1).reshape(160, 3).astype(float), np.full(40, 4))
        drawn = np.array([draw_noise(held, 0.05, 0.2, 0.5, rng, far=True)[0] for _ in range(20)])
        assert abs(drawn.mean() - delta) < 0.03
        assert (drawn == 0.0).all() == (delta == 0.0)
    near = [draw_noise(held, 0.2, 0.2, 0.5, rng, far=False)[0] for _ in range(10)]
    assert abs(np.mean(near) - 0.2) < 0.03
    assert draw_noise(held, 0.0, 0.2, 0.5, rng, far=False)[0] == 0.0


@pytest.mark.parametrize(("noise", "low", "high"), [(0.0, 0.0, 0.0), (0.1, 0.06, 0.14)])
def test_a_fit_says_zero_where_there_is_none(noise, low, high):
    table = simulate_gdlm(1000, 25, 3, noise=noise, random_state=2)
    model = GDLM(3, alpha0=0.3, random_state=0).fit(table.encoded)
    assert low <= model.contamination_ <= high
