"""What is said of columns that cannot be fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixmem.data.coding import ColumnCoding
from mixmem.data.identifiers import IDENTIFIER_ROWS, IDENTIFIER_SHARE, names_subjects, numbering
from mixmem.data.infer_kinds import MOST_INTEGERS
from mixmem.data.level_text import type_of_texts
from mixmem.data.number_texts import few_texts
from mixmem.data.schema import Variable
from mixmem.data.table import Table, Unusable
from mixmem.errors import InputError
from mixmem.words import listed, listing, quoted

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


def too_few_columns(n_kept: int, least: int, useless: Sequence[Useless]) -> InputError:
    """Return what is said where columns of no use leave fewer than a fit takes, all of them named."""
    if len(useless) == 1:
        return useless[0].refusal
    reasons = [f"column {each.name!r} {each.is_so}" for each in useless[:MOST_NAMED]]
    if (more := len(useless) - MOST_NAMED) > 0:
        reasons.append(f"and so on for {more:,} more")
    count = f"{n_kept:,} of {n_kept + len(useless):,} columns can be fitted"
    return InputError(f"{count}; expected at least {least}: {'; '.join(reasons)}")


def constant_column(name: str, level: str) -> Useless:
    """Return what is said of a column that holds one value."""
    return Useless(
        name,
        f"is constant: it holds {level} wherever it is not missing",
        ", but expected at least two values; drop the column",
        many="are constant",
    )


def identifier_column(name: str, n_distinct: int, table: Table, *, number: bool = False) -> Useless:
    """Return what is said of a column whose values are all, or nearly all, different; a number may be a measurement."""
    keep = f", or --kind {quoted(f'{name}=continuous')} to keep it"
    each = "each" if n_distinct == table.n_rows else f"{n_distinct:,}"
    return Useless(
        name,
        f"has a different value in {each} of its {table.n_rows} rows, as an identifier has",
        f"; expected categories or measurements: drop it, or make it the rows' name (frame.set_index({name!r}), on the "
        "command line --id)",
        f"; say --id {quoted(name)} to name rows by it{keep if number else ''}",
        many="have a different value in nearly every row, as identifiers have",
    )


def remarks_column(name: str, n_distinct: int, held: int) -> Useless:
    """Return what is said of a column of texts that few rows hold, each nearly its own."""
    return Useless(
        name,
        f"holds {n_distinct:,} different texts in the {held:,} cells that are filled, as remarks do",
        "; expected categories: drop the column",
        f"; say --kind {quoted(f'{name}=categorical')} to keep it",
        many="hold different texts in nearly all cells that are filled, as remarks do",
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
    way = "" if column.days is None else f"; say --kind {quoted(f'{column.name}=continuous')} to take it as days"
    return Useless(
        column.name,
        f"holds {column.dtype}",
        str(column.refusal).partition(f"holds {column.dtype}")[2],
        way,
        many=f"hold {column.dtype}",
    )


def nearly_numbers(name: str, odd: tuple[str, ...]) -> Useless:
    """Return what is said of numbers with a few texts among them, if nearly every row has a value of its own."""
    texts = listed(map(repr, odd))
    return Useless(
        name,
        f"holds numbers but for {texts}",
        f"; expected numbers alone, or categories: declare {texts} missing, on the command line "
        f"--missing {quoted(name + '=' + ','.join(odd))}",
    )


@dataclass
class Judged:
    """Columns found useless while a table is coded, by position, and what else is to be said of columns.

    ``strict`` refuses the first such column instead.
    """

    strict: bool
    useless: dict[int, Useless] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    """Columns of whole numbers that may be ranks, or name rows."""
    nearly: dict[tuple[str, ...], dict[str, bool]] = field(default_factory=dict)
    """Columns of numbers with a few texts among them, by those texts, and whether each is left out for it."""

    def leave_out(self, position: int, column: Useless) -> None:
        """Remember a useless column, or refuse it."""
        if self.strict:
            raise column.refusal
        self.useless[position] = column

    def levels(
        self, position: int, name: str, levels: tuple[str, ...], table: Table, *, held: int = 0, texts: bool = False
    ) -> None:
        """Judge a column of these levels: one alone, or a different one in nearly every cell held, is of no use."""
        if len(levels) == 1:
            self.leave_out(position, constant_column(name, repr(levels[0])))
            return
        different = table.n_rows >= IDENTIFIER_ROWS and (
            len(levels) == table.n_rows or (texts and len(levels) > IDENTIFIER_SHARE * table.n_rows)
        )
        odd = few_texts(levels, MOST_INTEGERS) if texts else ()
        if odd and different and _number_rows(name, [level for level in levels if level not in odd], table):
            odd = ()
        if odd:
            self.nearly.setdefault(odd, {})[name] = different
        if different:
            self.leave_out(position, nearly_numbers(name, odd) if odd else identifier_column(name, len(levels), table))
        elif texts and not odd and held >= IDENTIFIER_ROWS and len(levels) > IDENTIFIER_SHARE * held:
            self.leave_out(position, remarks_column(name, len(levels), held))
        elif texts:
            self.subjects(name, len(levels), table)

    def numbers(self, position: int, name: str, present: np.ndarray, table: Table) -> None:
        """Judge a column of whole numbers, those that are there: all distinct, they may name rows."""
        found = numbering(name, present, first=name == table.first)
        if found == "identifier":
            self.leave_out(position, identifier_column(name, len(present), table, number=True))
        elif found:
            self.unclear.append(name)
        else:
            self.subjects(name, len(np.unique(present)), table)

    def subjects(self, name: str, n_distinct: int, table: Table) -> None:
        """Ask about a column that tells by its name who a row is about, if several rows are about the same."""
        if names_subjects(name) and table.n_rows >= IDENTIFIER_ROWS and MOST_INTEGERS < n_distinct < table.n_rows:
            self.remarks.append(
                f"column {name!r} is called as an identifier is and holds {n_distinct:,} different values in "
                f"{table.n_rows:,} rows: rows may be repeated measures of the same subject, and the model takes each "
                f"for a subject of its own; say --kind {quoted(f'{name}=ignore')} to leave the column out, or "
                f"--id {quoted(name)} to name rows by it"
            )

    def said(self) -> tuple[str, ...]:
        """What to tell: of each column left out, or of several for one reason at once."""
        told = {name for columns in self.nearly.values() for name in columns}
        by_reason: dict[str, list[Useless]] = {}
        for column in self.useless.values():
            if column.name not in told:
                by_reason.setdefault(column.many, []).append(column)
        lines = []
        for reason, columns in by_reason.items():
            if len(columns) > MOST_NAMED:
                names = listing([column.name for column in columns])
                way = columns[0].instead.replace("; say", "; say, for the first of them,", 1)
                lines.append(f"{len(columns):,} columns {reason}, so they are left out: {names}{way}")
            else:
                lines += [f"column {each.name!r} {each.is_so}, so it is left out{each.instead}" for each in columns]
        lines += [_nearly_told(odd, columns) for odd, columns in self.nearly.items()]
        if self.unclear:
            lines.append(_unclear_told(self.unclear))
        return (*lines, *self.remarks)


def _number_rows(name: str, texts: list[str], table: Table) -> bool:
    """Whether texts that are numbers name rows, be they written as texts for a few others among them."""
    if type_of_texts(texts) != "int":
        return False
    return numbering(name, np.array([float(text) for text in texts]), first=name == table.first) == "identifier"


def _nearly_told(odd: tuple[str, ...], columns: Mapping[str, bool]) -> str:
    texts, gone = listed(map(repr, odd)), [name for name, left in columns.items() if left]
    if len(columns) == 1:
        (name,) = columns
        is_so = "left out, as nearly every row has another value" if gone else "taken for categories"
        return (
            f"column {name!r} holds numbers but for {texts} and is {is_so}; if that means a missing cell, say "
            f"--missing {quoted(name + '=' + ','.join(odd))} to read it as numbers"
        )
    left = f", or left out where nearly every row has another value ({len(gone):,} of them)" if gone else ""
    return (
        f"{len(columns):,} columns hold numbers but for {texts} and are taken for categories{left}: "
        f"{listing(columns)}; if that means a missing cell, say --missing {quoted(','.join(odd))} to read them as "
        "numbers"
    )


def _unclear_told(names: Sequence[str]) -> str:
    one = len(names) == 1
    return (
        f"{'column' if one else 'columns'} {listing(names)} {'has' if one else 'have'} a different whole number in "
        f"every row, as ranks and identifiers have, and {'is kept as a number' if one else 'are kept as numbers'}; "
        f"say --kind {quoted(f'{names[0]}=ignore')} to leave {'it' if one else 'the first of them'} out"
    )


def infinite_cell(name: str, value: Any, row: int, table: Table) -> InputError:
    """Return what is said of a number that is not finite."""
    as_read = "" if "inf" in str(value).lower() else " (inf)"  # a number too large to be held, such as 1e999
    return InputError(
        f"column {name!r}, {row_words(table, row)} holds {value}{as_read}; expected numbers that are finite: drop the "
        "row, or declare the value missing"
    )


def unknown_level(variable: Variable | ColumnCoding, text: str, row: int, table: Table) -> InputError:
    """Return what is said of a level that the model does not know."""
    return InputError(
        f"column {variable.name!r}, {row_words(table, row)} holds {text!r}, a level the model does not know; expected "
        f"one of {listing(variable.levels)}: recode the cell or make it missing, or fit again with such rows"
    )
