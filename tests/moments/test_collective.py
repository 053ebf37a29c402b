from __future__ import annotations

import numpy as np
import pytest

from mixmem.moments import collective
from mixmem.moments.collective import SlowMode


def drawn(k: int, rows: int = 300, zeros: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(4, 0.5), size=(rows // 4, k)).transpose(0, 2, 1).reshape(-1, k)
    theta[rng.random(theta.shape) < zeros] = 0.0
    return theta, rng.uniform(0.5, 1.5, k)


def exact_step(theta: np.ndarray, weights: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Least squares for one mode of sum_h w_h theta_h x theta_h x theta_h, the two others at theta (I + E)."""
    others = theta @ (np.eye(len(e)) + e)
    crossed = theta.T @ others
    q = (others.T @ others) ** 2
    return theta * weights @ crossed**2 @ np.linalg.inv(q)


def test_l_is_the_derivative_of_a_step():
    theta, weights = drawn(4)
    e = np.random.default_rng(1).standard_normal((4, 4)) * 1e-5
    e -= np.diag(e.sum(axis=0))
    stepped = np.linalg.lstsq(theta, exact_step(theta, weights, e), rcond=None)[0]
    sums = stepped.sum(axis=0)
    found = stepped / sums - np.eye(4)
    mode = SlowMode(theta, weights)
    assert np.allclose(mode.apply(e), found, atol=2e-8)
    assert np.allclose(weights * (1.0 + mode.unscaled(e).sum(axis=0)), sums, atol=2e-8)


@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_the_matrix_of_l_is_what_applying_it_does(zeros):
    mode = SlowMode(*drawn(5, zeros=zeros))
    e = np.random.default_rng(2).standard_normal((5, 5))
    assert np.allclose(mode.matrix() @ e.ravel(), mode.apply(e).ravel())


def test_rows_move_in_their_positive_entries_only():
    """With zeros, Y is the least-squares fit of theta Y to rows that each solve their own restricted program."""
    theta, weights = drawn(3, zeros=0.5)
    e = np.random.default_rng(3).standard_normal((3, 3))
    gram = theta.T @ theta
    crossed = theta * weights @ (gram * (e.T @ gram))
    rows = np.zeros_like(theta)
    for r, row in enumerate(theta):
        on = row > 0.0
        if on.any():
            rows[r, on] = -2.0 * crossed[r, on] @ np.linalg.inv((gram * gram)[np.ix_(on, on)]) / weights[on]
    expected = np.linalg.lstsq(theta, rows, rcond=None)[0]
    assert np.allclose(SlowMode(theta, weights).unscaled(e), expected)


def test_many_components_are_solved_without_the_matrix(monkeypatch):
    theta, weights = drawn(6)
    change = theta @ (np.random.default_rng(4).standard_normal((6, 6)) * 1e-3)
    dense = SlowMode(theta, weights).left(theta, change)
    monkeypatch.setattr(collective, "DENSE", 5)
    applied = SlowMode(theta, weights).left(theta, change)
    assert np.isclose(applied.theta, dense.theta, rtol=0.05)
    assert np.abs(applied.move - dense.move).max() < 0.05 * np.abs(dense.move).max()


def test_a_mode_that_does_not_fall_is_infinitely_far():
    """Two equal components: what one gains the other may lose for ever."""
    theta, _ = drawn(3)
    theta[:, 2] = theta[:, 1] + 1e-9
    left = SlowMode(theta, np.ones(3)).left(theta, theta @ (np.eye(3) * 1e-4))
    assert np.isfinite(left.move).all()
