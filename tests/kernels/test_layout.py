"""Codes turned from columns to rows, on sizes that tiles do not divide."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import layout, reference
from tests.kernels.cases import agree


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (130, 67), (64, 64)])
def test_turn(shape, dtype):
    columns = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    agree(layout.turn, reference.turn, columns, np.zeros(shape[::-1], dtype))


@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (130, 67), (64, 64), (70, 1100)])
def test_turn_bytes(shape):
    columns = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    agree(layout.turn_bytes, reference.turn_bytes, columns, np.zeros(shape[::-1], np.uint8))
