"""A folder of files of one kind -> one `Table`, its rows stacked in the order of the files' names."""

from __future__ import annotations

from pathlib import Path

from mixmem.data.files import READERS, read_one, reader_of
from mixmem.data.stacking import in_order_of, refuse_other_columns, stack
from mixmem.data.table import Table
from mixmem.errors import InputError

COMPANIONS = (".bim", ".bim.gz", ".fam", ".fam.gz", ".tbi", ".csi")
"""Files that belong to a table beside them: PLINK's, and indexes of VCF."""


def read_folder(folder: Path) -> Table:
    """The files of a folder as one table; hidden files and those named _... (marks of other programs) are no data."""
    try:
        visible = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    except PermissionError as error:
        raise InputError(f"{folder} cannot be read (permission denied); check its permissions") from error
    files = [path for path in visible if not path.name.lower().endswith(COMPANIONS)]
    if not files:
        raise InputError(f"{folder} is a folder without tables; expected files of one kind: {' '.join(READERS)}")
    for file in files:
        if file.is_dir():
            raise InputError(f"{folder} is a folder that holds a folder, {file.name}; expected files of one kind")
        if reader_of(file) is not reader_of(files[0]):
            raise InputError(
                f"{folder} is a folder with files of several kinds ({files[0].name}, {file.name}); expected one kind: "
                "move the others away or name one file"
            )
    tables = [read_one(file) for file in files]
    for file, table in zip(files, tables, strict=True):
        refuse_other_columns(files[0].name, tables[0], str(file), table)
    return stack([in_order_of(table, tables[0].names) for table in tables])
