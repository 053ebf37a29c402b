"""A folder of files of one kind -> one `Table`, its rows stacked in the order of the files' names."""

from __future__ import annotations

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
    """The files of a folder as one table; hidden files and those named _... (marks of other programs) are no data.

    Folders named COLUMN=VALUE within it hold the rows with that value, as Hive and Spark write them.
    """
    try:
        visible = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    except PermissionError as error:
        raise InputError(f"{folder} cannot be read (permission denied); check its permissions") from error
    files = [path for path in visible if not path.name.lower().endswith(COMPANIONS)]
    if not files:
        raise InputError(f"{folder} is a folder without tables; expected files of one kind: {' '.join(READERS)}")
    hive = all(file.is_dir() and "=" in file.name for file in files)
    for file in files:
        if file.is_dir() and not hive:
            raise InputError(
                f"{folder} is a folder that holds a folder, {file.name}; expected files of one kind, or folders named "
                "COLUMN=VALUE"
            )
        if not hive and reader_of(file) is not reader_of(files[0]):
            raise InputError(
                f"{folder} is a folder with files of several kinds ({files[0].name}, {file.name}); expected one kind: "
                "move the others away or name one file"
            )
    tables = [_part(file, dialect) if hive else read_one(file, Asked(dialect=dialect)) for file in files]
    for file, table in zip(files, tables, strict=True):
        refuse_other_columns(files[0].name, tables[0], str(file), table)
    return stack([in_order_of(table, tables[0].names) for table in tables])


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
