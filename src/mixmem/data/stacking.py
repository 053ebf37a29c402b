"""Tables of the same columns, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixmem.data.frames import code_values
from mixmem.data.table import Coded, Column, Table, Unusable, usable
from mixmem.errors import InputError
from mixmem.words import listing


def in_order_of(table: Table, names: tuple[str, ...]) -> Table:
    """Return the table with its columns in the order of these names."""
    position = {name: j for j, name in enumerate(table.names)}
    return table.take([position[name] for name in names])


def refuse_other_columns(first: str, expected: Table, file: str, table: Table) -> None:
    """Refuse a table whose columns are not those of the first."""
    absent = [name for name in expected.names if name not in set(table.names)]
    added = [name for name in table.names if name not in set(expected.names)]
    if absent or added:
        parts = [f"lacks {listing(absent)}"] * bool(absent) + [f"adds {listing(added)}"] * bool(added)
        raise InputError(
            f"{file} {' and '.join(parts)}; expected the columns of {first}: files of a folder share their columns"
        )
    if (table.row_ids is None) != (expected.row_ids is None):
        raise InputError(f"{file} and {first} differ: only one has row names; write them alike")
    _refuse_other_alleles(first, expected, file, table)


def _refuse_other_alleles(first: str, expected: Table, file: str, table: Table) -> None:
    """Genotype codes of two files mean the same only if their loci list the same alleles in the same order."""
    if expected.loci is None or table.loci is None:
        return
    known = dict(zip(expected.names, expected.loci, strict=True))
    for name, locus in zip(table.names, table.loci, strict=True):
        if locus.alleles != known[name].alleles:
            raise InputError(
                f"{file}: {name!r} has the alleles {listing(locus.alleles)}, expected {listing(known[name].alleles)} "
                f"as in {first}; merge the files with a program for genotypes"
            )


def stack(tables: Sequence[Table]) -> Table:
    """Tables of the same columns, one below the other."""
    first, n_rows = tables[0], sum(table.n_rows for table in tables)
    row_ids = None
    if all(table.row_ids is not None for table in tables):
        row_ids = np.concatenate([table.row_ids for table in tables])
    columns: np.ndarray | tuple[Column, ...]
    if all(isinstance(table.columns, np.ndarray) for table in tables):
        columns = np.concatenate([table.columns for table in tables])
    else:
        columns = tuple(
            _stack_column([table.column(j) for table in tables], name) for j, name in enumerate(first.names)
        )
    remarks = tuple(dict.fromkeys(remark for table in tables for remark in table.remarks))
    return Table(first.names, columns, n_rows, row_ids, first.positional, first.loci, remarks, first.decimal_comma)


def _stack_column(columns: Sequence[Column], name: str) -> Column:
    if any(isinstance(column, Unusable) for column in columns):
        return next(column for column in columns if isinstance(column, Unusable)).joined(columns)
    parts = [usable(column) for column in columns]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    # Numbers are joined as numbers only with their like: True is no 1, and large integers are no floats.
    if len(arrays) == len(parts) and len({array.dtype.kind for array in arrays}) == 1:
        return np.concatenate(arrays)
    untyped = any(part.untyped for part in parts if isinstance(part, Coded))
    coded = [part if isinstance(part, Coded) else _coded(part, name, untyped) for part in parts]
    found: dict[tuple[type, Any], int] = {}
    codes = []
    for part in coded:
        lookup = [found.setdefault((type(value), value), len(found)) for value in part.values]
        codes.append(np.array([*lookup, -1], dtype=np.int64)[part.codes])  # code -1 finds the -1 at the end
    ordered = all(part.ordered and part.values == coded[0].values for part in coded)
    scale = ordered and all(part.scale for part in coded)
    return Coded(tuple(value for _, value in found), np.concatenate(codes), ordered, untyped, scale)


def _coded(numbers: np.ndarray, name: str, untyped: bool) -> Coded:
    """Numbers beside texts: in a file without types they were texts as well."""
    values = numbers.tolist()
    if untyped:
        values = [None if value != value else str(value) for value in values]
    return code_values(values, name, untyped=untyped)
