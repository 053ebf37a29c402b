"""Anything a user has -> `Table`: files, folders, frames and arrays."""

from __future__ import annotations

import sys
from os import PathLike
from typing import TYPE_CHECKING, Any

from mixmem.data.dialect import Dialect
from mixmem.data.frames import from_array, from_pandas, from_polars
from mixmem.data.schema import refuse_duplicates
from mixmem.data.table import Table
from mixmem.errors import InputError

if TYPE_CHECKING:
    pass


def read_table(source: Any, *, row_id: str | None = None, dialect: Dialect | None = None) -> Table:
    """A table from a file, a data frame or an array.

    Parameters
    ----------
    source
        A path to .csv, .tsv, .txt (each may end in .gz), .parquet, .feather, .arrow, .json, .jsonl, .xlsx, .sav, .dta
        or .npz, to genotypes in .bed (PLINK), .vcf, .bcf or .str (STRUCTURE), to a table of a database
        (FILE.sqlite::TABLE), to such a file in a .zip, .xz, .bz2 or .zst, a folder of such files of one kind or a
        pattern such as "part-*.parquet" (stacked in the order of their names), "-" for CSV on standard input, a pandas
        or polars data frame, a pyarrow table, or what numpy makes a 2-d array of.
    row_id
        The column with the row ids. Without it, a pandas index or an unnamed first CSV column serves.
    dialect
        What is known of how a text file writes its table; the rest is found.
    """
    table = _read(source, dialect)
    return table if row_id is None else table.with_row_ids_from(row_id)


def _read(source: Any, dialect: Dialect | None) -> Table:
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, PathLike)):
        from mixmem.data.files import read_file

        return read_file(source, dialect)
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
    if hasattr(source, "dask") and hasattr(source, "compute"):
        raise InputError(
            f"got a {type(source).__name__} of Dask; expected fit(X, engine=client), which reads it part by part on "
            "the workers, or a table in memory: X.compute()"
        )
    if hasattr(source, "tocsr"):
        raise InputError("got a sparse matrix; expected a dense table of categories: convert it with .toarray()")
    return from_array(source)
