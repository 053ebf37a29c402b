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
from mixmem.data import sources, text_pieces
from mixmem.data.read import read_table
from mixmem.data.sources import file_source, larger_than, source_of, streamable_files
from mixmem.data.table import plain_values

TEXTS = {
    "plain": "a,b\n1,2\n3,4\n",
    "no last line end": "a,b\n1,2\n3,4",
    "empty lines at the end": "a,b\n1,2\n3,4\n\n\n",
    "line ends in quotes": 'a,b\n"x\ny",2\n' + 'q,4\n"x\ny",5\n' * 30,
    "windows": "a,b\r\n1,2\r\n3,4\r\n",
    "long": "a,b\n" + "".join(f"{i},{i % 7}.5\n" for i in range(100)),
}


def cells(table):
    return [list(map(str, plain_values(table.column(j)))) for j in range(table.n_columns)]


@pytest.fixture
def _short_pieces(monkeypatch):
    monkeypatch.setattr(text_pieces, "MARK_BYTES", 64)
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
def test_any_rows_of_a_gzipped_text_file(tmp_path, monkeypatch):
    text = TEXTS["long"].encode()
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(text))
    assert text_pieces.text_bytes(path) == len(text)
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


def test_a_lazy_frame_and_a_frame_in_memory():
    frame = pl.DataFrame({"u": ["x", "y", "z"], "v": [1.5, None, 2.5]})
    for source in (source_of(frame.lazy()), source_of(frame)):
        assert cells(source.read(1, 3)) == cells(read_table(frame[1:3]))


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
    with pytest.raises(InputError, match=r"x.csv, rows 9 to 11 .*line 4: found 3 field\(s\), expected 2"):
        source.read(8, 11)


def test_what_is_larger_than_memory(tmp_path):
    pl.DataFrame({"u": np.zeros(1000, np.int8), "v": np.zeros(1000)}).write_parquet(tmp_path / "x.parquet")
    assert file_source([tmp_path / "x.parquet"]).n_bytes == 1000 * (1 + 8) + 2000
    assert larger_than(tmp_path / "x.parquet", 10_000, 0)
    assert not larger_than(tmp_path / "x.parquet", 12_000, 0)
    assert larger_than(tmp_path / "x.parquet", 12_000, 100)
    assert streamable_files("-") is None
    assert streamable_files(np.zeros((2, 2))) is None
    assert not larger_than(tmp_path / "not there.csv", 1, 1)  # what reads it at once says so
