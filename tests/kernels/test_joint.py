"""A sweep of joint diagonalization against its slow form."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import joint, reference
from tests.kernels.cases import agree


def matrices(n, m, noise, seed=3):
    """Return m symmetric matrices (n, n, m) that one matrix makes diagonal, but for noise."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((n, n))
    noisy = noise * rng.standard_normal((n, n, m))
    return np.einsum("ih,ht,jh->ijt", mixing, rng.standard_normal((n, m)), mixing) + noisy + noisy.transpose(1, 0, 2)


@pytest.mark.parametrize(("n", "m", "noise"), [(1, 1, 0.0), (2, 1, 0.1), (4, 6, 0.0), (6, 12, 0.3)])
def test_diagonalizing_sweep(n, m, noise):
    agree(joint.diagonalizing_sweep, reference.diagonalizing_sweep, matrices(n, m, noise), np.eye(n))


def test_sweeps_keep_the_matrices_and_the_diagonalizer_together():
    before = matrices(5, 8, 0.1)
    x, v = before.copy(), np.eye(5)
    changes = [joint.diagonalizing_sweep(x, v) for _ in range(30)]
    assert np.allclose(x, np.einsum("ai,ijt,bj->abt", v, before, v))
    assert changes[-1] < 0.1 * changes[0]
