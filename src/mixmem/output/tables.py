"""Tables of the fixed layouts that commands write."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import typer

from mixmem.data.coding import Coding
from mixmem.data.schema import Schema
from mixmem.data.table import is_missing
from mixmem.errors import InputError
from mixmem.storage.atomic import write_atomically

if TYPE_CHECKING:
    import pandas as pd


PARAMETER_DIGITS, MEMBERSHIP_DIGITS = 10, 8
"""Significant digits in the files: more would be bytes without information."""


def component_names(k: int) -> list[str]:
    """component_1..component_k."""
    return [f"component_{h + 1}" for h in range(k)]


def _components(values: np.ndarray, digits: int) -> list[pl.Series]:
    names = component_names(values.shape[1])
    return [pl.Series(name, np.ascontiguousarray(values[:, h])).round_sig_figs(digits) for h, name in enumerate(names)]


def membership_frame(memberships: np.ndarray, row_ids: np.ndarray, row_name: str = "row") -> pl.DataFrame:
    """Row ids and memberships (n, k)."""
    ids = pl.Series(row_name, row_ids.tolist() if row_ids.dtype == object else row_ids, strict=False)
    columns = _components(memberships, MEMBERSHIP_DIGITS)
    if row_name in {column.name for column in columns}:
        raise InputError(f"the row ids' column cannot be called {row_name!r}, as a component is; rename it")
    return pl.DataFrame([ids, *columns])


def as_polars(frame: pd.DataFrame | Mapping[str, np.ndarray], digits: int | None = None) -> pl.DataFrame:
    """Named columns, or a pandas frame without its index, by way of lists: polars' own way needs pyarrow. Floats cut to
    the digits."""
    columns = []
    for name in frame:
        column = frame[name]
        values = np.asarray(column, dtype=None if isinstance(column.dtype, np.dtype) else object)
        held = [None if is_missing(value) else value for value in values.tolist()] if values.dtype == object else values
        series = pl.Series(str(name), held, strict=False)
        columns.append(series if digits is None or series.dtype != pl.Float64 else series.round_sig_figs(digits))
    return pl.DataFrame(columns)


def write_theta(path: Path, schema: Schema, theta: np.ndarray) -> None:
    """variable, level, statistic, component_1..k."""
    titles = ("variable", "level", "statistic")
    columns = zip(titles, zip(*schema.labels, strict=True), strict=True)
    labels = [pl.Series(title, list(texts), dtype=pl.String) for title, texts in columns]
    pl.DataFrame([*labels, *_components(theta, PARAMETER_DIGITS)]).write_csv(path)


def write_alpha(path: Path, alpha: np.ndarray) -> None:
    """component, alpha."""
    frame = pl.DataFrame({"component": component_names(len(alpha)), "alpha": alpha})
    frame.with_columns(pl.col("alpha").round_sig_figs(PARAMETER_DIGITS)).write_csv(path)


def write_codes(path: Path, codes: np.ndarray, coding: Coding) -> None:
    """A table of codes as its values."""
    columns = [pl.Series(c.name, c.held()).gather(codes[:, j]) for j, c in enumerate(coding.columns)]
    pl.DataFrame(columns).write_csv(path)


WRITERS: dict[str, Callable[[pl.DataFrame, Any], Any]] = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".parquet": lambda frame, path: frame.write_parquet(path),
}


def write_table(path: Path, frame: pl.DataFrame) -> None:
    """Write a frame in the format of the suffix."""
    WRITERS[path.suffix.lower()](frame, path)


@contextmanager
def growing_table(path: Path) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Yield a function that adds a frame's rows to a table: CSV and TSV at once, Parquet by way of parts beside it."""
    if path.suffix.lower() == ".parquet":
        with tempfile.TemporaryDirectory(prefix=".parts-", dir=path.parent) as folder:
            count = itertools.count()
            yield lambda frame: frame.write_ipc(Path(folder) / f"{next(count):09}.arrow")
            pl.scan_ipc(Path(folder) / "*.arrow").sink_parquet(path)
        return
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open("wb") as file:
        yield lambda frame: frame.write_csv(file, include_header=file.tell() == 0, separator=separator)


def refuse_overwriting(out: Path, *inputs: str | Path, option: str = "--out") -> None:
    """An output must not take the place of what it is made from."""
    for path in map(Path, inputs):
        if out.exists() and path.exists() and out.samefile(path):
            raise InputError(f"{option} {out} is the file that is read; name another")


@contextmanager
def table_writer(path: Path) -> Iterator[Callable[[pl.DataFrame], None]]:
    """A function that writes a frame, and adds further ones to it; a path that cannot be written is refused before
    anything is computed."""
    if str(path) == "-":
        headers = itertools.chain([True], itertools.repeat(False))
        yield lambda frame: typer.echo(frame.write_csv(include_header=next(headers)), nl=False)
        return
    if path.suffix.lower() not in WRITERS:
        raise InputError(f"{path} has the suffix {path.suffix!r}; expected one of {' '.join(WRITERS)}, or - for CSV")
    with write_atomically(path) as temporary, growing_table(temporary) as add:
        yield add
