"""Tilted levels against their slow form."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import ordered, reference
from tests.kernels.cases import agree, empty


@pytest.mark.parametrize(("sizes", "k"), [((2,), 1), ((3, 7, 2), 4)])
def test_ordered_fit(sizes, k):
    rng = np.random.default_rng(0)
    starts, rows, p = np.cumsum((0, *sizes[:-1])), sum(sizes), len(sizes)
    counts, a = rng.integers(0, 30, (rows, k)).astype(float), rng.standard_normal((rows, 1))
    b, scores = 3.0 * rng.standard_normal((3, p, k)), rng.standard_normal((3, rows))
    b[:, 0, 0] *= 100.0  # levels that are all but impossible
    waiting = rng.random((p, k)) < 0.7
    waiting[0, 0] = True
    agree(ordered.ordered_fit, reference.ordered_fit, counts, a, b, scores, starts, 4.0, waiting, empty(p, k))
