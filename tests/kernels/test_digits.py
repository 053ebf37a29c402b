"""Whole numbers out of text against their slow form."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import digits, reference
from tests.kernels.cases import agree


@pytest.mark.parametrize("text", ["", "7", "1 2 3\n10:20\t30\r\n", " 5\n\n6 ", "12 -3", "4 5.5", "x", "1 2,3"])
def test_whole_numbers(text):
    raw = np.frombuffer(text.encode(), dtype=np.uint8)
    agree(digits.whole_numbers, reference.whole_numbers, raw, np.zeros(len(raw) // 2 + 1, dtype=np.int64))
