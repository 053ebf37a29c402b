"""How far components lie apart."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.results.distinctive import Contents, ordered_distances


def test_ordered_distances_add_up_along_a_scale():
    labels = [("q", level, "probability") for level in "123"] + [("x", "", "mean"), ("x", "", "variance")]
    theta = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6], [1.0, 2.0, 5.0], [4.0, 4.0, 4.0]])
    apart = ordered_distances(theta, Contents.of(labels))
    assert apart[0] == pytest.approx([0.0, 0.3 + 0.2 + 0.5, 0.5 + 0.5 + 2.0])
    assert apart[0, 2] == pytest.approx(apart[0, 1] + apart[1, 2])
    np.testing.assert_array_equal(apart, apart.T)
