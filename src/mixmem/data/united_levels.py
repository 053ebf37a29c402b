"""Chunks of one table coded alike: levels that only some chunks have are united, and codes follow.

A sample of the rows fixes kinds, grids and knots. A chunk that holds more levels than the sample, or missing cells
where that had none, gets a coding of its own, the sample's with these added. The codings of chunks are united at the
end, in any order: numbers in numeric order, texts in lexicographic order; where the sample's levels have an order of
their own (a categorical dtype), that is kept, and further ones come after them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from mixmem.data.asked import Asked
from mixmem.data.coding import Coding, ColumnCoding
from mixmem.data.column_refusals import Judged
from mixmem.data.columns import columns_of
from mixmem.data.encode import Encoded
from mixmem.data.kinds.base import MAX_CODES
from mixmem.data.match_columns import match_columns
from mixmem.data.table import Table
from mixmem.errors import InputError
from mixmem.kernels.layout import turn, turn_bytes
from mixmem.typing import Array


def coded_growing(table: Table, coding: Coding, weights: Array | None = None, *, by_rows: bool = True) -> Encoded:
    """Code some rows of a table; levels and missing cells that the coding does not have are added to it.

    Without ``by_rows`` codes may lie column by column in memory, where they are had sooner so.

    >>> import pandas as pd
    >>> from mixmem.data.encode import encode
    >>> from mixmem.data.read import read_table
    >>> known = encode(pd.DataFrame({"u": ["x", "z"], "v": [1, 2]})).coding
    >>> some = coded_growing(read_table(pd.DataFrame({"u": ["y", None], "v": [1, 2]})), known)
    >>> some.coding.columns[0].levels, some.codes[:, 0].tolist()
    (('x', 'y', 'z'), [1, 3])
    """
    schema = coding.schema
    table = match_columns(table, schema)
    row_ids = np.arange(table.n_rows) if table.row_ids is None else table.row_ids
    if (by_column := codes_by_column(table, coding)) is not None:
        if not by_rows:
            return Encoded(by_column.T, coding, row_ids, weights)
        return Encoded(laid_by_rows(by_column), coding, row_ids, weights)
    declared = {variable.name: variable.kind for variable in schema.variables}
    groups = list(columns_of(table, Asked(declared, schema, coding, weights, MAX_CODES, Judged(strict=True))))
    added: dict[int, list[tuple[str, str]]] = {}
    missing = coding.missing.copy()
    for group in groups:
        for position, text, value_type in group.unknown(list(coding.columns)):
            added.setdefault(position, []).append((text, value_type))
        for position, column in group.columns(table, schema):
            missing[position] |= column.missing
    coding = _grown(coding, added, missing)
    codes = np.empty((table.n_rows, table.n_columns), dtype=coding.codes_dtype)
    for group in groups:
        group.write(codes, list(coding.columns), table)
    return Encoded(codes, coding, row_ids, weights)


def laid_by_rows(columns: np.ndarray) -> np.ndarray:
    """Return codes (n, p) that lie row by row in memory, from codes (p, n).

    >>> import numpy as np
    >>> laid_by_rows(np.array([[1, 2], [3, 4]], dtype=np.uint8))
    array([[1, 3],
           [2, 4]], dtype=uint8)
    """
    codes = np.empty(columns.shape[::-1], dtype=columns.dtype)
    (turn_bytes if columns.itemsize == 1 else turn)(columns, codes)
    return codes


def row_by_row(rows: Encoded) -> Encoded:
    """Return the same with codes that lie row by row in memory."""
    return rows if rows.codes.flags.c_contiguous else replace(rows, codes=laid_by_rows(rows.codes.T))


def codes_by_column(table: Table, coding: Coding) -> np.ndarray | None:
    """Return the codes (p, n) of whole numbers whose levels are consecutive ones, found by subtraction; None for any
    other table.

    >>> import numpy as np
    >>> from mixmem.data.encode import encode
    >>> from mixmem.data.read import read_table
    >>> codes_by_column(read_table(np.array([[4, 7], [3, 7]])), encode(np.array([[3, 7], [4, 8]])).coding)
    array([[1, 0],
           [0, 0]], dtype=uint8)
    """
    columns = table.columns if isinstance(table.columns, tuple) else tuple(table.columns.T)
    codes = np.empty((len(columns), table.n_rows), dtype=coding.codes_dtype)
    for own, column, known in zip(codes, columns, coding.columns, strict=True):
        first = _first_of_consecutive(known)
        if first is None or not isinstance(column, np.ndarray) or column.dtype.kind not in "iu" or not len(column):
            return None
        # a difference that wraps around is right again in an unsigned type of the same size
        if column.dtype.itemsize < codes.itemsize or (first < 0 and column.dtype.kind == "u"):
            return None
        unsigned = np.dtype(f"u{column.dtype.itemsize}")
        least = np.array(first).astype(column.dtype).view(unsigned)
        found = np.subtract(column.view(unsigned), least, out=own if unsigned == codes.dtype else None)
        if found.max() >= len(known.levels):
            return None
        if found is not own:
            np.copyto(own, found, casting="unsafe")
    return codes


@lru_cache(maxsize=100_000)
def _first_of_consecutive(column: ColumnCoding) -> int | None:
    """Return the smallest level of a category whose levels are consecutive whole numbers; None for any other column."""
    if column.own_kind.cells != "levels" or column.value_type not in ("int", "float"):
        return None
    try:
        first = int(column.levels[0])
    except ValueError:
        return None
    expected = tuple(str(first + at) for at in range(len(column.levels)))
    return first if column.levels == expected else None


def _grown(coding: Coding, added: dict[int, list[tuple[str, str]]], missing: np.ndarray) -> Coding:
    """Return the coding with levels added, each with the type of its value, and cells that may be missing."""
    if not added and (missing == coding.missing).all():
        return coding
    columns = list(coding.columns)
    for j, gap in enumerate(missing.tolist()):
        column = columns[j] if columns[j].missing == gap else replace(columns[j], missing=gap)
        columns[j] = _with_levels(column, added[j]) if j in added else column
    return replace(coding, columns=tuple(columns))


def _with_levels(column: ColumnCoding, added: Iterable[tuple[str, str]]) -> ColumnCoding:
    added = list(added)
    value_type = _type_of({column.value_type, *(kind for _, kind in added)})
    key: Any = {"int": int, "float": float}.get(value_type, str)
    known = list(column.levels)
    further = sorted({text for text, _ in added} - set(known), key=key)
    ordered = known == sorted(known, key={"int": int, "float": float}.get(column.value_type, str))
    levels = sorted([*known, *further], key=key) if ordered else [*known, *further]
    if len(levels) >= MAX_CODES:
        raise InputError(
            f"column {column.name!r} has more than {MAX_CODES:,} levels over all rows; declare it a number, or of kind "
            "ignore, or make it the rows' name"
        )
    return replace(column, variable=replace(column.variable, levels=tuple(levels), value_type=value_type))


def _type_of(kinds: set[str]) -> str:
    """Return the type of values that are of several: whole numbers and others are numbers, all else are texts."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return "float" if kinds <= {"int", "float"} else "str"


def united(base: Coding, codings: Iterable[Coding]) -> Coding:
    """Return the coding that holds all that any of these does, each of them ``base`` with something added."""
    missing = base.missing.copy()
    added: dict[int, list[tuple[str, str]]] = {}
    for coding in codings:
        missing |= coding.missing
        for j, (own, other) in enumerate(zip(base.columns, coding.columns, strict=True)):
            if other.levels != own.levels:
                fresh = set(other.levels) - set(own.levels)
                added.setdefault(j, []).extend((text, other.value_type) for text in fresh)
    return _grown(base, added, missing)


@dataclass(frozen=True)
class Recoding:
    """The way from the codes of one coding to those of another that holds all of it."""

    lookups: dict[int, np.ndarray]
    """By variable, the new code of every old one; variables whose codes stay are left out."""
    cells: np.ndarray
    """(cells,): the new place of every old cell."""
    to: Coding

    @classmethod
    def between(cls, old: Coding, new: Coding) -> Recoding:
        lookups, cells = {}, []
        for j, (own, other) in enumerate(zip(old.columns, new.columns, strict=True)):
            size = own.n_codes + own.missing
            lookup = np.arange(size)
            if own.levels != other.levels and own.own_kind.cells == "levels":
                places = {text: code for code, text in enumerate(other.levels)}
                lookup[: own.n_codes] = [places[text] for text in own.levels]
                lookup[own.n_codes :] = other.n_codes
            if (lookup != np.arange(size)).any():
                lookups[j] = lookup
            cells.append(lookup + new.soft.cell_offsets[j])
        return cls(lookups, np.concatenate(cells), new)

    def codes(self, codes: np.ndarray) -> np.ndarray:
        """Return codes (n, p) in the new coding."""
        out = codes.astype(self.to.codes_dtype, copy=bool(self.lookups))
        for j, lookup in self.lookups.items():
            out[:, j] = lookup[codes[:, j]]
        return out

    def sums(self, counts: Array) -> Array:
        """Return sums by cells (old cells,) as sums by the new cells."""
        out = np.zeros(self.to.soft.n_cells)
        out[self.cells] = counts
        return out


_way = lru_cache(maxsize=16)(Recoding.between)


def recoded(rows: Encoded, coding: Coding) -> Encoded:
    """Return rows in a coding that holds all of their own."""
    return (
        rows
        if rows.coding is coding
        else replace(rows, codes=_way(rows.coding, coding).codes(rows.codes), coding=coding)
    )
