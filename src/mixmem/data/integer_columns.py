"""Columns of integers that are levels (and of floats and truth values that are integers), coded all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mixmem.data.asked import Asked
from mixmem.data.coding import ColumnCoding
from mixmem.data.column_refusals import codes_of, unknown_level
from mixmem.data.schema import Schema, Variable
from mixmem.data.table import Table
from mixmem.engine.local import in_threads

NARROW = 1_024
"""Integer columns whose values span less than this are encoded together, through one lookup table."""

BLOCK_CELLS = 1 << 19
"""Cells handled at a time, so that their positions (8 bytes each) stay in the cache."""

EXACT = 2**53
"""Floats are exact integers below this."""


# --- Columns of integers (and of floats and truth values that are integers), all at once


@dataclass(frozen=True)
class IntegerColumns:
    """Number v of column j has its slot at v + shift[j]; the slots of all columns lie side by side.

    A column with missing cells has one more slot for them, before its smallest number.
    """

    positions: np.ndarray
    matrix: np.ndarray
    lows: np.ndarray
    gaps: np.ndarray
    kinds: list[str]
    shift: np.ndarray
    present: np.ndarray
    slot_column: np.ndarray
    """The column, within the group, of every present slot of a number."""
    slots: np.ndarray
    """Those slots."""
    slot_texts: list[str]
    asked: Asked

    @classmethod
    def of(
        cls,
        positions: np.ndarray,
        matrix: np.ndarray,
        bounds: list[tuple[int, int]],
        gaps: np.ndarray,
        kinds: list[str],
        asked: Asked,
    ) -> IntegerColumns:
        starts = np.concatenate([[0], np.cumsum([b - a + 1 for a, b in bounds])])
        # Unsigned numbers beyond int64 wrap around, here and in _slots alike, and so cancel.
        lows = np.array([(a + 2**63) % 2**64 - 2**63 for a, _ in bounds], dtype=np.int64)
        shift = starts[:-1] - lows
        present = np.zeros(starts[-1], dtype=bool)
        blocks = list(row_blocks(matrix))

        def look_at(block: int) -> None:
            present[_slots(matrix[blocks[block]], shift, lows if gaps.any() else None)] = True

        in_threads(look_at, len(blocks))
        levels = present.copy()
        levels[starts[:-1][gaps]] = False
        slots = np.flatnonzero(levels)
        slot_column = np.searchsorted(starts, slots, side="right") - 1
        firsts = [a for a, _ in bounds]
        numbers = [
            firsts[j] + offset
            for j, offset in zip(slot_column.tolist(), (slots - starts[slot_column]).tolist(), strict=True)
        ]
        boolean = matrix.dtype.kind == "b"
        texts = [str(bool(number) if boolean else number) for number in numbers]
        return cls(positions, matrix, lows, gaps, kinds, shift, present, slot_column, slots, texts, asked)

    @property
    def value_type(self) -> str:
        return {"b": "bool", "f": "float"}.get(self.matrix.dtype.kind, "int")

    def columns(self, table: Table, schema: Schema | None) -> Iterator[tuple[int, ColumnCoding]]:
        value_type = self.value_type
        ends = np.searchsorted(self.slot_column, np.arange(len(self.positions)), side="right").tolist()
        begin = 0
        for position, end, gap, kind in zip(self.positions.tolist(), ends, self.gaps, self.kinds, strict=True):
            if schema is None:
                levels = tuple(self.slot_texts[begin:end])
                if not levels:  # told already
                    begin = end
                    continue
                self.asked.judged.levels(position, table.names[position], levels, table)
                variable = Variable(table.names[position], levels, value_type, kind)
            else:
                variable = schema.variables[position]
                known = codes_of(variable)
                gap = gap or (self.asked.unknown is not None and not known.keys() >= set(self.slot_texts[begin:end]))
            yield position, ColumnCoding(variable, missing=bool(gap))
            begin = end

    def _found(self, columns: list[ColumnCoding]) -> tuple[list[int], list[int]]:
        """The column and the code of every present slot; -1 for a level that its column does not know."""
        known = {j: codes_of(columns[j]) for j in self.positions.tolist()}
        positions = self.positions[self.slot_column].tolist()
        return positions, [known[j].get(text, -1) for j, text in zip(positions, self.slot_texts, strict=True)]

    def unknown(self, columns: list[ColumnCoding]) -> Iterator[tuple[int, str, str]]:
        """Levels that the columns do not know: position, text, type of value."""
        positions, found = self._found(columns)
        for position, code, text in zip(positions, found, self.slot_texts, strict=True):
            if code < 0:
                yield position, text, self.value_type

    def write(self, codes: np.ndarray, columns: list[ColumnCoding], table: Table) -> None:
        positions, found = self._found(columns)
        for at in [at for at, code in enumerate(found) if code < 0]:
            variable, column = columns[positions[at]], self.slot_column[at]
            cells = _slots(self.matrix[:, [column]], self.shift[[column]], self.lows[[column]])[:, 0]
            held = cells == self.slots[at]
            if self.asked.unknown is None:
                raise unknown_level(variable, self.slot_texts[at], int(np.argmax(held)), table)
            self.asked.unknown.add(variable.name, self.slot_texts[at], int(held.sum()))
            found[at] = len(variable.levels)
        lookup = np.zeros(len(self.present), dtype=codes.dtype)
        lookup[self.slots] = found
        gaps = np.flatnonzero(self.gaps)
        lookup[self.shift[gaps] + self.lows[gaps]] = [len(columns[j].levels) for j in self.positions[gaps]]
        whole, lows = len(self.positions) == codes.shape[1], self.lows if self.gaps.any() else None
        blocks = list(row_blocks(self.matrix))

        def look_up(block: int) -> None:
            rows = blocks[block]
            slots = _slots(self.matrix[rows], self.shift, lows)
            if whole:
                np.take(lookup, slots, out=codes[rows], mode="clip")
            else:
                codes[rows, self.positions] = lookup[slots]

        in_threads(look_up, len(blocks))


def _slots(block: np.ndarray, shift: np.ndarray, lows: np.ndarray | None) -> np.ndarray:
    """Slots of a block of cells; missing ones have that of ``lows``, if there are any."""
    if block.dtype.kind == "f":
        block = block if lows is None else np.where(np.isnan(block), lows, block)
        block = block.astype(np.int64)
    elif block.dtype == np.uint64:
        block = block.astype(np.int64)
    return np.add(block, shift, order="C")


def row_blocks(matrix: np.ndarray) -> Iterator[slice]:
    n, p = matrix.shape
    step = max(16, BLOCK_CELLS // max(p, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
