"""Soft levels and cells: the way there and back, and what missing cells count as."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mixmem import Schema, Variable, first_moments, second_moments, simulate_gdlm, third_moments
from mixmem.data.coding import Coding, ColumnCoding
from mixmem.data.encode import Encoded
from mixmem.data.soft_levels import rows_of
from mixmem.moments.sweep import FullTensor
from mixmem.results.simulate import simulate_mixed
from tests import naive

MODES = (np.array([0, 1, 2]), np.array([3, 4, 5]), np.array([6, 7, 8]))


def mixed():
    """Categories, a genotype, counts and continuous numbers, some of them with missing cells."""
    drawn = simulate_mixed(800, 3, n_categorical=3, n_count=2, n_continuous=2, missing=0.25, random_state=0)
    columns = list(drawn.coding.columns)
    codes = drawn.codes.copy()
    codes[codes[:, 0] == 4, 0] = 1
    columns[0] = replace(columns[0], missing=False)
    columns[1] = ColumnCoding(Variable("g", ("A", "C", "G"), kind="dosage"), missing=True)
    codes[:, 1] = np.random.default_rng(0).integers(0, 7, 800)
    return Encoded.of(np.ascontiguousarray(codes), Coding(tuple(columns)))


def lost(share=0.3, n=20_000, seed=0):
    """A table of categories, and the same with cells lost at random."""
    table = simulate_gdlm(n, 9, 3, n_levels=3, alpha=0.4, random_state=seed)
    codes = np.where(np.random.default_rng(seed).random(table.codes.shape) < share, 3, table.codes).astype(np.uint8)
    return table.encoded, Encoded.of(codes, Coding.of(table.schema, missing=True))


def dense_cells(table, first):
    """b_ij of every row (n, soft levels) by hand: missing ones are the mean, the others made up for them."""
    soft, columns = table.coding.soft, []
    for j in range(table.n_variables):
        part = soft.part(np.array([j]))
        cells = np.eye(len(part.rows)) if part.shares is None else part.shares.toarray()
        mean, observed = first.means[part.rows], first.observed[j]
        counted = mean + (cells - mean) / observed
        if soft.absent[j] >= 0:
            counted[soft.absent[j]] = mean
        columns.append(counted[table.codes[:, j]])
    return np.hstack(columns)


def test_spread_and_collect_are_transposes():
    table = mixed()
    first = first_moments(table)
    rng = np.random.default_rng(1)
    for variables in (np.arange(7), np.array([5, 1, 2]), np.array([0])):
        part = table.coding.soft.part(variables)
        theta, sums = rng.standard_normal((len(part.rows), 4)), rng.standard_normal((len(part.cells), 4))
        there, back = first.spread(part, theta), first.collect(part, sums)
        assert there.shape == sums.shape
        assert back.shape == theta.shape
        assert (there * sums).sum() == pytest.approx((theta * back).sum(), rel=1e-12)


def test_complete_categories_need_neither():
    table = simulate_gdlm(100, 5, 2, random_state=0)
    soft, first = table.coding.soft, first_moments(table.encoded)
    assert soft.plain
    assert soft.shares is None
    assert (soft.offsets == table.schema.offsets).all()
    assert (soft.cell_offsets == table.schema.offsets).all()
    assert first.spread(soft.whole, table.theta) is table.theta
    assert first.collect(soft.whole, table.theta) is table.theta
    assert (soft.levels[0].ravel() == np.tile(np.arange(4), 5)).all()


def test_soft_levels_of_every_row_sum_to_one():
    """Of missing cells too, variable by variable; so do the levels the block kernel counts."""
    table = mixed()
    first, soft = first_moments(table), table.coding.soft
    cells = dense_cells(table, first)
    sums = np.add.reduceat(cells, soft.offsets[:-1], axis=1)
    assert np.abs(sums - 1).max() < 1e-12
    says = first.spread(soft.whole, np.eye(cells.shape[1]))
    rows = sum(says[soft.cell_offsets[j] + table.codes[:, j]] for j in range(table.n_variables))
    assert np.abs(rows - cells).max() < 1e-12
    assert np.abs(soft.levels[1].sum(axis=1) - 1).max() < 1e-12


def test_means_are_over_the_observed_rows():
    table = mixed()
    codes, first, soft = table.codes, first_moments(table), table.coding.soft
    for j in range(table.n_variables):
        part = soft.part(np.array([j]))
        seen = codes[:, j] != soft.absent[j]
        cells = part.shares.toarray()[codes[seen, j]]
        assert np.allclose(first.means[part.rows], cells.mean(axis=0), atol=1e-12)
        assert first.observed[j] == pytest.approx(seen.mean())
    assert first.means[0:4] == pytest.approx(np.bincount(codes[:, 0], minlength=4) / 800)


def test_weights_of_whole_numbers_are_repeated_rows():
    table = mixed()
    weights = np.random.default_rng(3).integers(0, 4, table.n_rows).astype(float)
    weighted = replace(table, weights=weights)
    repeated = table.take(np.repeat(np.arange(table.n_rows), weights.astype(int)))
    modes = (np.array([0, 3]), np.array([1, 4]), np.array([2, 5, 6]))
    one, other = first_moments(weighted), first_moments(repeated)
    assert np.allclose(one.means, other.means, atol=1e-13)
    assert np.allclose(one.observed, other.observed, atol=1e-13)
    blocks = [third_moments(weighted, [modes])[0], third_moments(repeated, [modes])[0]]
    assert np.allclose(blocks[0].corrected(0.8), blocks[1].corrected(0.8), atol=1e-13)


def test_block_and_pair_moments_of_all_kinds_are_those_of_the_dense_cells():
    """Missing cells filled in by each block's own means, which are those of the table."""
    table = mixed()
    first = first_moments(table)
    cells, modes = dense_cells(table, first), (np.array([0, 3]), np.array([1, 4]), np.array([2, 5, 6]))
    sides = [cells[:, rows_of(table.coding.soft.offsets, mode)] for mode in modes]
    raw = third_moments(table, [modes])[0].raw
    assert np.allclose(raw, np.einsum("ia,ib,ic->abc", *sides) / table.n_rows, atol=1e-12)
    assert np.allclose(second_moments(table, modes[0], modes[1]), sides[0].T @ sides[1], atol=1e-9)


def test_the_sweeps_step_on_all_kinds_is_that_of_the_dense_cells():
    """Z over all pairs of distinct variables outside the group, from corrected blocks of the dense cells."""
    table = mixed()
    first, soft, alpha0 = first_moments(table), table.coding.soft, 0.9
    cells = dense_cells(table, first)
    theta = np.random.default_rng(5).random((cells.shape[1], 3))
    part = soft.part(np.array([1, 4]))
    q, z = FullTensor(table, first, theta, alpha0).program(part)
    rows = [rows_of(soft.offsets, np.array([j])) for j in range(table.n_variables)]
    expected_q, expected_z = np.zeros_like(q), np.zeros_like(z)
    for s in (0, 2, 3, 5, 6):
        for t in (0, 2, 3, 5, 6):
            if s != t:
                block = naive.corrected_dense(cells[:, part.rows], cells[:, rows[s]], cells[:, rows[t]], alpha0)
                expected_z += np.einsum("abc,bh,ch->ah", block, theta[rows[s]], theta[rows[t]])
                expected_q += (theta[rows[s]].T @ theta[rows[s]]) * (theta[rows[t]].T @ theta[rows[t]])
    assert np.abs(z - expected_z).max() < 1e-10
    assert np.abs(q - expected_q).max() < 1e-10


def test_moments_survive_the_loss_of_cells():
    """30 % lost at random. Root mean square: the moments 0.0157, their sampling error 0.0009, off by 0.0010 without
    those cells, by 0.0103 if "missing" were a level."""
    table, gappy = lost()
    complete = third_moments(table, [MODES])[0].corrected(1.2)
    found = third_moments(gappy, [MODES])[0].corrected(1.2)
    as_level = Schema(tuple(Variable(v.name, (*v.levels, "missing")) for v in table.schema.variables))
    rows = np.arange(12).reshape(3, 4)[:, :3].ravel()
    naively = third_moments(Encoded.of(gappy.codes, Coding.of(as_level)), [MODES])[0]
    naively = naively.corrected(1.2)[np.ix_(rows, rows, rows)]
    halves = [third_moments(table.take(slice(half, None, 2)), [MODES])[0].corrected(1.2) for half in (0, 1)]

    def size(difference):
        return np.sqrt((difference**2).mean())

    sampling = size(halves[0] - halves[1]) / 2
    assert size(found - complete) < 2 * sampling
    assert size(naively - complete) > 5 * size(found - complete)
    assert (np.abs(found - complete) < 6 * sampling).all()
    assert abs((found - complete).mean()) < 0.1 * sampling  # no bias


def test_lower_moments_of_a_block_with_missing_cells_are_unbiased_too():
    table, gappy = lost()
    full, found = (third_moments(one, [MODES])[0] for one in (table, gappy))
    means = first_moments(gappy).means
    for one, other in zip(full.corrected_pairs(1.2), found.corrected_pairs(1.2), strict=True):
        assert np.abs(one - other).max() < 0.02
    # every one of a mode's three variables has levels that sum to one, so that summing it out leaves the means
    uv = found.corrected_pairs(1.2)[0]
    assert np.allclose(uv.sum(axis=0), 3 / 2.2 * means[found.rows[1]], atol=1e-12)
    assert np.allclose(uv.sum(axis=1), 3 / 2.2 * means[found.rows[0]], atol=1e-12)
    assert np.abs(means - first_moments(table).means).max() < 0.01


def test_a_part_in_which_a_variable_is_never_observed():
    """A few rows of a table may lack a variable that the table has: it says nothing, and its means are even."""
    table = mixed()
    soft = table.coding.soft
    for j in (1, 2, 5):
        table.codes[:, j] = soft.absent[j]
    first = first_moments(table)
    assert np.abs(np.add.reduceat(first.means, soft.offsets[:-1]) - 1).max() < 1e-12
    theta = np.random.default_rng(0).random((int(soft.offsets[-1]), 3))
    assert np.isfinite(first.spread(soft.whole, theta)).all()
    modes = (np.array([0, 3]), np.array([1, 4]), np.array([2, 5, 6]))
    block = third_moments(table, [modes])[0]
    assert np.abs(block.raw.sum() - 2 * 2 * 3) < 1e-9
    with np.errstate(all="raise"):
        q, z = FullTensor(table, first, theta, 0.9).program(soft.part(np.array([1, 4])))
    assert np.isfinite(q).all()
    assert np.isfinite(z).all()


def test_chunks_of_a_table_with_missing_cells_add_up():
    table = mixed()
    modes = (np.array([0, 3]), np.array([1, 4]), np.array([2, 5, 6]))
    whole = third_moments(table, [modes])[0].corrected(0.5)
    chunks = table.take(slice(333)), table.take(slice(333, None))
    parts = [third_moments(chunk, [modes], first_stretch=at)[0] for at, chunk in enumerate(chunks)]
    assert np.allclose((parts[0] + parts[1]).corrected(0.5), whole, atol=1e-14)
    merged = first_moments(chunks[0]) + first_moments(chunks[1], first_stretch=1)
    assert (merged.means == first_moments(table).means).all()
