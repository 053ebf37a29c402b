"""Missing cells filled with what the rows' memberships make most likely."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.encode import Encoded, decode, numbers_of
from mixmem.data.kinds import KINDS, Dosage
from mixmem.data.schema import Variable
from mixmem.data.table import Table
from mixmem.typing import Array, Positions

if TYPE_CHECKING:
    import pandas as pd


def fillings(table: Encoded, theta: Array, memberships: Array) -> Iterator[tuple[int, Positions, list[Any]]]:
    """Of every variable with missing cells: its position, their rows, and values for them.

    theta (rows, k), memberships (n, k).
    """
    schema = table.schema
    for j, variable in enumerate(schema.variables):
        gaps = np.flatnonzero(table.codes[:, j] == schema.features.absent[j])
        if len(gaps):
            own = memberships[gaps] @ theta[schema.offsets[j] : schema.offsets[j + 1]].T
            yield j, gaps, list(_most_likely(variable, own))


def filled_frame(frame: pd.DataFrame, table: Encoded, theta: Array, memberships: Array) -> pd.DataFrame:
    """A data frame as it was, types and further columns too, with its missing cells filled; ``table`` is of it."""
    out = frame.copy()
    places = {str(name): at for at, name in enumerate(frame.columns)}
    for j, gaps, values in fillings(table, theta, memberships):
        at = places[table.schema.names[j]]
        column = out.iloc[:, at].copy()
        column.iloc[gaps] = values if column.dtype != float else np.array(values, dtype=float)
        out.isetitem(at, column)
    return out


def imputed(table: Encoded, theta: Array, memberships: Array, source: Table | None = None) -> pd.DataFrame:
    """The table's values with every missing cell filled; theta (rows, k), memberships (n, k).

    Codes hold at most a thousand numbers of a column apart; those of ``source``, if it is given, are as they were.
    """
    frame = decode(table.codes, table.schema)
    frame.index = table.row_ids
    if source is not None:
        for j, variable in enumerate(table.schema.variables):
            if variable.is_number:
                exact = numbers_of(source, variable, j)
                frame[variable.name] = exact if variable.missing else _typed(exact, variable)
    for j, gaps, values in fillings(table, theta, memberships):
        variable = table.schema.variables[j]
        column = frame.iloc[:, j].to_numpy(copy=True)
        column[gaps] = values
        frame[variable.name] = _typed(column, variable)
    return frame


def _most_likely(variable: Variable, expected: Array) -> Any:
    """Values for cells whose theta, mixed by their memberships, is ``expected`` (cells, rows of the variable)."""
    kind = KINDS[variable.kind]
    if variable.is_number:
        mean = expected[:, 0]
        return np.rint(mean) if variable.value_type == "int" else mean
    if isinstance(kind, Dosage):
        copies = kind.copies(variable)
        chances = np.prod(expected[:, copies], axis=2) * [_orders(alleles) for alleles in copies]
    else:
        chances = expected
    return np.array(variable.of_codes()[:-1], dtype=object)[chances.argmax(axis=1)]


def _orders(alleles: Positions) -> float:
    """In how many orders the copies can hold these alleles."""
    return math.factorial(len(alleles)) / math.prod(math.factorial(count) for count in np.bincount(alleles))


def _typed(column: Any, variable: Variable) -> Any:
    """A filled column in the type its values have; nothing is missing any more."""
    types = {"int": np.int64, "bool": bool, "float": float}
    whole = variable.kind == "dosage" and len(variable.levels) == 2
    wanted = np.int64 if whole else types.get(variable.value_type)
    if wanted is np.int64 and not whole and any(float(value) != int(value) for value in column):
        wanted = float
    return column if wanted is None else column.astype(wanted)
