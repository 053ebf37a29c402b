"""Files as people have them: what each gives, and what is said of it."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sqlite3
import warnings
import zipfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mixmem.data.encode import encode
from mixmem.data.read import read_table
from mixmem.errors import InputError, TableWarning

N = 60
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "sex": RNG.choice(["f", "m"], N),
        "vote": RNG.choice(["left", "right", "none"], N),
        "height": np.round(RNG.normal(170, 10, N), 1),
    }
)
KINDS = {"sex": "categorical", "vote": "categorical", "height": "continuous"}


@dataclass(frozen=True)
class Nasty:
    """A file: its name, what it holds, the kinds it gives, and words that are said of it."""

    name: str
    content: bytes | str
    kinds: dict[str, str]
    said: str | None = None


def csv(frame=FRAME, **how):
    return frame.to_csv(index=False, **how)


def with_column(name, values):
    return FRAME.assign(**{name: values})


def positional(kinds):
    return {f"x{j}": kind for j, kind in enumerate(kinds.values())}


DAYS = pd.Series(pd.date_range("2020-01-01", periods=N))
AMOUNTS = [f"${value:,}" for value in RNG.integers(900, 90_000, N)]
LATIN = with_column("vote", np.where(FRAME["vote"] == "left", "rétro", "x"))
ZIPS = [f"0{1000 + i % 20}" for i in range(N)]
YEARS = ["2019", "2020", "2021"]
ANSWERS = pd.DataFrame(RNG.integers(0, 3, (N, 3)), columns=YEARS)
FILES = [
    Nasty("semicolons.csv", csv(sep=";"), KINDS, "parted by semicolons"),
    Nasty("tabs.csv", csv(sep="\t"), KINDS, "parted by tabs"),
    Nasty("bars.csv", csv(sep="|"), KINDS, "parted by bars"),
    Nasty("plain.txt", csv(), KINDS),
    Nasty("tabs.txt", csv(sep="\t"), KINDS),
    Nasty("blanks.txt", csv(sep=" "), KINDS),
    Nasty("aligned.dat", FRAME.to_string(index=False), KINDS),
    Nasty("r_table.txt", FRAME.to_csv(sep=" ").partition(" ")[2], KINDS),
    Nasty("decimal_commas.csv", csv(sep=";", decimal=","), KINDS, "decimal comma"),
    Nasty("decimal_commas.tsv", csv(sep="\t", decimal=","), KINDS, "decimal comma"),
    Nasty("no_header.csv", csv(header=False), positional(KINDS), "looks like a row"),
    Nasty(
        "no_header_ids.csv", csv(with_column("who", [f"p{i}" for i in range(N)]), header=False),
        positional(KINDS), "x3 to name rows by it",
    ),
    Nasty("no_header.data", csv(header=False), positional(KINDS), "looks like a row"),
    Nasty("blanks_after_commas.csv", csv().replace(",", ", "), KINDS),
    Nasty("names_with_blanks.csv", csv(FRAME.rename(columns=lambda name: f" {name} ")), KINDS),
    Nasty("windows.csv", csv().replace("\n", "\r\n"), KINDS),
    Nasty("byte_order_mark.csv", csv().encode("utf-8-sig"), KINDS),
    Nasty("utf16.csv", csv().encode("utf-16"), KINDS),
    Nasty("latin.csv", csv(LATIN).encode("cp1252"), KINDS),
    Nasty("constant.csv", csv(with_column("year", 2020)), KINDS, "column 'year' is constant"),
    Nasty("empty_column.csv", csv(with_column("note", "")), KINDS, "column 'note' has nothing in it"),
    Nasty("text_ids.csv", csv(with_column("who", [f"u{i // 58 * 57 + i % 58}" for i in range(N)])), KINDS, "--id who"),
    Nasty("shuffled_ids.csv", csv(with_column("n", RNG.permutation(N) + 1000)), KINDS, "as an identifier has"),
    Nasty("named_ids.csv", csv(with_column("case_id", RNG.permutation(10**6)[:N])), KINDS, "as an identifier has"),
    Nasty("dates.csv", csv(with_column("when", DAYS.dt.strftime("%Y-%m-%d"))), KINDS, "'when' holds dates"),
    Nasty("german_dates.csv", csv(with_column("when", DAYS.dt.strftime("%d.%m.%Y"))), KINDS, "'when' holds dates"),
    Nasty("currency.csv", csv(with_column("pay", AMOUNTS)), KINDS | {"pay": "continuous"}, "holds numbers with $"),
    Nasty(
        "per_cent.csv", csv(with_column("share", [f"{value}%" for value in FRAME["height"]])),
        KINDS | {"share": "continuous"}, "'share' holds numbers with %",
    ),
    Nasty(
        "units.csv", csv(with_column("weight", [f"{value} kg" for value in FRAME["height"]])),
        KINDS | {"weight": "continuous"}, "'weight' holds numbers with kg",
    ),
    Nasty(
        "thousands.csv", csv(with_column("pay", [amount[1:] for amount in AMOUNTS])), KINDS | {"pay": "continuous"},
        "'pay' holds numbers with marks between thousands",
    ),
    Nasty("records.json", json.dumps(FRAME.to_dict("records")), KINDS),
    Nasty("lines.jsonl", FRAME.to_json(orient="records", lines=True), KINDS),
    Nasty("packed.csv.gz", gzip.compress(csv().encode()), KINDS),
    Nasty("packed.csv.xz", lzma.compress(csv().encode()), KINDS),
    Nasty("packed.csv.bz2", bz2.compress(csv(sep=";").encode()), KINDS, "parted by semicolons"),
    Nasty("zip_codes.csv", csv(with_column("zip", ZIPS)), KINDS | {"zip": "categorical"}),
    Nasty("years_as_names.csv", csv(ANSWERS), dict.fromkeys(YEARS, "categorical")),
]  # fmt: skip


def coded(path, **how):
    """The table, and all that is said of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = encode(path, **how)
    said = [str(each.message) for each in caught if issubclass(each.category, TableWarning)]
    assert said == list(table.remarks)
    return table, " ".join(said)


def kinds_of(table):
    return {variable.name: variable.kind for variable in table.schema.variables}


@pytest.mark.parametrize("nasty", FILES, ids=lambda nasty: nasty.name)
def test_what_a_file_gives(tmp_path, nasty):
    path = tmp_path / nasty.name
    path.write_bytes(nasty.content.encode() if isinstance(nasty.content, str) else nasty.content)
    table, said = coded(path)
    assert table.n_rows == N
    assert kinds_of(table) == nasty.kinds
    assert (nasty.said or "") in said
    assert bool(said) == (nasty.said is not None)
    for column in table.coding.columns:
        if column.name in ("sex", "x0"):
            assert set(column.levels) == {"f", "m"}


def test_a_folder_of_hive(tmp_path):
    for vote, part in FRAME.groupby("vote"):
        folder = tmp_path / "all" / f"vote={vote}"
        folder.mkdir(parents=True)
        part.drop(columns="vote").to_csv(folder / "part-0.csv", index=False)
    table, said = coded(tmp_path / "all")
    assert (kinds_of(table), said) == ({"sex": "categorical", "height": "continuous", "vote": "categorical"}, "")
    assert table.n_rows == N


def test_databases(tmp_path):
    path = tmp_path / "d.sqlite"
    with closing(sqlite3.connect(path)) as link:
        FRAME.to_sql("people", link, index=False)
        assert kinds_of(coded(path)[0]) == KINDS
        FRAME.to_sql("others", link, index=False)
    with pytest.raises(InputError, match=r"holds the tables 'others', 'people'; expected one, named d.sqlite::TABLE"):
        encode(path)
    assert kinds_of(coded(f"{path}::people")[0]) == KINDS
    with pytest.raises(InputError, match="has no table 'peple'; did you mean 'people'"):
        encode(f"{path}::peple")
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect(str(tmp_path / "d.duckdb"))) as link:
        link.execute("create table people as select * from FRAME")
    assert kinds_of(coded(tmp_path / "d.duckdb")[0]) == KINDS


def test_archives(tmp_path):
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/d.csv", csv())
    assert kinds_of(coded(path)[0]) == KINDS
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "a, b")
    with pytest.raises(InputError, match=r"d.zip holds .*expected one file, named d.zip::FILE"):
        encode(path)
    assert kinds_of(coded(f"{path}::folder/d.csv")[0]) == KINDS
    (tmp_path / "bad.csv.xz").write_bytes(b"no")
    with pytest.raises(InputError, match=r"bad.csv.xz cannot be decompressed"):
        encode(tmp_path / "bad.csv.xz")
    (tmp_path / "empty.csv.xz").write_bytes(lzma.compress(b""))
    with pytest.raises(InputError, match=r"empty.csv.xz \(empty.csv\) is empty"):
        encode(tmp_path / "empty.csv.xz")
    zstandard = pytest.importorskip("zstandard")
    (tmp_path / "d.csv.zst").write_bytes(zstandard.ZstdCompressor().compress(csv().encode()))
    assert kinds_of(coded(tmp_path / "d.csv.zst")[0]) == KINDS


def test_workbooks(tmp_path):
    pytest.importorskip("python_calamine")
    pytest.importorskip("openpyxl")
    path = tmp_path / "d.xlsx"
    with pd.ExcelWriter(path) as book:
        with_column("when", DAYS).to_excel(book, sheet_name="people", index=False)
        FRAME.head(30).to_excel(book, sheet_name="few", index=False)
    table, said = coded(path)
    assert kinds_of(table) == KINDS
    assert "read the first of its sheets, 'people', 'few'; say d.xlsx::SHEET for another" in said
    assert "'when' holds dates, so it is left out; say --kind when=continuous" in said
    assert coded(f"{path}::few")[0].n_rows == 30
    assert kinds_of(coded(path, kinds={"when": "continuous"})[0])["when"] == "continuous"
    with pytest.raises(InputError, match="has no sheet 'fw'; did you mean 'few'"):
        encode(f"{path}::fw")


@pytest.mark.parametrize("suffix", ["sav", "zsav", "dta", "por"])
def test_files_of_statistics_programs(tmp_path, suffix):
    pyreadstat = pytest.importorskip("pyreadstat")
    codes = {"left": 1.0, "right": 2.0, "none": 3.0}
    frame = FRAME.assign(sex=(FRAME["sex"] == "m") + 1.0, vote=FRAME["vote"].map(codes))
    frame["often"] = np.where(np.arange(N) % 7 == 0, 9.0, np.arange(N) % 5 + 1.0)
    labels = {
        "sex": {1.0: "f", 2.0: "m"},
        "vote": {1.0: "left", 2.0: "right", 3.0: "none"},
        "often": {1.0: "never", 5.0: "daily"},
    }
    path = tmp_path / f"d.{suffix}"
    missing = {"often": [9.0]}
    if suffix == "dta":
        pyreadstat.write_dta(frame, path, variable_value_labels=labels)
    elif suffix == "por":
        pyreadstat.write_por(frame.rename(columns=str.upper), path)
    else:
        pyreadstat.write_sav(
            frame, path, variable_value_labels=labels, missing_ranges=missing, compress=suffix == "zsav"
        )
    table, said = coded(path)
    assert said == ""
    assert {name.lower(): kind for name, kind in kinds_of(table).items()} == KINDS | {"often": "categorical"}
    if suffix != "por":
        assert table.schema.variables[1].levels == ("left", "right", "none")
        assert table.schema.variables[3].levels == tuple("12345") + ("9",) * (suffix == "dta")
        assert table.coding.missing[3] == (suffix != "dta")


def test_stray_values_of_labelled_columns_keep_the_labels(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    often = np.arange(N) % 4 + 1.0
    stray = np.where(np.arange(N) == 3, 9.0, often)
    frame = pd.DataFrame({"often": often, "stray": stray, "letter": ["a", "b", "c", "z"] * (N // 4), "twice": often})
    answers = {1.0: "never", 2.0: "seldom", 3.0: "often", 4.0: "daily"}
    labels = {
        "often": answers,
        "stray": answers,
        "letter": {"a": "one", "b": "two", "c": "three"},
        "twice": answers | {3.0: "no answer", 4.0: "no answer"},
    }
    path = tmp_path / "d.sav"
    measures = dict.fromkeys(("often", "stray", "twice"), "ordinal")
    pyreadstat.write_sav(frame, path, variable_value_labels=labels, variable_measure=measures)
    table, said = coded(path)
    assert (
        "some without a label are levels of their own: 'stray' (9) and 'letter' (z); if one means a missing cell, say "
        "so, such as --missing stray=9"
    ) in " ".join(said.split())
    found = {variable.name: variable.levels for variable in table.schema.variables}
    assert found == {
        "often": ("never", "seldom", "often", "daily"),
        "stray": ("never", "seldom", "often", "daily", "9"),
        "letter": ("one", "two", "three", "z"),
        "twice": ("never", "seldom", "no answer (3)", "no answer (4)"),
    }
    assert kinds_of(table) == {"often": "ordinal", "stray": "categorical", "letter": "categorical", "twice": "ordinal"}
    again = encode(path, missing={"stray": 9})
    assert "9" not in again.schema.variables[1].levels
    assert again.coding.missing[1]


def test_a_repeated_name_may_be_a_row(tmp_path):
    (tmp_path / "d.csv").write_text("q,q,r\n1,2,a\n2,1,b\n")
    with pytest.raises(InputError, match=r"d.csv: columns 1 and 2 have the same name 'q'.*say --header no"):
        encode(tmp_path / "d.csv")


def test_options_overrule_what_was_found(tmp_path):
    from mixmem.data.dialect import Dialect

    (tmp_path / "d.csv").write_text(csv(sep=";", decimal=","))
    with pytest.warns(TableWarning, match="semicolons"):
        encode(tmp_path / "d.csv")
    table = read_table(tmp_path / "d.csv", dialect=Dialect(";", ",", True))
    assert (table.names, table.remarks) == (tuple(FRAME), ())
    assert read_table(tmp_path / "d.csv", dialect=Dialect(";", ",", False)).n_rows == N + 1
    with pytest.raises(InputError, match="does not occur in the first line"):
        read_table(tmp_path / "d.csv", dialect=Dialect("|"))


def test_frames_with_odd_columns():
    frame = FRAME.assign(flag=pd.arrays.SparseArray(RNG.integers(0, 2, N)), when=DAYS, day=DAYS.dt.date)
    table, said = coded(frame)
    assert kinds_of(table) == KINDS | {"flag": "categorical"}
    assert said.count("holds dates, so it is left out") == 2
    days = encode(frame, kinds={"when": "continuous", "day": "ignore"}).coding.columns[-1]
    assert (days.kind, days.values[0], days.values[-1]) == ("continuous", 18262.0, 18262.0 + N - 1)


def test_many_columns_of_no_use_are_told_in_one_line():
    frame = FRAME.assign(**{f"c{j}": 1 for j in range(40)})
    table, said = coded(frame)
    assert kinds_of(table) == KINDS
    assert said.startswith("40 columns are constant, so they are left out: 'c0', 'c1'")


def test_a_declared_kind_keeps_an_identifier():
    frame = with_column("who", [f"u{i}" for i in range(N)])
    assert kinds_of(coded(frame)[0]) == KINDS
    kept, _ = coded(frame.assign(n=RNG.permutation(N)), kinds={"n": "continuous", "who": "ignore"})
    assert kinds_of(kept)["n"] == "continuous"


def test_files_under_a_name_that_says_nothing(tmp_path):
    (tmp_path / "d.csv::x").write_text(csv())
    assert Path(tmp_path / "d.csv::x").exists()
    with pytest.raises(InputError, match="suffix"):
        encode(tmp_path / "d.csv::x")
    (tmp_path / "d.csv").write_text(csv())
    with pytest.raises(InputError, match="holds one table; expected its name without ::y"):
        encode(f"{tmp_path / 'd.csv'}::y")


def test_later_texts_are_read_by_the_form_that_was_learned():
    dates = [f"{1 + i % 28:02d}/{1 + i % 12:02d}/2020" for i in range(N)]
    weights = [f"{1 + i % 9},{100 + 7 * i} kg" for i in range(N)]
    frame = FRAME.assign(when=dates, weight=weights)
    with pytest.warns(TableWarning, match="such as '1,100 kg', read as 1100"):
        table = encode(frame, kinds={"when": "continuous"})
    forms = {variable.name: variable.written for variable in table.schema.variables}
    assert forms == {"sex": "", "vote": "", "height": "", "when": "day first", "weight": "0"}
    alone = encode(frame.assign(when="11/01/2020", weight="6,290 kg").iloc[[0]], table.schema)
    assert [column.values[0] for column in alone.coding.columns[3:]] == [18272.0, 6290.0]
    with pytest.raises(InputError, match="'0,5 kg'; expected a number written as the others are"):
        encode(frame.assign(weight="0,5 kg"), table.schema)


@pytest.mark.parametrize(("mark", "largest"), [(".", 9159.0), (",", 9.159)])
def test_a_file_of_decimal_commas_has_no_other_marks(tmp_path, mark, largest):
    column = [f"{1 + i % 9}{mark}{100 + i}" for i in range(N - 1)] + [f"9{mark}159"]
    height = FRAME["height"].astype(str).str.replace(".", ",")
    frame = FRAME.assign(height=height, v=[f"{text} kg" for text in column], w=column)
    (tmp_path / "d.csv").write_text(csv(frame, sep=";"))
    table, _ = coded(tmp_path / "d.csv")
    assert kinds_of(table) == KINDS | {"v": "continuous", "w": "continuous"}
    assert [coding.values.max() for coding in table.coding.columns[3:]] == [largest, largest]


def test_blanks_late_in_a_file_are_dropped_too(tmp_path):
    rows = [f"{'c ' if i > 1500 and i % 3 == 0 else 'c' if i % 2 else 'd'},{i % 3}" for i in range(2000)]
    (tmp_path / "d.csv").write_text("a,b\n" + "\n".join(rows))
    assert coded(tmp_path / "d.csv")[0].schema.variables[0].levels == ("c", "d")


ODD = {
    "empty lines": lambda text: "\n\n" + text,
    "old Mac": lambda text: text.replace("\n", "\r"),
    "Excel": lambda text: "sep=;\n" + text.replace(",", ";"),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_odd_beginnings_and_ends_of_lines(tmp_path, change):
    (tmp_path / "d.csv").write_bytes(change(csv()).encode())
    table, _ = coded(tmp_path / "d.csv")
    assert (kinds_of(table), table.n_rows) == (KINDS, N)


def test_what_is_said_of_a_packed_file_names_that_file(tmp_path):
    path = tmp_path / "packed.csv.bz2"
    path.write_bytes(bz2.compress(csv(sep=";").encode()))
    assert read_table(path).remarks == (f"{path}: columns are parted by semicolons; say --delimiter if that is wrong",)


def test_the_documentation_lists_every_file():
    page = Path(__file__).parents[2] / "docs" / "files.md"
    assert [nasty.name for nasty in FILES if f"| `{nasty.name}` |" not in page.read_text(encoding="utf-8")] == []
