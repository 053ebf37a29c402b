"""Tables whose rows lie in partitions on other machines: read there, or fetched some at a time."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixmem.data.read import read_table
from mixmem.data.sources import Source
from mixmem.data.stacking import in_order_of, refuse_other_columns, stack
from mixmem.data.table import Table
from mixmem.engine.chunks import Partitions
from mixmem.errors import InputError


class PartitionSource(Source):
    """Partitions on other machines. Other processes get it without what stands for these here: they are handed the
    partitions that they need."""

    cheap = True

    def __init__(self, partitions: Partitions):
        self.partitions = partitions
        self.ends = np.cumsum(partitions.lengths).tolist()
        self.n_rows = int(sum(partitions.lengths))
        if not self.n_rows:
            raise InputError("the table has no rows in any of its partitions; expected at least two")
        first = next(at for at, length in enumerate(partitions.lengths) if length)
        self.names = read_table(self._fetched(first, 0, 1)).names

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "partitions"}

    def read(self, begin: int, end: int) -> Table:
        return self._joined([self._fetched(*piece) for piece in self._pieces(begin, end)])

    def _fetched(self, at: int, begin: int, end: int) -> Any:
        return self.partitions.ask(_cut, self.partitions.parts[at], begin, end)

    def needs(self, begin: int, end: int) -> tuple[Any, ...]:
        """Return the partitions that rows begin to end lie in."""
        return tuple(self.partitions.parts[at] for at, _, _ in self._pieces(begin, end))

    def given(self, begin: int, end: int, parts: Sequence[Any]) -> Table:
        """Return rows begin to end from those partitions."""
        pieces = zip(self._pieces(begin, end), parts, strict=True)
        return self._joined([_cut(part, a, b) for (_, a, b), part in pieces])

    def place(self, begin: int, end: int) -> str:
        names = [f"rows {a + 1:,} to {b:,} of partition {at + 1}" for at, a, b in self._pieces(begin, end)]
        return " and ".join(names[:2])

    def _joined(self, frames: list[Any]) -> Table:
        tables = [read_table(frame) for frame in frames]
        for number, table in enumerate(tables[1:], start=2):
            refuse_other_columns("the first partition", tables[0], f"partition {number}", table)
        return stack([in_order_of(table, self.names) for table in tables]) if len(tables) > 1 else tables[0]

    def _pieces(self, begin: int, end: int) -> list[tuple[int, int, int]]:
        """The partitions that rows begin to end lie in, by number, each with the rows counted from its own first."""
        found = []
        at = bisect.bisect_right(self.ends, begin)
        while at < len(self.ends) and (first := self.ends[at - 1] if at else 0) < end:
            piece = at, max(begin - first, 0), min(end, self.ends[at]) - first
            if piece[1] < piece[2]:
                found.append(piece)
            at += 1
        return found


def _cut(part: Any, begin: int, end: int) -> Any:
    """Return some rows of a data frame or an array."""
    return part.iloc[begin:end] if hasattr(part, "iloc") else part[begin:end]
