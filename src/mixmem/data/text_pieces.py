"""Delimited text files of which some rows are read at a time; gzipped ones are laid down on disk first."""

from __future__ import annotations

import bisect
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from mixmem.data.delimited import WHOLE, Wanted, delimited, names_in, plain_lines, refuse_empty
from mixmem.data.dialect import Dialect, dialect_of
from mixmem.data.laid_down import LaidDown, unzipped
from mixmem.data.table import Table
from mixmem.data.text_rows import QuotedLines, RowPlaces
from mixmem.errors import InputError, TableWarning

HEAD_BYTES = 1 << 20
"""Of a text file so much is looked at for how it is written."""
UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class TextFile:
    """A delimited file, with the places of its rows; ``held`` is where it lies, if it was gzipped."""

    name: str
    path: str
    dialect: Dialect
    header: bytes
    names: tuple[str, ...]
    places: RowPlaces
    held: LaidDown | None = None
    wanted: Wanted = WHOLE
    cheap = False

    @property
    def n_rows(self) -> int:
        return self.places.rows[-1]

    @property
    def n_bytes(self) -> int:
        return 2 * self.places.offsets[-1]

    @classmethod
    def of(cls, path: Path, expected: str, given: Dialect | None = None) -> TextFile:
        """Look through a file once for where its rows are; line ends inside quotes end no row.

        What is not ``given`` of its dialect is found.
        """
        where = str(path)
        held = unzipped(path) if path.suffix.lower() == ".gz" else None
        lies = path.absolute() if held is None else held.path
        with lies.open("rb") as file:
            head = file.read(HEAD_BYTES) + file.readline()
            if head.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise InputError(f"{path} is UTF-16, which is not read in pieces; write it as UTF-8")
            marked = head.startswith(UTF8_MARK)
            refuse_empty(head.removeprefix(UTF8_MARK), where)
            if b"\n" not in head and b"\r" in head:
                raise InputError(f"{path} ends lines as old Macs did, which is not read in pieces; write it anew")
            text, told = plain_lines(head.removeprefix(UTF8_MARK), given)
            start = len(head) - len(text)
            separator = None if told is None else told.separator
            places = RowPlaces.of(file, start, where, utf8=marked, separator=separator)
            text = places.as_utf8(text)
            dialect = dialect_of(text, expected, told)
            for remark in dialect.remarks:
                warnings.warn(f"{path}: {remark}", TableWarning, stacklevel=2)
            dialect = replace(dialect, remarks=())
            names, header = names_in(text, where, dialect), b""
            if dialect.header:
                file.seek(start)
                header = file.read(places.second - start).rstrip(b"\r\n") + b"\n"
                places = places.without_first()
        return cls(where, str(lies), dialect, header, names, places, held)

    @property
    def piece_bytes(self) -> int:
        """Bytes that all rows take about in pieces."""
        return self.n_bytes

    def wanting(self, wanted: Wanted) -> TextFile:
        """Return the same file, of which these columns are read in this way."""
        return replace(self, wanted=wanted)

    def pick(self, spans: Sequence[tuple[int, int]]) -> Table:
        """Return the rows of spans, parsed together."""
        with open(self.path, "rb") as file:
            found = [self._lines(file, *span) for span in spans]
        raw = self.places.as_utf8(b"".join([self.header, *(lines for _, lines in found)]))
        firsts = [offset for offset, _ in found]
        counts = [lines.count(b"\n") for _, lines in found]
        del found

        def line_of(line: int) -> int:
            """The number in the file of a line of what was read."""
            line -= self.header.count(b"\n")
            at = 0
            while at < len(firsts) - 1 and line > counts[at]:
                line, at = line - counts[at], at + 1
            return line + self._lines_before(firsts[at])

        dialect = self.dialect
        table = delimited(raw, self.name, dialect.separator, dialect, self.wanted, line_of)
        if table.n_rows != (expected := sum(end - begin for begin, end in spans)):
            raise InputError(
                f"{self.name}, lines {line_of(1 + self.header.count(bytes([10]))):,} and after, is not well-formed "
                f"delimited text (its lines hold {table.n_rows:,} rows, expected {expected:,}); check its quotes and "
                "empty lines"
            )
        return table

    def _lines(self, file: BinaryIO, begin: int, end: int) -> tuple[int, bytes]:
        """The byte at which row begin begins, and all to row end."""
        rows, offsets = self.places.rows, self.places.offsets
        first = bisect.bisect_right(rows, begin) - 1
        last = bisect.bisect_left(rows, end)
        raw = os.pread(file.fileno(), offsets[last] - offsets[first], offsets[first])
        ends = QuotedLines.of(raw).ends
        skip, stop = begin - rows[first], end - rows[first]
        a = int(ends[skip - 1]) + 1 if skip else 0
        b = int(ends[stop - 1]) + 1 if stop <= len(ends) else len(raw)
        return offsets[first] + a, raw[a:b]

    def _lines_before(self, offset: int) -> int:
        """The number of lines before a byte of the file."""
        count = 0
        with open(self.path, "rb") as file:
            while offset > 0 and (piece := file.read(min(offset, HEAD_BYTES))):
                count, offset = count + piece.count(b"\n"), offset - len(piece)
        return count
