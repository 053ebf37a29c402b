"""Files -> `Table`, by their suffix."""

from __future__ import annotations

import glob
import sys
import zipfile
import zlib
from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from mixmem.data.delimited import _csv, _delimited, _tsv
from mixmem.data.frames import from_array, from_polars
from mixmem.data.plink import read_bed
from mixmem.data.polars_panics import panics_as_errors
from mixmem.data.structure_format import read_structure
from mixmem.data.table import Table
from mixmem.data.vcf import read_vcf
from mixmem.errors import InputError


def read_file(source: str | PathLike[str]) -> Table:
    """The table in a file, whose kind is told by its suffix, or in a folder of them; "-" is CSV on standard input."""
    if fspath(source) == "-":
        return _delimited(sys.stdin.buffer.read(), "standard input", ",")
    if not fspath(source):
        raise InputError("the name of the table is empty; expected a file, a folder, or - for standard input")
    path = Path(source)
    if path.is_dir() or (not path.exists() and glob.has_magic(str(path))):
        from mixmem.data.folders import read_folder

        return read_folder(path)
    return read_one(path)


def read_one(path: Path) -> Table:
    """The table in one file."""
    reader = reader_of(path)
    if not path.exists():
        raise InputError(f"{path} does not exist; check the name and the folder")
    try:
        return reader(path)
    except PermissionError as error:
        raise InputError(f"{path} cannot be read (permission denied); check its permissions") from error


def reader_of(path: Path) -> Callable[[Path], Table]:
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


READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _csv,
    ".csv.gz": _csv,
    ".tsv": _tsv,
    ".tsv.gz": _tsv,
    ".parquet": _parquet,
    ".feather": _arrow,
    ".arrow": _arrow,
    ".npz": _npz,
    ".bed": read_bed,
    ".vcf": read_vcf,
    ".vcf.gz": read_vcf,
    ".vcf.bgz": read_vcf,
    ".bcf": read_vcf,
    ".str": read_structure,
    ".str.gz": read_structure,
    ".stru": read_structure,
    ".stru.gz": read_structure,
    ".structure": read_structure,
    ".structure.gz": read_structure,
}
