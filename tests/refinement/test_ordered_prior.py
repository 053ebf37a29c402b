"""The prior of ordered levels: its draws against the posterior by brute force, and what it is good for."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem import GDLM, encode
from mixmem.likelihood.table import LikelihoodTable
from mixmem.refinement.noise_draw import NoiseCounts
from mixmem.refinement.ordered_prior import DEGREES, OrderedPrior, elliptical_slice, polynomials
from mixmem.selection import halves


def test_polynomials_are_orthogonal_and_of_mean_square_one():
    for size in (2, 3, 4, 7):
        found = polynomials(size)
        known = min(DEGREES, size - 1)
        assert np.allclose(found[:known] @ found[:known].T / size, np.eye(known))
        assert np.allclose(found.sum(axis=1), 0.0)
        assert not found[known:].any()


def test_elliptical_slices_keep_the_posterior():
    """Of a normal prior of variance 4 and a normal likelihood of variance 1 about 3: mean 2.4, variance 0.8."""
    rng = np.random.default_rng(0)
    at, draws = np.zeros((1, 200)), []
    for _ in range(150):
        other = 2.0 * rng.standard_normal(at.shape)
        at = elliptical_slice(at, other, lambda x, _: -0.5 * (x[0] - 3.0) ** 2, lambda each: each, (200,), rng)
        draws.append(at[0])
    assert np.mean(draws[50:]) == pytest.approx(2.4, abs=0.05)
    assert np.var(draws[50:]) == pytest.approx(0.8, abs=0.06)


def _answers(n: int, p: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of two components that lean to either end, and the components' probabilities (p d, 2)."""
    places = np.linspace(-1.0, 1.0, d)[:, None]
    each = np.exp(rng.uniform(1.0, 2.0, (p, 1, 2)) * np.array([1.0, -1.0]) * places)
    theta = each / each.sum(axis=1, keepdims=True)
    shares = rng.dirichlet([0.5, 0.5], n)
    edges = np.cumsum(np.einsum("nk,pdk->npd", shares, theta), axis=2)[:, :, :-1]
    return (rng.random((n, p, 1)) > edges).sum(axis=2), theta.reshape(p * d, 2)


def test_a_strong_order_is_found_and_none_is_not():
    rng = np.random.default_rng(1)
    codes, theta = _answers(100, 12, 6, rng)
    table = encode(codes, kinds={"*": "ordinal"})
    counts = np.concatenate(
        [np.stack([rng.multinomial(200, own) for own in part.T], axis=1) for part in np.split(theta, 12)]
    ).astype(float)
    shuffled = np.concatenate([rng.permuted(part, axis=0) for part in np.split(counts, 12)])
    strengths = []
    for held in (counts, shuffled):
        prior, drawn = OrderedPrior(LikelihoodTable(table), 2), []
        for _ in range(120):
            prior.draw(held, rng)
            drawn.append(prior.strength)
        strengths.append(np.median(drawn[60:]))
    assert strengths[0] > 40.0 > 20.0 > strengths[1]


def test_noise_is_weighed_alike_by_one_number_and_by_one_for_every_level():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 20, (7, 2)).astype(float)
    one, other = (NoiseCounts(counts, np.array([3, 4]), eta) for eta in (0.7, np.full((7, 2), 0.7)))
    assert one.without_noise() == pytest.approx(other.without_noise())
    assert one.with_noise(0.1) == pytest.approx(other.with_noise(0.1), abs=1e-3)
    drawn = [held.theta(0.1, np.random.default_rng(3)) for held in (one, other)]
    assert np.allclose(*drawn, atol=1e-4)


@pytest.mark.parametrize("delta", [0.02, 0.3])
def test_the_evidence_of_noise_is_an_integral_over_theta_for_shapes_that_differ(delta):
    shapes, counts = np.array([0.05, 0.4, 1.3, 6.0]), np.array([0.0, 3.0, 1.0, 12.0])
    theta = np.random.default_rng(0).dirichlet(shapes, 400_000)
    logs = np.log((1.0 - delta) * theta + delta / 4.0) @ counts
    drawn = np.log(np.exp(logs - logs.max()).mean()) + logs.max()
    held = NoiseCounts(counts[:, None], np.array([4]), shapes[:, None])
    assert held.with_noise(delta) == pytest.approx(drawn, abs=0.05)


@pytest.mark.slow
def test_the_order_helps_where_there_is_one(monkeypatch):
    monkeypatch.setattr(halves, "MOST_WORK", 0)  # starts from halves of the rows take most of it
    codes, _ = _answers(550, 10, 6, np.random.default_rng(2))
    train, test = codes[:150], codes[150:]
    models = [GDLM(2, variables={"*": kind}, random_state=0).fit(train) for kind in ("categorical", "ordinal")]
    assert models[1].score(test) > models[0].score(test) + 0.05
