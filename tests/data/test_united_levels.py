"""Chunks with levels of their own: one coding in the end, in any order of uniting."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from mixmem import InputError, encode
from mixmem.data import united_levels
from mixmem.data.read import read_table
from mixmem.data.united_levels import Recoding, coded_growing, united


def chunk(base, **columns):
    return coded_growing(read_table(pd.DataFrame(columns)), base)


def test_levels_are_united_in_any_order_and_codes_follow():
    base = encode(pd.DataFrame({"t": ["b", "d"] * 3, "n": [1, 2, 5] * 2, "x": np.arange(6) / 7})).coding
    parts = [
        chunk(base, t=["a", "d"], n=[1, 2], x=[0.1, 0.2]),
        chunk(base, t=["c", None], n=[7, 2], x=[0.5, np.nan]),
        chunk(base, t=["b", "b"], n=[3, 5], x=[9.0, 0.0]),
    ]
    found = {united(base, [part.coding for part in order]).digest for order in itertools.permutations(parts)}
    assert len(found) == 1
    coding = united(base, [part.coding for part in parts])
    assert coding.columns[0].levels == ("a", "b", "c", "d")
    assert coding.columns[1].levels == ("1", "2", "3", "5", "7")
    assert coding.missing.tolist() == [True, False, True]
    for part in parts:
        way = Recoding.between(part.coding, coding)
        values = [
            [column.held()[code] for column, code in zip(part.coding.columns, row, strict=True)] for row in part.codes
        ]
        after = [
            [column.held()[code] for column, code in zip(coding.columns, row, strict=True)]
            for row in way.codes(part.codes)
        ]
        assert values == after
        counts = np.arange(part.coding.soft.n_cells, dtype=float)
        assert way.sums(counts)[way.cells].tolist() == counts.tolist()


def test_types_that_differ_become_texts_and_orders_are_kept():
    base = encode(pd.DataFrame({"n": [1, 10, 2] * 2, "o": pd.Categorical(["lo", "hi"] * 3, ["lo", "hi"])})).coding
    assert chunk(base, n=[1.5, 2.0], o=["hi", "lo"]).coding.columns[0].levels == ("1", "1.5", "2", "10")
    assert chunk(base, n=["x", "2"], o=["hi", "mid"]).coding.columns[0].levels == ("1", "10", "2", "x")
    assert chunk(base, n=[1, 2], o=["hi", "a"]).coding.columns[1].levels == ("lo", "hi", "a")


def test_too_many_levels_are_refused(monkeypatch):
    monkeypatch.setattr(united_levels, "MAX_CODES", 4)
    base = encode(pd.DataFrame({"t": ["b", "d"] * 3, "u": ["x", "y"] * 3})).coding
    with pytest.raises(InputError, match="column 't' has more than 4 levels over all rows; declare it"):
        chunk(base, t=["e", "f"], u=["x", "y"])


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.float64])
@pytest.mark.parametrize("low", [0, -100, 100])
def test_consecutive_numbers_are_coded_as_any_others(dtype, low):
    """By subtraction where types allow it, also where differences wrap around; what is new is added as always."""
    low = abs(low) if dtype == np.uint8 else low
    numbers = np.array([[low, low + 1], [low + 26, low], [low + 13, low + 1]]).astype(dtype)
    base = encode(np.array([[low + at, low + at % 2] for at in range(27)] * 2), kinds={"x0": "categorical"}).coding
    found = coded_growing(read_table(numbers), base)
    assert found.codes.tolist() == [[0, 1], [26, 0], [13, 1]]
    assert found.coding is base
    more = coded_growing(read_table(numbers + 1), base)
    assert more.coding.columns[1].levels == (str(low), str(low + 1), str(low + 2))
    assert more.codes[:, 1].tolist() == [2, 1, 2]
