"""Missing cells filled with what the rows' memberships make most likely."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.coding import ColumnCoding
from mixmem.data.encode import Encoded, decode, numbers_of
from mixmem.data.table import Table
from mixmem.typing import Array, Positions

if TYPE_CHECKING:
    import pandas as pd


def fillings(table: Encoded, theta: Array, memberships: Array) -> Iterator[tuple[int, Positions, list[Any]]]:
    """Yield for every variable with missing cells its position, their rows, and values for them.

    theta (rows, k), memberships (n, k).
    """
    for j, column in enumerate(table.coding.columns):
        gaps = np.flatnonzero(table.codes[:, j] == table.coding.soft.absent[j])
        if len(gaps):
            own = theta[table.schema.rows(j)]
            yield j, gaps, column.own_kind.most_likely(column, own, memberships[gaps])


def filled_frame(frame: pd.DataFrame, table: Encoded, theta: Array, memberships: Array) -> pd.DataFrame:
    """Return a data frame as it was, types and further columns too, with its missing cells filled.

    ``table`` is the frame, coded.
    """
    out = frame.copy()
    places = {str(name): at for at, name in enumerate(frame.columns)}
    for j, gaps, values in fillings(table, theta, memberships):
        at = places[table.schema.names[j]]
        column = out.iloc[:, at].copy()
        column.iloc[gaps] = values if column.dtype != float else np.array(values, dtype=float)
        out.isetitem(at, column)
    return out


def imputed(table: Encoded, theta: Array, memberships: Array, source: Table | None = None) -> pd.DataFrame:
    """Return the table's values with every missing cell filled; theta (rows, k), memberships (n, k).

    Codes hold at most a thousand numbers of a column apart; those of ``source``, if it is given, are as they were.
    """
    frame = decode(table.codes, table.coding)
    frame.index = table.row_ids
    if source is not None:
        for j, column in enumerate(table.coding.columns):
            if column.is_number:
                exact = numbers_of(source, column.variable, j)
                frame[column.name] = exact if column.missing else _typed(exact, column)
    for j, gaps, values in fillings(table, theta, memberships):
        found = table.coding.columns[j]
        cells = frame.iloc[:, j].to_numpy(copy=True)
        cells[gaps] = values
        frame[found.name] = _typed(cells, found)
    return frame


def _typed(cells: Any, column: ColumnCoding) -> Any:
    """Return a filled column in the type its values have; nothing is missing any more."""
    types = {"int": np.int64, "bool": bool, "float": float}
    copies = column.own_kind.cells == "copies" and len(column.levels) == 2
    wanted = np.int64 if copies else types.get(column.value_type)
    if wanted is np.int64 and not copies and any(float(value) != int(value) for value in cells):
        wanted = float
    return cells if wanted is None else cells.astype(wanted)
