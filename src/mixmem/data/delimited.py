"""Delimited text -> `Table`: what a CSV file's columns are, and its integers at full speed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.dialect import WHOLE_OR_DECIMAL_COMMA, Dialect, dialect_of
from mixmem.data.frames import from_polars
from mixmem.data.level_text import NUMBER_TEXT
from mixmem.data.polars_panics import panics_as_errors
from mixmem.data.schema import refuse_duplicates
from mixmem.data.table import Table
from mixmem.data.text_encodings import as_utf8, read_bytes
from mixmem.errors import InputError

if TYPE_CHECKING:
    import polars as pl

MISSING_TEXTS = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", r"\N"]
"""Texts of a delimited file that mean a missing cell; the last is what MySQL and Postgres write for one."""

INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
"""An integer that loses nothing when it is read as one: no leading zeros, and it fits 64 bits."""

FLOAT_DIGITS = 15
"""Digits before the point that a float holds exactly."""

THOUSANDS_POINTS = re.compile(r"[+-]?([0-9]{1,3}|[1-9][0-9]{0,2}(\.[0-9]{3})+)")
SAMPLED_ROWS = 1_000

PIECE_BYTES = 16_000_000
"""Of a file of small integers so much is parsed at a time, so that little more than its codes is held in memory."""


@dataclass(frozen=True)
class Wanted:
    """Which columns of a file are not wanted, so that their cells are not read, and which are read as texts, whatever
    they look like."""

    skipped: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()


WHOLE = Wanted()
"""All columns, by what they look like."""


def read_delimited(path: Path, expected: str | None, given: Dialect | None = None) -> Table:
    """The table in a text file whose name speaks for a separator, or for none."""
    return delimited(read_bytes(path), str(path), expected, given)


def delimited(
    raw: bytes,
    where: str,
    expected: str | None,
    given: Dialect | None = None,
    wanted: Wanted = WHOLE,
    line_of: Callable[[int], int] = int,
) -> Table:
    """The table in a text, whose dialect is found where it is not given.

    ``line_of`` gives the number that a message has for a line of the text, which may be a part of a longer one.
    """
    raw = as_utf8(raw, where)
    refuse_empty(raw, where)
    raw, given = plain_lines(raw, given)
    dialect = dialect_of(raw, expected, given)
    remarks = tuple(f"{where}: {remark}" for remark in dialect.remarks)
    raw, separator = _parted(raw, dialect)
    if dialect.row_names:  # lines are one field longer than the header, as R writes them
        raw = separator.encode() + raw
    names = _names(raw, where, separator) if dialect.header else []
    numbers = _small_integers(raw, len(names), separator) if names and names[0] != "" else None
    if numbers is not None:
        return Table(tuple(names), numbers, len(numbers), remarks=remarks)
    text = Text(
        raw.rstrip(b"\r\n"), where, separator, bool(dialect.header), dialect.decimal == ",", tuple(names),
        wanted.texts, line_of,
    )  # fmt: skip
    frame = text.parsed()
    if frame.height and frame[:, -1].has_nulls():
        # polars fills short lines with nulls; a ragged file should not pass for one with missing cells.
        text.refuse_ragged()
    row_ids = None
    names = names or [f"x{j}" for j in range(frame.width)]
    if names[0] == "":  # R writes its row names under an empty header
        row_ids, frame, names = frame[:, 0].to_numpy(), frame[:, 1:], names[1:]
    frame.columns = names
    table = from_polars(frame, untyped=True, skipped=wanted.skipped)
    positional = not dialect.header
    return Table(table.names, table.columns, table.n_rows, row_ids, positional, None, remarks, dialect.decimal == ",")


def refuse_empty(raw: bytes, where: str) -> None:
    """Refuse a text without any rows and names."""
    if not raw or raw.isspace():
        raise InputError(f"{where} is empty; expected a line with the names of the columns, and rows")


def _parted(raw: bytes, dialect: Dialect) -> tuple[bytes, str]:
    """A text, and the one character that parts its columns: tabs in place of any number of blanks."""
    if dialect.separator != " ":
        return raw, str(dialect.separator)
    return re.sub(rb"[ \t]+", b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", raw)), "\t"


def plain_lines(raw: bytes, given: Dialect | None = None) -> tuple[bytes, Dialect | None]:
    """Return a text with line feeds, without empty lines before it and without Excel's line that names the separator,
    which is then given."""
    if b"\n" not in raw:
        raw = raw.replace(b"\r", b"\n")
    raw = raw.lstrip(b"\r\n")
    if found := re.match(rb"sep=([^\r\n])\r?\n", raw):
        raw, given = raw[found.end() :], replace(given or Dialect(), separator=found[1].decode())
    return raw, given


def names_in(raw: bytes, where: str, dialect: Dialect) -> tuple[str, ...]:
    """Return the names of the columns of a text that begins so; row names have none."""
    raw, separator = _parted(raw, dialect)
    if not dialect.header:
        return tuple(f"x{j}" for j in range(len(next(_records(raw, separator), []))))
    names = _names(raw, where, separator)
    return tuple(names if dialect.row_names or names[0] != "" else names[1:])


def _names(raw: bytes, where: str, separator: str) -> list[str]:
    # polars renames columns of one name without a word, so the names are read here.
    names = [name.strip() for name in next(_records(raw, separator), [])]
    for position, name in enumerate(names, start=1):
        if name == "" and position > 1:
            raise InputError(f"{where}: column {position} has no name in the header; give it one")
    try:
        refuse_duplicates(names)
    except InputError as error:
        raise InputError(f"{where}: {error}; if the first line holds no names, say --header no") from error
    return names


def _small_integers(raw: bytes, n_columns: int, separator: str) -> np.ndarray | None:
    """The cells (n, p) of a table of integers that fit a byte each, all written plainly; None for any other table."""
    begin = raw.find(b"\n") + 1
    out = np.empty((raw.count(b"\n", begin) + (not raw.endswith(b"\n")), n_columns), dtype=np.int8)
    row = 0
    while 0 < begin < len(raw):
        end = raw.find(b"\n", begin + PIECE_BYTES) + 1 or len(raw)
        piece = raw[begin:end]
        cells = _single_digits(piece, n_columns, separator)
        if cells is None:
            cells = _plain_integers(piece, n_columns, separator)
        if cells is None or len(cells) > len(out) - row:
            return None
        out[row : row + len(cells)] = cells
        row, begin = row + len(cells), end
    return out if row and row == len(out) else None


def _single_digits(piece: bytes, n_columns: int, separator: str) -> np.ndarray | None:
    """The cells of lines in which each is a digit and one character ends it: nothing is to be searched for in those."""
    if len(piece) % (2 * n_columns):
        return None
    text = np.frombuffer(piece, np.uint8).reshape(-1, n_columns, 2)
    if (text[:, :-1, 1] != ord(separator)).any() or (text[:, -1, 1] != ord("\n")).any():
        return None
    cells = text[:, :, 0] - np.uint8(ord("0"))
    return cells if cells.max() <= 9 else None


def _plain_integers(piece: bytes, n_columns: int, separator: str) -> np.ndarray | None:
    """The cells of lines of integers from -128 to 127, none with more than its number in it ("01", "+1", quotes).

    A cell that holds more makes the piece longer than its numbers need.
    """
    import polars as pl

    schema = {f"{j}": pl.Int8 for j in range(n_columns)}
    try:
        with panics_as_errors():
            frame = pl.read_csv(io.BytesIO(piece), has_header=False, schema=schema, separator=separator)
    except pl.exceptions.PolarsError:
        return None
    cells = frame.to_numpy(order="c")
    if cells.dtype != np.int8:  # something was missing
        return None
    longer = sum(int(np.count_nonzero(test)) for test in (cells < 0, cells > 9, cells < -9, cells > 99, cells < -99))
    ends = piece.count(b"\r") - (not piece.endswith(b"\n"))
    return cells if len(piece) == 2 * cells.size + longer + ends else None


@dataclass(frozen=True)
class Text:
    """A delimited text: where it came from, what parts its columns, whether names stand in its first line, whether its
    numbers have decimal commas, its names, which of these columns are texts whatever they look like, and the numbers of
    its lines."""

    raw: bytes
    where: str
    separator: str
    header: bool = True
    decimal_comma: bool = False
    names: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()
    line_of: Callable[[int], int] = int

    def parsed(self) -> pl.DataFrame:
        """Columns of numbers as numbers, small integers as Int8, all others as texts without blanks around them.

        A sample decides which are which, by a stricter rule than polars has: "01" stays a text. A later number that
        is not small makes all Int64, and a later text in a column of numbers brings everything back to texts; the
        encoder then sees what the column as a whole is.
        """
        import polars as pl

        try:
            sample = self._read(n_rows=SAMPLED_ROWS)
            if self.decimal_comma or _has_blanks(sample):
                return self._cleaned(self._read())
            integers, real = self._numbers_of(sample)
            if sample.height < SAMPLED_ROWS:
                return sample.cast(real | dict.fromkeys(integers, pl.Int64))  # type: ignore[arg-type]
            frame = self._typed(integers, real)
            return self._cleaned(self._read()) if _has_blanks(frame.select(pl.col(pl.String))) else frame
        except pl.exceptions.PolarsError as error:
            self.refuse_ragged()
            reason = str(error).strip().splitlines()[0]
            raise InputError(f"{self.where} is not well-formed delimited text ({reason}); check its quotes") from error

    def _typed(self, integers: dict[str, int], real: dict[str, type[pl.DataType]]) -> pl.DataFrame:
        """All rows with the types of a sample, as far as they hold."""
        import polars as pl

        small = {name: pl.Int8 if length <= 2 else pl.Int64 for name, length in integers.items()}
        for types in (small, dict.fromkeys(integers, pl.Int64)):
            with suppress(pl.exceptions.PolarsError):
                return self._read(schema_overrides={**types, **real})
        return self._read()

    def _read(self, **how: object) -> pl.DataFrame:
        """All cells as texts, unless ``how`` says otherwise."""
        import polars as pl

        with panics_as_errors():
            return pl.read_csv(
                io.BytesIO(self.raw),
                separator=self.separator,
                has_header=self.header,
                infer_schema=False,
                null_values=MISSING_TEXTS,
                **how,  # type: ignore[arg-type]
            )

    def _cleaned(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Texts without blanks around them, numbers as numbers."""
        import polars as pl

        frame = frame.with_columns(pl.all().str.strip_chars())
        frame = frame.with_columns(pl.when(pl.all().is_in(MISSING_TEXTS)).then(None).otherwise(pl.all()).name.keep())
        if self.decimal_comma:
            commas = [column.name for column in self._untyped(frame) if _decimal_commas(column)]
            points = [column.name for column in self._untyped(frame) if _thousands_points(column)]
            frame = frame.with_columns(pl.col(points).str.replace_all(".", "", literal=True))
            frame = frame.with_columns(pl.col(commas).str.replace(",", ".", literal=True))
        integers, real = self._numbers_of(frame)
        return frame.cast(real | dict.fromkeys(integers, pl.Int64))  # type: ignore[arg-type]

    def _numbers_of(self, frame: pl.DataFrame) -> tuple[dict[str, int], dict[str, type[pl.DataType]]]:
        """The columns of integers with the characters of their longest, and those of other numbers with their type."""
        import polars as pl

        lengths = {column.name: _integer_length(column) for column in self._untyped(frame)}
        real: dict[str, type[pl.DataType]] = {
            name: pl.Float64 for name, length in lengths.items() if length == 0 and _all_real(frame[name])
        }
        return {name: length for name, length in lengths.items() if length > 0}, real

    def _untyped(self, frame: pl.DataFrame) -> list[pl.Series]:
        """The columns of which nothing is known beforehand."""
        names = self.names or [f"x{j}" for j in range(frame.width)]
        return [column for column, name in zip(frame.get_columns(), names, strict=True) if name not in self.texts]

    def refuse_ragged(self) -> None:
        """Name the first line whose number of fields differs from the first one's, if there is one."""
        records = _records(self.raw, self.separator)
        try:
            width = len(next(records))
            for fields in records:
                if len(fields) != width:
                    first = "header" if self.header else "first line"
                    raise InputError(
                        f"{self._line(records)}: found {len(fields)} field(s), expected {width} as in the {first}; "
                        "repair the line or quote the separators in it"
                    )
        except csv.Error as error:
            raise InputError(f"{self._line(records)}: {error}; repair the line") from error

    def _line(self, records: Any) -> str:
        """Where a reader of records is, in words."""
        return f"{self.where}, line {self.line_of(records.line_num)}"


def _has_blanks(sample: pl.DataFrame) -> bool:
    """Whether some cell begins or ends with a blank."""
    import polars as pl

    return bool(sample.height and sample.width) and any(sample.select(pl.all().str.contains(r"^\s|\s$").any()).row(0))


def _thousands_points(column: pl.Series) -> bool:
    """Whether a column of texts holds whole numbers only, some with points between thousands."""
    texts = column.unique().drop_nulls().to_list()
    return any("." in text for text in texts) and all(map(THOUSANDS_POINTS.fullmatch, texts))


def _decimal_commas(column: pl.Series) -> bool:
    """Whether a column of texts holds numbers only, some with a decimal comma."""
    texts = column.unique().drop_nulls().to_list()
    return any("," in text for text in texts) and all(map(WHOLE_OR_DECIMAL_COMMA.fullmatch, texts))


def _integer_length(sample: pl.Series) -> int:
    """Characters of the longest integer in a column of integers, at least 1; 0 for a column of anything else."""
    # Few values are distinct, so looking at those alone keeps wide tables fast.
    texts = sample.unique().drop_nulls().to_list()
    return max(map(len, texts), default=1) if all(map(INTEGER.fullmatch, texts)) else 0


def _all_real(sample: pl.Series) -> bool:
    """Whether a column of texts holds finite numbers only, written so that they are read back as they are."""
    texts = sample.unique().drop_nulls().to_list()
    return (
        bool(texts)
        and all(NUMBER_TEXT.fullmatch(text) and "inf" not in text.lower() for text in texts)
        and (max(len(text.lstrip("+-").partition(".")[0]) for text in texts) <= FLOAT_DIGITS)
    )


def _records(raw: bytes, separator: str) -> Any:
    return csv.reader(io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", newline=""), delimiter=separator)
