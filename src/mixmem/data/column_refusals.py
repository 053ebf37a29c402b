"""What is said of columns that cannot be fitted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixmem.data.coding import ColumnCoding
from mixmem.data.schema import Variable
from mixmem.data.table import Table, Unusable
from mixmem.errors import InputError
from mixmem.words import listing

IDENTIFIER_ROWS = 20
"""From this many rows on, a column whose values are all distinct is taken for an identifier."""
IDENTIFIER_SHARE = 0.9
"""A column of texts is one, too, if so many of its rows have a text of their own."""
IDENTIFIER_NAME = re.compile(
    r"(.*[_. -])?(id|ids|uuid|guid|caseid|identifier|nr|number|no|key|index|respondent)", re.IGNORECASE
)
"""Names that identifiers have: whole numbers that are all distinct are one under such a name."""
MOST_NAMED = 5
"""Columns left out for one reason that are named each on a line of its own."""


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


@dataclass(frozen=True)
class Useless:
    """A column that says nothing of components: what is so of it, what was expected, and what else may be done."""

    name: str
    is_so: str
    expected: str
    instead: str = ""
    many: str = ""
    """What is said of several such columns at once."""

    @property
    def refusal(self) -> InputError:
        """What is said where such a column is refused."""
        return InputError(f"column {self.name!r} {self.is_so}{self.expected}")


def constant_column(name: str, level: str) -> Useless:
    """Return what is said of a column that holds one value."""
    return Useless(
        name,
        f"is constant: it holds {level} wherever it is not missing",
        ", but expected at least two values; drop the column",
        many="are constant",
    )


def identifier_column(name: str, n_distinct: int, table: Table) -> Useless:
    """Return what is said of a column whose values are all, or nearly all, different."""
    each = "each" if n_distinct == table.n_rows else f"{n_distinct:,}"
    return Useless(
        name,
        f"has a different value in {each} of its {table.n_rows} rows, as an identifier has",
        f"; expected categories or measurements: drop it, or make it the rows' name (frame.set_index({name!r}), on the "
        "command line --id)",
        f"; say --id {name} to name rows by it",
        many="have a different value in nearly every row, as identifiers have",
    )


def empty_column(name: str, table: Table) -> Useless:
    """Return what is said of a column without values."""
    return Useless(
        name,
        f"has nothing in it: all {table.n_rows} cells are missing",
        ", but expected some values; drop the column",
        many="have nothing in them",
    )


def unusable_column(column: Unusable) -> Useless:
    """Return what is said of a column of what is neither category nor number."""
    way = "" if column.days is None else f"; say --kind {column.name}=continuous to take it as days"
    return Useless(
        column.name,
        f"holds {column.dtype}",
        str(column.refusal).partition(f"holds {column.dtype}")[2],
        way,
        many=f"hold {column.dtype}",
    )


@dataclass
class Judged:
    """Columns found useless while a table is coded, by position, and what else is to be said of columns.

    ``strict`` refuses the first such column instead.
    """

    strict: bool
    useless: dict[int, Useless] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def leave_out(self, position: int, column: Useless) -> None:
        """Remember a useless column, or refuse it."""
        if self.strict:
            raise column.refusal
        self.useless[position] = column

    def levels(self, position: int, name: str, levels: tuple[str, ...], table: Table, *, texts: bool = False) -> None:
        """Judge a column of these levels: one alone, or a different one in nearly every row, is of no use."""
        if len(levels) == 1:
            self.leave_out(position, constant_column(name, repr(levels[0])))
        elif table.n_rows >= IDENTIFIER_ROWS and (
            len(levels) == table.n_rows or (texts and len(levels) > IDENTIFIER_SHARE * table.n_rows)
        ):
            self.leave_out(position, identifier_column(name, len(levels), table))

    def said(self) -> tuple[str, ...]:
        """What to tell: of each column left out, or of several for one reason at once."""
        by_reason: dict[str, list[Useless]] = {}
        for column in self.useless.values():
            by_reason.setdefault(column.many, []).append(column)
        lines = []
        for reason, columns in by_reason.items():
            if len(columns) > MOST_NAMED:
                names = listing([column.name for column in columns])
                lines.append(f"{len(columns):,} columns {reason}, so they are left out: {names}")
            else:
                lines += [f"column {each.name!r} {each.is_so}, so it is left out{each.instead}" for each in columns]
        return (*lines, *self.remarks)


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
