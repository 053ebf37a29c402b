"""Table -> codes: every cell as the position of its level.

A level is known by its canonical text: the integer 1, the float 1.0 and the text "1" are all "1", and True is
"True". A model learned from an array of integers therefore accepts the same values from a CSV file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.errors import InputError
from mixmem.levels import canonical_text, is_float, is_integer, type_of_texts
from mixmem.read import Coded, Table, read_table
from mixmem.schema import Schema, Variable, listing, suggestion

if TYPE_CHECKING:
    import pandas as pd

MIN_VARIABLES = 3
"""Third moments need three distinct variables."""

IDENTIFIER_ROWS = 20
"""From this many rows on, a column whose values are all distinct is taken for an identifier."""

NARROW = 1_024
"""Integer columns whose values span less than this are encoded together, through one lookup table."""

BLOCK_CELLS = 1 << 19
"""Cells handled at a time, so that their positions (8 bytes each) stay in the cache."""

EXACT = 2**53
"""Floats are exact integers below this."""


@dataclass(frozen=True)
class Encoded:
    """A table as codes: ``codes`` (n, p), the ``schema`` they refer to, and ``row_ids`` (n,)."""

    codes: np.ndarray
    """(n, p), C-contiguous, of `schema.codes_dtype`: cell (i, j) holds level codes[i, j] of variable j."""
    schema: Schema
    row_ids: np.ndarray
    """(n,): the rows' ids, 0..n-1 where the data brought none."""


def encode(data: Any, schema: Schema | None = None, *, row_id: str | None = None) -> Encoded:
    """Encode anything that `read_table` takes.

    Without a schema the levels are learned: numbers in numeric order, texts in lexicographic order,
    categorical dtypes in their own order (unused categories dropped). With a schema, columns are matched by
    name (a bare array by position), further columns are ignored, and a level that the schema does not have is
    refused.
    """
    table = read_table(data, row_id=row_id)
    _check_shape(table, schema)
    if schema is not None:
        table = _match_columns(table, schema)
    columns = list(_group(table))
    learned = Schema(tuple(_learn(columns, table))) if schema is None else schema
    codes = np.empty((table.n_rows, table.n_columns), dtype=learned.codes_dtype)
    levels = [{level: code for code, level in enumerate(v.levels)} for v in learned.variables]
    for column in columns:
        column.write(codes, levels, table)
    row_ids = np.arange(table.n_rows) if table.row_ids is None else table.row_ids
    return Encoded(codes, learned, row_ids)


def encode_as(X: Any, kinds: Mapping[str, str] | None) -> Encoded:
    """Encode, with the declared kinds in the schema; names and kinds that do not exist are refused."""
    table = X if isinstance(X, Encoded) else encode(X)
    if not kinds:
        return table
    variables = list(table.schema.variables)
    for name, kind in kinds.items():
        j = int(table.schema.index([name])[0])
        variables[j] = replace(variables[j], kind=kind)
    return replace(table, schema=Schema(tuple(variables)))


def decode(codes: np.ndarray, schema: Schema) -> pd.DataFrame:
    """The inverse of `encode`: a data frame with the values of the levels."""
    import pandas as pd

    # Texts as objects: numpy's own text type loses trailing NULs.
    values = [np.array(v.values(), object if v.value_type == "str" else None) for v in schema.variables]
    return pd.DataFrame({name: values[j][codes[:, j]] for j, name in enumerate(schema.names)})


# --- What is asked of the table as a whole


def _check_shape(table: Table, schema: Schema | None) -> None:
    shape = (table.n_rows, table.n_columns)
    if table.n_rows < 1:
        raise InputError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required: the table has no rows"
        )
    if schema is not None:
        return
    if table.n_columns < MIN_VARIABLES:
        raise InputError(
            f"Found array with {table.n_columns} feature(s) (shape={shape}) while a minimum of "
            f"{MIN_VARIABLES} is "
            "required: memberships show in how three variables go together; " + _separator_hint(table)
        )
    if table.n_rows < 2:
        raise InputError(
            f"Found array with 1 sample(s) (shape={shape}) while a minimum of 2 is required to learn levels: "
            "give the table more rows"
        )


def _separator_hint(table: Table) -> str:
    """What to do about too few columns: a file with another separator has all of them in one."""
    for separator, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if table.n_columns == 1 and separator in table.names[0]:
            return f"the columns seem to be separated by {word}: save the file with commas, or tabs as .tsv"
    return "give the table more columns"


def _match_columns(table: Table, schema: Schema) -> Table:
    if table.positional:
        if table.n_columns != schema.n_variables:
            raise InputError(
                f"X has {table.n_columns} features, but mixmem is expecting {schema.n_variables} features "
                "as input: "
                f"give the columns {listing(schema.names)}, in this order"
            )
        return Table(schema.names, table.columns, table.n_rows, table.row_ids)
    positions = {name: position for position, name in enumerate(table.names)}
    missing = [name for name in schema.names if name not in positions]
    if missing:
        hint = suggestion(missing[0], table.names)
        raise InputError(
            f"the data lack {len(missing)} of the model's {schema.n_variables} columns: {listing(missing)}; "
            f"add or rename columns (for {missing[0]!r}{hint.replace('expected', 'the data have')})"
        )
    return table.take([positions[name] for name in schema.names])


def _learn(columns: list[_Numbers | _Texts], table: Table) -> list[Variable]:
    variables: dict[int, Variable] = {}
    for column in columns:
        for position, levels, value_type in column.levels():
            variables[position] = Variable(table.names[position], levels, value_type)
    for position in range(table.n_columns):
        name, n_levels = table.names[position], len(variables[position].levels)
        if n_levels == 1:
            raise InputError(
                f"column {name!r} is constant: all {table.n_rows} rows hold "
                f"{variables[position].levels[0]!r}, but "
                "expected at least two levels; drop the column"
            )
        if n_levels == table.n_rows and table.n_rows >= IDENTIFIER_ROWS:
            raise InputError(
                f"column {name!r} has a different value in each of its {table.n_rows} rows, as an "
                "identifier has; "
                f"expected categories: drop it, or make it the rows' name (frame.set_index({name!r}), on the command "
                "line --id)"
            )
    return [variables[position] for position in range(table.n_columns)]


def _group(table: Table) -> Iterator[_Numbers | _Texts]:
    """The columns in the groups encoded together: numbers of one dtype, and each other column alone."""
    if isinstance(table.columns, np.ndarray):
        yield from _numbers(np.arange(table.n_columns), table.columns, table)
        return
    by_dtype: dict[np.dtype, list[int]] = {}
    for position, column in enumerate(table.columns):
        if isinstance(column, Coded):
            yield _Texts.of(position, column, table)
        else:
            by_dtype.setdefault(column.dtype, []).append(position)
    for positions in by_dtype.values():
        # Columns are laid side by side as rows, which copies each at once, and seen transposed.
        matrix = np.stack([table.columns[j] for j in positions]).T  # type: ignore[misc]
        yield from _numbers(np.array(positions), matrix, table)


def _numbers(positions: np.ndarray, matrix: np.ndarray, table: Table) -> Iterator[_Numbers | _Texts]:
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    if matrix.dtype.kind == "f":
        _check_floats(matrix, low, high, [table.names[j] for j in positions], table)
    # In Python's integers: the span of 64-bit numbers needs 65 bits.
    bounds = [(int(a), int(b)) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    limit = EXACT if matrix.dtype.kind == "f" else 2**64
    narrow = np.array([b - a < NARROW and max(-a, b) < limit for a, b in bounds], dtype=bool)
    for column in np.flatnonzero(~narrow):
        values, codes = np.unique(matrix[:, column], return_inverse=True)
        yield _Texts.of(int(positions[column]), Coded(tuple(values.tolist()), codes), table)
    if narrow.all():
        yield _Numbers.of(positions, matrix, bounds)
    elif narrow.any():
        kept = np.flatnonzero(narrow)
        yield _Numbers.of(positions[kept], matrix[:, kept], [bounds[j] for j in kept])


def _check_floats(matrix: np.ndarray, low: np.ndarray, high: np.ndarray, names: list[str], table: Table) -> None:
    infinite = np.flatnonzero(np.isinf(low) | np.isinf(high))
    missing = np.flatnonzero(np.isnan(low))  # NaN passes through min
    if missing.size:
        column = missing[0]
        raise _missing(names[column], np.isnan(matrix[:, column]), table, further=missing.size - 1)
    if infinite.size:
        column = infinite[0]
        row = int(np.argmax(np.isinf(matrix[:, column])))
        raise InputError(
            f"column {names[column]!r}, {_row(table, row)} holds {matrix[row, column]} (inf); expected "
            "categories: "
            "drop the row or give it a level of its own"
        )
    for rows in _row_blocks(matrix):
        broken = matrix[rows] != np.rint(matrix[rows])
        if broken.any():
            column = int(np.argmax(broken.any(axis=0)))
            row = rows.start + int(np.argmax(broken[:, column]))
            raise _continuous(names[column], matrix[row, column], row, table)


# --- Columns of integers (and of floats and truth values that are integers), all at once


@dataclass(frozen=True)
class _Numbers:
    """Number v of column j has its slot at v + shift[j]; the slots of all columns lie side by side."""

    positions: np.ndarray
    matrix: np.ndarray
    shift: np.ndarray
    present: np.ndarray
    slot_column: np.ndarray
    """The column, within the group, of every present slot."""
    slot_texts: list[str]

    @classmethod
    def of(cls, positions: np.ndarray, matrix: np.ndarray, bounds: list[tuple[int, int]]) -> _Numbers:
        starts = np.concatenate([[0], np.cumsum([b - a + 1 for a, b in bounds])])
        # Unsigned numbers beyond int64 wrap around, here and in _slots alike, and so cancel.
        shift = starts[:-1] - np.array([(a + 2**63) % 2**64 - 2**63 for a, _ in bounds], dtype=np.int64)
        present = np.zeros(starts[-1], dtype=bool)
        for rows in _row_blocks(matrix):
            present[_slots(matrix[rows], shift)] = True
        slots = np.flatnonzero(present)
        slot_column = np.searchsorted(starts, slots, side="right") - 1
        lows = [a for a, _ in bounds]
        numbers = [
            lows[j] + offset
            for j, offset in zip(slot_column.tolist(), (slots - starts[slot_column]).tolist(), strict=True)
        ]
        boolean = matrix.dtype.kind == "b"
        texts = [str(bool(number) if boolean else number) for number in numbers]
        return cls(positions, matrix, shift, present, slot_column, texts)

    def levels(self) -> Iterator[tuple[int, tuple[str, ...], str]]:
        value_type = {"b": "bool", "f": "float"}.get(self.matrix.dtype.kind, "int")
        ends = np.searchsorted(self.slot_column, np.arange(len(self.positions)), side="right").tolist()
        begin = 0
        for position, end in zip(self.positions.tolist(), ends, strict=True):
            yield position, tuple(self.slot_texts[begin:end]), value_type
            begin = end

    def write(self, codes: np.ndarray, levels: list[dict[str, int]], table: Table) -> None:
        positions = self.positions[self.slot_column].tolist()
        found = [levels[j].get(text, -1) for j, text in zip(positions, self.slot_texts, strict=True)]
        if -1 in found:
            unknown = found.index(-1)
            slot, column = int(np.flatnonzero(self.present)[unknown]), self.slot_column[unknown]
            cells = _slots(self.matrix[:, [column]], self.shift[[column]])[:, 0]
            row = int(np.argmax(cells == slot))
            raise _unknown_level(positions[unknown], self.slot_texts[unknown], row, levels, table)
        lookup = np.zeros(len(self.present), dtype=codes.dtype)
        lookup[self.present] = found
        whole = len(self.positions) == codes.shape[1]
        for rows in _row_blocks(self.matrix):
            slots = _slots(self.matrix[rows], self.shift)
            if whole:
                np.take(lookup, slots, out=codes[rows], mode="clip")
            else:
                codes[rows, self.positions] = lookup[slots]


def _slots(block: np.ndarray, shift: np.ndarray) -> np.ndarray:
    if block.dtype.kind == "f" or block.dtype == np.uint64:
        block = block.astype(np.int64)
    return np.add(block, shift, order="C")


def _row_blocks(matrix: np.ndarray) -> Iterator[slice]:
    n, p = matrix.shape
    step = max(16, BLOCK_CELLS // max(p, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


# --- Every other column, by its distinct values


@dataclass(frozen=True)
class _Texts:
    """A column by its distinct values and their canonical texts."""

    position: int
    column: Coded
    used: list[int]
    """The values that occur: a categorical dtype may list more."""

    @classmethod
    def of(cls, position: int, column: Coded, table: Table) -> _Texts:
        absent = column.codes < 0
        if absent.any():
            further = sum(
                isinstance(other, Coded) and bool((other.codes < 0).any()) for other in table.columns[position + 1 :]
            )
            raise _missing(table.names[position], absent, table, further)
        counts = np.bincount(column.codes, minlength=len(column.values))
        self = cls(position, column, np.flatnonzero(counts).tolist())
        self._check(table)
        return self

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

    def _check(self, table: Table) -> None:
        if self.column.ordered or self.value_type != "float":
            return  # declared categories may be any numbers
        for used, value in zip(self.used, self.values, strict=True):
            if not float(value).is_integer():
                row, name = int(np.argmax(self.column.codes == used)), table.names[self.position]
                if math.isinf(float(value)):
                    raise InputError(
                        f"column {name!r}, {_row(table, row)} holds {value} (inf); expected categories: "
                        "drop the row or give it a level of its own"
                    )
                raise _continuous(name, value, row, table)

    def levels(self) -> Iterator[tuple[int, tuple[str, ...], str]]:
        value_type = self.value_type
        texts = dict.fromkeys(canonical_text(v, value_type) for v in self.values)
        if not self.column.ordered:
            number = value_type in ("int", "float")  # integers both: other floats were refused
            texts = dict.fromkeys(sorted(texts, key=int if number else None))
        yield self.position, tuple(texts), value_type

    def write(self, codes: np.ndarray, levels: list[dict[str, int]], table: Table) -> None:
        known = levels[self.position]
        lookup = np.zeros(len(self.column.values), dtype=codes.dtype)
        for used, value in zip(self.used, self.values, strict=True):
            code = next((known[form] for form in self._forms(value) if form in known), None)
            if code is None:
                row = int(np.argmax(self.column.codes == used))
                raise _unknown_level(self.position, str(value), row, levels, table)
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


# --- Refusals that more than one kind of column needs


def _row(table: Table, row: int) -> str:
    if table.row_ids is None:
        return f"row {row + 1}"
    row_id = table.row_ids[row]
    return f"row {row + 1} (id {row_id.item() if isinstance(row_id, np.generic) else row_id!r})"


def _missing(name: str, absent: np.ndarray, table: Table, further: int = 0) -> InputError:
    also = f" ({further} further column(s) too)" if further else ""
    return InputError(
        f"column {name!r} has {int(absent.sum())} missing cell(s) (NaN, or a text like NA), the first in "
        f"{_row(table, int(np.argmax(absent)))}{also}; missing cells are not handled yet: drop these rows "
        "or give the "
        "cells a level of their own"
    )


def _continuous(name: str, value: Any, row: int, table: Table) -> InputError:
    return InputError(
        f"column {name!r}, {_row(table, row)} holds {value}, a continuous number; expected categories: bin "
        "the column, "
        "or convert it to text if its numbers are labels"
    )


def _unknown_level(position: int, text: str, row: int, levels: list[dict[str, int]], table: Table) -> InputError:
    return InputError(
        f"column {table.names[position]!r}, {_row(table, row)} holds {text!r}, a level the model does not "
        "know; "
        f"expected one of {listing(levels[position])}: recode or drop the row, or fit again with such rows"
    )
