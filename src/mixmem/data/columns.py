"""Columns of a table: which kind each is, and its cells as codes.

Integers that are levels are handled together; numbers, genotypes and texts each in their own way. A column gives the
variables it makes and then writes their codes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixmem.data.coding import Coding, ColumnCoding
from mixmem.data.infer_kinds import _kind_of
from mixmem.data.kinds import KINDS
from mixmem.data.level_text import canonical_text, is_float, is_integer, type_of_texts
from mixmem.data.schema import Schema, Variable
from mixmem.data.table import Coded, Column, Locus, Table, usable
from mixmem.data.value_grid import Measured, measure, rounded
from mixmem.engine.local import in_threads
from mixmem.errors import InputError
from mixmem.words import listing

IDENTIFIER_ROWS = 20
"""From this many rows on, a column whose values are all distinct is taken for an identifier."""

NARROW = 1_024
"""Integer columns whose values span less than this are encoded together, through one lookup table."""

BLOCK_CELLS = 1 << 19
"""Cells handled at a time, so that their positions (8 bytes each) stay in the cache."""

EXACT = 2**53
"""Floats are exact integers below this."""

LEAST_SIZE = 1e-60
"""Numbers all smaller than this, or larger than its inverse, are beyond what squares of them can hold."""


# --- Kinds


@dataclass(frozen=True)
class Asked:
    """Kinds declared by column, the schema or the coding to keep to, if there is one, the rows' weights."""

    declared: Mapping[str, str]
    schema: Schema | None
    coding: Coding | None
    weights: np.ndarray | None
    most_values: int
    """Of a column of numbers so many values are kept apart."""


def columns_of(table: Table, asked: Asked) -> Iterator[Columns]:
    """The columns in the groups encoded together: genotypes, integers that are levels, and each other column alone."""
    if isinstance(table.columns, np.ndarray):
        if table.loci is not None:
            yield _Loci(table.columns, table.loci)
            return
        yield from _numbers(np.arange(table.n_columns), table.columns, table, asked)
        return
    by_dtype: dict[np.dtype, list[int]] = {}
    for position, column in enumerate(map(usable, table.columns)):
        if isinstance(column, Coded):
            yield _of_values(position, column, table, asked)
        else:
            by_dtype.setdefault(column.dtype, []).append(position)
    for positions in by_dtype.values():
        # Columns are laid side by side as rows, which copies each at once, and seen transposed.
        matrix = np.stack([table.columns[j] for j in positions]).T  # type: ignore[misc]
        yield from _numbers(np.array(positions), matrix, table, asked)


def _numbers(positions: np.ndarray, matrix: np.ndarray, table: Table, asked: Asked) -> Iterator[Columns]:
    """Columns of numbers of one dtype: levels together where their values are near each other, the others alone."""
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    gaps = np.isnan(low) if matrix.dtype.kind == "f" else np.zeros(len(low), dtype=bool)
    for j in np.flatnonzero(gaps).tolist():
        present = matrix[~np.isnan(matrix[:, j]), j]
        if not len(present) and asked.schema is None:
            raise _empty(table.names[positions[j]], table)
        low[j], high[j] = (present.min(), present.max()) if len(present) else (0, 0)  # new rows may know nothing
    if matrix.dtype.kind == "f":
        _refuse_infinite(matrix, low, high, positions, table)
    whole = _whole(matrix)
    limit = EXACT if matrix.dtype.kind == "f" else 2**64
    together = []
    for j, position in enumerate(positions.tolist()):
        # In Python's integers: the span of 64-bit numbers needs 65 bits.
        near = bool(whole[j]) and int(high[j]) - int(low[j]) < NARROW and max(-int(low[j]), int(high[j])) < limit
        kind = asked.declared.get(table.names[position])
        if kind is None:
            kind = _kind_of(matrix[:, j], low[j], high[j], bool(whole[j]))
        if KINDS[kind].cells != "levels":
            yield _Measures(position, matrix[:, j].astype(np.float64), kind, bool(whole[j]), asked)
        elif near:
            together.append(j)
        else:
            present = ~np.isnan(matrix[:, j]) if gaps[j] else np.ones(len(matrix), dtype=bool)
            values, inverse = np.unique(matrix[present, j], return_inverse=True)
            codes = np.full(len(matrix), -1, dtype=np.int64)
            codes[present] = inverse
            yield _Texts.of(position, Coded(tuple(values.tolist()), codes), table, kind, asked.schema)
    if together:
        bounds = [(int(low[j]) - bool(gaps[j]), int(high[j])) for j in together]
        part = matrix if len(together) == matrix.shape[1] else matrix[:, together]
        kinds = [asked.declared.get(table.names[j], "categorical") for j in positions[together]]
        yield _Integers.of(positions[together], part, bounds, gaps[together], kinds)


def _whole(matrix: np.ndarray) -> np.ndarray:
    """Whether all numbers of a column are whole (p,); missing ones may be."""
    if matrix.dtype.kind != "f":
        return np.ones(matrix.shape[1], dtype=bool)
    whole = np.ones(matrix.shape[1], dtype=bool)
    for rows in _row_blocks(matrix):
        block = matrix[rows]
        whole &= ((block == np.rint(block)) | np.isnan(block)).all(axis=0)
    return whole


def _refuse_infinite(
    matrix: np.ndarray, low: np.ndarray, high: np.ndarray, positions: np.ndarray, table: Table
) -> None:
    infinite = np.flatnonzero(np.isinf(low) | np.isinf(high))
    if infinite.size:
        row = int(np.argmax(np.isinf(matrix[:, infinite[0]])))
        raise _infinite(table.names[positions[infinite[0]]], matrix[row, infinite[0]], row, table)


def _of_values(position: int, column: Coded, table: Table, asked: Asked) -> Columns:
    """A column by its distinct values: numbers, where they stand for numbers and are not declared categories."""
    texts = _Texts.of(position, column, table, asked.declared.get(table.names[position], "categorical"), asked.schema)
    kind = asked.declared.get(table.names[position])
    number = texts.value_type in ("int", "float") and not column.ordered
    if kind is None and not number:
        return texts
    if kind is not None and KINDS[kind].cells == "levels":
        return texts
    numbers = as_numbers(column, position, table)
    whole = bool(_whole(numbers[:, None])[0])
    if kind is None:
        kind = _kind_of(numbers, np.nanmin(numbers), np.nanmax(numbers), whole)
        if not KINDS[kind].number:
            return texts
    return _Measures(position, numbers, kind, whole, asked)


def as_numbers(column: Column, position: int, table: Table) -> np.ndarray:
    """A column as floats (n,), NaN where missing; a text that is no number is refused."""
    column = usable(column)
    if isinstance(column, np.ndarray):
        return column.astype(np.float64)
    values = np.full(len(column.values) + 1, np.nan)
    for at, value in enumerate(column.values):
        try:
            values[at] = float(value)
            finite = math.isfinite(values[at])
        except (TypeError, ValueError):
            finite = False
        if not finite and (column.codes == at).any():
            row, name = int(np.argmax(column.codes == at)), table.names[position]
            if isinstance(values[at], float) and math.isinf(values[at]):
                raise _infinite(name, value, row, table)
            raise InputError(
                f"column {name!r}, {_row(table, row)} holds {value!r}; expected a number: declare the column "
                "categorical, or the text missing"
            )
    return values[column.codes]


# --- Columns of integers (and of floats and truth values that are integers), all at once


@dataclass(frozen=True)
class _Integers:
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

    @classmethod
    def of(
        cls,
        positions: np.ndarray,
        matrix: np.ndarray,
        bounds: list[tuple[int, int]],
        gaps: np.ndarray,
        kinds: list[str],
    ) -> _Integers:
        starts = np.concatenate([[0], np.cumsum([b - a + 1 for a, b in bounds])])
        # Unsigned numbers beyond int64 wrap around, here and in _slots alike, and so cancel.
        lows = np.array([(a + 2**63) % 2**64 - 2**63 for a, _ in bounds], dtype=np.int64)
        shift = starts[:-1] - lows
        present = np.zeros(starts[-1], dtype=bool)
        blocks = list(_row_blocks(matrix))

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
        return cls(positions, matrix, lows, gaps, kinds, shift, present, slot_column, slots, texts)

    def columns(self, table: Table, schema: Schema | None) -> Iterator[tuple[int, ColumnCoding]]:
        value_type = {"b": "bool", "f": "float"}.get(self.matrix.dtype.kind, "int")
        ends = np.searchsorted(self.slot_column, np.arange(len(self.positions)), side="right").tolist()
        begin = 0
        for position, end, gap, kind in zip(self.positions.tolist(), ends, self.gaps, self.kinds, strict=True):
            if schema is None:
                levels = tuple(self.slot_texts[begin:end])
                _refuse_useless(table.names[position], levels, table)
                variable = Variable(table.names[position], levels, value_type, kind)
            else:
                variable = schema.variables[position]
            yield position, ColumnCoding(variable, missing=bool(gap))
            begin = end

    def write(self, codes: np.ndarray, columns: list[ColumnCoding], table: Table) -> None:
        known = {j: _codes_of(columns[j]) for j in self.positions.tolist()}
        positions = self.positions[self.slot_column].tolist()
        found = [known[j].get(text, -1) for j, text in zip(positions, self.slot_texts, strict=True)]
        if -1 in found:
            unknown = found.index(-1)
            slot, column = int(self.slots[unknown]), self.slot_column[unknown]
            cells = _slots(self.matrix[:, [column]], self.shift[[column]], self.lows[[column]])[:, 0]
            row = int(np.argmax(cells == slot))
            raise _unknown_level(columns[positions[unknown]], self.slot_texts[unknown], row, table)
        lookup = np.zeros(len(self.present), dtype=codes.dtype)
        lookup[self.slots] = found
        gaps = np.flatnonzero(self.gaps)
        lookup[self.shift[gaps] + self.lows[gaps]] = [len(columns[j].levels) for j in self.positions[gaps]]
        whole, lows = len(self.positions) == codes.shape[1], self.lows if self.gaps.any() else None
        blocks = list(_row_blocks(self.matrix))

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


def _row_blocks(matrix: np.ndarray) -> Iterator[slice]:
    n, p = matrix.shape
    step = max(16, BLOCK_CELLS // max(p, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


# --- Numbers and genotypes


@dataclass(frozen=True)
class _Measures:
    """A column of counts, continuous numbers or numbers of copies; NaN where missing."""

    position: int
    numbers: np.ndarray
    kind: str
    whole: bool
    asked: Asked

    @cached_property
    def measured(self) -> Measured:
        """The numbers by their values."""
        return measure(self.numbers, self.asked.weights, self.asked.most_values)

    def columns(self, table: Table, schema: Schema | None) -> Iterator[tuple[int, ColumnCoding]]:
        name = table.names[self.position]
        present = self.numbers[~np.isnan(self.numbers)]
        if not len(present) and schema is None:
            raise _empty(name, table)
        if KINDS[self.kind].whole:
            self._refuse_fractions(name, table)
        missing = len(present) < len(self.numbers)
        if KINDS[self.kind].cells == "copies":
            yield self.position, ColumnCoding(self._genotype(name, present, table, schema), missing=missing)
            return
        largest = float(np.abs(present).max(initial=0.0))
        # new rows may be near zero; a column to learn from may not be so altogether
        if largest > 1.0 / LEAST_SIZE or (schema is None and 0.0 < largest < LEAST_SIZE):
            raise InputError(
                f"column {name!r} holds numbers up to {largest:g}; expected sizes from {LEAST_SIZE:g} to "
                f"{1.0 / LEAST_SIZE:g}: measure it in another unit, or declare the value missing"
            )
        if self.asked.coding is not None:
            yield self.position, replace(self.asked.coding.columns[self.position], missing=missing)
            return
        found = self.measured
        if schema is None:
            if len(found.values) == 1:
                raise _constant(name, repr(found.values[0]))
            if self.whole and len(found.values) >= IDENTIFIER_ROWS and (np.diff(self.numbers) > 0.0).all():
                raise _identifier(name, table)
            variable = Variable(name, value_type="int" if self.whole else "float", kind=self.kind)
        else:
            variable = schema.variables[self.position]
        yield self.position, ColumnCoding(variable, found.values, found.edges, found.knots, missing)

    def _refuse_fractions(self, name: str, table: Table) -> None:
        good = np.isnan(self.numbers) | ((self.numbers >= 0.0) & (self.numbers == np.rint(self.numbers)))
        if not good.all():
            row = int(np.argmax(~good))
            raise InputError(
                f"column {name!r}, {_row(table, row)} holds {self.numbers[row]:g}, but the column is a {self.kind}; "
                f"expected {KINDS[self.kind].words}: declare it continuous, or the value missing"
            )

    def _genotype(self, name: str, present: np.ndarray, table: Table, schema: Schema | None) -> Variable:
        most = int(present.max(initial=0.0))
        if schema is not None:
            variable = schema.variables[self.position]
            if most > variable.ploidy:
                row = int(np.nanargmax(self.numbers))
                raise InputError(
                    f"column {name!r}, {_row(table, row)} holds {most}; expected at most {variable.ploidy} copies"
                )
            return variable
        if len(np.unique(present)) == 1:
            raise _constant(name, repr(most))
        return Variable(name, ("0", "1"), "int", self.kind, max(2, most))

    def write(self, codes: np.ndarray, columns: list[ColumnCoding], table: Table) -> None:
        column = columns[self.position]
        if KINDS[self.kind].cells == "copies":
            codes[:, self.position] = np.where(np.isnan(self.numbers), column.ploidy + 1, self.numbers)
        elif self.asked.coding is not None:
            codes[:, self.position] = rounded(self.numbers, column.edges, len(column.values))
        else:
            codes[:, self.position] = self.measured.codes


@dataclass(frozen=True)
class _Loci:
    """A table of genotypes (n, p), as readers of genotype files give it."""

    genotypes: np.ndarray
    loci: tuple[Locus, ...]

    def columns(self, table: Table, schema: Schema | None) -> Iterator[tuple[int, ColumnCoding]]:
        gaps = np.asarray((self.genotypes < 0).any(axis=0))
        for j, (name, locus) in enumerate(zip(table.names, self.loci, strict=True)):
            variable = Variable(name, locus.alleles, kind="dosage") if schema is None else schema.variables[j]
            yield j, ColumnCoding(variable, missing=bool(gaps[j]))

    def write(self, codes: np.ndarray, columns: list[ColumnCoding], table: Table) -> None:
        most = np.array([column.n_codes for column in columns])
        np.copyto(codes, np.where(self.genotypes < 0, most, self.genotypes), casting="unsafe")


# --- Every other column, by its distinct values


@dataclass(frozen=True)
class _Texts:
    """A column by its distinct values and their canonical texts."""

    position: int
    column: Coded
    used: list[int]
    """The values that occur: a categorical dtype may list more."""
    kind: str

    @classmethod
    def of(cls, position: int, column: Coded, table: Table, kind: str, schema: Schema | None) -> _Texts:
        counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.values))
        if not counts.any() and schema is None:
            raise _empty(table.names[position], table)
        return cls(position, column, np.flatnonzero(counts).tolist(), kind)

    @property
    def values(self) -> list[Any]:
        return [self.column.values[u] for u in self.used]

    @property
    def value_type(self) -> str:
        values = self.values
        if self.column.untyped:
            return type_of_texts(values)
        if all(isinstance(v, (bool, np.bool_)) for v in values):
            return "bool"
        if all(is_integer(v) for v in values):
            return "int"
        return "float" if all(is_integer(v) or is_float(v) for v in values) else "str"

    def columns(self, table: Table, schema: Schema | None) -> Iterator[tuple[int, ColumnCoding]]:
        missing = bool((self.column.codes < 0).any())
        if schema is not None:
            yield self.position, ColumnCoding(schema.variables[self.position], missing=missing)
            return
        value_type, name = self.value_type, table.names[self.position]
        if value_type == "float" and (bad := [v for v in self.values if math.isinf(float(v))]):
            row = int(np.argmax(self.column.codes == self.column.values.index(bad[0])))
            raise _infinite(name, bad[0], row, table)
        texts = dict.fromkeys(canonical_text(v, value_type) for v in self.values)
        if not self.column.ordered:
            texts = dict.fromkeys(sorted(texts, key={"int": int, "float": float}.get(value_type)))
        _refuse_useless(name, tuple(texts), table)
        yield self.position, ColumnCoding(Variable(name, tuple(texts), value_type, self.kind), missing=missing)

    def write(self, codes: np.ndarray, columns: list[ColumnCoding], table: Table) -> None:
        variable = columns[self.position].variable
        known = _codes_of(variable)
        lookup = np.zeros(len(self.column.values) + 1, dtype=codes.dtype)
        lookup[-1] = len(variable.levels)  # code -1 finds it
        for used, value in zip(self.used, self.values, strict=True):
            code = next((known[form] for form in self._forms(value) if form in known), None)
            if code is None:
                raise _unknown_level(variable, str(value), int(np.argmax(self.column.codes == used)), table)
            lookup[used] = code
        codes[:, self.position] = lookup[self.column.codes]

    def _forms(self, value: Any) -> Iterator[str]:
        """The texts under which a level may be known: a file without types does not say which is meant."""
        yield canonical_text(value, "str")
        if self.column.untyped:
            value_type = type_of_texts([value])
            if value_type == "str" and value.isdigit():
                value_type = "int"  # "01", where the model has "1"
            if value_type != "float" or math.isfinite(float(value)):
                yield canonical_text(value, value_type)


Columns = _Integers | _Measures | _Loci | _Texts


def _codes_of(variable: Variable | ColumnCoding) -> dict[str, int]:
    return {level: code for code, level in enumerate(variable.levels)}


# --- Refusals that more than one kind of column needs


def _row(table: Table, row: int) -> str:
    if table.row_ids is None:
        return f"row {row + 1}"
    row_id = table.row_ids[row]
    return f"row {row + 1} (id {row_id.item() if isinstance(row_id, np.generic) else row_id!r})"


def _refuse_useless(name: str, levels: tuple[str, ...], table: Table) -> None:
    if len(levels) == 1:
        raise _constant(name, repr(levels[0]))
    if len(levels) == table.n_rows and table.n_rows >= IDENTIFIER_ROWS:
        raise _identifier(name, table)


def _constant(name: str, level: str) -> InputError:
    return InputError(
        f"column {name!r} is constant: it holds {level} wherever it is not missing, but expected at least two values; "
        "drop the column"
    )


def _identifier(name: str, table: Table) -> InputError:
    return InputError(
        f"column {name!r} has a different value in each of its {table.n_rows} rows, as an identifier has; expected "
        f"categories or measurements: drop it, or make it the rows' name (frame.set_index({name!r}), on the command "
        "line --id)"
    )


def _empty(name: str, table: Table) -> InputError:
    return InputError(
        f"column {name!r} has nothing in it: all {table.n_rows} cells are missing, but expected some values; drop the "
        "column"
    )


def _infinite(name: str, value: Any, row: int, table: Table) -> InputError:
    return InputError(
        f"column {name!r}, {_row(table, row)} holds {value} (inf); expected numbers that are finite: drop the row, or "
        "declare the value missing"
    )


def _unknown_level(variable: Variable | ColumnCoding, text: str, row: int, table: Table) -> InputError:
    return InputError(
        f"column {variable.name!r}, {_row(table, row)} holds {text!r}, a level the model does not know; expected one "
        f"of {listing(variable.levels)}: recode the cell or make it missing, or fit again with such rows"
    )
