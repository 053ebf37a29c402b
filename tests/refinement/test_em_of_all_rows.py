"""EM over rows that are not held: a round's sums against plain EM, and the maximum against that of rows in memory."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem import fit_rows, rmse, simulate_gdlm, simulate_mixed
from mixmem.progress import Progress
from mixmem.refinement.em_of_all_rows import BARRIER, most_likely_of_all, round_sums
from mixmem.refinement.maximum_likelihood import most_likely


@pytest.fixture(scope="module")
def drawn():
    return simulate_gdlm(3000, 40, 2, n_levels=3, alpha=0.5, random_state=0)


def test_a_round_holds_the_cells_of_the_likeliest_memberships(drawn):
    table, k = drawn.encoded, 2
    sums, value = round_sums(table, drawn.theta).root
    rows = fit_rows(table, drawn.theta, np.full(k, BARRIER), memberships="mode")
    places = 3 * np.arange(40) + table.codes
    mixed = (drawn.theta[places] * rows.memberships[:, None, :]).sum(axis=2, keepdims=True)
    expected = np.zeros((120, k))
    np.add.at(expected, places, rows.memberships[:, None, :] / mixed)
    np.testing.assert_allclose(sums, expected, rtol=1e-6)
    assert np.isclose(value, rows.conditional.sum() + BARRIER * np.log(rows.memberships).sum())
    first, second = (round_sums(table.take(slice(*span)), drawn.theta, span[0]) for span in ((0, 2048), (2048, 3000)))
    assert np.allclose((second + first).root[0], sums)


@pytest.mark.parametrize("kinds", ["categories", "mixed"])
def test_all_rows_end_where_rows_in_memory_do(drawn, kinds):
    if kinds == "mixed":
        drawn = simulate_mixed(3000, 2, n_categorical=10, n_count=8, n_continuous=8, missing=0.1, random_state=1)
    table = drawn.encoded
    began = fit_rows(table, drawn.theta, drawn.alpha, memberships="mode").memberships
    whole = most_likely(table, drawn.theta, began, progress=Progress())
    sample = table.take(slice(1000))

    def rounds(theta):
        return round_sums(table, theta).root

    found = most_likely_of_all(sample, drawn.theta, rounds, 3000.0, progress=Progress())
    assert found.converged
    assert found.history[-1] > whole.history[-1] - 1e-3
    assert np.all(np.diff(found.history) >= 0.0)
    assert found.memberships.shape == (1000, 2)
    if kinds == "categories":
        assert rmse(found.theta, whole.theta) < 0.2 * rmse(whole.theta, drawn.theta)
