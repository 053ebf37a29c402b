"""Table -> codes: every cell as the position of its level, or of its value among the column's numbers.

A level is known by its canonical text: the integer 1, the float 1.0 and the text "1" are all "1", and True is
"True". A model learned from an array of integers therefore accepts the same values from a CSV file.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.asked import Asked, UnknownLevels
from mixmem.data.coding import Coding, ColumnCoding
from mixmem.data.column_coders import as_numbers
from mixmem.data.column_refusals import Judged, too_few_columns
from mixmem.data.columns import Columns, columns_of
from mixmem.data.declared import kind_and_order, kinds_by_column
from mixmem.data.kinds.base import MAX_CODES
from mixmem.data.match_columns import match_columns
from mixmem.data.read import read_table
from mixmem.data.schema import Schema, Variable
from mixmem.data.stacking import in_order_of, refuse_other_columns, stack
from mixmem.data.table import Table
from mixmem.data.table_checks import (
    IGNORED,
    MIN_VARIABLES,
    blanked,
    check_declared,
    check_shape,
    check_weights,
    refuse_alike,
    without_weights,
)
from mixmem.data.value_grid import MOST_VALUES
from mixmem.errors import InputError, TableWarning

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Encoded:
    """A table as codes: the one object that stages hand to each other.

    Attributes
    ----------
    codes : array (n, p)
        C-contiguous, of ``coding.codes_dtype``: cell (i, j) holds level, or value, codes[i, j] of variable j; a missing
        cell has the code after the last.
    coding : Coding
        What the codes mean.
    row_ids : array (n,)
        The rows' ids, 0..n-1 where the data brought none.
    weights : array (n,) or None
        How many rows each stands for; None for one each.
    remarks : tuple of str
        What was found in the table that its owner should know: columns left out, how a file was read.

    Examples
    --------
    >>> from mixmem import encode
    >>> encode([["x", 1], ["y", 2]]).codes
    array([[0, 0],
           [1, 1]], dtype=uint8)
    """

    codes: np.ndarray
    coding: Coding
    row_ids: np.ndarray
    weights: np.ndarray | None = None
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, codes: np.ndarray, coding: Coding, weights: np.ndarray | None = None) -> Encoded:
        """Return the table of codes whose rows have no ids of their own."""
        return cls(codes, coding, np.arange(len(codes)), weights)

    @property
    def schema(self) -> Schema:
        """Return the variables."""
        return self.coding.schema

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return len(self.codes)

    @property
    def n_variables(self) -> int:
        """Return the number of variables."""
        return self.codes.shape[1]

    @property
    def total(self) -> float:
        """Return the weight of all rows."""
        return float(len(self.codes) if self.weights is None else self.weights.sum())

    @property
    def each(self) -> np.ndarray:
        """Return the rows' weights (n,), ones if there are none."""
        return np.ones(len(self.codes)) if self.weights is None else self.weights

    @property
    def n_effective(self) -> float:
        """Return how many rows of even weight say as much: those stood for, if weights are whole, else fewer."""
        return self.total if self.weights is None or self.whole else self.total**2 / float((self.weights**2).sum())

    def take(self, rows: Any) -> Encoded:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, codes=np.ascontiguousarray(self.codes[rows]), row_ids=self.row_ids[rows], weights=weights)

    def take_variables(self, variables: np.ndarray) -> Encoded:
        """Return some of the variables, in the order given."""
        codes = np.ascontiguousarray(self.codes[:, variables])
        return replace(self, codes=codes, coding=self.coding.take(variables))

    @property
    def unpooled(self) -> Encoded:
        """Return the table with every level of a category as a soft level of its own."""
        return replace(self, coding=self.coding.unpooled) if self.coding.pooled else self

    @property
    def whole(self) -> bool:
        """Return whether every row stands for a whole number of rows."""
        return self.weights is None or bool((self.weights == np.rint(self.weights)).all())

    def repeated(self, what: str) -> Encoded:
        """Return the table with every row as often as it stands for; refused for ``what`` if that is not whole."""
        if self.weights is None:
            return self
        if not self.whole:
            raise InputError(f"{what} counts rows, and weights that are no whole numbers say nothing of how many")
        return replace(self.take(np.repeat(np.arange(len(self.codes)), self.weights.astype(np.int64))), weights=None)


def encode(
    data: Any,
    schema: Schema | None = None,
    *,
    coding: Coding | None = None,
    row_id: str | None = None,
    kinds: Mapping[str, str] | None = None,
    missing: Any = None,
    weight: str | None = None,
    weights: Any = None,
    gather: bool | None = None,
    columns: str = "useful",
    handle_unknown: str = "error",
) -> Encoded:
    """Code the cells of a table.

    Without a schema or a coding the variables are learned. Texts, truth values and whole numbers of at most 12
    distinct values are categories (numbers in numeric order, texts in lexicographic order, categorical dtypes in their
    own order, unused categories dropped), other whole numbers are counts if they begin at 0 or 1 and are often small,
    all other numbers continuous. Loci of genotype files with one allele or nothing observed are left out.

    Parameters
    ----------
    data
        Anything that `read_table` takes: a path, a data frame, an array.
    schema : Schema or None
        The variables of a model. Columns are matched by name (a bare array by position), further columns are ignored.
    coding : Coding or None
        A coding that is fixed already: the same as a schema, with numbers rounded to its grid, and cells missing only
        where it allows. Tables coded alike have sums that add up.
    row_id : str or None
        The column with the rows' ids.
    kinds : dict or None
        Kinds where they are not to be inferred: {"age": "continuous", "note": "ignore"}. A name such as "q*" stands
        for every column it fits; "ordinal:never<sometimes<often" says in which order texts stand.
    missing : list, dict or None
        Values that mean a missing cell, beside NaN, None and texts such as NA: a list for all columns, or a dictionary
        from column to list.
    weight : str or None
        The column that says how many rows each row stands for; rows that stand for none are left out.
    weights : array (n,) or None
        The same as numbers.
    gather : bool or None
        Whether a thousand values of a column of numbers are kept apart, as when a table is learned from, or all.
    columns : "useful" or "strict"
        Whether columns that are constant, empty, of dates or of a value per row are left out, with a
        :class:`mixmem.TableWarning`, or refused.
    handle_unknown : "error" or "missing"
        Whether a level that the schema does not have is refused, or its cells count as missing, with a warning.

    Returns
    -------
    Encoded
        Codes (n, p) with their coding.

    Examples
    --------
    >>> table = encode([["x", 1], ["y", 2], ["y", 1]])
    >>> table.schema.variables[0].levels
    ('x', 'y')
    """
    if coding is not None:
        schema = coding.schema
    table = read_table(data, row_id=row_id)
    if weight is not None:
        table, weights = without_weights(table, weight)
    elif weights is not None:
        weights = check_weights(weights, table.n_rows)
    if weights is not None and not weights.all():
        table, weights = table.rows(weights > 0.0), weights[weights > 0.0]
    if missing is not None:
        table = blanked(table, missing)
    if schema is None:
        read = {name: kind_and_order(kind) for name, kind in kinds_by_column(kinds or {}, table.names).items()}
        declared = {name: kind for name, (kind, _) in read.items()}
        orders = {name: order for name, (_, order) in read.items() if order}
        check_declared(declared, orders, table)
        table = table.take([j for j, name in enumerate(table.names) if declared.get(name) != IGNORED])
        if table.loci is not None:
            seen = np.asarray(np.any(np.asarray(table.columns) >= 0, axis=0))
            table = table.take([j for j, locus in enumerate(table.loci) if seen[j] and len(locus.alleles) > 1])
            refuse_alike(table)
    else:
        declared, orders = {variable.name: variable.kind for variable in schema.variables}, {}
    check_shape(table, schema)
    if schema is not None:
        table = match_columns(table, schema)
    most = MOST_VALUES if (schema is None if gather is None else gather) else MAX_CODES
    unknown = UnknownLevels() if handle_unknown == "missing" and coding is None else None
    judged = Judged(columns == "strict" or schema is not None)
    asked = Asked(declared, schema, coding, weights, most, judged, orders, unknown)
    table, groups, found = _useful(table, asked)
    if schema is None:
        found = _of_one_ploidy(found)
    left_out = tuple(useless.name for useless in asked.judged.useless.values())
    learned = Coding(tuple(found), left_out) if coding is None else _kept(coding, found)
    codes = np.empty((table.n_rows, table.n_columns), dtype=learned.codes_dtype)
    for group in groups:
        group.write(codes, list(learned.columns), table)
    row_ids = np.arange(table.n_rows) if table.row_ids is None else table.row_ids
    remarks = (*table.remarks, *asked.judged.said(), *(() if unknown is None else unknown.said()))
    for remark in remarks:
        warnings.warn(remark, TableWarning, stacklevel=2)
    return Encoded(codes, learned.pooling(codes, weights) if coding is None else learned, row_ids, weights, remarks)


def _useful(table: Table, asked: Asked) -> tuple[Table, list[Columns], list[ColumnCoding]]:
    """Return the table without the columns that are of no use, its columns in groups, and their codings in order."""
    groups = list(columns_of(table, asked))
    found = {position: column for group in groups for position, column in group.columns(table, asked.schema)}
    useless = asked.judged.useless
    if not useless:
        return table, groups, [found[position] for position in range(table.n_columns)]
    kept = [j for j in range(table.n_columns) if j not in useless]
    if len(kept) < MIN_VARIABLES:
        raise too_few_columns(len(kept), MIN_VARIABLES, [useless[j] for j in sorted(useless)])
    rest = replace(asked, judged=Judged(strict=True))
    return _useful(table.take(kept), rest)


def learn_coding(*sources: Any, kinds: Mapping[str, str] | None = None, missing: Any = None) -> Coding:
    """Learn one coding for several tables, so that sums over them add up.

    The rule: it is the coding of the tables stacked in the order given. Levels are united, numbers in numeric order and
    texts in lexicographic order (categorical dtypes keep their order where all tables list the same categories); grids
    and knots of numbers come from all rows; a variable may be missing if it is in any table.

    Parameters
    ----------
    *sources
        Tables with the same columns, each anything that :func:`encode` takes.
    kinds, missing
        As in :func:`encode`.

    Examples
    --------
    >>> import pandas as pd
    >>> a, b = pd.DataFrame({"u": ["x", "y"], "v": [1, 2]}), pd.DataFrame({"u": ["y", "z"], "v": [2, 1]})
    >>> coding = learn_coding(a, b)
    >>> coding.columns[0].levels, encode(b, coding=coding).codes[:, 0].tolist()
    (('x', 'y', 'z'), [1, 2])
    """
    if not sources:
        raise InputError("learn_coding needs at least one table")
    tables = [read_table(source) for source in sources]
    for number, table in enumerate(tables[1:], start=2):
        refuse_other_columns("table 1", tables[0], f"table {number}", table)
    return encode(stack([in_order_of(table, tables[0].names) for table in tables]), kinds=kinds, missing=missing).coding


def encode_as(X: Any, kinds: Mapping[str, str] | None, missing: Any = None, weights: Any = None) -> Encoded:
    """Code what is not coded yet, with the declared kinds."""
    if not isinstance(X, Encoded):
        return encode(X, kinds=kinds, missing=missing, weights=weights)
    if weights is not None:
        found = check_weights(weights, len(X.codes))
        X = replace(X, weights=found).take(found > 0.0)
    for name, declared in kinds_by_column(kinds or {}, X.schema.names).items():
        kind = kind_and_order(declared)[0]
        if kind == IGNORED and name not in X.schema.names:
            continue  # left out already
        if X.schema.variables[int(X.schema.index([name])[0])].kind != kind:
            raise InputError(
                f"variables declares {name!r} {kind!r}, but the table is encoded already; give kinds to encode"
            )
    return X


def numbers_of(table: Table, variable: Variable, position: int) -> np.ndarray:
    """A table's column of numbers (n,) as read, NaN where missing; matched by name, in a bare array by position."""
    at = position if table.positional else table.names.index(variable.name)
    return as_numbers(table.column(at), at, table, variable.written)


def decode(codes: np.ndarray, coding: Coding) -> pd.DataFrame:
    """Return the values of codes (n, p) as a data frame, None or NaN where missing: the inverse of :func:`encode`.

    Parameters
    ----------
    codes : array (n, p)
        As in :class:`Encoded`.
    coding : Coding
        What they mean.

    Examples
    --------
    >>> table = encode([["x", 1], ["y", 2]])
    >>> decode(table.codes, table.coding)["x0"].tolist()
    ['x', 'y']
    """
    import pandas as pd

    return pd.DataFrame({column.name: decoded(codes[:, j], column) for j, column in enumerate(coding.columns)})


def decoded(codes: np.ndarray, column: ColumnCoding) -> np.ndarray:
    """Return the values of one variable's codes (n,)."""
    held = column.held()
    number = column.own_kind.cells != "levels" or column.value_type != "str"
    if not column.missing:
        held.pop()
    # Texts as objects: numpy's own text type loses trailing NULs.
    values = np.array(held, None if number and not column.missing else object)
    if (
        number
        and column.missing
        and column.value_type != "bool"
        and all(isinstance(value, (int, float)) or value is None for value in held)
    ):
        values = np.array([np.nan if value is None else value for value in held], dtype=float)
    return np.asarray(values[codes])


def _of_one_ploidy(columns: list[ColumnCoding]) -> list[ColumnCoding]:
    """Give genotypes that are numbers of copies the largest number that any of them holds: a rare allele does not reach
    it in every column."""
    copied = [column.own_kind.cells == "copies" for column in columns]
    most = max((column.ploidy for column, copies in zip(columns, copied, strict=True) if copies), default=2)
    return [
        replace(column, variable=replace(column.variable, ploidy=most))
        if copies and len(column.levels) == 2
        else column
        for column, copies in zip(columns, copied, strict=True)
    ]


def _kept(coding: Coding, found: list[ColumnCoding]) -> Coding:
    """Return the coding, unless cells are missing where it allows none."""
    for fixed, column in zip(coding.columns, found, strict=True):
        if column.missing and not fixed.missing:
            raise InputError(
                f"column {fixed.name!r} has missing cells, and the coding was fixed without any; fill them, or learn "
                "one coding from all tables: learn_coding(a, b)"
            )
    return coding
