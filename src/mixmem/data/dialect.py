"""How a text file writes its table: what parts the columns, the decimal mark, whether the first line holds names.

Nothing in such a file says so, so its first lines are looked at; what was found is said wherever it is not the usual.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mixmem.data.level_text import NUMBER_TEXT
from mixmem.errors import InputError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
SAMPLE_BYTES, SAMPLE_LINES = 1 << 16, 200
LEAST_LINES = 5
"""Lines that are looked at however long they are."""
AGREEING = 0.9
"""Share of lines that must have as many fields as the first for a separator to be believed."""
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)
ENGLISH = re.compile(r"[^0-9]{0,3}[0-9]{1,3}(,[0-9]{3})+\.[0-9]")
"""Commas between thousands before a decimal point."""
WHOLE_OR_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+(,[0-9]+)?(e[+-]?[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """What parts columns, the decimal mark, and whether names stand in the first line; None where it is to be found.

    Attributes
    ----------
    separator : str or None
        One character; a blank stands for any number of blanks and tabs.
    decimal : "." or "," or None
    header : bool or None
    row_names : bool
        Whether lines begin with a name that the header has no field for, as R writes them.
    remarks : tuple of str
        What was found that is not the usual, a sentence each.
    """

    separator: str | None = None
    decimal: str | None = None
    header: bool | None = None
    row_names: bool = False
    remarks: tuple[str, ...] = ()


def dialect_of(raw: bytes, expected: str | None, given: Dialect | None = None) -> Dialect:
    """Return how a text (UTF-8) writes its table, as ``given`` where that says something.

    ``expected`` is the separator that the file's name speaks for; None if it speaks for none.
    """
    given = given or Dialect()
    lines = _first_lines(raw)
    separator = given.separator or _separator(lines, expected)
    if given.separator and _width(lines, separator) == 1:
        raise InputError(
            f"--delimiter {given.separator!r} does not occur in the first line; expected what parts the columns: "
            "leave the option out to have it found"
        )
    remarks = []
    if separator != (expected or separator) and not given.separator:
        remarks.append(f"columns are parted by {SEPARATORS[separator]}; say --delimiter if that is wrong")
    records = _records(lines, separator)
    decimal = given.decimal or _decimal(records, separator)
    if decimal == "," and not given.decimal:
        remarks.append("numbers are written with a decimal comma; say --decimal . if that is wrong")
    row_names = len(records) > 1 and len(records[0]) > 1
    row_names = row_names and all(len(record) == len(records[0]) + 1 for record in records[1:])
    header = (row_names or _has_header(records, decimal)) if given.header is None else given.header
    if not header and given.header is None:
        remarks.append(
            "the first line looks like a row, not like names, so columns are called x0, x1 and so on; say --header yes "
            "if it holds names"
        )
    return Dialect(separator, decimal, header, row_names and header, tuple(remarks))


def _first_lines(raw: bytes) -> str:
    end = min(SAMPLE_BYTES, len(raw))
    for _ in range(LEAST_LINES - raw.count(b"\n", 0, end)):
        end = raw.find(b"\n", end) + 1 or len(raw)
    if end < len(raw):
        end = raw.rfind(b"\n", 0, end) + 1 or end
    return raw[:end].decode("utf-8", errors="replace")


def _records(lines: str, separator: str) -> list[list[str]]:
    """The fields of the first lines, without blanks around them."""
    if separator == " ":
        rows: Sequence[list[str]] = [line.split() for line in lines.splitlines()[:SAMPLE_LINES]]
    else:
        rows = []
        reader = csv.reader(io.StringIO(lines, newline=""), delimiter=separator)
        try:
            for record in reader:
                rows.append(record)
                if len(rows) == SAMPLE_LINES:
                    break
        except csv.Error:
            pass  # the parser names the line
    return [[field.strip() for field in row] for row in rows if row]


def _width(lines: str, separator: str) -> int:
    return len(next(iter(_records(lines, separator)), []))


def _agreement(records: Sequence[Sequence[str]]) -> float:
    """Share of lines as wide as the first, or all one wider, where the header has no name for the rows' names."""
    if not records or len(records[0]) < 2:
        return 0.0
    same = sum(len(record) == len(records[0]) for record in records)
    wider = sum(len(record) == len(records[0]) + 1 for record in records)
    return max(same, wider + 1 if wider == len(records) - 1 else 0) / len(records)


def _separator(lines: str, expected: str | None) -> str:
    """Return what parts the columns: what the file's name says, unless that fits badly and something else well."""
    semicolons = _records(lines, ";")
    if _agreement(semicolons) == 1.0 and _commas_are_decimal(semicolons):
        return ";"
    if expected is not None and _agreement(_records(lines, expected)) == 1.0:
        return expected
    fits = {separator: _agreement(_records(lines, separator)) for separator in SEPARATORS}
    if expected is not None:
        fits[" "] = 0.0  # a file named .csv or .tsv is not parted by blanks, however many its texts have
    best = max(fits, key=lambda each: (fits[each], _width(lines, each)))
    return best if fits[best] >= AGREEING and fits[best] > fits.get(expected or "", 0.0) else expected or ","


def _commas_are_decimal(records: Sequence[Sequence[str]]) -> bool:
    """Whether commas occur, and in numbers only."""
    with_comma = [field for record in records for field in record if "," in field]
    return bool(with_comma) and all(DECIMAL_COMMA.fullmatch(field) for field in with_comma)


def _decimal(records: Sequence[Sequence[str]], separator: str) -> str:
    if separator == ",":
        return "."
    fields = [field for record in records[1:] for field in record if "," in field]
    english = any(ENGLISH.match(field) for field in fields)
    return "," if not english and any(DECIMAL_COMMA.fullmatch(field) for field in fields) else "."


RISING = 8
"""Whole numbers of a first line that rise from each to the next: so many are hardly a row."""


def _has_header(records: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether the first line holds names: it does not if each of its fields could stand in its column below.

    That is so of a value that comes again there, and of a number above numbers; 0, 1, 2, ..., 2019, 2021, 2023, ...
    and many numbers that rise are names.
    """
    first, rest = records[0] if records else [], records[1:]
    if not rest or first[0] == "" or _counted(first):
        return True
    columns = [[record[j] for record in rest if j < len(record) and record[j]] for j in range(len(first))]
    fits = [_fits(field, set(column), decimal) for field, column in zip(first, columns, strict=True)]
    # a text that stands in no other row of its column, as a person's name does, tells nothing
    telling = [fit for fit, column in zip(fits, columns, strict=True) if fit or 2 * len(set(column)) <= len(column)]
    return not telling or not all(telling) or 2 * sum(fits) < len(fits)


def _counted(first: Sequence[str]) -> bool:
    """Return whether the fields of a first line count columns: by equal steps, or all rising, as years with gaps do."""
    named = 0 if first[0].isdigit() else 1  # the rows' names may have a name before
    numbers = first[named:]
    if len(numbers) < 3 or not all(field.isascii() and field.isdigit() for field in numbers):
        return False
    steps = {int(right) - int(left) for left, right in pairwise(numbers)}
    return min(steps) > 0 and (len(numbers) >= RISING or (not named and len(steps) == 1))


def _fits(field: str, column: set[str], decimal: str) -> bool:
    number = WHOLE_OR_DECIMAL_COMMA if decimal == "," else NUMBER_TEXT
    if field == "" or field in column:
        return True
    return bool(number.fullmatch(field)) and bool(column) and all(number.fullmatch(value) for value in column)
