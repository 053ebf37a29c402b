"""Tables of SQLite and DuckDB files -> `Table`, named FILE::TABLE."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from mixmem.data.frames import from_pandas, from_polars
from mixmem.data.table import Table
from mixmem.errors import InputError
from mixmem.extras import needs
from mixmem.words import listing, suggestion


def read_sqlite(path: Path, name: str | None) -> Table:
    """A table of an SQLite file."""
    import sqlite3

    import polars as pl

    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as link:
            found = link.execute("select name from sqlite_master where type in ('table', 'view') order by name")
            query = _query(path, name, [row[0] for row in found])
            return from_polars(pl.read_database(query, link, infer_schema_length=None))
    except (sqlite3.Error, pl.exceptions.PolarsError) as error:
        raise InputError(f"{path} cannot be read as SQLite ({error}); check what the file is") from error


def read_duckdb(path: Path, name: str | None) -> Table:
    """A table of a DuckDB file."""
    duckdb = needs("duckdb", f"reading {path}", "duckdb")
    try:
        with closing(duckdb.connect(str(path), read_only=True)) as link:
            found = link.execute("select table_name from information_schema.tables order by table_name")
            query = _query(path, name, [row[0] for row in found.fetchall()])
            return replace(from_pandas(link.execute(query).df()), row_ids=None)
    except duckdb.Error as error:
        raise InputError(f"{path} cannot be read as DuckDB ({error}); check what the file is") from error


def _query(path: Path, name: str | None, tables: list[str]) -> str:
    if name is None and len(tables) != 1:
        raise InputError(
            f"{path} holds the tables {listing(tables) or '(none)'}; expected one, named {path.name}::TABLE"
        )
    wanted = tables[0] if name is None else name
    if wanted not in tables:
        raise InputError(f"{path} has no table {wanted!r}{suggestion(wanted, tables)}")
    quoted = wanted.replace('"', '""')
    return f'select * from "{quoted}"'
