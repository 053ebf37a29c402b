"""Folders of files of one kind, and patterns such as part-*.parquet -> one `Table`, in the order of file names."""

from __future__ import annotations

import glob
from dataclasses import replace
from pathlib import Path

import numpy as np

from mixmem.data.dialect import Dialect
from mixmem.data.files import READERS, Asked, read_one, reader_of
from mixmem.data.stacking import in_order_of, refuse_other_columns, stack
from mixmem.data.table import Coded, Table
from mixmem.errors import InputError

COMPANIONS = (".bim", ".bim.gz", ".fam", ".fam.gz", ".tbi", ".csi")
"""Files that belong to a table beside them: PLINK's, and indexes of VCF."""
HIVE_MISSING = "__HIVE_DEFAULT_PARTITION__"


def read_folder(folder: Path, dialect: Dialect | None = None) -> Table:
    """The files of a folder, or of a pattern, as one table.

    Folders named COLUMN=VALUE within it hold the rows with that value, as Hive and Spark write them.
    """
    parts = hive_parts(folder)
    files = parts or files_of(folder)
    tables = [_part(file, dialect) if parts else read_one(file, Asked(dialect=dialect)) for file in files]
    for file, table in zip(files, tables, strict=True):
        refuse_other_columns(files[0].name, tables[0], str(file), table)
    return stack([in_order_of(table, tables[0].names) for table in tables])


def hive_parts(folder: Path) -> list[Path]:
    """Return the folders named COLUMN=VALUE in a folder; none if it holds anything else."""
    if not folder.is_dir():
        return []
    visible = sorted(path for path in _listed(folder) if not path.name.startswith((".", "_")))
    return visible if all(path.is_dir() and "=" in path.name for path in visible) else []


def _part(folder: Path, dialect: Dialect | None) -> Table:
    """The rows of a folder named COLUMN=VALUE, with that column."""
    table = read_folder(folder, dialect)
    name, _, value = folder.name.partition("=")
    if table.loci is not None:
        raise InputError(f"{folder} holds genotypes; expected them in one folder, not by {name}")
    if name in table.names:
        return table
    codes = np.full(table.n_rows, -1 if value == HIVE_MISSING else 0, dtype=np.int64)
    columns = tuple(table.column(j) for j in range(table.n_columns))
    return replace(table, names=(*table.names, name), columns=(*columns, Coded((value,), codes, untyped=True)))


def files_of(path: Path) -> list[Path]:
    """Return the files that a path names: itself, those of a folder, or those that match a pattern, all of one kind.

    Hidden files and those named _... (marks of other programs) are no data.
    """
    if path.is_file():
        return [path]
    if path.is_dir():
        what, listed = f"{path} is a folder", _listed(path)
    else:
        what, listed = f"{path} is a pattern", [Path(name) for name in glob.glob(str(path))]
    visible = sorted(file for file in listed if not file.name.startswith((".", "_")))
    files = [file for file in visible if not file.name.lower().endswith(COMPANIONS)]
    if not files:
        raise InputError(f"{what} without tables; expected files of one kind: {' '.join(READERS)}")
    for file in files:
        if file.is_dir():
            raise InputError(
                f"{what} that holds a folder, {file.name}; expected files of one kind, or folders named COLUMN=VALUE"
            )
        if reader_of(file) is not reader_of(files[0]):
            raise InputError(
                f"{what} with files of several kinds ({files[0].name}, {file.name}); expected one kind: move the "
                "others away or name one file"
            )
    return files


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except PermissionError as error:
        raise InputError(f"{folder} cannot be read (permission denied); check its permissions") from error
