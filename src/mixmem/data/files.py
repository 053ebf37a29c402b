"""Files -> `Table`, by their suffix."""

from __future__ import annotations

import glob
import sys
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from mixmem.data.databases import read_duckdb, read_sqlite
from mixmem.data.delimited import delimited, read_delimited
from mixmem.data.dialect import Dialect
from mixmem.data.frames import from_array, from_polars
from mixmem.data.packed import PACKED, unpacked
from mixmem.data.plink import read_bed
from mixmem.data.polars_panics import panics_as_errors
from mixmem.data.statistical import read_excel, read_labelled
from mixmem.data.structure_format import read_structure
from mixmem.data.table import Table
from mixmem.data.vcf import read_vcf
from mixmem.errors import InputError


@dataclass(frozen=True)
class Asked:
    """Which part of a file is asked for (a sheet, a table, a file within), and what is said of its dialect."""

    part: str | None = None
    dialect: Dialect | None = None


Reader = Callable[[Path, Asked], Table]


def read_file(source: str | PathLike[str], dialect: Dialect | None = None) -> Table:
    """The table in a file, whose kind is told by its suffix, or in a folder of them; "-" is CSV on standard input.

    FILE::PART names a sheet of a workbook, a table of a database, or a file of a .zip.
    """
    if fspath(source) == "-":
        return delimited(sys.stdin.buffer.read(), "standard input", ",", dialect)
    if not fspath(source):
        raise InputError("the name of the table is empty; expected a file, a folder, or - for standard input")
    path, part = Path(source), None
    if "::" in fspath(source) and not path.exists():
        name, part = fspath(source).split("::", 1)
        path = Path(name)
    if path.is_dir() or (not path.exists() and glob.has_magic(str(path))):
        from mixmem.data.folders import read_folder

        return read_folder(path, dialect)
    return read_one(path, Asked(part, dialect))


def read_one(path: Path, asked: Asked) -> Table:
    """The table in one file."""
    reader = reader_of(path)
    if not path.exists():
        raise InputError(f"{path} does not exist; check the name and the folder")
    try:
        return reader(path, asked)
    except PermissionError as error:
        raise InputError(f"{path} cannot be read (permission denied); check its permissions") from error


def reader_of(path: Path) -> Reader:
    """The function that reads files of this name."""
    name = path.name.lower()
    for suffix, reader in READERS.items():
        if name.endswith(suffix):
            return reader
    raise InputError(
        f"{path} has the suffix {path.suffix!r}, which says nothing about its contents; expected one of "
        f"{' '.join(READERS)}: rename or convert the file"
    )


def _parquet(path: Path) -> Table:
    import polars as pl

    try:
        with panics_as_errors():
            return from_polars(pl.read_parquet(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _not_what_it_says(path, "parquet", error) from error


def _arrow(path: Path) -> Table:
    import polars as pl

    try:
        try:
            with panics_as_errors():
                return from_polars(pl.read_ipc(path))
        except pl.exceptions.PolarsError:
            with panics_as_errors():
                return from_polars(pl.read_ipc_stream(path))  # .arrow names both forms of the format
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _not_what_it_says(path, "feather/arrow", error) from error


def _json(path: Path) -> Table:
    """A list of records, or a record per line."""
    import polars as pl

    try:
        with path.open("rb") as file, panics_as_errors():
            listed = file.read(64).lstrip()[:1] == b"["
        with panics_as_errors():
            frame = pl.read_json(path) if listed else pl.read_ndjson(path, infer_schema_length=None)
        return from_polars(frame)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _not_what_it_says(path, "JSON (a list of records, or a record per line)", error) from error


def _npz(path: Path) -> Table:
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is not an npz file, whatever its name says; write it with numpy.savez")
    try:
        with np.load(path, allow_pickle=False) as archive:
            if "data" in archive.files:
                columns = archive["columns"].tolist() if "columns" in archive.files else None
                return from_array(archive["data"], columns)
            if len(archive.files) == 1:
                return from_array(archive[archive.files[0]])
            raise InputError(
                f"{path} holds the arrays {', '.join(archive.files) or '(none)'}; expected one array, or "
                "'data' "
                "and optionally 'columns'"
            )
    except InputError:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise _not_what_it_says(path, "npz (without pickled objects)", error) from error


def _not_what_it_says(path: Path, kind: str, error: Exception) -> InputError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return InputError(f"{path} cannot be read as {kind} ({reason}); check what the file is, or write it again")


def _packed(path: Path, asked: Asked) -> Table:
    with unpacked(path, asked.part) as inner:
        table = read_one(inner, Asked(None, asked.dialect))
    return replace(table, remarks=tuple(said.replace(str(inner), str(path)) for said in table.remarks))


def _alone(reader: Callable[[Path], Table]) -> Reader:
    """A reader of files that hold one table, and say themselves how it is written."""

    def read(path: Path, asked: Asked) -> Table:
        if asked.part is not None:
            raise InputError(f"{path} holds one table; expected its name without ::{asked.part}")
        return reader(path)

    return read


def _text(separator: str | None) -> Reader:
    return lambda path, asked: _alone(partial(read_delimited, expected=separator, given=asked.dialect))(path, asked)


def _parts(reader: Callable[[Path, str | None], Table]) -> Reader:
    return lambda path, asked: reader(path, asked.part)


CSV, TSV, TEXT, JSON, SURVEY = _text(","), _text("\t"), _text(None), _alone(_json), _alone(read_labelled)
EXCEL, SQLITE = _parts(read_excel), _parts(read_sqlite)
VCF, STRUCTURE, ARROW = _alone(read_vcf), _alone(read_structure), _alone(_arrow)
READERS: dict[str, Reader] = {
    ".csv": CSV,
    ".csv.gz": CSV,
    ".tsv": TSV,
    ".tsv.gz": TSV,
    ".tab": TSV,
    ".txt": TEXT,
    ".txt.gz": TEXT,
    ".data": TEXT,
    ".dat": TEXT,
    ".parquet": _alone(_parquet),
    ".feather": ARROW,
    ".arrow": ARROW,
    ".json": JSON,
    ".jsonl": JSON,
    ".ndjson": JSON,
    ".xlsx": EXCEL,
    ".xls": EXCEL,
    ".ods": EXCEL,
    ".sav": SURVEY,
    ".zsav": SURVEY,
    ".por": SURVEY,
    ".dta": SURVEY,
    ".sqlite": SQLITE,
    ".sqlite3": SQLITE,
    ".db": SQLITE,
    ".duckdb": _parts(read_duckdb),
    ".npz": _alone(_npz),
    ".bed": _alone(read_bed),
    ".vcf": VCF,
    ".vcf.gz": VCF,
    ".vcf.bgz": VCF,
    ".bcf": VCF,
    ".str": STRUCTURE,
    ".str.gz": STRUCTURE,
    ".stru": STRUCTURE,
    ".stru.gz": STRUCTURE,
    ".structure": STRUCTURE,
    ".structure.gz": STRUCTURE,
    **dict.fromkeys(PACKED, _packed),
}
