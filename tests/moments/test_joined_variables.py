"""Variables joined: as many as have few cells together, fewer in wide tables, and tables of their sums."""

from __future__ import annotations

import numpy as np

from mixmem.moments.joined_variables import ALL_CELLS, FEWER_CELLS, MOST_CELLS, JoinedVariables


def joined(sizes, groups):
    sizes = np.array(sizes)
    return JoinedVariables.of(np.cumsum(sizes) - sizes, sizes, np.array(groups))


def test_neighbours_of_a_group_are_joined_while_their_cells_are_few():
    found = joined([4, 4, 4, 4, 2, 100, 3], [0, 4, 7])
    assert found.bounds.tolist() == [0, 3, 4, 5, 6, 7]
    assert found.groups.tolist() == [0, 2, 5]
    assert found.steps.tolist() == [1, 4, 16, 1, 1, 1, 1]
    assert found.starts.tolist() == [0, 64, 68, 70, 170]


def test_wide_tables_join_fewer():
    for count, most in ((100, MOST_CELLS), (ALL_CELLS, FEWER_CELLS)):
        found = joined([4] * count, [0, count])
        assert np.diff(found.starts).max() == most


def test_joined_cells_say_the_sum_of_what_their_members_say():
    table = np.arange(11.0)[:, None] * [1.0, 10.0]
    found = joined([3, 2, 6], [0, 2, 3])
    assert found.table(table)[1 + 3 * 1].tolist() == [1.0 + 4.0, 50.0]
    assert found.table(table)[6 + 2].tolist() == [7.0, 70.0]
    alone = joined([3, 8], [0, 1, 2])
    assert alone.table(table) is table
