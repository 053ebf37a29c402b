"""The EM pass against its slow form."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import ROW_BLOCK, em, reference
from tests.kernels.cases import agree, empty, random_cells


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.9])
@pytest.mark.parametrize(("n", "levels", "k"), [(1, (3,), 1), (40, (2, 3, 5, 4), 3), (ROW_BLOCK + 5, (2, 4), 2)])
def test_em_pass(n, levels, k, missing):
    cells = random_cells(n, levels, missing=missing)
    rng = np.random.default_rng(1)
    x, weights, blocks = rng.dirichlet(np.ones(k), n), rng.random(n), -(-n // ROW_BLOCK)
    table = cells.likelihoods(k)
    for first in range(blocks):
        filled = agree(
            em.em_pass, reference.em_pass, cells.codes, cells.starts, cells.absent, table, x, weights, first,
            empty(n, k), empty(blocks - first, cells.n_rows, k), empty(blocks - first),
        )  # fmt: skip
        assert np.isnan(filled[-3][: first * ROW_BLOCK]).all()  # rows of other blocks are left alone


def test_likelihoods_of_many_cells_do_not_underflow():
    cells = random_cells(3, (2,) * 400)
    table = 1e-6 * cells.likelihoods(2)
    *_, partials, values = agree(
        em.em_pass, reference.em_pass, cells.codes, cells.starts, cells.absent, table, np.full((3, 2), 0.5),
        np.ones(3), 0, empty(3, 2), empty(1, cells.n_rows, 2), empty(1),
    )  # fmt: skip
    assert values[0] < -3 * 400 * 13
    assert np.isfinite(partials).all()
