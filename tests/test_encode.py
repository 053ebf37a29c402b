"""Codes: round trips, levels and their order, and every refusal."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mixmem.encoding import decode, encode
from mixmem.errors import InputError

quick = settings(max_examples=50, deadline=None)

RNG = np.random.default_rng(5)
SMALL = np.array([[1, 0, 2], [2, 1, 2], [1, 1, 5]])


def oracle(array):
    """Codes by sorting each column: the slow form of the fast path."""
    return np.stack([np.unique(column, return_inverse=True)[1] for column in array.T], axis=1)


def arrays(elements, dtype):
    shapes = st.tuples(st.integers(2, 12), st.integers(3, 6))
    return hnp.arrays(dtype, shapes, elements=elements).filter(
        lambda a: all(len(np.unique(column)) > 1 for column in a.T)
    )


# --- Round trips


@quick
@given(arrays(st.integers(-3, 3), np.int64))
def test_small_integers_come_back(array):
    encoded = encode(array)
    np.testing.assert_array_equal(encoded.codes, oracle(array))
    np.testing.assert_array_equal(decode(encoded.codes, encoded.schema).to_numpy(), array)


@quick
@given(arrays(st.integers(-(2**63), 2**63 - 1), np.int64))
def test_any_integers_come_back(array):
    encoded = encode(array)
    np.testing.assert_array_equal(encoded.codes, oracle(array))
    np.testing.assert_array_equal(decode(encoded.codes, encoded.schema).to_numpy(), array)


@quick
@example(np.array([["\0", "a", ""], ["", "a\0", "0"]], dtype=object))
@given(arrays(st.text(max_size=3), object))
def test_texts_come_back(array):
    encoded = encode(array)
    assert decode(encoded.codes, encoded.schema).to_numpy().tolist() == array.tolist()


@quick
@given(arrays(st.integers(-3, 3), np.int64), st.data())
def test_codes_do_not_depend_on_the_rows_around_them(array, data):
    schema = encode(array).schema
    rows = data.draw(st.lists(st.integers(0, len(array) - 1), min_size=1))
    np.testing.assert_array_equal(encode(array[rows], schema).codes, encode(array).codes[rows])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint64, np.float32, float])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_of_every_width_agree(dtype, order):
    array = RNG.integers(0, 5, (300, 7))
    expected = encode(array)
    came = encode(np.asarray(array, dtype=dtype, order=order))
    np.testing.assert_array_equal(came.codes, expected.codes)
    assert [v.levels for v in came.schema.variables] == [v.levels for v in expected.schema.variables]


def test_unsigned_numbers_beyond_the_signed_ones():
    array = np.array([[2**64 - 1, 0, 5], [2**64 - 2, 2**64 - 1, 6]], dtype=np.uint64)
    encoded = encode(array)
    assert encoded.schema.variables[0].levels == (str(2**64 - 2), str(2**64 - 1))
    np.testing.assert_array_equal(encoded.codes, [[1, 0, 0], [0, 1, 1]])


def test_narrow_and_wide_columns_side_by_side():
    array = RNG.integers(0, 4, (400, 6))
    array[:, 2] *= 100_000
    array[:, 4] = -array[:, 4] * 7
    np.testing.assert_array_equal(encode(array).codes, oracle(array))
    frame = pd.DataFrame(array).astype({0: "int8", 1: str, 3: float})
    frame.columns = [f"x{j}" for j in range(6)]
    np.testing.assert_array_equal(encode(frame).codes, oracle(array))


def test_blocks_of_rows_do_not_show(monkeypatch):
    array = RNG.integers(0, 4, (100, 5))
    monkeypatch.setattr("mixmem.encoding.BLOCK_CELLS", 1)
    np.testing.assert_array_equal(encode(array).codes, oracle(array))


def test_texts_of_large_integers_keep_their_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b,c\n{2**62 + 1},1.0,x\n{2**62},2,y\n{10**30},1,y\n")
    assert encode(path).schema.variables[0].levels == (str(2**62), str(2**62 + 1), str(10**30))


def test_many_levels_need_wider_codes():
    array = np.tile(np.arange(300), 2)[:, None] * np.ones(3, dtype=int)
    encoded = encode(array)
    assert encoded.codes.dtype == np.uint16
    np.testing.assert_array_equal(encoded.codes, array)
    assert encoded.codes.flags.c_contiguous


# --- Levels


def levels(data):
    return {v.name: (v.levels, v.value_type) for v in encode(data).schema.variables}


def test_numbers_sort_as_numbers_and_texts_as_texts():
    assert levels(pd.DataFrame({"n": [10, 9, 2], "t": ["10", "9", "2"], "b": [True, False, True]})) == {
        "n": (("2", "9", "10"), "int"),
        "t": (("10", "2", "9"), "str"),
        "b": (("False", "True"), "bool"),
    }


def test_categories_keep_their_order_and_lose_those_unused():
    grades = ["low", "mid", "high", "top"]
    values = ["high", "low", "mid"]
    halves = pd.Categorical([0.5, 1.0, 0.5], categories=[1.0, 0.5])
    frame = pd.DataFrame({"g": pd.Categorical(values, categories=grades), "h": halves, "o": [1, 2, 2]})
    assert levels(frame)["g"] == (("low", "mid", "high"), "str")
    assert levels(frame)["h"] == (("1", "0.5"), "float")  # declared categories may be any numbers
    assert encode(frame).codes[:, 0].tolist() == [2, 0, 1]
    enum = pl.DataFrame({"g": values, "h": [1, 2, 2], "o": [1, 2, 2]}).with_columns(pl.col("g").cast(pl.Enum(grades)))
    assert levels(enum)["g"] == (("low", "mid", "high"), "str")


def test_mixed_cells_are_texts():
    array = np.array([[1, 1.0, "a"], ["1", 2, True], [2, 1, 7.5]], dtype=object)
    assert levels(array) == {
        "x0": (("1", "2"), "str"),
        "x1": (("1", "2"), "float"),
        "x2": (("7.5", "True", "a"), "str"),
    }


def test_nullable_dtypes_without_nulls():
    frame = pd.DataFrame({"i": [1, 2**40], "b": [True, False], "s": ["x", "y"]})
    frame = frame.astype({"i": "Int64", "b": "boolean", "s": "string"})
    assert {name: kind for name, (_, kind) in levels(frame).items()} == {"i": "int", "b": "bool", "s": "str"}


def test_what_an_untyped_file_holds(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("i,f,b,t,z\n10,1.0,TRUE,a,01\n9,2,false,1,10\n9,1,true,a,10\n")
    assert levels(path) == {
        "i": (("9", "10"), "int"),
        "f": (("1", "2"), "float"),
        "b": (("False", "True"), "bool"),
        "t": (("1", "a"), "str"),
        "z": (("01", "10"), "str"),
    }


@pytest.mark.parametrize("dtype", [int, float, str, bool, object])
def test_a_model_accepts_the_same_values_from_a_file(tmp_path, dtype):
    array = RNG.integers(0, 2, (30, 3)).astype(dtype)
    learned = encode(array)
    path = tmp_path / "t.csv"
    pd.DataFrame(array, columns=["x0", "x1", "x2"]).to_csv(path, index=False)
    np.testing.assert_array_equal(encode(path, learned.schema).codes, learned.codes)
    np.testing.assert_array_equal(encode(array.tolist(), encode(path).schema).codes, encode(path).codes)


@pytest.mark.parametrize("text", ["true", "TRUE", "True"])
def test_truth_values_as_other_programs_write_them(tmp_path, text):
    schema = encode(np.array([[True] * 3, [False] * 3])).schema
    path = tmp_path / "t.csv"
    path.write_text(f"x0,x1,x2\n{text},{text},{text}\n")
    assert encode(path, schema).codes.tolist() == [[1, 1, 1]]


# --- A schema given


def test_columns_are_matched_by_name():
    frame = pd.DataFrame(SMALL, columns=["a", "b", "c"], index=["r", "s", "t"])
    learned = encode(frame)
    shuffled = frame.assign(extra="?")[["c", "extra", "a", "b"]]
    came = encode(shuffled, learned.schema)
    np.testing.assert_array_equal(came.codes, learned.codes)
    assert came.row_ids.tolist() == ["r", "s", "t"]
    np.testing.assert_array_equal(encode(SMALL, learned.schema).codes, learned.codes)


def test_missing_columns_are_named():
    schema = encode(pd.DataFrame(SMALL, columns=["age", "b", "c"])).schema
    with pytest.raises(InputError, match=r"lack 1 of the model's 3 columns: 'age'.*did you mean 'Age'"):
        encode(pd.DataFrame(SMALL, columns=["Age", "b", "c"]), schema)


def test_a_bare_array_needs_every_column():
    with pytest.raises(InputError, match="X has 2 features, but mixmem is expecting 3 features as input"):
        encode(SMALL[:, :2], encode(SMALL).schema)


def test_unknown_levels_are_located():
    frame = pd.DataFrame(SMALL, columns=["a", "b", "c"], index=["r", "s", "t"]).assign(d=["x", "y", "y"])
    schema = encode(frame).schema
    with pytest.raises(InputError, match=r"column 'c', row 2 \(id 's'\) holds '9'.*expected one of '2', '5': recode"):
        encode(frame.assign(c=[2, 9, 9]), schema)
    with pytest.raises(InputError, match=r"column 'd', row 3 \(id 't'\) holds 'z'.*expected one of 'x', 'y'"):
        encode(frame.assign(d=["x", "x", "z"]), schema)
    with pytest.raises(InputError, match=r"column 'x2', row 1 holds '3'"):
        encode(np.array([[1, 0, 3]]), encode(SMALL).schema)


def test_many_levels_are_not_all_listed():
    array = np.stack([np.arange(12)] * 3, axis=1)
    with pytest.raises(InputError, match=r"'7', \.\.\. \(12 in all\)"):
        encode(array + 100, encode(array).schema)


def test_one_row_is_enough_for_a_known_schema():
    assert encode(SMALL[:1], encode(SMALL).schema).codes.tolist() == [[0, 0, 0]]


# --- Refusals


def frame(**columns):
    return pd.DataFrame({"p": [0, 1, 1], "q": ["u", "v", "v"], **columns})


REFUSALS = [
    (SMALL[:, :2], r"2 feature\(s\) \(shape=\(3, 2\)\) while a minimum of 3 is required"),
    (SMALL[:0], r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
    (SMALL[:1], r"Found array with 1 sample\(s\)"),
    (frame(c=[4, 4, 4]), "column 'c' is constant: all 3 rows hold '4'.*drop the column"),
    (frame(c=["k", "k", "k"]), "column 'c' is constant"),
    (
        frame(c=[1.0, np.nan, 2.0]),
        r"column 'c' has 1 missing cell\(s\) \(NaN, or a text like NA\), the first in row 2 \(id 1\)",
    ),
    (frame(c=["a", "b", None]), r"column 'c' has 1 missing cell\(s\) \(NaN, or a text like NA\), the first in row 3"),
    (frame(c=pd.array([1, None, 2], dtype="Int64")), r"column 'c' has 1 missing"),
    (
        frame(c=pd.Categorical(["a", None, None])),
        r"column 'c' has 2 missing cell\(s\).*give the cells a level",
    ),
    (pl.DataFrame({"a": [1, None], "b": ["x", "y"], "c": [True, False]}), "column 'a' has 1 missing"),
    (pl.DataFrame({"a": [1, 2], "b": ["x", None], "c": [True, False]}), "column 'b' has 1 missing"),
    (pl.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [True, None]}), "column 'c' has 1 missing"),
    (np.array([[1, np.nan, np.nan], [0, 1, 1]]), r"column 'x1' has 1 missing.*row 1 \(1 further column"),
    (np.array([[1, pd.NA, 0], [0, 1, 1]], dtype=object), "column 'x1' has 1 missing"),
    (np.array([[1, np.inf, 0], [0, 1, 1]]), r"column 'x1', row 1 holds inf \(inf\)"),
    (np.array([[1, np.inf, "a"], [0, 1, "b"]], dtype=object), r"column 'x1', row 1 holds inf \(inf\)"),
    (
        np.array([[1, 0, 0], [0, 2.5, 1]]),
        "column 'x1', row 2 holds 2.5, a continuous number; expected categories",
    ),
    (
        np.array([[1, 0.5, "a"], [0, 1, "b"]], dtype=object),
        "column 'x1', row 1 holds 0.5, a continuous number",
    ),
    (
        np.column_stack([np.arange(20), *np.eye(20, dtype=int)[:2]]),
        r"column 'x0' has a different value in each of .*--id",
    ),
    (pd.DataFrame({"n": [f"n{i}" for i in range(20)], "a": [0, 1] * 10, "b": [0, 1] * 10}), "set_index\\('n'\\)"),
]


@pytest.mark.parametrize(("data", "message"), REFUSALS)
def test_refusals(data, message):
    with pytest.raises(InputError, match=message) as caught:
        encode(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cell", ["", "NA", "NaN", "null"])
def test_missing_cells_of_files(tmp_path, cell):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b,c\n1,x,2\n2,{cell},3\n")
    with pytest.raises(
        InputError, match=r"column 'b' has 1 missing cell\(s\) \(NaN, or a text like NA\), the first in row 2;"
    ):
        encode(path)


def test_continuous_columns_of_files(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,x,2\n2,y,3.25\n")
    with pytest.raises(InputError, match=r"column 'c', row 2 holds 3.25, a continuous number.*bin the column"):
        encode(path)


def test_small_tables_of_distinct_values_are_accepted():
    assert encode(np.stack([np.arange(19)] * 3, axis=1)).codes.shape == (19, 3)


def test_more_levels_than_codes_are_refused():
    array = np.tile(np.arange(70_000), 2)[:, None] * np.ones(3, dtype=int)
    with pytest.raises(InputError, match="'x0' has 70000 levels; expected at most 65535"):
        encode(array)


def test_row_ids_by_name_and_by_default():
    table = pd.DataFrame(SMALL, columns=["a", "b", "c"]).assign(who=["r", "s", "t"])
    assert encode(table, row_id="who").row_ids.tolist() == ["r", "s", "t"]
    assert encode(SMALL).row_ids.tolist() == [0, 1, 2]
