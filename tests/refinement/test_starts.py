"""Which of several starts goes on."""

from __future__ import annotations

import numpy as np

from mixmem.refinement.starts import MOST_TIED, tied


def test_starts_that_rows_cannot_tell_from_the_likeliest_aretied():
    rng = np.random.default_rng(0)
    rows = rng.normal(-30.0, 2.0, 400)
    apart = rng.normal(0.0, 0.5, (5, 400))
    apart -= apart.mean(axis=1, keepdims=True)
    means = np.array([0.0, 0.01, -1.0, -0.01, -0.02])  # the standard error of a difference is 0.035
    assert tied(rows + apart + means[:, None]) == [1, 0, 3, 4][:MOST_TIED]
    assert tied(rows + apart + np.array([0.0, -1.0, -1.0, 2.0, -1.0])[:, None]) == [3]
    assert tied(rows[None]) == [0]
