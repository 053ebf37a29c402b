"""Codes: round trips, levels and their order, and every refusal."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mixmem.data.encode import decode, encode
from mixmem.errors import InputError, TableWarning

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
    np.testing.assert_array_equal(decode(encoded.codes, encoded.coding).to_numpy(), array)


@quick
@given(arrays(st.integers(-(2**63), 2**63 - 1), np.int64))
def test_any_integers_come_back(array):
    encoded = encode(array)
    np.testing.assert_array_equal(encoded.codes, oracle(array))
    np.testing.assert_array_equal(decode(encoded.codes, encoded.coding).to_numpy(), array)


@quick
@example(np.array([["\0", "a", ""], ["", "a\0", "0"]], dtype=object))
@given(arrays(st.text(max_size=3), object))
def test_texts_come_back(array):
    encoded = encode(array)
    assert decode(encoded.codes, encoded.coding).to_numpy().tolist() == array.tolist()


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
    monkeypatch.setattr("mixmem.data.integer_columns.BLOCK_CELLS", 1)
    np.testing.assert_array_equal(encode(array).codes, oracle(array))


def test_texts_of_large_integers_keep_their_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b,c\n{2**62 + 1},1.0,x\n{2**62},2,y\n{10**30},1,y\n")
    assert encode(path).schema.variables[0].levels == (str(2**62), str(2**62 + 1), str(10**30))


CATEGORIES = dict.fromkeys(("x0", "x1", "x2"), "categorical")


def test_many_levels_need_wider_codes():
    array = np.tile(np.arange(300), 2)[:, None] * np.ones(3, dtype=int)
    encoded = encode(array, kinds=CATEGORIES)
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
    (SMALL[:, :1], r"1 feature\(s\) \(shape=\(3, 1\)\) while a minimum of 2 is required"),
    (SMALL[:0], r"the table has no rows \(0 sample\(s\), 3 columns\); expected at least one"),
    (SMALL[:1], r"the table has one row \(1 sample\); expected at least 2"),
    (frame(c=[4, 4, 4]), "column 'c' is constant: it holds '4' wherever it is not missing.*drop the column"),
    (frame(c=["k", "k", "k"]), "column 'c' is constant"),
    (frame(c=pd.Categorical(["a", None, None])), "column 'c' is constant"),
    (frame(c=[4.5, np.nan, 4.5]), "column 'c' is constant"),
    (frame(c=[np.nan] * 3), "column 'c' has nothing in it: all 3 cells are missing"),
    (frame(c=[None] * 3), "column 'c' has nothing in it: all 3 cells are missing"),
    (pl.DataFrame({"a": [1, 2], "b": ["x", None], "c": [True, False]}), "column 'b' is constant"),
    (np.array([[1, pd.NA, 0], [0, 1, 1]], dtype=object), "column 'x1' is constant"),
    (np.array([[1, np.inf, 0], [0, 1, 1]]), r"column 'x1', row 1 holds inf; expected"),
    (np.array([[1, np.inf, "a"], [0, 1, "b"]], dtype=object), r"column 'x1', row 1 holds inf; expected"),
    (
        np.column_stack([np.arange(20), *np.eye(20, dtype=int)[:2]]),
        r"column 'x0' has a different value in each of .*--id",
    ),
    (pd.DataFrame({"n": [f"n{i}" for i in range(20)], "a": [0, 1] * 10, "b": [0, 1] * 10}), "set_index\\('n'\\)"),
]


@pytest.mark.parametrize(("data", "message"), REFUSALS)
def test_refusals(data, message):
    with pytest.raises(InputError, match=message) as caught:
        encode(data, columns="strict")
    assert "\n" not in str(caught.value)


# --- Missing cells


@pytest.mark.parametrize(
    ("data", "column", "codes"),
    [
        (frame(c=[1.0, np.nan, 2.0]), "c", [0, 2, 1]),
        (frame(c=[1.5, np.nan, 2.0]), "c", [0, 2, 1]),
        (frame(c=["a", "b", None]), "c", [0, 1, 2]),
        (frame(c=pd.array([1, None, 2], dtype="Int64")), "c", [0, 2, 1]),
        (frame(c=pd.Categorical(["b", "a", None], categories=["b", "a"])), "c", [0, 1, 2]),
        (pl.DataFrame({"a": [1, None, 3], "b": ["x", "y", "y"], "c": [True, False, True]}), "a", [0, 2, 1]),
        (pl.DataFrame({"a": [1, 2, 2], "b": ["x", "y", None], "c": [True, False, True]}), "b", [0, 1, 2]),
        (pl.DataFrame({"a": [1, 2, 2], "b": ["x", "y", "y"], "c": [True, None, False]}), "c", [1, 2, 0]),
        (np.array([[1, np.nan, np.nan], [0, 1, 1], [0, 2, 0]]), "x1", [2, 0, 1]),
        (np.array([[1, pd.NA, 0], [0, 1, 1], [0, 2, 1]], dtype=object), "x1", [2, 0, 1]),
    ],
)
def test_missing_cells_have_the_code_after_the_last(data, column, codes):
    encoded = encode(data)
    j = int(encoded.schema.index(column)[0])
    assert encoded.coding.columns[j].missing
    assert encoded.codes[:, j].tolist() == codes
    back = decode(encoded.codes, encoded.coding)
    assert back[column].isna().tolist() == [code == 2 for code in codes]
    again = encode(back, encoded.schema)
    np.testing.assert_array_equal(again.codes, encoded.codes)


@pytest.mark.parametrize("cell", ["", "NA", "NaN", "null"])
def test_missing_cells_of_files(tmp_path, cell):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b,c\n1,x,2\n2,{cell},3\n2,y,3\n")
    encoded = encode(path)
    assert encoded.schema.variables[1].levels == ("x", "y")
    assert [column.missing for column in encoded.coding.columns] == [False, True, False]
    assert encoded.codes[:, 1].tolist() == [0, 2, 1]


def test_values_declared_missing():
    table = frame(c=[1, 2, 9], d=["?", "x", "y"], e=[9, 8, 7])
    encoded = encode(table, missing={"c": [9], "d": "?"})
    assert {c.name: c.levels for c in encoded.coding.columns if c.missing} == {"c": ("1", "2"), "d": ("x", "y")}
    everywhere = encode(table, missing=[9, "?"])
    assert [c.name for c in everywhere.coding.columns if c.missing] == ["c", "d", "e"]
    with pytest.raises(InputError, match="missing names a column 'z' that is not there"):
        encode(table, missing={"z": [1]})


def test_a_known_schema_takes_rows_with_missing_cells():
    learned = encode(SMALL)
    assert not any(column.missing for column in learned.coding.columns)
    came = encode(np.array([[1, np.nan, 2], [2, 1, np.nan]]), learned.schema)
    assert came.schema == learned.schema  # whether cells are missing is the table's own
    assert came.codes.tolist() == [[0, 2, 0], [1, 1, 2]]


# --- Kinds


def kinds(data, **options):
    return {variable.name: variable.kind for variable in encode(data, **options).schema.variables}


def test_kinds_of_numbers():
    """Up to 12 distinct whole numbers are categories; more are counts from 0 or 1, others continuous."""
    at = np.arange(60)
    table = pd.DataFrame(
        {
            "few": at % 12, "apart": (at % 12) * 1000, "zero": at % 13, "one": 1 + at % 13, "two": 2 + at % 13,
            "below": at % 13 - 1, "real": (at % 7) / 2, "truth": at % 2 == 0, "text": [f"t{i % 13}" for i in at],
            "whole": (at % 13).astype(float), "gaps": np.where(at == 5, np.nan, at % 13),
            "object": np.array([int(i) % 13 for i in at], dtype=object),
        }
    )  # fmt: skip
    expected = {
        "few": "categorical", "apart": "categorical", "zero": "count", "one": "count", "two": "continuous",
        "below": "continuous", "real": "continuous", "truth": "categorical", "text": "categorical", "whole": "count",
        "gaps": "count", "object": "count",
    }  # fmt: skip
    assert kinds(table) == expected
    assert kinds(table, kinds={"zero": "categorical", "few": "continuous", "truth": "ignore"}) == (
        {name: kind for name, kind in expected.items() if name != "truth"}
        | {"zero": "categorical", "few": "continuous"}
    )


def test_integers_whose_span_needs_65_bits():
    """13 numbers over all of 64 bits: their span must not wrap round to a small one."""
    column = np.tile(np.arange(-6, 7) * (2**63 // 7), 2)
    table = pd.DataFrame({"wide": column, "a": np.arange(26) % 2, "b": np.arange(26) % 3})
    assert kinds(table) == {"wide": "continuous", "a": "categorical", "b": "categorical"}


def test_continuous_columns_of_files(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,x,2\n2,y,3.25\n")
    encoded = encode(path)
    assert encoded.schema.variables[2].kind == "continuous"
    assert encoded.coding.columns[2].values.tolist() == [2.0, 3.25]
    assert encoded.codes[:, 2].tolist() == [0, 1]
    declared = encode(path, kinds={"c": "categorical"})
    assert declared.schema.variables[2].levels == ("2", "3.25")


def test_values_of_numbers_belong_to_the_table():
    table = frame(c=[0.5, 1.5, 2.5])
    learned = encode(table)
    came = encode(table.assign(c=[7.0, 0.5, np.nan]), learned.schema)
    assert came.schema == learned.schema
    assert came.coding.columns[2].values.tolist() == [0.5, 7.0]
    assert came.codes[:, 2].tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        ([0, 1, -1], "count", r"column 'c', row 3 \(id 2\) holds -1, but the column is a count"),
        ([0, 1.5, 1], "count", "row 2 .*holds 1.5, but the column is a count; expected whole numbers from 0 up"),
        ([0, 0.5, 2], "dosage", "row 2 .*holds 0.5, but the column is a dosage; expected numbers of copies"),
        (["u", "v", "v"], "continuous", "row 1 .*holds 'u'; expected a number"),
        (["1", "1e999", "2"], "continuous", r"row 2 .*holds 1e999 \(inf\); expected numbers that are finite"),
        ([0.5, 1.5, 2.5], "vague", "'c' is declared 'vague'; expected one of categorical, binary"),
    ],
)
def test_columns_that_cannot_be_of_the_declared_kind(column, kind, message):
    with pytest.raises(InputError, match=message):
        encode(frame(c=column), kinds={"c": kind})


@pytest.mark.parametrize(("kind", "bad"), [("continuous", ["many", 1.5, 2.5]), ("count", [0, 1.5, 2])])
def test_kinds_are_not_offered_where_a_model_has_settled_them(kind, bad):
    learned = encode(frame(c=[0, 1, 2]), kinds={"c": kind})
    with pytest.raises(InputError, match=r"recode the cells as in the table of the fit, or declare the value missing$"):
        encode(frame(c=bad), learned.schema)
    with pytest.raises(InputError, match=r": declare .*missing$"):  # later rows of a fit
        encode(frame(c=bad), coding=learned.coding)


def test_numbers_of_copies():
    encoded = encode(frame(c=[0, 2, np.nan], d=[0, 4, 1]), kinds={"c": "dosage", "d": "dosage"})
    assert [encoded.schema.variables[j].ploidy for j in (2, 3)] == [4, 4]  # of the table, not of a column
    assert encoded.codes[:, 2:].tolist() == [[0, 0], [2, 4], [5, 1]]
    assert decode(encoded.codes, encoded.coding)["d"].tolist() == [0, 4, 1]
    with pytest.raises(InputError, match="holds 5; expected at most 4 copies"):
        encode(frame(c=[0, 5, 1], d=[0, 4, 1]), encoded.schema)


@pytest.mark.parametrize("bad", [pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]), [[1], [2], [3]]])
def test_what_cannot_be_fitted_is_refused_unless_ignored(bad):
    table = frame(c=[0, 1, 0], when=bad)
    table = (
        table
        if not isinstance(bad, list)
        else pl.DataFrame(table.drop(columns="when").to_dict("list")).with_columns(when=pl.Series(bad))
    )
    with pytest.raises(InputError, match=r"column 'when' holds .*declare it of kind ignore"):
        encode(table, columns="strict")
    with pytest.warns(TableWarning, match="column 'when' holds .*, so it is left out"):
        assert encode(table).schema.left_out == ("when",)
    assert encode(table, kinds={"when": "ignore"}).schema.names[-1] == "c"


def test_truth_values_are_the_same_levels_with_and_without_gaps():
    table = pd.DataFrame({name: pd.array([True, False, True, False], dtype="boolean") for name in "abc"})
    gappy = table.copy()
    gappy.loc[0, "a"] = pd.NA
    assert encode(gappy).schema == encode(table).schema
    assert encode(gappy).codes[0, 0] == 2


@pytest.mark.parametrize("scale", [1e-300, 1e-70, 1e70, 1e200])
def test_numbers_beyond_what_squares_can_hold_are_refused(scale):
    with pytest.raises(InputError, match=r"column 'c' holds numbers up to .*measure it in another unit"):
        encode(frame(c=[0.5 * scale, 1.5 * scale, 2.5 * scale]), kinds={"c": "continuous"})
    known = encode(frame(c=[0.5, 1.5, 2.5])).schema
    if scale < 1.0:
        encode(frame(c=[scale, np.nan, 0.0]), known)  # new rows may be near zero


def test_a_column_of_weights():
    table = frame(c=[0, 1, 0], w=[1.0, 2.5, 3.0])
    encoded = encode(table, weight="w")
    assert encoded.schema.names == ("p", "q", "c")
    assert encoded.weights.tolist() == [1.0, 2.5, 3.0]
    assert encoded.take([2, 1]).weights.tolist() == [3.0, 2.5]
    without = encode(table.assign(w=[1.0, 2.5, 0.0], c=[1, 0, 7]), weight="w")
    assert without.weights.tolist() == [1.0, 2.5]  # a row that stands for none is left out, with its levels
    assert without.schema.variables[2].levels == ("0", "1")
    with pytest.raises(InputError, match=r"row 1 holds -1\.0; expected finite weights of at least 0"):
        encode(table.assign(w=[-1.0, 1.0, 1.0]), weight="w")
    with pytest.raises(InputError, match="expected a number: name a column of numbers as the one of weights"):
        encode(table.assign(w=["x", "y", "z"]), weight="w")
    with pytest.raises(InputError, match="no column 'weight' to take weights from"):
        encode(table, weight="weight")


# --- Limits


def test_small_tables_of_distinct_values_are_accepted():
    assert encode(np.stack([np.arange(19)] * 3, axis=1), kinds=CATEGORIES).codes.shape == (19, 3)
    assert encode(np.stack([np.arange(19)] * 3, axis=1)).codes.shape == (19, 3)


def test_more_levels_than_codes_are_refused():
    array = np.tile(np.arange(70_000), 2)[:, None] * np.ones(3, dtype=int)
    with pytest.raises(InputError, match="'x0' has 70000 levels; expected at most 65000"):
        encode(array, kinds=CATEGORIES)


def test_row_ids_by_name_and_by_default():
    table = pd.DataFrame(SMALL, columns=["a", "b", "c"]).assign(who=["r", "s", "t"])
    assert encode(table, row_id="who").row_ids.tolist() == ["r", "s", "t"]
    assert encode(SMALL).row_ids.tolist() == [0, 1, 2]
