"""A fit in few passes: a sample of the rows tells most, passes over all rows tell the rest.

The same whether rows are in memory or are read chunk by chunk: what is computed depends on the rows alone, not on
where they are or how long chunks are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixmem.data.chunks import (
    Chunks,
    HeldChunks,
    KeptChunks,
    ReadChunks,
    Reading,
    StoredChunks,
    sample_spans,
    whole_stretches,
)
from mixmem.data.code_stores import Memory, Scratch
from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded, encode_as
from mixmem.data.partitions import PartitionSource
from mixmem.data.sources import Span, TableSource, source_of
from mixmem.data.table_checks import check_weights
from mixmem.data.united_levels import recoded
from mixmem.engine.chunks import KEPT_PART, Engine
from mixmem.engine.memory import available_memory
from mixmem.engine.rows import Arrays, RowSum, n_stretches
from mixmem.errors import InputError
from mixmem.likelihood.memberships import RowFit, fit_rows
from mixmem.likelihood.table import LikelihoodTable
from mixmem.moments.few_passes import AllRows, Counted
from mixmem.moments.part_of_rows import Change
from mixmem.moments.sums import FirstMoments
from mixmem.moments.sweep import Pass
from mixmem.progress import Progress
from mixmem.refinement.em_of_all_rows import round_sums
from mixmem.refinement.maximum_likelihood import held_cells
from mixmem.typing import Array, Positions
from mixmem.words import listing

CHUNK_BYTES = 64_000_000
"""What a chunk takes as read, at eight bytes per cell, unless a memory limit asks for less."""
NARROW_BYTES = 3
"""Cells of so few bytes, as read and as codes together, are known to take no more, and chunks of them are longer."""


@dataclass(frozen=True)
class Everything:
    """A table that was looked at once: its chunks, the counts of all rows, and the sample of them."""

    chunks: Chunks
    counted: Counted
    first: FirstMoments
    sample: Encoded
    united: list[str]
    held: Encoded | None
    engine: Engine
    progress: Progress

    def all_rows(self, passes: str) -> AllRows:
        """Return what the moments are corrected by, or with "all" passes swept over."""
        return AllRows(
            self.first, self.counted.n_effective, self.chunks.n_rows, self._pass, self._change, passes == "all"
        )

    def _pass(self, work: Pass) -> Arrays:
        total: RowSum = self._total("pass over all rows", PassOver(self.chunks, work), len(self.chunks))
        return total.root

    def _change(self, work: Change, stretches: Positions) -> Arrays:
        work_of_one = ChangeOver(self.chunks, work, stretches)
        total: RowSum = self._total("pass over a part of the rows", work_of_one, len(stretches))
        return total.root

    def held_cells(self, theta: Array, alpha: Array) -> Array:
        """Return the mean over all rows of the cells that components hold (codes, k)."""
        sums = self._total("numbers of all rows", HeldCells(self.chunks, theta, alpha), len(self.chunks)).root[0]
        likely = LikelihoodTable(self.sample).likelihoods(theta)
        return np.asarray(sums * likely / self.first.total)

    def round_sums(self, theta: Array) -> Arrays:
        """Return the sums over all rows of a round of EM at a theta."""
        total: RowSum = self._total("EM over all rows", RoundOver(self.chunks, theta), len(self.chunks))
        return total.root

    def row_fits(self, theta: Array, alpha: Array, memberships: str) -> Iterator[FittedRows]:
        """Yield the memberships of all rows, chunk by chunk, given theta with its noise."""
        work = FitRows(self.chunks, theta, alpha, memberships)
        with self.progress.stage("memberships of all rows", len(self.chunks)) as step:
            yield from self.engine.each("memberships", work, len(self.chunks), step)

    def _total(self, name: str, work: Any, count: int) -> Any:
        with self.progress.stage(name, count) as step:
            return self.engine.total(name, work, count, step)


@dataclass(frozen=True)
class OfChunk:
    """What is computed of a chunk, by its number."""

    chunks: Chunks

    def needs(self, number: int) -> tuple[Any, ...]:
        """Return what stands for rows that are held on other machines."""
        return self.chunks.needs(self.span(number))

    def span(self, number: int) -> Span:
        """Return the rows that it is computed of."""
        return self.chunks.span(number)

    def rows(self, number: int, *parts: Any, by_rows: bool = True) -> Encoded:
        """Return their codes."""
        return self.chunks.rows(self.span(number), *parts, by_rows=by_rows)


@dataclass(frozen=True)
class PassOver(OfChunk):
    """The sums of a pass over a chunk."""

    work: Pass

    def __call__(self, number: int, *parts: Any) -> RowSum:
        return self.work.sums(self.rows(number, *parts, by_rows=False), self.chunks.first_stretch(number))


@dataclass(frozen=True)
class ChangeOver(OfChunk):
    """The change of a pass's sums over one of some stretches."""

    change: Change
    stretches: Positions

    def span(self, number: int) -> Span:
        """Return the rows of a stretch."""
        return self.chunks.stretch(int(self.stretches[number]))

    def __call__(self, number: int, *parts: Any) -> RowSum:
        return self.change.sums(self.rows(number, *parts, by_rows=False), int(self.stretches[number]))


@dataclass(frozen=True)
class HeldCells(OfChunk):
    """The sums of the cells that components hold in a chunk."""

    theta: Array
    alpha: Array

    def __call__(self, number: int, *parts: Any) -> RowSum:
        rows = self.rows(number, *parts)
        return held_cells(rows, self.theta, self.alpha, self.chunks.first_stretch(number))


@dataclass(frozen=True)
class RoundOver(OfChunk):
    """The sums of a round of EM over a chunk."""

    theta: Array

    def __call__(self, number: int, *parts: Any) -> RowSum:
        return round_sums(self.rows(number, *parts), self.theta, self.chunks.first_stretch(number))


@dataclass(frozen=True)
class FittedRows:
    """The memberships of a chunk's rows, with their ids and weights."""

    row_ids: np.ndarray
    weights: Array
    rows: RowFit


@dataclass(frozen=True)
class FitRows(OfChunk):
    """The memberships of a chunk's rows, given theta with its noise, alpha, and what memberships are to be."""

    theta: Array
    alpha: Array
    memberships: str

    def __call__(self, number: int, *parts: Any) -> FittedRows:
        chunk = self.rows(number, *parts)
        found = fit_rows(chunk, self.theta, self.alpha, memberships=self.memberships)
        return FittedRows(chunk.row_ids, chunk.each, found)


@dataclass
class CodeChunk:
    """The codes of a chunk, in the coding that it has by itself, column by column where they are had sooner so."""

    reading: Reading
    base: Coding
    chunk_rows: int

    def span(self, number: int) -> Span:
        """Return the rows of a chunk."""
        return number * self.chunk_rows, min(self.reading.n_rows, (number + 1) * self.chunk_rows)

    def needs(self, number: int) -> tuple[Any, ...]:
        """Return what stands for the partitions that the chunk is made from."""
        return self.reading.source.needs(*self.span(number))

    def __call__(self, number: int, *parts: Any) -> Any:
        return self.reading.coded(*self.span(number), self.base, parts, by_rows=False)


@dataclass
class CountChunk(CodeChunk):
    """The counts of a chunk, whose codes are kept on the way where there is a store."""

    store: Scratch | Memory | None = None

    def __call__(self, number: int, *parts: Any) -> Counted:
        span = self.span(number)
        first_stretch = n_stretches(span[0], self.base.n_variables)
        rows = self.reading.coded(*span, self.base, parts, by_rows=False)
        if self.store is not None:
            self.store.write(number, rows, span)
        return Counted.of(self.base, rows, first_stretch)


@dataclass
class CountKept:
    """The counts of a chunk whose codes are kept where they were made."""

    chunks: KeptChunks

    def needs(self, number: int) -> tuple[Any, ...]:
        """Return what stands for the codes."""
        return (self.chunks.kept[number],)

    def __call__(self, number: int, rows: Encoded) -> Counted:
        return Counted.of(self.chunks.coding, rows, self.chunks.first_stretch(number))


def reading_of(X: Any, missing: Any, weights: Any, engine: Engine) -> Reading | None:
    """Return how a table is read in chunks; None if it is coded already."""
    if isinstance(X, Encoded):
        return None
    if isinstance(X, Reading):
        return X
    parts = engine.partitions(X)
    source = source_of(X) if parts is None else PartitionSource(parts)
    found = None if weights is None else check_weights(weights, source.n_rows)
    return Reading(source, missing=missing, weights=found)


@contextmanager
def looked_at(
    X: Any,
    *,
    kinds: Mapping[str, str] | None,
    missing: Any,
    weights: Any,
    scratch: str | os.PathLike[str] | None,
    memory_limit: int | None,
    engine: Engine,
    progress: Progress,
    chunk_rows: int | None = None,
) -> Iterator[Everything]:
    """Look at a table once: learn its coding from a sample, unite levels and count cells over all rows.

    What is written to scratch is removed at the end.
    """
    reading = reading_of(X, missing, weights, engine)
    if reading is None:
        yield _coded_already(encode_as(X, kinds, missing, weights), engine, progress, chunk_rows)
        return
    if not engine.local:
        reading.source.require_shared()
    if reading.n_rows < 2:
        raise InputError(f"the table has {reading.n_rows} rows; expected at least two")
    spans = sample_spans(reading.n_rows, len(reading.source.names))
    with progress.stage("sample") as step:
        sample = reading.learn(spans, kinds, engine, step)
    base, p = sample.coding.unpooled, sample.n_variables
    named = reading.row_id is not None and sample.row_ids.dtype == object
    reading = reading.knowing(base, [str(reading.row_id)] * named)
    size = whole_stretches(chunk_rows or rows_per_chunk(p, memory_limit, reading.source.bytes_per_row), p)
    n_bytes = reading.n_rows * p * base.codes_dtype.itemsize
    store = _store(reading, engine, scratch, memory_limit, n_bytes)
    try:
        count = -(-reading.n_rows // size)
        kept = engine.keep("codes", CodeChunk(reading, base, size), count, n_bytes + 8 * reading.n_rows)
        counting: Any = CountChunk(reading, base, size, store)
        if kept is not None:
            counting = CountKept(KeptChunks(kept, base, reading.n_rows, size))
        with progress.stage("counting all rows", count) as step:
            counted = engine.total("counting", counting, count, step)
        coding = counted.first.coding.pooling_by(counted.first.counts)
        chunks: Chunks = ReadChunks(reading, coding, size)
        if kept is not None:
            chunks = KeptChunks(kept, coding, reading.n_rows, size)
        if store is not None:
            chunks = StoredChunks(store, coding, reading.n_rows, size)
        held = None
        if isinstance(reading.source, TableSource) and isinstance(chunks, StoredChunks):
            held = chunks.joined()
            chunks = HeldChunks(held, size)
        yield Everything(
            chunks, counted, FirstMoments(coding, counted.first.sums), recoded(replace(sample, coding=base), coding),
            surprises(base, coding), held, engine, progress,
        )  # fmt: skip
    finally:
        if store is not None:
            store.close()


def _store(
    reading: Reading, engine: Engine, scratch: str | os.PathLike[str] | None, memory_limit: int | None, size: int
) -> Scratch | Memory | None:
    """Return where codes, of so many bytes, are kept after the first pass; None if rows are read anew in each.

    In memory if they are a small part of it, so that files are read once; else on disk if asked for, or where reading
    is dear.
    """
    if not engine.local:
        return None
    most = available_memory() if memory_limit is None else memory_limit
    if isinstance(reading.source, TableSource) or (scratch is None and size <= most // KEPT_PART):
        return Memory()
    if scratch is None and reading.source.cheap:
        return None
    disk = Scratch(scratch)
    try:
        disk.require(size)
    except InputError:
        disk.close()
        raise
    return disk


def _coded_already(table: Encoded, engine: Engine, progress: Progress, chunk_rows: int | None) -> Everything:
    """Return the same of a table that is coded already."""
    spans = sample_spans(table.n_rows, table.n_variables)
    rows = np.concatenate([np.arange(*span) for span in spans])
    sample = table.take(rows) if len(rows) < table.n_rows else table
    if sample.weights is not None:
        sample = sample.take(sample.weights > 0.0)
    chunks = HeldChunks(table, whole_stretches(chunk_rows or table.n_rows, table.n_variables))
    counted = Counted.of(table.coding, table, 0)
    return Everything(chunks, counted, counted.first, sample, [], table, engine, progress)


def rows_per_chunk(n_variables: int, memory_limit: int | None, bytes_per_row: int | None = None) -> int:
    """Return how many rows are read at once; more where they take few bytes, fewer where they take many."""
    most = CHUNK_BYTES if memory_limit is None else min(CHUNK_BYTES, memory_limit // 8)
    if bytes_per_row is not None and bytes_per_row <= NARROW_BYTES * n_variables:
        return int(2 * most // bytes_per_row)
    return int(most // max(8 * n_variables, bytes_per_row or 0))


def surprises(base: Coding, coding: Coding) -> list[str]:
    """Return what all rows hold beside the sample, in words."""
    found = []
    for own, other in zip(base.columns, coding.columns, strict=True):
        if added := [level for level in other.levels if level not in own.levels]:
            found.append(f"{own.name!r} holds {listing(added, 3)}")
        elif other.missing and not own.missing:
            found.append(f"{own.name!r} has missing cells")
    return found
