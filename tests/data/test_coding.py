"""Codings: fixed, compared by value, whole in files; sums add up only between equal ones."""

from __future__ import annotations

import json
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest

from mixmem import Coding, encode, first_moments, learn_coding, stretch_rows, third_moments
from mixmem.data.encode import Encoded
from mixmem.engine import rows as engine
from mixmem.errors import InputError
from mixmem.results.simulate import simulate_mixed

MODES = (np.array([0, 4, 8]), np.array([1, 5, 9]), np.array([2, 6]))


@pytest.fixture(scope="module")
def table():
    """All kinds, missing cells and weights, of more numbers than a grid keeps apart."""
    drawn = simulate_mixed(2600, 3, n_categorical=4, n_count=3, n_continuous=3, missing=0.1, random_state=0).frame
    drawn["snp"] = np.random.default_rng(1).integers(0, 3, len(drawn)).astype(float)
    drawn.loc[::7, "snp"] = np.nan
    kinds = {name: "count" for name in drawn if name.startswith("count")} | {"snp": "dosage"}
    weights = np.random.default_rng(2).uniform(0.1, 3.0, len(drawn))
    return drawn, kinds, encode(drawn, kinds=kinds, weights=weights)


def test_a_coding_comes_back_from_a_file_with_the_same_bits(table):
    frame, _, coded = table
    again = Coding.from_dict(json.loads(json.dumps(coded.coding.to_dict())))
    assert again == coded.coding
    assert again.digest == coded.coding.digest
    assert len(coded.coding.columns[8].values) == 1000  # gathered
    same = encode(frame, coding=again, weights=coded.weights)
    assert np.array_equal(same.codes, coded.codes)
    assert np.array_equal(first_moments(same).counts, first_moments(coded).counts)


@pytest.mark.parametrize("cuts", [(1, 2), (1, 4), (3, 4)])
def test_sums_of_three_chunks_are_the_sum_of_the_whole_to_the_last_bit(monkeypatch, table, cuts):
    monkeypatch.setattr(engine, "STRETCH_CELLS", 11)  # one block per stretch
    coded = table[2]
    size = stretch_rows(coded.n_variables)
    edges = [0, *(cut * size for cut in cuts), coded.n_rows]
    chunks = [(coded.take(np.arange(first, last)), first // size) for first, last in pairwise(edges)]
    first, block = first_moments(coded), third_moments(coded, [MODES])[0]
    parts = [
        (first_moments(chunk, first_stretch=at), third_moments(chunk, [MODES], first_stretch=at)[0])
        for chunk, at in chunks
    ]
    for (a, x), (b, y), (c, z) in permutations(parts):
        assert np.array_equal((a + b + c).counts, first.counts)
        assert np.array_equal((a + b + c).means, first.means)
        assert (a + b + c).total == first.total
        assert np.array_equal((x + y + z).sums, block.sums)
        assert np.array_equal((x + y + z).corrected(0.7), block.corrected(0.7))


def test_sums_of_other_levels_are_refused_and_the_variable_is_named():
    one, other = (encode(pd.DataFrame({"u": list(levels), "v": [0, 1]})) for levels in ("xy", "yz"))
    with pytest.raises(InputError, match=r"two codings: variable 'u' has the levels 'x', 'y' and 'y', 'z'; code both"):
        first_moments(one) + first_moments(other, first_stretch=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.assign(real0=frame["real0"] + 0.5), "variable 'real0' is rounded to"),
        (lambda frame: frame.fillna({"real0": 0.0}).dropna(subset="real0"), "variable 'real0'"),
        (lambda frame: frame.rename(columns={"x0": "y0"}), "variable 'x0' stands where the other has 'y0'"),
        (lambda frame: frame.drop(columns="x3"), "one has 11 variables, the other 10"),
    ],
)
def test_what_differs_is_said(table, change, message):
    frame, kinds, coded = table
    changed = change(frame)
    kinds = {name: kind for name, kind in kinds.items() if name in changed}
    assert message in coded.coding.difference(encode(changed, kinds=kinds).coding)


def test_halves_of_a_table_with_numbers_are_coded_alike(table):
    frame, kinds, _ = table
    halves = frame[:1500], frame[1500:]
    coding = learn_coding(*halves, kinds=kinds)
    assert coding == encode(frame, kinds=kinds).coding
    one, other = (first_moments(encode(half, coding=coding), first_stretch=at) for at, half in enumerate(halves))
    assert np.array_equal((one + other).counts, first_moments(encode(frame, kinds=kinds)).counts)


def test_levels_are_united_in_their_order():
    a = pd.DataFrame({"text": ["b", "a"], "number": [10, 9]})
    b = pd.DataFrame({"number": [2, 11], "text": ["c", "b"]})
    coding = learn_coding(a, b)
    assert coding.columns[0].levels == ("a", "b", "c")
    assert coding.columns[1].levels == ("2", "9", "10", "11")


def test_tables_of_other_columns_are_refused():
    with pytest.raises(InputError, match="table 2 lacks 'b' and adds 'c'; expected the columns of table 1"):
        learn_coding(pd.DataFrame({"a": [0, 1], "b": [0, 1]}), pd.DataFrame({"a": [0, 1], "c": [0, 1]}))
    with pytest.raises(InputError, match="learn_coding needs at least one table"):
        learn_coding()


def test_new_numbers_are_rounded_to_the_grid():
    coding = encode(pd.DataFrame({"a": [1.5, 2.0, 4.0], "b": [0, 1, 1]})).coding
    found = encode(pd.DataFrame({"a": [-9.0, 1.9, 3.1, 99.0], "b": [0, 0, 1, 1]}), coding=coding)
    assert found.codes[:, 0].tolist() == [0, 1, 2, 2]


def test_missing_cells_that_the_coding_does_not_know_are_refused():
    coding = encode(pd.DataFrame({"a": [1.5, 2.0, 4.0], "b": ["x", "y", "y"]})).coding
    for name, hole in (("a", [1.5, None]), ("b", ["x", None])):
        frame = pd.DataFrame({"a": [1.5, 2.0], "b": ["x", "y"]}).assign(**{name: hole})
        with pytest.raises(InputError, match=f"column '{name}' has missing cells, and the coding was fixed without"):
            encode(frame, coding=coding)


def test_a_foreign_document_is_refused():
    with pytest.raises(InputError, match="the coding is not one that mixmem wrote"):
        Coding.from_dict({"columns": [{"name": "a"}]})


def test_rows_that_were_counted_already_are_refused(table):
    first = first_moments(table[2])
    with pytest.raises(InputError, match="both sums hold stretch 0 of the table"):
        first + first


def test_blocks_of_other_variables_are_refused(table):
    one, other = third_moments(table[2], [MODES, (MODES[1], MODES[0], MODES[2])])
    with pytest.raises(InputError, match="the two sums are of different blocks"):
        one + other


def test_a_coding_takes_part_of_its_variables(table):
    coded = table[2]
    part = coded.take_variables(np.array([8, 0]))
    assert part.coding.names == ("real1", "x0")
    assert isinstance(part, Encoded)
    assert np.array_equal(part.codes, coded.codes[:, [8, 0]])
