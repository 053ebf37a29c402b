"""Anything a user has -> `Table`.

A table holds plain columns only, numbers as numpy arrays and everything else as `Coded`, so that no later
stage needs to know pandas, polars or pyarrow. Those are slow to import: only the functions that parse files
import them, and objects of theirs are looked for only if something else has imported them already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.schema import refuse_duplicates
from mixmem.errors import InputError
from mixmem.words import quoted, suggestion

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Coded:
    """A column that is not all numbers: row i holds values[codes[i]], or nothing where the code is -1."""

    values: tuple[Any, ...]
    codes: np.ndarray
    ordered: bool = False
    """The values stand in the order their owner gave them (a categorical dtype)."""
    untyped: bool = False
    """Texts of a file without types, which may stand for numbers or truth values."""
    scale: bool = False
    """The order of the values is one from the least to the most, by their owner's word."""


@dataclass(frozen=True)
class Locus:
    """A place in the genome: its alleles, the reference first; genotypes are coded by pairs of their positions."""

    alleles: tuple[str, ...]
    chromosome: str = ""
    position: int = 0


@dataclass(frozen=True)
class Unusable:
    """A column of what cannot be fitted as it is, such as dates: left out unless it is declared continuous and has
    ``days`` (n,) since 1970, NaN where missing."""

    name: str
    dtype: str
    days: np.ndarray | None = None

    @property
    def refusal(self) -> InputError:
        """What to say of it."""
        way = (
            "convert it to a number or a text, or declare it of kind ignore"
            if self.days is None
            else f"say --kind {quoted(f'{self.name}=continuous')} to take it as days since 1970, or declare it of "
            "kind ignore"
        )
        return InputError(f"column {self.name!r} holds {self.dtype}; expected categories or numbers: {way}")

    def joined(self, parts: Sequence[Column]) -> Unusable:
        """Return the columns of several tables as one, which holds days only if each does."""
        days = [part.days for part in parts if isinstance(part, Unusable) and part.days is not None]
        return replace(self, days=np.concatenate(days) if len(days) == len(parts) else None)


Column = np.ndarray | Coded | Unusable


def usable(column: Column) -> np.ndarray | Coded:
    """The column, unless it has to be refused."""
    if isinstance(column, Unusable):
        raise column.refusal
    return column


@dataclass(frozen=True)
class Table:
    """Named columns of one length.

    `columns` is one (n, p) array where the source was one: a wide table is then handled at once.
    """

    names: tuple[str, ...]
    columns: np.ndarray | tuple[Column, ...]
    n_rows: int
    row_ids: np.ndarray | None = None
    positional: bool = False
    """The names are made up (a bare array), so columns are matched by position."""
    loci: tuple[Locus, ...] | None = None
    """The columns are genotypes at these: one C-contiguous array of the codes of `pair_code`, -1 where missing."""
    remarks: tuple[str, ...] = ()
    """What was found when it was read that is not the usual, a sentence each."""
    decimal_comma: bool = False
    """Numbers in the texts have decimal commas."""
    first: str | None = None
    """The first column of the table as it was read, whichever are taken from it later."""

    def __post_init__(self) -> None:
        refuse_duplicates(self.names)
        if self.first is None and self.names:
            object.__setattr__(self, "first", self.names[0])

    @property
    def n_columns(self) -> int:
        return len(self.names)

    def column(self, position: int) -> Column:
        """One column."""
        return self.columns[:, position] if isinstance(self.columns, np.ndarray) else self.columns[position]

    def take(self, positions: list[int]) -> Table:
        """The table with these columns, in this order."""
        names = tuple(self.names[j] for j in positions)
        columns: np.ndarray | tuple[Column, ...]
        if positions == list(range(self.n_columns)):
            columns = self.columns
        elif isinstance(self.columns, np.ndarray):
            columns = self.columns.take(np.asarray(positions, np.intp), axis=1)
        else:
            columns = tuple(self.columns[j] for j in positions)
        loci = None if self.loci is None else tuple(self.loci[j] for j in positions)
        return replace(self, names=names, columns=columns, loci=loci)

    def rows(self, kept: np.ndarray) -> Table:
        """The table with the rows of a mask (n,)."""
        columns: np.ndarray | tuple[Column, ...]
        if isinstance(self.columns, np.ndarray):
            columns = self.columns[kept]
        else:
            columns = tuple(
                column[kept]
                if isinstance(column, np.ndarray)
                else replace(column, codes=column.codes[kept])
                if isinstance(column, Coded)
                else replace(column, days=None if column.days is None else column.days[kept])
                for column in self.columns
            )
        row_ids = np.arange(self.n_rows) if self.row_ids is None else self.row_ids
        return replace(self, columns=columns, n_rows=int(kept.sum()), row_ids=row_ids[kept])

    def with_row_ids_from(self, name: str) -> Table:
        """The table without column `name`, whose values become the row ids."""
        if name not in self.names:
            raise InputError(f"there is no column {name!r} to take row ids from{suggestion(name, self.names)}")
        position = self.names.index(name)
        row_ids = plain_values(self.column(position))
        if row_ids.dtype.kind == "f" and np.array_equal(row_ids, np.floor(row_ids)) and np.abs(row_ids).max() < 2.0**53:
            row_ids = row_ids.astype(np.int64)  # files of SPSS and Stata hold whole numbers as floats
        rest = self.take([j for j in range(self.n_columns) if j != position])
        return replace(rest, row_ids=row_ids)


def is_missing(value: Any) -> bool:
    """Whether a value stands for nothing: None, NaN, pandas' NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def plain_values(column: Column) -> np.ndarray:
    """The cells of a column (n,), None where a text is missing."""
    column = usable(column)
    if isinstance(column, np.ndarray):
        return column
    values = np.array([*column.values, None], dtype=object)  # code -1 finds the None at the end
    return values[column.codes]
