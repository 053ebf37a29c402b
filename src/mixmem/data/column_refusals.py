"""What is said of columns that cannot be fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixmem.data.coding import ColumnCoding
from mixmem.data.schema import Variable
from mixmem.data.table import Table
from mixmem.errors import InputError
from mixmem.words import listing

IDENTIFIER_ROWS = 20
"""From this many rows on, a column whose values are all distinct is taken for an identifier."""


def codes_of(variable: Variable | ColumnCoding) -> dict[str, int]:
    """Return the code of every level."""
    return {level: code for code, level in enumerate(variable.levels)}


# --- Refusals that more than one kind of column needs


def row_words(table: Table, row: int) -> str:
    """Return how a row is named in a message: its number, and its id if it has one."""
    if table.row_ids is None:
        return f"row {row + 1}"
    row_id = table.row_ids[row]
    return f"row {row + 1} (id {row_id.item() if isinstance(row_id, np.generic) else row_id!r})"


def refuse_useless(name: str, levels: tuple[str, ...], table: Table) -> None:
    """Refuse a column of one level, or of a different one in every row."""
    if len(levels) == 1:
        raise constant_column(name, repr(levels[0]))
    if len(levels) == table.n_rows and table.n_rows >= IDENTIFIER_ROWS:
        raise identifier_column(name, table)


def constant_column(name: str, level: str) -> InputError:
    """Return what is said of a column that holds one value."""
    return InputError(
        f"column {name!r} is constant: it holds {level} wherever it is not missing, but expected at least two values; "
        "drop the column"
    )


def identifier_column(name: str, table: Table) -> InputError:
    """Return what is said of a column whose values are all different."""
    return InputError(
        f"column {name!r} has a different value in each of its {table.n_rows} rows, as an identifier has; expected "
        f"categories or measurements: drop it, or make it the rows' name (frame.set_index({name!r}), on the command "
        "line --id)"
    )


def empty_column(name: str, table: Table) -> InputError:
    """Return what is said of a column without values."""
    return InputError(
        f"column {name!r} has nothing in it: all {table.n_rows} cells are missing, but expected some values; drop the "
        "column"
    )


def infinite_cell(name: str, value: Any, row: int, table: Table) -> InputError:
    """Return what is said of a number that is not finite."""
    return InputError(
        f"column {name!r}, {row_words(table, row)} holds {value} (inf); expected numbers that are finite: drop the "
        "row, or declare the value missing"
    )


def unknown_level(variable: Variable | ColumnCoding, text: str, row: int, table: Table) -> InputError:
    """Return what is said of a level that the model does not know."""
    return InputError(
        f"column {variable.name!r}, {row_words(table, row)} holds {text!r}, a level the model does not know; expected "
        f"one of {listing(variable.levels)}: recode the cell or make it missing, or fit again with such rows"
    )
