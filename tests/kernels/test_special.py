"""Special functions against SciPy's."""

from __future__ import annotations

import numpy as np

from mixmem.kernels import reference, special
from tests.kernels.cases import agree


def test_log_gamma():
    x = np.random.default_rng(0).gamma(0.5, 20.0, (7, 11)) + 1e-6
    agree(special.log_gamma, reference.log_gamma, x, rtol=1e-12, atol=1e-12)
    agree(special.log_gamma, reference.log_gamma, x[:, 3])  # a column: not contiguous
    assert special.log_gamma(np.empty((0, 3))).shape == (0, 3)
    assert special.log_gamma(1.0).shape == ()
