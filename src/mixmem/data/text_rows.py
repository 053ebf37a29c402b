"""Where the rows of a delimited text are, and what it is written in, found by one look through the whole of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from mixmem.data.text_encodings import check_text, from_windows, warn_of_guess
from mixmem.errors import InputError

MARK_BYTES = 4_000_000
"""Of a text file the first row of every so many bytes is known by its place."""
BEFORE_QUOTES = b',;\t| \r\n"'
"""What a quote that opens a cell follows, beside a separator that was given."""


@dataclass(frozen=True)
class RowPlaces:
    """The rows and bytes at which pieces of a text begin, the last of them where its last row ends.

    ``second`` is the byte at which the second row begins, and ``windows`` says that the text is in Windows-1252.
    """

    rows: tuple[int, ...]
    offsets: tuple[int, ...]
    second: int
    windows: bool

    @classmethod
    def of(cls, file: BinaryIO, start: int, where: str, *, utf8: bool, separator: str | None = None) -> RowPlaces:
        """Look through a file from a byte on; quotes that do not close, and what is no text, are refused.

        ``utf8`` says that the file is known to be in UTF-8, by a mark before the text.
        """
        file.seek(0)
        lines, guess = file.read(start).count(b"\n"), None
        openers = np.frombuffer(BEFORE_QUOTES + (separator or "").encode(), np.uint8)
        rows, offsets, row, inside, opened = [0], [start], 0, False, 0
        total, end, second = 0, start, 0
        odd: tuple[int, int] | None = None  # where the line of a stray quote ends, and its number
        # pieces end with lines, so that none cuts a character in two
        while piece := file.read(MARK_BYTES) + file.readline():
            begin = file.tell() - len(piece)
            try:
                check_text(piece, where, lines)
            except InputError as error:
                if utf8 or b"\0" in piece:
                    raise
                guess = guess or error
            found = QuotedLines.of(piece, inside)
            if odd is None and (stray := found.stray(openers)) >= 0:
                odd = begin + piece.index(b"\n", stray), lines + 1 + piece.count(b"\n", 0, stray)
            if text := len(piece.rstrip(b"\r\n")):
                total, end = row + int(np.searchsorted(found.ends, text)) + 1, begin + text
            if len(found.ends):
                second = second or begin + int(found.ends[0]) + 1
                row += len(found.ends)
                rows.append(row)
                offsets.append(begin + int(found.ends[-1]) + 1)
            if found.inside_after:
                opened = lines + 1 + piece.count(b"\n", 0, piece.rfind(b'"')) if b'"' in piece else opened
            inside, lines = found.inside_after, lines + piece.count(b"\n")
        if odd is not None and odd[0] < end:  # in the last line a quote of its own does no harm
            raise _open_quote(where, odd[1])
        if inside and odd is None:
            raise _open_quote(where, opened)
        if guess is not None:
            warn_of_guess(guess)
        kept = [at for at in range(len(rows)) if rows[at] < total]
        marks = (*(rows[at] for at in kept), total), (*(offsets[at] for at in kept), end)
        return cls(*marks, min(second, end) if second else end, guess is not None)

    def without_first(self) -> RowPlaces:
        """Return the places of all rows but the first, which holds the names."""
        later = [at for at, row in enumerate(self.rows[:-1]) if row > 1]
        rows = (0, *(self.rows[at] - 1 for at in later), max(0, self.rows[-1] - 1))
        return RowPlaces(rows, (self.second, *(self.offsets[at] for at in later), self.offsets[-1]), 0, self.windows)

    def as_utf8(self, raw: bytes) -> bytes:
        """Return some bytes of the text in UTF-8."""
        return from_windows(raw) if self.windows else raw


@dataclass(frozen=True)
class QuotedLines:
    """The line ends of a piece of text: ``ends`` are the places of those that end a row, as they are in no quotes."""

    text: np.ndarray
    ends: np.ndarray
    opening: np.ndarray
    """Places of the quotes that have a line end after them before they close."""
    inside_after: bool

    @classmethod
    def of(cls, piece: bytes, inside: bool = False) -> QuotedLines:
        """Look at a piece; ``inside`` says that it begins within quotes."""
        text = np.frombuffer(piece, np.uint8)
        ends = np.flatnonzero(text == 10)
        if not inside and b'"' not in piece:
            return cls(text, ends, ends[:0], False)
        quotes = np.flatnonzero(text == 34)
        before = np.searchsorted(quotes, ends)
        within = (before + inside) % 2 == 1
        opening = quotes[np.unique(before[within & (before > 0)]) - 1]
        return cls(text, ends[~within], opening, bool((len(quotes) + inside) % 2))

    def stray(self, openers: np.ndarray) -> int:
        """Return the place of the first quote that stands in the middle of a cell and closes in no line; -1 if none."""
        places = self.opening[self.opening > 0]
        found = places[~np.isin(self.text[places - 1], openers)]
        return int(found[0]) if len(found) else -1


def _open_quote(where: str, line: int) -> InputError:
    return InputError(
        f"{where} is not well-formed delimited text (a quote in line {line:,} is not closed, or one before it is one "
        "too many); check its quotes"
    )
