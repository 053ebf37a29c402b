"""Folders of files of one kind, and patterns such as part-*.parquet -> one `Table`, in the order of file names."""

from __future__ import annotations

import glob
from pathlib import Path

from mixmem.data.files import READERS, read_one, reader_of
from mixmem.data.stacking import in_order_of, refuse_other_columns, stack
from mixmem.data.table import Table
from mixmem.errors import InputError

COMPANIONS = (".bim", ".bim.gz", ".fam", ".fam.gz", ".tbi", ".csi")
"""Files that belong to a table beside them: PLINK's, and indexes of VCF."""


def read_folder(folder: Path) -> Table:
    """The files of a folder, or of a pattern, as one table."""
    files = files_of(folder)
    tables = [read_one(file) for file in files]
    for file, table in zip(files, tables, strict=True):
        refuse_other_columns(files[0].name, tables[0], str(file), table)
    return stack([in_order_of(table, tables[0].names) for table in tables])


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
            raise InputError(f"{what} that holds a folder, {file.name}; expected files of one kind")
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
