"""Data frames and arrays -> `Table`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.schema import refuse_duplicates
from mixmem.data.table import Coded, Column, Table, Unusable, is_missing
from mixmem.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

NUMBERS = "biuf"
"""numpy's letters for the dtypes that are kept as numbers: bool, signed, unsigned, float."""


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
    if hasattr(series, "sparse"):
        series = series.sparse.to_dense()
    if hasattr(series, "cat"):
        values, scale = tuple(series.cat.categories.tolist()), bool(series.cat.ordered)
        return Coded(values, series.cat.codes.to_numpy(), ordered=True, scale=scale)
    dtype: Any = series.dtype
    if dtype.kind == "c":
        raise InputError(f"column {name!r}: Complex data not supported: got {dtype}; expected categories")
    if dtype.kind == "M" or (dtype.kind == "O" and _holds_dates(series)):
        import pandas as pd

        times = pd.to_datetime(series, errors="coerce", utc=True).dt.tz_localize(None)
        return Unusable(name, "dates", ((times - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy(dtype=np.float64))
    if dtype.kind == "m":
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


def _holds_dates(series: pd.Series) -> bool:
    """Whether a column of objects holds dates: the first that is there is one, and all others are."""
    at = series.first_valid_index()
    if at is None or not isinstance(series.loc[at] if series.index.is_unique else series.dropna().iloc[0], date):
        return False
    return all(isinstance(value, date) for value in series.dropna())


def from_polars(frame: pl.DataFrame, *, untyped: bool = False, skipped: Collection[str] = ()) -> Table:
    """A table from a polars data frame; `untyped` says that its texts come from a file without types.

    Of columns that are `skipped` the name alone is kept.
    """
    columns = tuple(
        Unusable(series.name, "cells that were not read") if series.name in skipped else _polars_column(series, untyped)
        for series in frame.get_columns()
    )
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
    if dtype in (pl.Date, pl.Datetime):
        days = series.cast(pl.Datetime("us")).dt.epoch("us").cast(pl.Float64) / 86_400e6
        return Unusable(series.name, "dates", days.to_numpy())
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
