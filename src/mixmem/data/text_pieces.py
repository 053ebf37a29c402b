"""Delimited text files of which some rows are read at a time; gzipped ones are laid down on disk first."""

from __future__ import annotations

import bisect
import gzip
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mixmem.data.delimited import delimited, names_in, plain_lines
from mixmem.data.dialect import Dialect, dialect_of
from mixmem.data.table import Table
from mixmem.data.text_encodings import whole_gzip
from mixmem.errors import InputError, TableWarning

MARK_BYTES = 4_000_000
"""Of a text file the first row of every so many bytes is known by its place."""
HEAD_BYTES = 1 << 20
"""Of a text file so much is looked at for how it is written."""
BLANK_BYTES = 65_536
"""Of empty lines at the end of a text file so many bytes are left out."""
DENSEST = 12
"""How many times its size a gzipped text may take where its end does not tell."""


@dataclass(frozen=True)
class TextFile:
    """A delimited file, with the rows and bytes at which its pieces begin; the last are where the table ends.

    ``held`` is where it lies, if it was gzipped.
    """

    name: str
    dialect: Dialect
    header: bytes
    names: tuple[str, ...]
    rows: tuple[int, ...]
    offsets: tuple[int, ...]
    held: Unzipped | None = None
    cheap = False

    @property
    def n_rows(self) -> int:
        return self.rows[-1]

    @property
    def n_bytes(self) -> int:
        return 2 * self.offsets[-1]

    @classmethod
    def of(cls, path: Path, expected: str) -> TextFile:
        """Look through a file once for where its rows are; line ends inside quotes end no row."""
        held = Unzipped(path) if path.suffix.lower() == ".gz" else None
        with (path if held is None else held.path).open("rb") as file:
            head = file.read(HEAD_BYTES)
            if head.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise InputError(f"{path} is UTF-16, which is not read in pieces; write it as UTF-8")
            head = head[: head.rfind(b"\n") + 1] or head
            if b"\n" not in head and b"\r" in head:
                raise InputError(f"{path} ends lines as old Macs did, which is not read in pieces; write it anew")
            text, given = plain_lines(head)
            before, head = len(head) - len(text), text
            dialect = dialect_of(head, expected, given)
            for remark in dialect.remarks:
                warnings.warn(f"{path}: {remark}", TableWarning, stacklevel=2)
            dialect = replace(dialect, remarks=())
            names = names_in(head, str(path), dialect)
            file.seek(before)
            header = file.readline() if dialect.header else b""
            rows, offsets, row, inside = [0], [file.tell()], 0, False
            while piece := file.read(MARK_BYTES):
                ends = _row_ends(piece, inside)
                inside ^= bool(piece.count(b'"') & 1)
                row += len(ends)
                if len(ends):
                    rows.append(row)
                    offsets.append(file.tell() - len(piece) + int(ends[-1]) + 1)
            size = file.tell()
            file.seek(max(offsets[0], size - BLANK_BYTES))
            tail = file.read()
        blank = tail[len(tail.rstrip(b"\r\n")) :].count(b"\n")  # the last row's end, and empty lines after it
        total = row - blank + 1 if size > offsets[0] else 0
        kept = [at for at in range(len(rows)) if rows[at] < total]
        marks = (*(rows[at] for at in kept), total), (*(offsets[at] for at in kept), size)
        return cls(str(path), dialect, header.rstrip(b"\r\n") + b"\n" if header else b"", names, *marks, held)

    def pick(self, spans: Sequence[tuple[int, int]]) -> Table:
        """Return the rows of spans, parsed together."""
        begin, end = spans[0][0], spans[-1][1]
        where = f"{self.name}, rows {begin + 1:,} to {end:,} (lines are counted from there)"
        with open(self.name if self.held is None else self.held.path, "rb") as file:
            lines = [self._lines(file, *span) for span in spans]
        return delimited(b"".join([self.header, *lines]), where, self.dialect.separator, self.dialect)

    def _lines(self, file: BinaryIO, begin: int, end: int) -> bytes:
        first = bisect.bisect_right(self.rows, begin) - 1
        last = bisect.bisect_left(self.rows, end)
        raw = os.pread(file.fileno(), self.offsets[last] - self.offsets[first], self.offsets[first])
        ends = _row_ends(raw, False)
        skip, stop = begin - self.rows[first], end - self.rows[first]
        a = int(ends[skip - 1]) + 1 if skip else 0
        b = int(ends[stop - 1]) + 1 if stop <= len(ends) else len(raw)
        return raw[a:b]


def _row_ends(piece: bytes, inside: bool) -> np.ndarray:
    """Places of the line ends of a piece that end a row; ``inside`` says that it begins within quotes."""
    text = np.frombuffer(piece, np.uint8)
    ends = np.flatnonzero(text == 10)
    if not inside and b'"' not in piece:
        return ends
    quotes = np.flatnonzero(text == 34)
    return np.asarray(ends[(np.searchsorted(quotes, ends) + inside) % 2 == 0])


class Unzipped:
    """What a gzipped file holds, on disk in the system's folder for temporary files as long as this lives."""

    def __init__(self, path: Path):
        size, free = text_bytes(path), shutil.disk_usage(tempfile.gettempdir()).free
        if free < size:
            raise InputError(
                f"{path} takes about {size / 1e9:.2g} GB unzipped, but {tempfile.gettempdir()} has {free / 1e9:.2g} GB "
                "left; unzip it where there is room, or let TMPDIR name another folder"
            )
        self.source = path
        folder = tempfile.mkdtemp(prefix="mixmem-")
        self.path = Path(folder) / path.stem
        self._end = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        with whole_gzip(path), gzip.open(path) as packed, self.path.open("wb") as target:
            shutil.copyfileobj(packed, target, 1 << 20)

    def __reduce__(self) -> Any:
        raise InputError(f"{self.source} is unzipped on this machine, where workers do not see it; unzip it for them")


def text_bytes(path: Path) -> int:
    """Return the size of a text file, unzipped as far as can be told: a gzip file ends with it, unless it has parts."""
    size = path.stat().st_size
    if path.suffix.lower() != ".gz":
        return size
    with path.open("rb") as file:
        file.seek(max(0, size - 4))
        told = int.from_bytes(file.read(), "little")
    return told if told >= size else DENSEST * size
