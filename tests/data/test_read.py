"""Sources of tables: each gives the same table, and what is none is refused with the repair."""

import gzip
import io
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mixmem.data.encode import encode
from mixmem.data.polars_panics import panics_as_errors
from mixmem.data.read import read_table
from mixmem.data.sources import source_of
from mixmem.data.table import Coded
from mixmem.errors import InputError

FRAME = pd.DataFrame({"a": [1, 2, 1, 3], "b": ["x", "y", "y", "x"], "c": [True, False, True, True]})


def cells(table):
    """The cells of a table as Python values, column by column."""
    columns = table.columns.T if isinstance(table.columns, np.ndarray) else table.columns
    return {
        name: [c.values[code] for code in c.codes] if isinstance(c, Coded) else c.tolist()
        for name, c in zip(table.names, columns, strict=True)
    }


def write(frame, path):
    kind = path.name.partition(".")[2]
    if kind.startswith(("csv", "tsv")):
        frame.to_csv(path, index=False, sep="," if kind.startswith("csv") else "\t")
        return path
    pa = pytest.importorskip("pyarrow")
    if kind == "parquet":
        frame.to_parquet(path, index=False)
    elif kind == "feather":
        frame.to_feather(path)
    else:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        with (
            pa.OSFile(str(path), "wb") as sink,
            pa.ipc.new_stream(sink, pa.schema(list(table.schema))) as out,
        ):
            out.write_table(table.replace_schema_metadata())
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "tsv.gz", "parquet", "feather", "arrow"])
def test_files_of_every_kind_give_the_same_codes(tmp_path, kind):
    path = write(FRAME, tmp_path / f"t.{kind}")
    expected, came = encode(FRAME), encode(path)
    assert came.schema == expected.schema
    np.testing.assert_array_equal(came.codes, expected.codes)
    np.testing.assert_array_equal(came.row_ids, np.arange(4))


def to_polars(frame):
    return pl.DataFrame(frame.to_dict("list"))  # from_pandas would need pyarrow


@pytest.mark.parametrize(
    "convert",
    [to_polars, lambda f: to_polars(f).lazy(), lambda f: pytest.importorskip("pyarrow").Table.from_pandas(f)],
    ids=["polars", "lazy", "arrow"],
)
def test_frames_of_every_library_give_the_same_codes(convert):
    expected, came = encode(FRAME), encode(convert(FRAME))
    assert came.schema == expected.schema
    np.testing.assert_array_equal(came.codes, expected.codes)


def test_a_path_may_be_text(tmp_path):
    assert read_table(str(write(FRAME, tmp_path / "t.csv"))).names == ("a", "b", "c")


def test_csv_on_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,x\n2,y\n")))
    assert cells(read_table("-")) == {"a": [1, 2], "b": ["x", "y"]}


def test_npz_with_and_without_names(tmp_path):
    array = np.arange(6).reshape(2, 3)
    np.savez(tmp_path / "bare.npz", array)
    np.savez(tmp_path / "named.npz", data=array, columns=np.array(["p", "q", "r"]), other=np.zeros(1))
    assert read_table(tmp_path / "bare.npz").names == ("x0", "x1", "x2")
    named = read_table(tmp_path / "named.npz")
    assert named.names == ("p", "q", "r")
    np.testing.assert_array_equal(named.columns, array)


def test_arrays_are_kept_whole():
    array = np.arange(6).reshape(2, 3)
    table = read_table(array)
    assert table.columns is array
    assert table.positional


def test_lists_keep_the_types_of_their_cells():
    assert cells(read_table([[1, "a"], [2, "b"]])) == {"x0": [1, 2], "x1": ["a", "b"]}


def test_the_pandas_index_names_the_rows():
    table = read_table(FRAME.set_index("b"))
    assert table.names == ("a", "c")
    assert table.row_ids.tolist() == ["x", "y", "y", "x"]


def test_row_ids_from_a_column(tmp_path):
    for source in (FRAME, to_polars(FRAME), write(FRAME, tmp_path / "t.csv")):
        table = read_table(source, row_id="b")
        assert table.names == ("a", "c")
        assert table.row_ids.tolist() == ["x", "y", "y", "x"]
    assert read_table(np.array([[7, 1], [8, 2]]), row_id="x0").row_ids.tolist() == [7, 8]
    with pytest.raises(InputError, match="no column 'B' to take row ids from; expected one of 'a', 'b', 'c'"):
        read_table(FRAME, row_id="B")


def test_row_names_as_r_writes_them(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text('"","a","b"\n"r1",1,"x"\n"r2",2,"y"\n')
    table = read_table(path)
    assert table.names == ("a", "b")
    assert table.row_ids.tolist() == ["r1", "r2"]


def test_byte_order_marks_line_ends_and_quotes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffa,"b, c"\r\n1,"é\n2"\r\n2,"x"\r\n\r\n'.encode())
    assert cells(read_table(path)) == {"a": [1, 2], "b, c": ["é\n2", "x"]}


def test_leading_zeros_are_kept(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n01,1\n10,2\n")
    assert cells(read_table(path)) == {"a": ["01", "10"], "b": [1, 2]}


@pytest.mark.parametrize("number", ["7", "10", "-3", "127", "-128", "128", "-200", "70000"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_integers_of_any_length(tmp_path, monkeypatch, number, end):
    """In pieces of some lines, of which all but the last hold single digits."""
    monkeypatch.setattr("mixmem.data.delimited.PIECE_BYTES", 20)
    lines = ["a,b,c"] + [f"{i % 3},{i % 2},{i % 5}" for i in range(1200)] + [f"1,0,{number}"]
    (tmp_path / "t.csv").write_text((end or "\n").join(lines) + end, newline="")
    rows = [list(map(int, line.split(","))) for line in lines[1:]]
    assert [list(row) for row in zip(*cells(read_table(tmp_path / "t.csv")).values(), strict=True)] == rows


@pytest.mark.parametrize("cell", ["01", "x", "12345678901234567890"])
def test_more_than_an_integer_is_read_as_text(tmp_path, cell):
    rows = [f"{i % 3},{i % 2}" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows, f"1,{cell}"]) + "\n")
    assert cells(read_table(tmp_path / "t.csv"))["b"][-2:] == ["1", cell]


@pytest.mark.parametrize("cell", ["+1", "1.0", "1e0"])
def test_numbers_that_are_no_plain_integers_are_read_as_floats(tmp_path, cell):
    rows = [f"{i % 3},{i % 2}" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows, f"1,{cell}"]) + "\n")
    assert read_table(tmp_path / "t.csv").columns[1].dtype == np.float64
    assert cells(read_table(tmp_path / "t.csv"))["b"][-2:] == [1.0, 1.0]


def test_a_text_after_the_sampled_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 3_000 + "late,2\n")
    assert read_table(path).columns[0].values == ("1", "late")


def test_a_table_passes_through():
    table = read_table(FRAME)
    assert read_table(table) is table


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_texts_in_other_encodings(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes("a,b\n1,\u00e9t\u00e9\n2,hiver\n".encode(encoding))
    assert cells(read_table(tmp_path / "t.csv"))["b"] == ["\u00e9t\u00e9", "hiver"]


def test_what_is_no_utf8_is_read_as_windows_1252_with_a_word(tmp_path):
    (tmp_path / "t.csv").write_bytes("a,b\n1,\u00e9t\u00e9\n2,10\u20ac\n".encode("cp1252"))
    with pytest.warns(UserWarning, match="line 2: byte 0xe9 is not UTF-8.*read as Windows-1252"):
        assert cells(read_table(tmp_path / "t.csv"))["b"] == ["\u00e9t\u00e9", "10\u20ac"]


@pytest.mark.parametrize("end", ["\n", " \n"])  # blanks are taken off by another way
def test_nulls_of_databases_are_missing(tmp_path, end):
    rows = ["a;b;c", r"1.5;x;\N", r"\N;y;2", r"2.5;\N;3", "1.5;x;2"]
    path = tmp_path / "export.tsv"
    path.write_text("".join(row.replace(";", "\t") + end for row in rows), encoding="utf-8")
    for table in (read_table(path), source_of(path).read(0, 4)):
        assert list(encode(table).coding.missing) == [True] * 3
        assert table.columns[1].codes.tolist() == [0, 1, -1, 0]


def test_masked_cells_are_missing():
    hidden = np.ma.masked_equal([[1, 2, 3], [2, 3, 1]], 3)
    assert np.isnan(read_table(hidden).columns).tolist() == [[False, False, True], [False, True, False]]
    texts = np.ma.array([["a", "b"], ["c", "d"]], mask=[[0, 1], [0, 0]])
    assert read_table(texts).columns[1].codes.tolist() == [-1, 0]


CSV_REFUSALS = [
    (b"", "is empty"),
    (b"\n\n", "is empty"),
    ("a,b\n1,2\n".encode("utf-16")[:-1], "is cut off or no utf-16 text"),
    (b"a,b\n1,\0\n", "holds NUL bytes"),
    (b"a,b\n1,2\n1,2,3\n", r"line 3: found 3 field\(s\), expected 2"),
    (b"a,b\n1,2\n1\n3,4\n", r"line 3: found 1 field\(s\), expected 2"),
    (b'a,b\n1,"2\n1,3\n', "expected 2|not well-formed"),
    (b"a,a\n1,2\n", "columns 1 and 2 have the same name 'a'"),
    (b"a,,b\n1,2,3\n", "column 2 has no name in the header"),
]


@pytest.mark.parametrize(("content", "message"), CSV_REFUSALS)
def test_broken_text_is_refused(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.parquet", "cannot be read as parquet"),
        ("t.feather", "cannot be read as feather/arrow"),
        ("t.arrow", "cannot be read as feather/arrow"),
        ("t.npz", "is not an npz file"),
        ("t.csv.gz", "not a whole gzip file"),
        ("t.what", r"suffix '.what'.*expected one of .csv"),
        ("t", "suffix ''"),
    ],
)
def test_files_that_are_not_what_their_names_say(tmp_path, name, message):
    path = tmp_path / name
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_cut_gzip_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n" * 100)[:-12])
    with pytest.raises(InputError, match="not a whole gzip file"):
        read_table(path)


def test_npz_contents_are_checked(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, one=np.zeros((2, 2)), two=np.zeros((2, 2)))
    with pytest.raises(InputError, match="holds the arrays one, two; expected one array"):
        read_table(path)
    np.savez(path, data=np.zeros((2, 2)), columns=np.array(["a"]))
    with pytest.raises(InputError, match="got 1 column names for 2 columns"):
        read_table(path)
    np.savez(path, np.array([[None, 1]], dtype=object))
    with pytest.raises(InputError, match="cannot be read as npz"):
        read_table(path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)


def test_a_folder_is_read_in_the_order_of_names(tmp_path):
    FRAME.iloc[2:].to_csv(tmp_path / "b.csv", index=False)
    FRAME.iloc[:2][["c", "a", "b"]].to_csv(tmp_path / "a.csv.gz", index=False)  # columns are matched by name
    (tmp_path / ".hidden").write_text("no data")
    (tmp_path / "_SUCCESS").touch()
    table = read_table(tmp_path)
    assert table.names == ("c", "a", "b")
    assert table.row_ids is None
    expected, came = encode(FRAME[["c", "a", "b"]]), encode(tmp_path)
    assert came.schema == expected.schema
    np.testing.assert_array_equal(came.codes, expected.codes)
    assert read_table(tmp_path, row_id="b").row_ids.tolist() == ["x", "y", "y", "x"]


@pytest.mark.parametrize("kind", ["parquet", "feather", "tsv"])
def test_folders_of_other_kinds(tmp_path, kind):
    for i in range(4):
        write(FRAME.iloc[[i]].reset_index(drop=True), tmp_path / f"{i}.{kind}")
    np.testing.assert_array_equal(encode(tmp_path).codes, encode(FRAME).codes)


def test_a_folder_of_arrays_stays_an_array(tmp_path):
    array = np.arange(12).reshape(4, 3)
    np.savez(tmp_path / "1.npz", array[:1])
    np.savez(tmp_path / "2.npz", array[1:])
    table = read_table(tmp_path)
    np.testing.assert_array_equal(table.columns, array)
    assert table.positional


def test_numbers_in_one_file_and_texts_in_the_next(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "2.csv").write_text("a,b\nmany,z\n1,x\n,x\n")
    table = read_table(tmp_path)
    assert table.columns[0].values == ("1", "2", "many")
    assert table.columns[0].codes.tolist() == [0, 1, 2, 0, -1]
    assert table.columns[1].values == ("x", "y", "z")
    one_file = tmp_path / "whole.csv"
    one_file.write_text("a,b\n1,x\n2,y\nmany,z\n1,x\n,x\n")
    assert read_table(one_file).columns[0].values == table.columns[0].values


def test_categories_keep_their_order_across_files(tmp_path):
    sizes = pl.Enum(["small", "large"])
    for i, value in enumerate(["large", "small"]):
        pl.DataFrame({"s": pl.Series([value], dtype=sizes)}).write_parquet(tmp_path / f"{i}.parquet")
    column = read_table(tmp_path).columns[0]
    assert (column.values, column.codes.tolist(), column.ordered) == (("small", "large"), [1, 0], True)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "is a folder without tables; expected files of one kind: .csv"),
        ({"a.csv": "x,y\n1,2\n", "b.tsv": "x\ty\n1\t2\n"}, r"files of several kinds \(a.csv, b.tsv\)"),
        ({"a.csv": "x,y\n1,2\n", "b.what": "notes"}, "b.what has the suffix '.what'"),
        ({"a.csv": "x,y\n1,2\n", "b.csv": "x,z\n1,2\n"}, "b.csv lacks 'y' and adds 'z'; expected the columns of a.csv"),
        ({"a.csv": "x,y\n1,2\n", "b.csv": ",x,y\nr,1,2\n"}, "only one has row names"),
        ({"a.csv": "x,y\n1,2\n", "b.csv": ""}, "b.csv is empty"),
    ],
)
def test_folders_that_are_no_table(tmp_path, files, message):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path)


def test_folders_in_folders_are_refused(tmp_path):
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(InputError, match=r"holds a folder, a\.csv"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.arange(3), r"Expected 2D array, got 1D array.*Reshape your data"),
        (np.zeros((2, 2, 2)), r"got 3D array.*Reshape your data"),
        (np.zeros((2, 3), dtype=complex), "Complex data not supported"),
        (pd.DataFrame({"a": [1j, 2j], "b": ["x", "y"]}), "column 'a': Complex data not supported"),
        (np.zeros((2, 3), dtype="datetime64[D]"), r"array of datetime64\[D\]; expected categories"),
        (np.array([[{}, 1]], dtype=object), "column 'x0' holds a dict; expected a category"),
        ([[1, 2], [3]], "not of one length"),
        (7, "got int; expected a path, a data frame"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "columns 1 and 2 have the same name 'a'"),
    ],
)
def test_sources_that_are_no_tables(source, message):
    with pytest.raises(InputError, match=message):
        read_table(source)


def test_arrow_tables_with_two_columns_of_one_name_are_refused():
    table = pytest.importorskip("pyarrow").table([[1], [2]], names=["a", "a"])
    with pytest.raises(InputError, match="columns 1 and 2 have the same name 'a'"):
        read_table(table)


def test_sparse_matrices_are_refused():
    from scipy.sparse import csr_matrix

    with pytest.raises(InputError, match="sparse matrix; expected a dense table"):
        read_table(csr_matrix(np.eye(3)))


def test_importing_the_stages_imports_no_data_frame_library():
    # The command line has to answer at once.
    code = (
        "import sys, numpy as np; from mixmem import errors; from mixmem.data import schema; "
        "from mixmem.storage import model_file; "
        "from mixmem.data.encode import encode; encode(np.array([[0, 1, 0], [1, 0, 1]])); "
        "print([m for m in ('pandas', 'polars', 'pyarrow', 'safetensors') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "reader"), [("t.parquet", "read_parquet"), ("t.feather", "read_ipc"), ("t.csv", "read_csv")]
)
def test_a_panic_of_the_reader_is_a_refusal(monkeypatch, tmp_path, capfd, name, reader):
    """polars' engine panics on some damaged files: no Exception, and lines about it on standard error."""

    def panics(*_, **__):
        os.write(2, b"thread 'worker' panicked at somewhere.rs:1:2: index out of range\n")
        raise pl.exceptions.PanicException("index out of range\nsecond line")

    (tmp_path / name).write_text("a,b\n1.5,x\n2.5,y\n")
    for each in {reader, "read_ipc_stream"}:
        monkeypatch.setattr(pl, each, panics)
    monkeypatch.setattr("threading.active_count", lambda: 1)
    with pytest.raises(InputError, match=r"(?s)t\.\w+ .*\(the reader broke down on it\); check"):
        read_table(tmp_path / name)
    assert capfd.readouterr().err == ""


def test_what_a_reader_says_without_a_panic_is_passed_on(monkeypatch, capfd):
    monkeypatch.setattr("threading.active_count", lambda: 1)
    with panics_as_errors():
        os.write(2, b"a word\n")
    assert capfd.readouterr().err == "a word\n"


def test_whole_ids_stay_whole(tmp_path):
    """As files of SPSS hold them: floats."""
    table = read_table(pd.DataFrame({"id": [3.0, 1.0], "x": ["a", "b"]}), row_id="id")
    assert table.row_ids.tolist() == [3, 1]
    assert table.row_ids.dtype.kind == "i"
