"""Coded tables that come in chunks: read anew from their source, from codes on disk, or from memory.

Chunks are cut at stretch borders (:func:`mixmem.stretch_rows`), so that sums over them add up to the bits of the whole
table, however long they are.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixmem.data.code_stores import Memory, Scratch
from mixmem.data.coding import Coding
from mixmem.data.column_coders import NO_WEIGHT, as_numbers
from mixmem.data.declared import kinds_by_column
from mixmem.data.delimited import Wanted
from mixmem.data.encode import Encoded, encode
from mixmem.data.read import read_table
from mixmem.data.sources import Source, Span
from mixmem.data.stacking import stack
from mixmem.data.table import Table
from mixmem.data.table_checks import IGNORED, blanked
from mixmem.data.united_levels import coded_growing, recoded, row_by_row
from mixmem.engine.chunks import Engine
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

    def knowing(self, coding: Coding, texts: Iterable[str] = ()) -> Reading:
        """Return the same for rows that are coded by a coding: columns that it holds as texts, and these, are read as
        texts from every file, whatever some rows look like, and columns that it does not hold are not read."""
        columns = {column.name: column.variable for column in coding.columns}
        asked = {*columns, self.weight, self.row_id}
        written = (name for name, variable in columns.items() if variable.written or variable.value_type == "str")
        wanted = Wanted(frozenset(self.source.names) - asked, frozenset([*written, *texts]))
        return replace(self, source=self.source.wanting(wanted))

    def _prepared(self, table: Table, weights: Array | None) -> tuple[Table, Array | None]:
        """Return rows with values made missing, and their weights; rows of weight 0 stay."""
        table = read_table(table, row_id=self.row_id)
        if self.weight is not None:
            at = table.names.index(self.weight)
            weights = as_numbers(table.column(at), at, table, remedy=NO_WEIGHT)
            table = table.take([j for j in range(table.n_columns) if j != at])
        if weights is not None and not (np.isfinite(weights) & (weights >= 0.0)).all():
            bad = int(np.argmax(~(np.isfinite(weights) & (weights >= 0.0))))
            raise InputError(f"the weight of row {bad + 1} is {weights[bad]}; expected finite weights of at least 0")
        return table if self.missing is None else blanked(table, self.missing), weights

    def coded(
        self, begin: int, end: int, coding: Coding, parts: Sequence[Any] = (), *, by_rows: bool = True
    ) -> Encoded:
        """Return rows begin to end as codes; the coding grows by what it does not have. A refusal says where it is.

        Without ``by_rows`` codes may lie column by column in memory.
        """
        table = self.source.given(begin, end, parts)
        weights = None if self.weights is None else self.weights[begin:end]
        with self._saying_where(begin, end):
            table, weights = self._prepared(table, weights)
            found = coded_growing(table, coding, weights, by_rows=by_rows)
        row_ids = np.arange(begin, end) if table.row_ids is None else table.row_ids
        return Encoded(found.codes, found.coding, row_ids, weights)

    @contextmanager
    def _saying_where(self, begin: int, end: int) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            raise InputError(f"{self.source.place(begin, end)}, counted from the first of them: {error}") from error

    def learn(
        self, spans: list[Span], kinds: Mapping[str, str] | None, engine: Engine, done: Callable[[int], None]
    ) -> Encoded:
        """Return the rows of a sample as codes, with the coding learned from them; those of weight 0 are left out.

        Files that hold some of them are read by the engine, each on its own; ``done(1)`` after each.
        """
        given = None if self.weights is None else np.concatenate([self.weights[slice(*span)] for span in spans])
        declared = kinds_by_column(kinds or {}, self.source.names)
        ignored = frozenset(name for name, kind in declared.items() if kind == IGNORED)
        source = self.source.wanting(Wanted(ignored - {self.weight, self.row_id}))
        table, weights = self._prepared(_picked(source, spans, engine, done), given)
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


@dataclass(frozen=True)
class Picked:
    """The rows of a group of spans, by its number."""

    source: Source
    groups: list[list[Span]]

    def __call__(self, number: int) -> Table:
        return _narrow(self.source.pick(self.groups[number]))


def _picked(source: Source, spans: list[Span], engine: Engine, done: Callable[[int], None]) -> Table:
    work = Picked(source, source.apart(spans))
    if len(work.groups) == 1:  # it may lie in this process alone
        return work(0)
    return _narrow(stack(list(engine.each("sample", work, len(work.groups), done))))


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

    def stretch(self, number: int) -> Span:
        """Return the rows of a stretch."""
        size = stretch_rows(self.coding.n_variables)
        return number * size, min(self.n_rows, (number + 1) * size)

    @abstractmethod
    def rows(self, span: Span, *parts: Any, by_rows: bool = True) -> Encoded:
        """Return the codes of rows that lie in one chunk, from what :meth:`needs` names where it does.

        Without ``by_rows`` they may lie column by column in memory.
        """

    def needs(self, span: Span) -> tuple[Any, ...]:
        """Return what stands for rows that are held on other machines; here none."""
        return ()

    def _cut(self, span: Span, chunk: Encoded, by_rows: bool) -> Encoded:
        """Return some rows of a chunk that may be in a coding of its own, coded as all are."""
        begin, end = span[0] % self.chunk_rows, span[1] - span[0] // self.chunk_rows * self.chunk_rows
        found = recoded(chunk if end - begin == chunk.n_rows else _some_rows(chunk, slice(begin, end)), self.coding)
        return row_by_row(found) if by_rows else found


def _some_rows(chunk: Encoded, rows: slice) -> Encoded:
    """Return some rows of a chunk, whose codes lie in memory as they did."""
    if chunk.codes.flags.c_contiguous:
        return chunk.take(rows)
    weights = None if chunk.weights is None else chunk.weights[rows]
    return Encoded(np.asfortranarray(chunk.codes[rows]), chunk.coding, chunk.row_ids[rows], weights)


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

    def rows(self, span: Span, *parts: Any, by_rows: bool = True) -> Encoded:
        return self.table.take(slice(*span))


@dataclass
class ReadChunks(Chunks):
    """A table that is read and coded anew each time."""

    reading: Reading
    coding: Coding
    chunk_rows: int

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return self.reading.n_rows

    def needs(self, span: Span) -> tuple[Any, ...]:
        return self.reading.source.needs(*span)

    def rows(self, span: Span, *parts: Any, by_rows: bool = True) -> Encoded:
        found = self.reading.coded(*span, self.coding, parts, by_rows=by_rows)
        if found.coding != self.coding:
            raise InputError(
                f"{self.reading.source.place(*span)}: {self.coding.difference(found.coding)}, after all rows were "
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

    def rows(self, span: Span, *parts: Any, by_rows: bool = True) -> Encoded:
        number = span[0] // self.chunk_rows
        return self._cut(span, self.store.read(number, self.span(number)), by_rows)

    def joined(self) -> Encoded:
        """Return all rows as one table."""
        parts = [self.rows(self.span(number)) for number in range(len(self))]
        weights = None if parts[0].weights is None else np.concatenate([part.each for part in parts])
        codes, row_ids = (np.concatenate([getattr(part, name) for part in parts]) for name in ("codes", "row_ids"))
        return Encoded(codes, self.coding, row_ids, weights)


@dataclass
class KeptChunks(Chunks):
    """Codes that other machines keep, in the codings that chunks had at first; ``kept`` stands for them here.

    Other processes get it without that: they are handed the chunks that they need.
    """

    kept: list[Any]
    coding: Coding
    n_rows: int
    chunk_rows: int

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"kept": []}

    def needs(self, span: Span) -> tuple[Any, ...]:
        return (self.kept[span[0] // self.chunk_rows],)

    def rows(self, span: Span, *parts: Any, by_rows: bool = True) -> Encoded:
        return self._cut(span, parts[0], by_rows)
