"""Columns of a table: which kind each is, and its cells as codes.

Integers that are levels are handled together; numbers, genotypes and texts each in their own way. A column gives the
variables it makes and then writes their codes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mixmem.data.asked import Asked
from mixmem.data.column_coders import (
    NO_NUMBER,
    NOT_AS_FITTED,
    GenotypeColumns,
    NumberColumn,
    ValueColumn,
    are_whole,
    as_numbers,
    numbers_and_form,
)
from mixmem.data.column_refusals import empty_column, infinite_cell, unusable_column
from mixmem.data.infer_kinds import MOST_INTEGERS, _kind_of
from mixmem.data.integer_columns import EXACT, NARROW, IntegerColumns
from mixmem.data.kinds import KINDS
from mixmem.data.number_texts import written_days, written_numbers
from mixmem.data.table import Coded, Table, Unusable
from mixmem.words import quoted


def columns_of(table: Table, asked: Asked) -> Iterator[Columns]:
    """The columns in the groups encoded together: genotypes, integers that are levels, and each other column alone."""
    if isinstance(table.columns, np.ndarray):
        if table.loci is not None:
            yield GenotypeColumns(table.columns, table.loci)
            return
        yield from _numbers(np.arange(table.n_columns), table.columns, table, asked)
        return
    by_dtype: dict[np.dtype, list[int]] = {}
    for position, column in enumerate(table.columns):
        if isinstance(column, Unusable):
            kind = asked.declared.get(table.names[position])
            if column.days is not None and kind is not None and KINDS[kind].number:
                yield NumberColumn(position, column.days, kind, bool(are_whole(column.days[:, None])[0]), asked)
            else:
                asked.judged.leave_out(position, unusable_column(column))
        elif isinstance(column, Coded):
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
            asked.judged.leave_out(int(positions[j]), empty_column(table.names[positions[j]], table))
        low[j], high[j] = (present.min(), present.max()) if len(present) else (0, 0)  # new rows may know nothing
    if matrix.dtype.kind == "f":
        _refuse_infinite(matrix, low, high, positions, table)
    whole = are_whole(matrix)
    limit = EXACT if matrix.dtype.kind == "f" else 2**64
    together = []
    for j, position in enumerate(positions.tolist()):
        # In Python's integers: the span of 64-bit numbers needs 65 bits.
        near = bool(whole[j]) and int(high[j]) - int(low[j]) < NARROW and max(-int(low[j]), int(high[j])) < limit
        kind = asked.declared.get(table.names[position])
        if kind is None:
            kind = _kind_of(matrix[:, j], low[j], high[j], bool(whole[j]))
        if KINDS[kind].cells != "levels":
            yield NumberColumn(position, matrix[:, j].astype(np.float64), kind, bool(whole[j]), asked)
        elif near and table.names[position] not in asked.orders:
            together.append(j)
        else:
            present = ~np.isnan(matrix[:, j]) if gaps[j] else np.ones(len(matrix), dtype=bool)
            values, inverse = np.unique(matrix[present, j], return_inverse=True)
            codes = np.full(len(matrix), -1, dtype=np.int64)
            codes[present] = inverse
            yield ValueColumn.of(position, Coded(tuple(values.tolist()), codes), table, kind, asked)
    if together:
        bounds = [(int(low[j]) - bool(gaps[j]), int(high[j])) for j in together]
        part = matrix if len(together) == matrix.shape[1] else matrix[:, together]
        kinds = [asked.declared.get(table.names[j], "categorical") for j in positions[together]]
        yield IntegerColumns.of(positions[together], part, bounds, gaps[together], kinds, asked)


def _refuse_infinite(
    matrix: np.ndarray, low: np.ndarray, high: np.ndarray, positions: np.ndarray, table: Table
) -> None:
    infinite = np.flatnonzero(np.isinf(low) | np.isinf(high))
    if infinite.size:
        row = int(np.argmax(np.isinf(matrix[:, infinite[0]])))
        raise infinite_cell(table.names[positions[infinite[0]]], matrix[row, infinite[0]], row, table)


def _of_values(position: int, column: Coded, table: Table, asked: Asked) -> Columns:
    """A column by its distinct values: numbers, where they stand for numbers and are not declared categories."""
    kind = asked.declared.get(table.names[position])
    inferred = "ordinal" if column.scale and len(column.values) > 2 else "categorical"
    texts = ValueColumn.of(position, column, table, kind or inferred, asked)
    if kind is None and (column.ordered or position in asked.judged.useless):
        return texts
    if kind is None and texts.value_type not in ("int", "float"):
        return _of_texts(texts, table, asked)
    if kind is not None and KINDS[kind].cells == "levels":
        return texts
    known = "" if asked.schema is None else asked.schema.variables[position].written
    remedy = NOT_AS_FITTED if asked.settled else NO_NUMBER
    numbers, form = numbers_and_form(column, position, table, known, remedy)
    whole = bool(are_whole(numbers[:, None])[0])
    if kind is None:
        kind = _kind_of(numbers, np.nanmin(numbers), np.nanmax(numbers), whole)
        if not KINDS[kind].number:
            return texts
    return NumberColumn(position, numbers, kind, whole, asked, form)


def _of_texts(texts: ValueColumn, table: Table, asked: Asked) -> Columns:
    """A column of texts: categories, unless they are numbers or dates in another dress."""
    values, name = texts.values, table.names[texts.position]
    if len(values) <= MOST_INTEGERS or not all(isinstance(value, str) for value in values):
        return texts
    written = written_numbers(values, decimal_comma=table.decimal_comma)
    if written is not None:
        numbers = as_numbers(texts.column, texts.position, table, written.form)
        whole = bool(are_whole(numbers[:, None])[0])
        kind = _kind_of(numbers, np.nanmin(numbers), np.nanmax(numbers), whole)
        asked.judged.remarks.append(
            f"column {name!r} holds numbers {written.words}, such as {values[0]!r}, read as {written.values[0]:g}, and "
            f"is {kind}; say --kind {quoted(f'{name}=categorical')} if they are names"
        )
        return NumberColumn(texts.position, numbers, kind, whole, asked, written.form)
    days = written_days(values)
    if days is not None:
        asked.judged.leave_out(texts.position, unusable_column(Unusable(name, "dates", days.values)))
    return texts


Columns = IntegerColumns | NumberColumn | GenotypeColumns | ValueColumn
