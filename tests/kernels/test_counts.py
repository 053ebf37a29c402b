"""Counting kernels against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import counts, reference
from mixmem.moments.joined_variables import JoinedVariables
from tests.kernels.cases import agree, random_cells

LEVELS = (2, 3, 5, 4, 2, 7, 3)


def weights_of(n, weighted):
    """Row weights, or an empty array for none."""
    return np.random.default_rng(1).random(n) if weighted else np.empty(0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "levels"), [(1, (3,)), (150, LEVELS), (9, (2,) * 70)])
def test_count_cells(n, levels, weighted):
    cells = random_cells(n, levels)
    offsets = np.append(cells.starts, cells.n_rows)
    out = np.random.default_rng(2).integers(0, 9, cells.n_rows).astype(float)  # what is there is added to
    for first, last in ((0, len(levels)), (len(levels) // 2, len(levels)), (0, 0)):
        agree(
            counts.count_cells, reference.count_cells, cells.codes, offsets, weights_of(n, weighted), first, last, out
        )


def two_ragged_blocks(cells):
    """Members, cells, local starts and sizes of two blocks of three groups of variables."""
    blocks = [([0, 1], [2], [3, 4]), ([5], [6, 0], [1])]
    members, sizes = np.full((2, 3, 2), -1), np.zeros((2, 3), int)
    places, local = np.zeros((2, 2, 3, 2), int)
    for b, modes in enumerate(blocks):
        for m, mode in enumerate(modes):
            members[b, m, : len(mode)] = mode
            places[b, m, : len(mode)] = cells.starts[mode]
            local[b, m, : len(mode)] = np.cumsum(cells.sizes[mode]) - cells.sizes[mode]
            sizes[b, m] = len(mode)
    return members, places, local, sizes


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n", [1, 140])
def test_block_triples(n, missing, weighted):
    """Cells are between two levels; a missing cell has no level, of share zero."""
    cells = random_cells(n, LEVELS, missing=missing)
    rng = np.random.default_rng(2)
    levels, shares = np.zeros((cells.n_rows, 2), int), np.zeros((cells.n_rows, 2))
    for start, d in zip(cells.starts, cells.sizes, strict=True):
        levels[start : start + d] = np.stack([np.arange(d), rng.permutation(d)], axis=1)
        shares[start : start + d] = [1 / 3, 2 / 3]
        shares[start] = [1.0, 0.0]
    places, weights = two_ragged_blocks(cells), weights_of(n, weighted)
    parts = []
    for first, last in ((0, 1), (1, 4), (0, 4), (3, 4)):
        out = np.zeros((2, 8, 8, 8))
        arguments = cells.codes, weights, *places, levels, shares, first, last, out
        parts.append(agree(counts.block_triples, reference.block_triples, *arguments)[-1])
    assert np.allclose(parts[0] + parts[1], parts[2])  # ranges of tasks add up
    assert not parts[3].any()  # the second block's first mode has one variable


def test_counts_without_weights_are_whole_numbers():
    cells = random_cells(200, LEVELS)
    levels = np.concatenate([np.arange(d + 1) for d in cells.sizes])[:, None]
    out = np.zeros((2, 8, 8, 8))
    counts.block_triples(
        cells.codes, np.empty(0), *two_ragged_blocks(cells), levels, np.ones((cells.n_rows, 1)), 0, 4, out
    )
    assert (out == np.floor(out)).all()
    assert out[0].sum() == 200 * 2 * 1 * 2


@pytest.mark.parametrize("most", [1, 6, 100])
@pytest.mark.parametrize("n", [1, 600])
def test_plain_triples(n, most):
    """However variables are joined, counts are the same."""
    cells = random_cells(n, LEVELS)
    members, places, local, n_members = two_ragged_blocks(cells)
    sizes = np.where(members >= 0, cells.sizes[members], 0)
    steps, counted = np.ones((2, 2, 2), int), np.zeros((2, 2), int)
    bounds, starts = np.zeros((2, 2, 2, 3), int)
    for b, q in np.ndindex(2, 2):
        size = n_members[b, 1 + q]
        own = sizes[b, 1 + q, :size]
        found = JoinedVariables.up_to(local[b, 1 + q, :size], own, np.array([0, size]), most)
        joins = counted[b, q] = len(found.starts)
        steps[b, q, :size], bounds[b, q, : joins + 1] = found.steps, found.bounds
        starts[b, q, : joins + 1] = [*found.starts, found.starts[-1] + own[found.bounds[-2] :].prod()]
    levels = np.concatenate([np.arange(d + 1) for d in cells.sizes])
    for first, last in ((0, 1), (1, 4), (0, 4)):
        out = np.random.default_rng(3).integers(0, 9, (2, 8, 8, 8)).astype(float)  # what is there is added to
        agree(
            counts.plain_triples, reference.plain_triples, cells.codes, members, places, local, sizes, n_members,
            levels, steps, bounds, starts, counted, first, last, out,
        )  # fmt: skip
