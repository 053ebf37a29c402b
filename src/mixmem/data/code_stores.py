"""Codes of chunks that are kept for later passes: in memory, or in a file on disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded
from mixmem.data.sources import Span
from mixmem.data.united_levels import row_by_row
from mixmem.errors import InputError
from mixmem.typing import Array


class Memory:
    """Codes of chunks in memory."""

    def __init__(self) -> None:
        self.rows: dict[int, Encoded] = {}

    def write(self, number: int, rows: Encoded, span: Span) -> None:
        """Add a chunk, the rows of a span."""
        self.rows[number] = rows

    def read(self, number: int, span: Span) -> Encoded:
        """Return a chunk in the coding that it was written in."""
        return self.rows[number]

    def close(self) -> None:
        """Forget everything."""
        self.rows.clear()


class Scratch:
    """Codes of chunks in a file of one byte per cell (two where a variable has more than 255 levels).

    Read by place, since a memory map counts as memory taken. The folder is removed by :meth:`close`.
    """

    def __init__(self, folder: str | os.PathLike[str] | None):
        if folder is not None and not Path(folder).is_dir():
            what = "is a file, no folder" if Path(folder).exists() else "does not exist"
            raise InputError(f"the scratch folder {folder} {what}; create it or name another with --scratch")
        try:
            self.folder = Path(tempfile.mkdtemp(prefix="mixmem-", dir=folder))
        except OSError as error:
            raise InputError(
                f"the scratch folder {folder or tempfile.gettempdir()} cannot be written ({error.strerror}); name "
                "another with --scratch"
            ) from error
        self.file = (self.folder / "codes").open("w+b")
        self.places: dict[int, tuple[int, tuple[int, int], Coding]] = {}

    def require(self, size: int) -> None:
        """Refuse to begin where the disk has less room than so many bytes."""
        free = shutil.disk_usage(self.folder).free
        if free < size:
            raise InputError(
                f"codes of the table take about {size / 1e9:.2g} GB on disk, but {self.folder.parent} has "
                f"{free / 1e9:.2g} GB left; name a folder with more room with --scratch (scratch=...)"
            )

    def write(self, number: int, rows: Encoded, span: Span) -> None:
        """Add a chunk, the rows of a span, at the end."""
        place = self.file.seek(0, os.SEEK_END)
        try:
            self.file.write(row_by_row(rows).codes.data)
            self.file.flush()
            if rows.weights is not None or not np.array_equal(rows.row_ids, np.arange(*span)):
                _write_rows(self.folder / f"rows-{number}.arrow", rows)
        except OSError as error:
            raise InputError(
                f"{self.folder.parent} has no room left for codes ({error.strerror}); name a folder with more room "
                "with --scratch (scratch=...)"
            ) from error
        self.places[number] = place, (rows.n_rows, rows.n_variables), rows.coding

    def read(self, number: int, span: Span) -> Encoded:
        """Return a chunk in the coding that it was written in."""
        place, shape, coding = self.places[number]
        codes = np.empty(shape, dtype=coding.codes_dtype)
        view, done = codes.reshape(-1).view(np.uint8), 0
        while done < len(view):
            done += os.preadv(self.file.fileno(), [view[done:].data], place + done)
        row_ids, weights = _read_rows(self.folder / f"rows-{number}.arrow", span)
        return Encoded(codes, coding, row_ids, weights)

    def close(self) -> None:
        """Remove everything."""
        self.file.close()
        with suppress(OSError):
            shutil.rmtree(self.folder)


def _write_rows(path: Path, rows: Encoded) -> None:
    import polars as pl

    columns = {"id": pl.Series(rows.row_ids.tolist() if rows.row_ids.dtype == object else rows.row_ids, strict=False)}
    if rows.weights is not None:
        columns["weight"] = pl.Series(rows.weights)
    pl.DataFrame(columns).write_ipc(path)


def _read_rows(path: Path, span: Span) -> tuple[np.ndarray, Array | None]:
    if not path.exists():
        return np.arange(*span), None
    import polars as pl

    frame = pl.read_ipc(path)
    ids = frame["id"]
    row_ids = ids.to_numpy() if ids.dtype.is_numeric() else np.array(ids.to_list(), dtype=object)
    return row_ids, frame["weight"].to_numpy() if "weight" in frame.columns else None
