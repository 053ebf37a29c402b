"""Anything a user has -> `Table`.

A table holds plain columns only, numbers as numpy arrays and everything else as `Coded`, so that no later
stage needs to know pandas, polars or pyarrow. Those are slow to import: only the functions that parse files
import them, and objects of theirs are looked for only if something else has imported them already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.errors import InputError
from mixmem.schema import refuse_duplicates, suggestion

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

NUMBERS = "biuf"
"""numpy's letters for the dtypes that are kept as numbers: bool, signed, unsigned, float."""


@dataclass(frozen=True)
class Coded:
    """A column that is not all numbers: row i holds values[codes[i]], or nothing where the code is -1."""

    values: tuple[Any, ...]
    codes: np.ndarray
    ordered: bool = False
    """The values stand in the order their owner gave them (a categorical dtype)."""
    untyped: bool = False
    """Texts of a file without types, which may stand for numbers or truth values."""


@dataclass(frozen=True)
class Locus:
    """A place in the genome: its alleles, the reference first; genotypes are coded by pairs of their positions."""

    alleles: tuple[str, ...]
    chromosome: str = ""
    position: int = 0


@dataclass(frozen=True)
class Unusable:
    """A column of what cannot be fitted, such as dates: refused unless it is ignored."""

    name: str
    dtype: str

    @property
    def refusal(self) -> InputError:
        """What to say of it."""
        return InputError(
            f"column {self.name!r} holds {self.dtype}; expected categories or numbers: convert it to a number or a "
            "text, or declare it of kind ignore"
        )


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

    def __post_init__(self) -> None:
        refuse_duplicates(self.names)

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
                else column
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
        rest = self.take([j for j in range(self.n_columns) if j != position])
        return replace(rest, row_ids=row_ids)


def read_table(source: Any, *, row_id: str | None = None) -> Table:
    """A table from a file, a data frame or an array.

    Parameters
    ----------
    source
        A path to .csv, .tsv (either may end in .gz), .parquet, .feather, .arrow or .npz, to genotypes in .bed
        (PLINK), .vcf, .bcf or .str (STRUCTURE), a folder of such files of one kind (stacked in the order of their
        names), "-" for CSV on standard input, a pandas or polars data frame, a pyarrow table, or what numpy makes
        a 2-d array of.
    row_id
        The column with the row ids. Without it, a pandas index or an unnamed first CSV column serves.
    """
    table = _read(source)
    return table if row_id is None else table.with_row_ids_from(row_id)


def _read(source: Any) -> Table:
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, PathLike)):
        from mixmem.read.files import read_file

        return read_file(source)
    if (pandas := sys.modules.get("pandas")) and isinstance(source, pandas.DataFrame):
        return from_pandas(source)
    if polars := sys.modules.get("polars"):
        if isinstance(source, polars.LazyFrame):
            source = source.collect()
        if isinstance(source, polars.DataFrame):
            return from_polars(source)
    if (pyarrow := sys.modules.get("pyarrow")) and isinstance(source, pyarrow.Table):
        refuse_duplicates(source.column_names)
        import polars as pl

        return from_polars(pl.DataFrame(source))
    if hasattr(source, "tocsr"):
        raise InputError("got a sparse matrix; expected a dense table of categories: convert it with .toarray()")
    return from_array(source)


def from_array(source: Any, names: Iterable[str] | None = None) -> Table:
    """A table from what numpy makes a 2-d array of; variables are x0, x1, ... unless names are given."""
    if not isinstance(source, (np.ndarray, list, tuple)) and not hasattr(source, "__array__"):
        raise InputError(
            f"got {type(source).__name__}; expected a path, a data frame (pandas, polars, pyarrow) or a 2-d array"
        )
    if isinstance(source, np.ma.MaskedArray):
        hidden, source = np.ma.getmaskarray(source), np.ma.getdata(source)
        source = np.where(hidden, np.nan, source) if source.dtype.kind in NUMBERS else np.where(hidden, None, source)
    array = _as_array(source)
    if array.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {array.ndim}D array instead (shape={array.shape}). Reshape your data to "
            "rows x variables, with array.reshape(1, -1) if it is one row"
        )
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: got {array.dtype}; expected categories")
    if array.dtype.kind not in NUMBERS + "OUST":
        raise InputError(
            f"got an array of {array.dtype}; expected categories (integers, text, booleans): convert it to text"
        )
    positional = names is None
    names = tuple(f"x{j}" for j in range(array.shape[1])) if names is None else tuple(str(n) for n in names)
    if len(names) != array.shape[1]:
        raise InputError(f"got {len(names)} column names for {array.shape[1]} columns; name each column once")
    if array.dtype.kind in NUMBERS:
        return Table(names, array, len(array), positional=positional)
    columns = tuple(code_values(array[:, j].tolist(), name) for j, name in enumerate(names))
    return Table(names, columns, len(array), positional=positional)


def _as_array(source: Any) -> np.ndarray:
    try:
        array = np.asarray(source)
        if array.dtype.kind in "US" and not isinstance(source, np.ndarray):
            # numpy turned the numbers of a mixed list into texts such as "1.0"; keep what was given.
            array = np.asarray(source, dtype=object)
    except ValueError as error:
        raise InputError(f"the rows are not of one length ({error}); expected a 2-d array") from error
    return array


def from_pandas(frame: pd.DataFrame) -> Table:
    """A table from a pandas data frame; its index becomes the row ids."""
    names = tuple(str(name) for name in frame.columns)
    refuse_duplicates(names)
    index = frame.index.to_flat_index().map(str) if frame.index.nlevels > 1 else frame.index
    dtypes = set(frame.dtypes)
    columns: np.ndarray | tuple[Column, ...]
    if len(dtypes) == 1 and isinstance(only := next(iter(dtypes)), np.dtype) and only.kind in NUMBERS:
        columns = frame.to_numpy()
    else:
        columns = tuple(_pandas_column(frame.iloc[:, j], name) for j, name in enumerate(names))
    return Table(names, columns, len(frame), np.asarray(index))


def _pandas_column(series: pd.Series, name: str) -> Column:
    if hasattr(series, "cat"):
        return Coded(tuple(series.cat.categories.tolist()), series.cat.codes.to_numpy(), ordered=True)
    dtype: Any = series.dtype
    if dtype.kind == "c":
        raise InputError(f"column {name!r}: Complex data not supported: got {dtype}; expected categories")
    if dtype.kind in "mM":
        return Unusable(name, str(dtype))
    if dtype.kind in NUMBERS:
        if isinstance(dtype, np.dtype):
            return series.to_numpy()
        # A nullable dtype: with something missing only floats can say so of numbers, and objects of truth values.
        if series.isna().any() and dtype.kind != "b":
            return series.to_numpy(dtype=np.float64, na_value=np.nan)
        if series.isna().any():
            return code_values(series.tolist(), name)
        return series.to_numpy(dtype=dtype.numpy_dtype)
    return code_values(series.tolist(), name)


def from_polars(frame: pl.DataFrame, *, untyped: bool = False) -> Table:
    """A table from a polars data frame; `untyped` says that its texts come from a file without types."""
    columns = tuple(_polars_column(series, untyped) for series in frame.get_columns())
    return Table(tuple(frame.columns), columns, frame.height)


def _polars_column(series: pl.Series, untyped: bool) -> Column:
    import polars as pl

    dtype = series.dtype
    if isinstance(dtype, pl.Enum):
        codes = series.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        return Coded(tuple(dtype.categories.to_list()), codes, ordered=True)
    if dtype.is_decimal() or (dtype.is_numeric() and series.has_nulls()):
        series = series.cast(pl.Float64)  # a null becomes NaN
        return series.to_numpy()
    if dtype.is_numeric() or (dtype == pl.Boolean and not series.has_nulls()):
        return series.to_numpy()
    if dtype.is_temporal() or dtype.is_nested() or dtype == pl.Binary:
        return Unusable(series.name, str(dtype))
    # Categorical too: polars shares its categories between columns, so their order says nothing here.
    return code_values(series.to_list(), series.name, untyped=untyped)


def code_values(values: list[Any], name: str, *, untyped: bool = False) -> Coded:
    """Code a column by its distinct values, in the order in which they appear.

    A dict is faster here than sorting or than a data frame library's calls, by column. Types take part in the
    key because 1, 1.0 and True are one key to a dict.
    """
    found: dict[Any, int] = {}
    codes = np.empty(len(values), dtype=np.int64)
    types = set(map(type, values)) - {type(None)}
    try:
        if len(types) == 1 and types <= {str, int, bool}:
            codes[:] = [-1 if v is None else found.setdefault(v, len(found)) for v in values]
            return Coded(tuple(found), codes, untyped=untyped)
        codes[:] = [-1 if is_missing(v) else found.setdefault((type(v), v), len(found)) for v in values]
    except TypeError as error:
        odd = next(v for v in values if getattr(type(v), "__hash__", None) is None)
        raise InputError(
            f"column {name!r} holds a {type(odd).__name__}; expected a category (integer, text, boolean) in every cell"
        ) from error
    return Coded(tuple(value for _, value in found), codes, untyped=untyped)


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
