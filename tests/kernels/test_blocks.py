"""The factorization of a tensor against its slow form."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import blocks, reference
from tests.kernels.cases import agree, empty


def tensor_and_factors(shape, k, *, exact=False, seed=7):
    """A tensor, noisy or of k components, and starting factors."""
    rng = np.random.default_rng(seed)
    truth = np.einsum("ah,bh,ch->abc", *(rng.random((d, k)) for d in shape))
    noise = 0.0 if exact else 0.3 * rng.standard_normal(shape)
    return truth + noise, *(rng.random((d, k)) for d in shape)


@pytest.mark.parametrize("inner", [-3, 1, 10])
@pytest.mark.parametrize(("shape", "k"), [((1, 1, 1), 1), ((5, 4, 6), 2), ((3, 3, 2), 4)])
def test_factorize_one(shape, k, inner):
    history = empty(3 * 6)
    tensor, *factors = agree(
        blocks.factorize_one, reference.factorize_one, *tensor_and_factors(shape, k), 6, inner, 1e-10, -1.0, history,
        rtol=1e-8, atol=1e-8,
    )[:4]  # fmt: skip
    assert all((factor >= 0.0).all() for factor in factors)
    assert tensor.shape == shape


@pytest.mark.parametrize("exact", [False, True])
def test_it_stops_when_it_has_converged(exact):
    """By the residual, or by the factors where the residual is rounding error."""
    arguments = tensor_and_factors((4, 3, 3), 1, exact=exact)
    history = empty(3 * 200)
    filled = agree(
        blocks.factorize_one, reference.factorize_one, *arguments, 200, -5, 1e-10, 1e-6, history, rtol=1e-7, atol=1e-9
    )
    assert np.isnan(filled[-1][-1])


def test_one_step_is_the_algorithm_as_printed():
    """Algorithm 1, a round of it, written out: Phi, then X, mode after mode, nothing rescaled in between."""
    tensor, a, b, c = tensor_and_factors((5, 4, 6), 3)
    expected = [a.copy(), b.copy(), c.copy()]
    for m, subscripts in enumerate(("abc,bh,ch->ah", "abc,ah,ch->bh", "abc,ah,bh->ch")):
        one, two = (expected[other] for other in range(3) if other != m)
        q = (one.T @ one) * (two.T @ two)
        z = -np.einsum(subscripts, tensor, one, two)
        phi = np.sqrt(np.diag(z @ np.linalg.inv(q) @ z.T) / np.linalg.eigvalsh(q)[0])[:, None] * np.diag(q)
        phi = np.maximum(phi - np.abs(z), 0.0) / 2.0 + 1e-10
        x = expected[m]
        expected[m] = x * (np.maximum(-z, 0.0) + phi) / (x @ q + np.maximum(z, 0.0) + phi)
    blocks.factorize_one(tensor, a, b, c, 1, 1, 1e-10, 0.0, empty(3))
    for found, printed in zip((a, b, c), expected, strict=True):
        np.testing.assert_allclose(found, printed, rtol=1e-9)


@pytest.mark.parametrize("inner", [-3, 1])
def test_the_residual_is_reported(inner):
    tensor, a, b, c = tensor_and_factors((5, 4, 6), 2)
    history = empty(3 * 20)
    done, converged = blocks.factorize_one(tensor, a, b, c, 20, inner, 1e-10, 0.0, history)
    residual = ((tensor - np.einsum("ah,bh,ch->abc", a, b, c)) ** 2).sum()
    assert not converged
    assert np.isclose(history[3 * done - 1], residual)
