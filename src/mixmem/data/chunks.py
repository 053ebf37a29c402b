"""Coded tables that come in chunks: read anew from their source, from codes on disk, or from memory.

Chunks are cut at stretch borders (:func:`mixmem.stretch_rows`), so that sums over them add up to the bits of the whole
table, however long they are.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mixmem.data.coding import Coding
from mixmem.data.column_coders import as_numbers
from mixmem.data.encode import Encoded, encode
from mixmem.data.match_columns import match_columns
from mixmem.data.read import read_table
from mixmem.data.sources import Source, Span
from mixmem.data.table import Table
from mixmem.data.table_checks import blanked
from mixmem.data.united_levels import Recoding, coded_growing, codes_by_column
from mixmem.engine.rows import n_stretches, stretch_rows
from mixmem.errors import InputError, TableWarning
from mixmem.kernels import ROW_BLOCK
from mixmem.typing import Array
from mixmem.words import suggestion

SAMPLE_BLOCKS, SAMPLE_CELLS, SAMPLE_PART = 256, 100_000_000, 8
"""Row blocks of a sample, fewer where they would hold more cells, or be more than one of so many of the table."""
LEAST_BLOCKS, LEAST_OF_PART = 8, 64
"""Row blocks of a sample at least, of very wide tables and of others."""


@dataclass(frozen=True)
class Reading:
    """How rows of a source become rows to be coded: which column names them, weighs them, which values are missing."""

    source: Source
    missing: Any = None
    weight: str | None = None
    weights: Array | None = None
    row_id: str | None = None

    def __post_init__(self) -> None:
        for name, what in ((self.weight, "weights"), (self.row_id, "row ids")):
            if name is not None and name not in self.source.names:
                raise InputError(
                    f"there is no column {name!r} to take {what} from{suggestion(name, self.source.names)}"
                )

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    def rows(self, begin: int, end: int, parts: Sequence[Any] = ()) -> tuple[Table, Array | None]:
        """Return rows begin to end with values made missing, and their weights; rows of weight 0 stay."""
        weights = None if self.weights is None else self.weights[begin:end]
        return self._prepared(self.source.given(begin, end, parts), weights)

    def _prepared(self, table: Table, weights: Array | None) -> tuple[Table, Array | None]:
        table = read_table(table, row_id=self.row_id)
        if self.weight is not None:
            at = table.names.index(self.weight)
            weights = as_numbers(table.column(at), at, table)
            table = table.take([j for j in range(table.n_columns) if j != at])
        if weights is not None and not (np.isfinite(weights) & (weights >= 0.0)).all():
            bad = int(np.argmax(~(np.isfinite(weights) & (weights >= 0.0))))
            raise InputError(f"the weight of row {bad + 1} is {weights[bad]}; expected finite weights of at least 0")
        return table if self.missing is None else blanked(table, self.missing), weights

    def coded(self, begin: int, end: int, coding: Coding, parts: Sequence[Any] = ()) -> Encoded:
        """Return rows begin to end as codes; the coding grows by what it does not have. A refusal says where it is."""
        with self._saying_where(begin, end):
            return self._encoded(begin, end, coding, *self.rows(begin, end, parts))

    def to_count(self, begin: int, end: int, coding: Coding, parts: Sequence[Any] = ()) -> Encoded | np.ndarray:
        """Return the same for who only counts them: just codes (p, n) by columns, where these are had sooner."""
        with self._saying_where(begin, end):
            table, weights = self.rows(begin, end, parts)
            found = None if weights is not None else codes_by_column(match_columns(table, coding.schema), coding)
            return self._encoded(begin, end, coding, table, weights) if found is None else found

    @contextmanager
    def _saying_where(self, begin: int, end: int) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            raise InputError(f"{self.source.place(begin, end)}, counted from the first of them: {error}") from error

    def _encoded(self, begin: int, end: int, coding: Coding, table: Table, weights: Array | None) -> Encoded:
        found = coded_growing(table, coding, weights)
        row_ids = np.arange(begin, end) if table.row_ids is None else table.row_ids
        return Encoded(found.codes, found.coding, row_ids, weights)

    def learn(self, spans: list[Span], kinds: Mapping[str, str] | None) -> Encoded:
        """Return the rows of a sample as codes, with the coding learned from them; those of weight 0 are left out."""
        given = None if self.weights is None else np.concatenate([self.weights[slice(*span)] for span in spans])
        table, weights = self._prepared(_narrow(self.source.pick(spans)), given)
        if weights is not None and not weights.any():
            raise InputError("every weight of the sample is zero; expected some rows to count")
        if table.n_rows == self.n_rows:
            return encode(table, kinds=kinds, weights=weights)
        where = f"in a sample of {table.n_rows:,} rows spread over the table: "
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TableWarning)
                found = encode(table, kinds=kinds, weights=weights)
        except InputError as error:
            raise InputError(f"{where}{error}") from error
        remarks = tuple(f"{where}{remark}" for remark in found.remarks)
        for remark in remarks:
            warnings.warn(remark, TableWarning, stacklevel=2)
        return replace(found, remarks=remarks)


def _narrow(table: Table) -> Table:
    """Whole numbers in the narrowest type that holds them: a sample is kept as read until it is coded."""
    if isinstance(table.columns, np.ndarray):
        return table

    def narrowed(column: Any) -> Any:
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "iu" or not len(column):
            return column
        low, high = int(column.min()), int(column.max())
        names = ("int8", "int16", "int32") if column.dtype.kind == "i" else ("uint8", "uint16", "uint32")
        fits = (name for name in names if np.iinfo(name).min <= low and high <= np.iinfo(name).max)
        return column.astype(next(fits, column.dtype), copy=False)

    return Table(table.names, tuple(map(narrowed, table.columns)), table.n_rows, table.row_ids, table.positional)


def sample_spans(n_rows: int, n_columns: int) -> list[Span]:
    """Return the rows of a sample: whole row blocks, evenly spread; all rows where there are no more.

    >>> sample_spans(1000, 10), len(sample_spans(10**6, 10)), sample_spans(10**6, 10)[1]
    ([(0, 1000)], 244, (4096, 4608))
    """
    blocks = -(-n_rows // ROW_BLOCK)
    part = max(LEAST_OF_PART, blocks // SAMPLE_PART)
    most = max(LEAST_BLOCKS, min(SAMPLE_BLOCKS, part, SAMPLE_CELLS // (ROW_BLOCK * max(1, n_columns))))
    if blocks <= most:
        return [(0, n_rows)]
    return [(b * ROW_BLOCK, min(n_rows, (b + 1) * ROW_BLOCK)) for b in (np.arange(most) * blocks // most).tolist()]


class Chunks(ABC):
    """A coded table in chunks of ``chunk_rows`` rows each, a multiple of its stretch."""

    coding: Coding
    n_rows: int
    chunk_rows: int

    def __len__(self) -> int:
        return -(-self.n_rows // self.chunk_rows)

    def span(self, number: int) -> Span:
        """Return the rows of a chunk."""
        return number * self.chunk_rows, min(self.n_rows, (number + 1) * self.chunk_rows)

    def first_stretch(self, number: int) -> int:
        """Return the stretch at which a chunk begins."""
        return n_stretches(self.span(number)[0], self.coding.n_variables)

    @abstractmethod
    def chunk(self, number: int, *parts: Any) -> Encoded:
        """Return the codes of a chunk, from the partitions that :meth:`needs` names where it does."""

    def needs(self, number: int) -> tuple[Any, ...]:
        """Return what stands for partitions on other machines that a chunk is made from; here none."""
        return ()


def whole_stretches(rows: int, n_variables: int) -> int:
    """Return the largest multiple of a stretch that is no more than so many rows, at least one stretch."""
    size = stretch_rows(n_variables)
    return max(1, rows // size) * size


@dataclass
class HeldChunks(Chunks):
    """A coded table in memory."""

    table: Encoded
    chunk_rows: int

    @property
    def coding(self) -> Coding:  # type: ignore[override]
        return self.table.coding

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return self.table.n_rows

    def chunk(self, number: int, *parts: Any) -> Encoded:
        return self.table.take(slice(*self.span(number)))


@dataclass
class ReadChunks(Chunks):
    """A table that is read and coded anew each time."""

    reading: Reading
    coding: Coding
    chunk_rows: int

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return self.reading.n_rows

    def needs(self, number: int) -> tuple[Any, ...]:
        return self.reading.source.needs(*self.span(number))

    def chunk(self, number: int, *parts: Any) -> Encoded:
        begin, end = self.span(number)
        found = self.reading.coded(begin, end, self.coding, parts)
        if found.coding != self.coding:
            raise InputError(
                f"{self.reading.source.place(begin, end)}: {self.coding.difference(found.coding)}, after all rows were "
                "looked at; the file changed while it was read: fit again"
            )
        return found


@dataclass
class StoredChunks(Chunks):
    """Codes that were kept in memory or on disk, in the codings that chunks had at first."""

    store: Scratch | Memory
    coding: Coding
    n_rows: int
    chunk_rows: int

    def chunk(self, number: int, *parts: Any) -> Encoded:
        return self._recoded(self.store.read(number, self.span(number)))

    def joined(self) -> Encoded:
        """Return all rows as one table."""
        parts = [self.chunk(number) for number in range(len(self))]
        weights = None if parts[0].weights is None else np.concatenate([part.each for part in parts])
        codes, row_ids = (np.concatenate([getattr(part, name) for part in parts]) for name in ("codes", "row_ids"))
        return Encoded(codes, self.coding, row_ids, weights)

    def _recoded(self, found: Encoded) -> Encoded:
        recoding = self.recodings.get(id(found.coding))
        if recoding is None:
            recoding = self.recodings[id(found.coding)] = Recoding.between(found.coding, self.coding)
        return Encoded(recoding.codes(found.codes), self.coding, found.row_ids, found.weights)

    recodings: dict[int, Recoding] = field(default_factory=dict)


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
            raise InputError(f"the scratch folder {folder} does not exist; create it or name another with --scratch")
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
            self.file.write(np.ascontiguousarray(rows.codes).data)
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
