"""Tables that are read some rows at a time: files too large for memory, lazy frames, and what is in memory already.

A source knows its columns and the number of its rows, and reads any range of them. Nothing is kept between two reads,
so ranges can be read in any order, by several threads or machines.
"""

from __future__ import annotations

import bisect
import copy
import glob
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mixmem.data.delimited import Wanted
from mixmem.data.dialect import Dialect
from mixmem.data.files import reader_of
from mixmem.data.folders import files_of, hive_parts
from mixmem.data.frames import from_polars
from mixmem.data.laid_down import LaidDown, computed, text_bytes
from mixmem.data.plink import BedFile
from mixmem.data.polars_panics import panics_as_errors
from mixmem.data.read import read_table
from mixmem.data.stacking import in_order_of, refuse_other_columns, stack
from mixmem.data.table import Coded, Column, Table
from mixmem.data.text_pieces import TextFile
from mixmem.errors import InputError

if TYPE_CHECKING:
    import polars as pl

SCANNED = {".parquet": "scan_parquet", ".feather": "scan_ipc", ".arrow": "scan_ipc"}
DELIMITED = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
GENOTYPES = ".bed"

_WIDTHS = {"Int8": 1, "UInt8": 1, "Boolean": 1, "Int16": 2, "UInt16": 2, "Int32": 4, "UInt32": 4, "Float32": 4}


Span = tuple[int, int]
"""The first of some rows, and the one after the last."""
LOOKED_AT = 1_000
"""Rows that tell how long texts are."""
WINDOW = 32_768
"""Rows that several spans are picked from at once."""


class Source(ABC):
    """A table of which some rows are read at a time."""

    names: tuple[str, ...]
    n_rows: int
    cheap: bool
    """Whether reading rows once more costs little more than reading their codes."""

    @property
    def bytes_per_row(self) -> int:
        """Bytes that a row takes about, as read and as codes."""
        return 9 * len(self.names)

    @abstractmethod
    def read(self, begin: int, end: int) -> Table:
        """Return rows begin to end."""

    def needs(self, begin: int, end: int) -> tuple[Any, ...]:
        """Return what stands for partitions on other machines that these rows lie in; here none."""
        return ()

    def given(self, begin: int, end: int, parts: Sequence[Any]) -> Table:
        """Return rows begin to end, from the partitions where there are some."""
        return self.read(begin, end)

    def pick(self, spans: Sequence[Span]) -> Table:
        """Return the rows of several spans, in ascending order, as one table."""
        parts = [self.read(*span) for span in spans]
        return stack(parts) if len(parts) > 1 else parts[0]

    def apart(self, spans: Sequence[Span]) -> list[list[Span]]:
        """Return spans in groups whose picks, stacked, are the pick of all: here one group."""
        return [list(spans)]

    def wanting(self, wanted: Wanted) -> Source:
        """Return the same table, of which columns are read in this way where its kind allows it."""
        return self

    def require_shared(self) -> None:
        """Refuse rows that lie on this machine alone, where others are to read them."""
        return

    @abstractmethod
    def place(self, begin: int, end: int) -> str:
        """Say where these rows are, for messages."""


@dataclass(frozen=True)
class TableSource(Source):
    """A table in memory."""

    table: Table
    cheap = True

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.table.names

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return self.table.n_rows

    def read(self, begin: int, end: int) -> Table:
        rows, table = slice(begin, end), self.table
        columns: np.ndarray | tuple[Column, ...]
        if isinstance(table.columns, np.ndarray):
            columns = table.columns[rows]
        else:
            columns = tuple(_some(column, rows) for column in table.columns)
        row_ids = None if table.row_ids is None else table.row_ids[rows]
        return replace(table, columns=columns, n_rows=end - begin, row_ids=row_ids)

    def place(self, begin: int, end: int) -> str:
        return f"rows {begin + 1:,} to {end:,}"


def _some(column: Column, rows: slice) -> Column:
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, Coded):
        return replace(column, codes=column.codes[rows])
    return replace(column, days=None if column.days is None else column.days[rows])


class Part(Protocol):
    """A file of which rows are read by spans."""

    @property
    def name(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_bytes(self) -> int:
        """Bytes that all rows take about, as read: whether they are read in pieces is decided by it."""

    @property
    def piece_bytes(self) -> int:
        """Bytes that all rows take about in pieces, by how long their texts are and which columns are wanted."""

    @property
    def cheap(self) -> bool: ...
    def wanting(self, wanted: Wanted) -> Part:
        """Return the same file, of which columns are read in this way where its kind allows it."""

    def pick(self, spans: Sequence[Span]) -> Table:
        """Return the rows of spans."""


class FileSource(Source):
    """Files of the same columns, one below the other in the order of their names."""

    def __init__(self, parts: Sequence[Part]):
        self.parts = parts
        first = parts[0]
        for part in parts[1:]:
            refuse_other_columns(first.name, _columns(first.names), part.name, _columns(part.names))
        self.names = first.names
        self.ends = np.cumsum([part.n_rows for part in parts]).tolist()
        self.n_rows = self.ends[-1]
        self.cheap = first.cheap

    @property
    def n_bytes(self) -> int:
        """Bytes that all rows take about, as read and as codes."""
        return sum(part.n_bytes for part in self.parts) + self.n_rows * len(self.names)

    @property
    def bytes_per_row(self) -> int:
        n_bytes = sum(part.piece_bytes for part in self.parts) + self.n_rows * len(self.names)
        return -(-n_bytes // max(1, self.n_rows))

    def wanting(self, wanted: Wanted) -> FileSource:
        found = copy.copy(self)
        found.parts = [part.wanting(wanted) for part in self.parts]
        return found

    def require_shared(self) -> None:
        for part in self.parts:
            if (held := getattr(part, "held", None)) is not None:
                raise held.refusal

    def read(self, begin: int, end: int) -> Table:
        return self.pick([(begin, end)])

    def pick(self, spans: Sequence[Span]) -> Table:
        """Return the rows of several spans, each file's at once."""
        pieces = [self._piece(at, own) for at, own in self._by_file(spans).items()]
        return stack(pieces) if len(pieces) > 1 else pieces[0]

    def apart(self, spans: Sequence[Span]) -> list[list[Span]]:
        """Return spans by the files that they lie in."""
        firsts = [end - part.n_rows for end, part in zip(self.ends, self.parts, strict=True)]
        return [[(firsts[at] + a, firsts[at] + b) for a, b in own] for at, own in self._by_file(spans).items()]

    def _by_file(self, spans: Sequence[Span]) -> dict[int, list[Span]]:
        """Return spans by the files that they lie in, each counted from its file's first row."""
        asked: dict[int, list[Span]] = {}
        for span in spans:
            for at, first, last in self._pieces(*span):
                asked.setdefault(at, []).append((first, last))
        return asked

    def _piece(self, at: int, spans: list[Span]) -> Table:
        piece = self.parts[at].pick(spans)
        refuse_other_columns(self.parts[0].name, _columns(self.names, piece), self.parts[at].name, piece)
        return in_order_of(piece, self.names)

    def place(self, begin: int, end: int) -> str:
        names = [f"rows {a + 1:,} to {b:,} of {self.parts[at].name}" for at, a, b in self._pieces(begin, end)]
        return " and ".join(names if len(names) < 3 else [names[0], f"of {len(names) - 1} files after it"])

    def _pieces(self, begin: int, end: int) -> list[tuple[int, int, int]]:
        """The files that rows begin to end lie in, by number, each with the rows counted from its own first."""
        found = []
        at = bisect.bisect_right(self.ends, begin)
        while at < len(self.parts) and (first := self.ends[at] - self.parts[at].n_rows) < end:
            found.append((at, max(begin - first, 0), min(end - first, self.parts[at].n_rows)))
            at += 1
        return [piece for piece in found if piece[1] < piece[2]]


def _columns(names: tuple[str, ...], like: Table | None = None) -> Table:
    """A table of no rows with these columns."""
    row_ids = None if like is None else like.row_ids
    return Table(names, np.empty((0, len(names))), 0, row_ids)


@dataclass(frozen=True)
class ScannedFile:
    """A file that polars scans (Parquet, Arrow), or any lazy frame of polars."""

    name: str
    frame: pl.LazyFrame
    names: tuple[str, ...]
    n_rows: int
    widths: tuple[int, ...] = ()
    """Bytes that a cell of each column takes about."""
    skipped: frozenset[str] = frozenset()
    held: LaidDown | None = None
    """Where its rows are, if they had to be computed."""
    cheap = True

    @classmethod
    def of(cls, name: str, frame: Callable[[], pl.LazyFrame]) -> ScannedFile:
        """Return the file whose lazy frame a function makes; one that cannot be read is refused by its name."""
        import polars as pl

        def look() -> ScannedFile:
            lazy = frame()
            count, schema = lazy.select(pl.len()).collect().item(), lazy.collect_schema()
            return cls(name, lazy, tuple(schema.names()), int(count), _widths(lazy, schema))

        return _refusing(name, look)

    @property
    def n_bytes(self) -> int:
        return self.n_rows * sum(_WIDTHS.get(str(kind), 8) for kind in self.frame.collect_schema().dtypes())

    @property
    def piece_bytes(self) -> int:
        cells = zip(self.names, self.widths, strict=True)
        return self.n_rows * sum(width for name, width in cells if name not in self.skipped)

    def wanting(self, wanted: Wanted) -> ScannedFile:
        """Return the same file, without cells of columns that are not wanted; types are the file's own."""
        return replace(self, skipped=wanted.skipped & set(self.names))

    def pick(self, spans: Sequence[Span]) -> Table:
        """Return the rows of spans. Many are picked from windows: a reader unpacks far more than some rows at once."""
        import polars as pl

        windows = [(at, min(self.n_rows, at + WINDOW)) for at in range(0, self.n_rows, WINDOW)]
        if len(windows) >= len(spans):
            parts = [self._frame(*span) for span in spans]
        else:
            parts = [self._frame(a, b)[_inside(spans, a, b)] for a, b in windows]
        return from_polars(pl.concat(parts) if len(parts) > 1 else parts[0], skipped=self.skipped)

    def _frame(self, begin: int, end: int) -> pl.DataFrame:
        import polars as pl

        frame = self.frame.slice(begin, end - begin)
        if self.skipped:
            columns = [pl.lit(None).alias(name) if name in self.skipped else pl.col(name) for name in self.names]
            frame = frame.select(columns) if len(self.skipped) < len(self.names) else frame
        found: pl.DataFrame = _refusing(f"{self.name}, rows {begin + 1:,} to {end:,},", lambda: frame.collect())
        return found


def _widths(frame: pl.LazyFrame, schema: pl.Schema) -> tuple[int, ...]:
    """Bytes that a cell of each column takes about; of texts as many as in the first rows."""
    import polars as pl

    texts = [name for name, kind in schema.items() if kind == pl.String]
    first = frame.select(texts).head(LOOKED_AT).select(pl.all().str.len_bytes().mean()).collect() if texts else None
    mean = {} if first is None else first.row(0, named=True)
    return tuple(max(_WIDTHS.get(str(kind), 8), int(mean.get(name) or 0)) for name, kind in schema.items())


def _inside(spans: Sequence[Span], begin: int, end: int) -> np.ndarray:
    """Positions of the rows of spans within rows begin to end."""
    parts = [np.arange(max(a, begin), min(b, end)) - begin for a, b in spans if a < end and b > begin]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _refusing(what: str, read: Callable[[], Any]) -> Any:
    import polars as pl

    try:
        with panics_as_errors():
            return read()
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{what} cannot be read ({reason}); check what the file is, or write it again") from error


# --- What a user has


def source_of(data: Any, dialect: Dialect | None = None) -> Source:
    """Return what a user has as a source: files are read in ranges where their kind allows it, all else at once.

    ``dialect`` is what is known of how text files write their tables; the rest is found.
    """
    if isinstance(data, Source):
        return data
    if (polars := sys.modules.get("polars")) and isinstance(data, polars.LazyFrame):
        held = computed(data)
        frame = data if held is None else polars.scan_parquet(held.path)
        return FileSource([replace(ScannedFile.of("the lazy frame", lambda: frame), held=held)])
    files = streamable_files(data)
    return TableSource(read_table(data, dialect=dialect)) if files is None else file_source(files, dialect)


def streamable_files(data: Any) -> list[Path] | None:
    """Return the files that a path, a folder or a pattern names, if they can be read in ranges; else None."""
    if not isinstance(data, (str, os.PathLike)) or os.fspath(data) in ("-", ""):
        return None
    path = Path(data)
    if not path.exists() and not glob.has_magic(str(path)):
        return None  # what reads it at once says so
    if hive_parts(path):
        return None  # folders named COLUMN=VALUE hold a column that their files do not
    files = files_of(path)
    if len(files) == 1 and _suffix(files[0]) == GENOTYPES:
        return files
    return files if all(_suffix(file) in SCANNED | DELIMITED for file in files) else None


def _suffix(path: Path) -> str:
    """The ending of a file's name, both parts of one such as .csv.gz."""
    last = path.suffix.lower()
    return Path(path.stem).suffix.lower() + last if last == ".gz" else last


def file_source(files: Sequence[Path], dialect: Dialect | None = None) -> FileSource:
    """Return the source of files of one kind, scanned for their columns and rows."""
    reader_of(files[0])
    return FileSource([_part(path, dialect) for path in files])


def _part(path: Path, dialect: Dialect | None) -> Part:
    if _suffix(path) == GENOTYPES:
        return BedFile.of(path)
    if _suffix(path) in DELIMITED:
        return TextFile.of(path, DELIMITED[_suffix(path)], dialect)
    import polars as pl

    # by its whole path, which other processes find it by
    return ScannedFile.of(str(path), lambda: getattr(pl, SCANNED[_suffix(path)])(path.absolute()))


def larger_than(data: Any, most: int, bytes_per_row: int, dialect: Dialect | None = None) -> bool:
    """Return whether files that can be read in ranges take more memory than so many bytes if they are read at once.

    ``bytes_per_row`` is what each row takes beside itself, ``dialect`` what is known of how text files are written.
    """
    files = streamable_files(data)
    if files is None:
        return False
    size = sum(map(text_bytes, files))
    if _suffix(files[0]) in DELIMITED and size * (3 + bytes_per_row // 4) <= most:
        return False  # no need to look through the files: a row of two columns takes four bytes
    if _suffix(files[0]) == GENOTYPES and 4 * size * (2 + bytes_per_row) <= most:
        return False  # nor through those beside it: a byte holds four genotypes
    source = file_source(files, dialect)
    return source.n_bytes + bytes_per_row * source.n_rows > most
