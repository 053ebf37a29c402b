"""Gram sums against their slow form."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import grams, reference
from tests.kernels.cases import agree


@pytest.mark.parametrize(("sizes", "k"), [((1,), 1), ((4,), 3), ((2, 3, 5, 4, 2, 7, 3), 4)])
def test_gram_sums(sizes, k):
    sizes = np.array(sizes)
    theta, starts = np.random.default_rng(3).random((sizes.sum(), k)), np.cumsum(sizes) - sizes
    agree(grams.gram_sums, reference.gram_sums, theta, starts, sizes)
    agree(grams.gram_sums, reference.gram_sums, theta, starts[-1:], sizes[-1:])  # of one variable
