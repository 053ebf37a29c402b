"""Tables read some rows at a time: the same rows as when they are read at once, and refusals that name the file."""

from __future__ import annotations

import copy
import gc
import gzip
import shutil

import numpy as np
import polars as pl
import pytest

from mixmem import InputError
from mixmem.data import laid_down, sources, text_rows
from mixmem.data.delimited import Wanted
from mixmem.data.dialect import Dialect
from mixmem.data.read import read_table
from mixmem.data.sources import file_source, larger_than, source_of, streamable_files
from mixmem.data.stacking import stack
from mixmem.data.table import Unusable, plain_values

TEXTS = {
    "plain": "a,b\n1,2\n3,4\n",
    "no last line end": "a,b\n1,2\n3,4",
    "empty lines at the end": "a,b\n1,2\n3,4\n\n\n",
    "line ends in quotes": 'a,b\n"x\ny",2\n' + 'q,4\n"x\ny",5\n' * 30,
    "windows": "a,b\r\n1,2\r\n3,4\r\n",
    "quotes in names and escaped ones": '"a\nc","b ""d"""\n"x""\ny",2\n5" by 6",4\n',
    "a quote alone in the last line": 'a,b\nx,2\ny,5" pipe\n',
    "byte order mark": "\ufeffa,b\n1,2\n3,4\n",
    "blank lines for more than a piece": "a,b\n1,2\n3,4\n" + "\n" * 300,
    "long": "a,b\n" + "".join(f"{i},{i % 7}.5\n" for i in range(100)),
}


def cells(table):
    return [list(map(str, plain_values(table.column(j)))) for j in range(table.n_columns)]


@pytest.fixture
def _short_pieces(monkeypatch):
    monkeypatch.setattr(text_rows, "MARK_BYTES", 64)
    monkeypatch.setattr(sources, "WINDOW", 16)


@pytest.mark.usefixtures("_short_pieces")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_rows_of_a_text_file(tmp_path, text):
    (tmp_path / "x.csv").write_bytes(text.encode())
    source, whole = source_of(tmp_path / "x.csv"), read_table(tmp_path / "x.csv")
    assert (source.names, source.n_rows) == (whole.names, whole.n_rows)
    expected = cells(whole)
    for begin in range(source.n_rows):
        for end in (begin + 1, min(begin + 9, source.n_rows), source.n_rows):
            assert cells(source.read(begin, end)) == [column[begin:end] for column in expected]


@pytest.mark.usefixtures("_short_pieces")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a,b\n1,2\n5" pipe,2\n' + "3,4\n" * 50, 3),
        ("a,b\n" + "3,4\n" * 50 + '"5,2\n' + "3,4\n" * 50, 52),
        ("a,b\n" + "3,4\n" * 50 + '5" pipe,2\n1,2\n5" pipe,2\n' + "3,4\n" * 50, 52),
        ('\na,b\n"x\ny",2\n1,5" pipe\n1,2\n', 5),
    ],
)
def test_a_quote_that_does_not_close_is_refused_with_its_line(tmp_path, text, line):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError, match=rf"x.csv is not well-formed delimited text \(a quote in line {line} is not"):
        source_of(tmp_path / "x.csv")
    with pytest.raises(InputError):
        read_table(tmp_path / "x.csv")


@pytest.mark.usefixtures("_short_pieces")
@pytest.mark.parametrize("late", [False, True])
def test_one_encoding_is_found_for_the_whole_file(tmp_path, late):
    lines = ["é,1\n".encode(), b"x,2\n", b"\xfc,3\n", *[b"z,4\n"] * 40]
    (tmp_path / "x.csv").write_bytes("ä,b\n".encode() + b"".join(lines[::-1] if late else lines))
    with pytest.warns(UserWarning, match="line .* is not UTF-8.*read as Windows-1252"):
        source = source_of(tmp_path / "x.csv")
    with pytest.warns(UserWarning, match="read as Windows-1252"):
        whole = read_table(tmp_path / "x.csv")
    assert source.names == whole.names
    expected = cells(whole)
    assert all(cells(source.read(at, at + 1)) == [column[at : at + 1] for column in expected] for at in range(43))


def test_what_is_said_of_the_dialect_is_heeded(tmp_path):
    (tmp_path / "x.csv").write_text("a;b\n1,5;2\n" + "2,5;3\n" * 5)
    dialect = Dialect(separator=";", decimal=",", header=False)
    source, whole = source_of(tmp_path / "x.csv", dialect), read_table(tmp_path / "x.csv", dialect=dialect)
    assert source.names == ("x0", "x1")
    assert cells(source.read(0, source.n_rows)) == cells(whole)
    (tmp_path / "y.csv").write_text("a  b\n1   2\n3 4\n")
    assert cells(source_of(tmp_path / "y.csv", Dialect(separator=" ")).read(0, 2)) == [["1", "3"], ["2", "4"]]


def test_columns_are_read_as_texts_or_not_at_all(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,c\n01,1.0,x\n1,2.50,y\n")
    pl.DataFrame({"a": [1], "b": [2], "c": ["x"]}).write_parquet(tmp_path / "x.parquet")
    table = source_of(tmp_path / "x.csv").wanting(Wanted(frozenset("c"), frozenset("b"))).read(0, 2)
    assert (table.names, list(table.column(1).values)) == (("a", "b", "c"), ["1.0", "2.50"])
    assert isinstance(table.column(2), Unusable)
    table = source_of(tmp_path / "x.parquet").wanting(Wanted(frozenset("ac"))).read(0, 1)
    assert [type(column).__name__ for column in table.columns] == ["Unusable", "ndarray", "Unusable"]


def test_folders_named_by_values_are_read_at_once(tmp_path):
    for value in ("x", "y"):
        (tmp_path / f"g={value}").mkdir()
        (tmp_path / f"g={value}" / "a.csv").write_text("a,b\n1,2\n3,4\n")
    assert streamable_files(tmp_path) is None
    assert not larger_than(tmp_path, 1, 1)
    assert source_of(tmp_path).names == ("a", "b", "g")


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_an_empty_file_among_others_is_refused(tmp_path, content):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text(content)
    with pytest.raises(InputError, match=r"b.csv is empty; expected a line with the names of the columns, and rows"):
        source_of(tmp_path)


@pytest.mark.usefixtures("_short_pieces")
def test_any_rows_of_a_gzipped_text_file(tmp_path, monkeypatch):
    text = TEXTS["long"].encode()
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(text))
    assert laid_down.text_bytes(path) == len(text)
    assert not larger_than(path, 10**6, 8)
    assert larger_than(path, 500, 8)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source, expected = source_of(path), cells(read_table(path))
    assert source.n_rows == 100
    assert cells(source.read(30, 71)) == [column[30:71] for column in expected]
    assert len(list(tmp_path.glob("mixmem-*"))) == 1
    with pytest.raises(InputError, match=r"x.csv.gz is unzipped on this machine, .*; unzip it for them"):
        copy.deepcopy(source)  # as sending it to another process does
    del source
    gc.collect()
    assert not list(tmp_path.glob("mixmem-*"))  # removed with the source

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", full)
        with pytest.raises(InputError, match=r"cannot be unzipped .*No space left on device\); unzip it where there"):
            source_of(path)
    path.write_bytes(gzip.compress(text)[:-20])
    with pytest.raises(InputError, match=r"x.csv.gz is not a whole gzip file"):
        source_of(path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(InputError, match=r"x.csv.gz takes about .* GB unzipped, .*let TMPDIR name another folder"):
        source_of(path)


@pytest.mark.usefixtures("_short_pieces")
@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv", "tsv"])
def test_files_one_below_the_other(tmp_path, suffix):
    frame = pl.DataFrame({"u": [f"t{i % 5}" for i in range(90)], "v": list(range(90))})
    write = {
        "parquet": pl.DataFrame.write_parquet, "feather": pl.DataFrame.write_ipc, "csv": pl.DataFrame.write_csv,
        "tsv": lambda part, path: part.write_csv(path, separator="\t"),
    }[suffix]  # fmt: skip
    for number, (begin, end) in enumerate([(0, 20), (20, 21), (21, 90)]):
        part = frame[begin:end] if number != 1 else frame[begin:end].select("v", "u")  # columns in another order
        write(part, tmp_path / f"p{number}.{suffix}")
    pattern = str(tmp_path / f"p*.{suffix}")
    source = source_of(pattern)
    assert source.n_rows == 90
    assert cells(source.read(15, 40)) == cells(read_table(frame[15:40]))
    assert cells(read_table(pattern)) == cells(read_table(frame))
    spans = [(3, 5), (18, 25), (60, 61), (70, 72), (74, 76), (78, 79), (88, 90)]
    rows = np.concatenate([np.arange(*span) for span in spans])
    assert cells(source.pick(spans)) == cells(read_table(frame[rows]))
    apart = source.apart(spans)
    assert apart[:2] == [[(3, 5), (18, 20)], [(20, 21)]]
    assert cells(stack([source.pick(group) for group in apart])) == cells(read_table(frame[rows]))


def test_a_lazy_frame_and_a_frame_in_memory():
    frame = pl.DataFrame({"u": ["x", "y", "z"], "v": [1.5, None, 2.5]})
    for source in (source_of(frame.lazy()), source_of(frame)):
        assert cells(source.read(1, 3)) == cells(read_table(frame[1:3]))


def test_a_query_without_an_order_is_run_once(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    frame = pl.DataFrame({"u": np.arange(5_000) % 1_000, "v": np.arange(5_000)})
    source = source_of(frame.lazy().group_by("u").agg(pl.col("v").sum()).filter(pl.col("u") < 900))
    found = np.concatenate([source.read(at, at + 90).columns[0] for at in range(0, 900, 90)])
    assert np.array_equal(np.sort(found), np.arange(900))
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(InputError, match=r"the lazy frame is computed on this machine, .*; write its rows to files"):
        source.require_shared()
    del source
    gc.collect()
    assert not list(tmp_path.iterdir())
    frame.write_parquet(tmp_path / "x.parquet")
    assert source_of(pl.scan_parquet(tmp_path / "x.parquet")).parts[0].held is None  # a plain scan is read in place
    with pytest.raises(InputError, match=r"rows of the lazy frame cannot be computed .*; repair the query"):
        source_of(frame.lazy().filter(pl.col("nowhere") > 1))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([{"u": [1], "v": [2]}, {"u": [1], "w": [2]}], r"p1.parquet lacks 'v' and adds 'w'; expected the columns of"),
        ([], "is a pattern without tables; expected files of one kind"),
    ],
)
def test_files_that_differ_are_refused(tmp_path, parts, message):
    for number, part in enumerate(parts):
        pl.DataFrame(part).write_parquet(tmp_path / f"p{number}.parquet")
    with pytest.raises(InputError, match=message):
        source_of(str(tmp_path / "*.parquet"))


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InputError, match=r"x.parquet cannot be read .*; check what the file is"):
        source_of(tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_bytes(b"\xff\xfea\x00,\x00b\x00")
    with pytest.raises(InputError, match="UTF-16, which is not read in pieces; write it as UTF-8"):
        source_of(tmp_path / "x.csv")


def test_rows_that_do_not_parse_are_named(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 10 + "1,2,3\n")
    source = source_of(tmp_path / "x.csv")
    assert source.read(0, 10).n_rows == 10
    with pytest.raises(InputError, match=r"x.csv, line 12: found 3 field\(s\), expected 2"):
        source.read(8, 11)


def test_files_are_found_from_any_folder(tmp_path, monkeypatch):
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    (tmp_path / "elsewhere").mkdir()
    for name, write in (("x.csv", frame.write_csv), ("x.parquet", frame.write_parquet)):
        write(tmp_path / name)
        monkeypatch.chdir(tmp_path)
        source = source_of(name)
        monkeypatch.chdir(tmp_path / "elsewhere")  # as a worker may be
        assert source.read(0, 2).n_rows == 2
        assert source.place(0, 2) == f"rows 1 to 2 of {name}"


def test_what_is_larger_than_memory(tmp_path):
    pl.DataFrame({"u": np.zeros(1000, np.int8), "v": np.zeros(1000)}).write_parquet(tmp_path / "x.parquet")
    assert file_source([tmp_path / "x.parquet"]).n_bytes == 1000 * (1 + 8) + 2000
    assert larger_than(tmp_path / "x.parquet", 10_000, 0)
    assert not larger_than(tmp_path / "x.parquet", 12_000, 0)
    assert larger_than(tmp_path / "x.parquet", 12_000, 100)
    pl.DataFrame({"u": np.zeros(1000, np.int8), "v": ["y" * 400] * 1000}).write_parquet(tmp_path / "y.parquet")
    source = file_source([tmp_path / "y.parquet"])
    assert source.bytes_per_row == 1 + 400 + 2  # as long as its texts are, and two codes
    assert source.wanting(Wanted(frozenset("v"))).bytes_per_row == 1 + 2
    assert source.n_bytes == 1000 * (1 + 8) + 2000  # what is read in pieces at all is not decided by it
    assert streamable_files("-") is None
    assert streamable_files(np.zeros((2, 2))) is None
    assert not larger_than(tmp_path / "not there.csv", 1, 1)  # what reads it at once says so
