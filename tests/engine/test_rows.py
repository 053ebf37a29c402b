"""The one sum over rows: its order is fixed by the stretches alone."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixmem.engine import rows as engine
from mixmem.engine.local import threads
from mixmem.engine.rows import Blocks, RowSum, Slices, map_rows, n_stretches, stretch_blocks, stretch_rows, sum_over
from mixmem.errors import InputError

BLOCK = 512
MANY = 65_536  # variables: a stretch is one block


def numbers(n, seed=0):
    """Numbers whose sum depends on the order of adding."""
    return np.random.default_rng(seed).standard_normal(n) * 10.0 ** np.random.default_rng(seed).integers(-8, 8, n)


def by_blocks(values):
    def fill(first, partials):
        for b in range(len(partials[0])):
            partials[0][b] = values[(first + b) * BLOCK : (first + b + 1) * BLOCK].sum()

    return Blocks([()], fill)


def by_slices(values, calls=None):
    def add(rows, begin, end, sums):
        if calls is not None:
            calls.append((rows.start, rows.stop, begin, end))
        for part in range(begin, end):
            for value in values[rows]:
                sums[0][part] += value

    return Slices([(3,)], 3, add)


def the_tree(values, n_variables):
    """The rule of the module, written down."""
    size = stretch_rows(n_variables)
    sums = []
    for first in range(0, len(values), size):
        stretch = values[first : first + size]
        total = 0.0
        for begin in range(0, len(stretch), BLOCK):
            total += stretch[begin : begin + BLOCK].sum()
        sums.append(total)
    while len(sums) > 1:
        sums = [sum(sums[i : i + 2]) for i in range(0, len(sums), 2)]
    return sums[0]


@pytest.mark.parametrize("n", [1, 511, 512, 513, 5 * 512, 13 * 512 + 7])
@pytest.mark.parametrize("n_variables", [MANY, 20_000, 10])
def test_the_sum_is_that_of_the_tree(n, n_variables):
    values = numbers(n)
    assert sum_over(by_blocks(values), n, n_variables).root[0] == the_tree(values, n_variables)


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("wave", [1, 10, 32_000_000])
def test_neither_threads_nor_waves_change_a_bit(monkeypatch, jobs, wave):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    monkeypatch.setattr(engine, "WAVE_BYTES", wave)
    values = numbers(9 * BLOCK + 5)
    with threads(jobs):
        found = sum_over(by_blocks(values), len(values), 20_000).root[0]
        sliced = sum_over(by_slices(values), len(values), MANY).root[0]
    assert found == the_tree(values, 20_000)
    assert len(set(sliced)) == 1


def parts_of(values, cuts, n_variables, work):
    """Sums of parts cut at stretch borders, each begun at its own stretch."""
    size = stretch_rows(n_variables)
    edges = [0, *(cut * size for cut in cuts), len(values)]
    out = []
    for first, last in pairwise(edges):
        own = values[first:last]
        out.append(sum_over(work(own), len(own), n_variables, first_stretch=first // size))
    return out


@pytest.mark.parametrize("work", [by_blocks, by_slices])
@pytest.mark.parametrize("cuts", [(1, 2), (3, 4), (2, 7), (5, 8)])
def test_parts_add_up_to_the_whole_in_any_order(work, cuts):
    values = numbers(9 * BLOCK + 100, seed=1)
    whole = sum_over(work(values), len(values), MANY).root[0]
    for order in permutations(parts_of(values, cuts, MANY, work)):
        assert np.array_equal((order[0] + order[1] + order[2]).root[0], whole)
        assert np.array_equal((order[0] + (order[1] + order[2])).root[0], whole)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 19), min_size=1, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_any_cuts_and_any_order_of_adding(cuts, random):
    values = numbers(20 * BLOCK, seed=2)
    parts = parts_of(values, sorted(cuts), MANY, by_blocks)
    random.shuffle(parts)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.root[0] == the_tree(values, MANY)
    assert len(total.nodes) <= 6


def test_a_stretch_that_is_in_both_is_refused():
    one = sum_over(by_blocks(numbers(4 * BLOCK)), 4 * BLOCK, MANY)
    other = sum_over(by_blocks(numbers(BLOCK)), BLOCK, MANY, first_stretch=3)
    with pytest.raises(InputError, match="both sums hold stretch 3 of the table, so rows would count twice"):
        one + other


def test_an_unfinished_sum_holds_few_nodes():
    found = sum_over(by_blocks(numbers(100 * BLOCK)), 100 * BLOCK, MANY)
    assert isinstance(found, RowSum)
    assert sorted(found.nodes) == [(2, 24), (5, 2), (6, 0)]  # 100 = 64 + 32 + 4


def test_stretches_by_the_number_of_variables():
    assert [stretch_blocks(p) for p in (1, 1024, 1025, 4096, 65_535, 65_536, 10**6)] == [64, 64, 32, 16, 1, 1, 1]
    assert n_stretches(stretch_rows(100), 100) == 1
    assert n_stretches(stretch_rows(100) + 1, 100) == 2


def test_no_rows_sum_to_zero():
    assert sum_over(by_blocks(numbers(0)), 0, 10).root[0] == 0.0


def test_rows_are_handed_out_once_and_progress_is_told():
    seen, told = np.zeros(1300, dtype=int), []

    def mark(rows):
        seen[rows] += 1

    map_rows(mark, 1300)
    map_rows(mark, 1300, told.append)
    assert (seen == 2).all()
    assert sorted(told) == [276, 512, 512]
