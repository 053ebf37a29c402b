"""The sweep's passes against their slow forms, on numbers of variables that fours and tiles do not divide."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import ROW_BLOCK, passes, reference
from mixmem.moments.joined_variables import JoinedVariables
from tests.kernels.cases import agree, empty, random_cells

SHAPES = [(1, (3,)), (5, (2, 3, 4)), (ROW_BLOCK + 3, (2, 3, 5, 4, 2)), (3, (2,) * 71)]


def some_members(cells):
    """All variables but one, where each starts in a table of the members' own rows, and that table's size."""
    members = np.arange(len(cells.sizes))[1:] if len(cells.sizes) > 1 else np.array([0])
    sizes = cells.sizes[members] + 1
    return members, np.cumsum(sizes) - sizes, int(sizes.sum())


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("n", "levels"), SHAPES)
def test_add_features(n, levels, missing):
    cells = random_cells(n, levels, missing=missing)
    members, starts, rows = some_members(cells)
    rng = np.random.default_rng(1)
    table, totals = rng.standard_normal((rows, 3)), rng.standard_normal((n, 3))
    agree(passes.add_features, reference.add_features, cells.codes, starts, members, table, totals)


@pytest.mark.parametrize(("n", "levels"), SHAPES)
def test_scatter_sums(n, levels):
    cells = random_cells(n, levels)
    members, starts, rows = some_members(cells)
    values, blocks = np.random.default_rng(1).standard_normal((n, 3)), -(-n // ROW_BLOCK)
    for first in range(blocks):
        partials = empty(blocks - first, rows, 3)
        agree(passes.scatter_sums, reference.scatter_sums, cells.codes, starts, members, values, first, partials)


def joined_members(cells):
    """The same members joined."""
    members, starts, rows = some_members(cells)
    sizes = cells.sizes[members] + 1
    return members, JoinedVariables.of(starts, sizes, np.array([0, len(members)])), rows


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("n", "levels"), SHAPES)
def test_add_joined(n, levels, missing):
    cells = random_cells(n, levels, missing=missing)
    members, joined, rows = joined_members(cells)
    rng = np.random.default_rng(1)
    own, width = rng.standard_normal((rows, 8)), 4
    table, u, y = joined.table(own), *rng.standard_normal((2, n, width))
    found = agree(
        passes.add_joined, reference.add_joined, cells.codes, members, joined.steps, joined.bounds, joined.starts,
        table, u, y,
    )  # fmt: skip
    totals = np.concatenate([u, y], axis=1)
    reference.add_features(cells.codes, joined.cells, members, own, totals)
    assert np.allclose(np.concatenate(found[-2:], axis=1), totals)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("n", "levels"), SHAPES)
def test_pair_sums(n, levels, own, weighted):
    cells = random_cells(n, levels)
    members, joined, rows = joined_members(cells)
    rng = np.random.default_rng(2)
    width, blocks = 4, -(-n // ROW_BLOCK)
    table = joined.table(rng.standard_normal((rows, 2 * width)))
    table = table if own else table[:0]  # without rows: the members have no part yet
    u, y, slope = *rng.standard_normal((2, n, width)), rng.standard_normal(width)
    weights = rng.random(n) if weighted else np.empty(0)
    for first in range(blocks):
        partials, squares = empty(blocks - first, rows, width), empty(blocks - first, width)
        agree(
            passes.pair_sums, reference.pair_sums, cells.codes, weights, joined.cells, joined.sizes, members,
            joined.steps, joined.bounds, joined.starts, table, u, y, slope, first, partials, squares,
        )  # fmt: skip


def test_features_and_sums_are_adjoint():
    cells = random_cells(ROW_BLOCK + 3, (2, 3, 5, 4, 2))
    members, starts, rows = some_members(cells)
    rng = np.random.default_rng(1)
    table, values = rng.standard_normal((rows, 3)), rng.standard_normal((ROW_BLOCK + 3, 3))
    totals, partials = np.zeros((ROW_BLOCK + 3, 3)), np.empty((2, rows, 3))
    passes.add_features(cells.codes, starts, members, table, totals)
    passes.scatter_sums(cells.codes, starts, members, values, 0, partials)
    assert np.isclose((totals * values).sum(), (table * partials.sum(axis=0)).sum())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("n", "levels"), [shape for shape in SHAPES if len(shape[1]) > 2])
def test_group_sums(n, levels, missing, weighted):
    cells = random_cells(n, levels, missing=missing)
    rng = np.random.default_rng(2)
    width, blocks, n_groups = 4, -(-n // ROW_BLOCK), 3
    members = rng.permutation(len(levels))
    groups = np.array([0, 1, len(levels) // 2 + 1, len(levels)])
    joined = JoinedVariables.of(cells.starts[members], cells.sizes[members] + 1, groups)
    own = rng.standard_normal((cells.n_rows, 2 * width))
    table, slopes = joined.table(own), rng.standard_normal((n_groups, width))
    rows = joined.starts + np.add.reduceat(cells.codes[:, members] * joined.steps, joined.bounds[:-1], axis=1)
    assert np.allclose(table[rows].sum(axis=1), own[cells.starts + cells.codes].sum(axis=1))
    weights = rng.uniform(0.5, 2.0, n if weighted else 0)
    for first in range(blocks):
        partials, squares = empty(blocks - first, cells.n_rows, width), empty(blocks - first, n_groups, width)
        found = agree(
            passes.group_sums, reference.group_sums, cells.codes, weights, joined.cells, joined.sizes, members,
            joined.steps, joined.bounds, joined.starts, joined.groups, table, slopes, first, partials, squares,
        )  # fmt: skip
        passes.group_sums(
            np.asfortranarray(cells.codes), weights, joined.cells, joined.sizes, members, joined.steps, joined.bounds,
            joined.starts, joined.groups, table, slopes, first, partials, squares,
        )  # fmt: skip
        assert np.array_equal(partials, found[-2])  # the same bits however codes lie in memory
        assert np.array_equal(squares, found[-1])
