"""`mixmem impute`: missing cells filled by a stored model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mixmem.cli.compilation import announce_compilation
from mixmem.cli.reading import Described
from mixmem.cli.stored import say_what_was_found, stored_model
from mixmem.data.read import read_table
from mixmem.data.table import plain_values
from mixmem.progress import current


def filled_table(
    model: Path,
    data: str | Path,
    described: Described | None = None,
    *,
    jobs: int | None = None,
    quiet: bool = False,
) -> pl.DataFrame:
    """A table as it was, with what a stored model makes of its missing cells; genotypes as numbers of copies."""
    described = described or Described(handle_unknown="error")
    fitted = stored_model(model, jobs)
    with current().stage("reading"):
        whole = read_table(data, dialect=described.dialect)
        table = described.encode_as(whole, fitted.schema_, fitted.missing)
    say_what_was_found(table, quiet)
    announce_compilation(quiet)
    if whole.loci is not None:
        filled = fitted.impute(table)
        ids = pl.Series("sample", table.row_ids.tolist(), strict=False)
        return pl.DataFrame([ids, *(pl.Series(name, filled[name].to_numpy()) for name in filled.columns)])
    by_position = whole.positional and not fitted.schema_.left_out
    positions = {name: j for j, name in enumerate(whole.names if by_position else table.schema.names)}
    found = {j: (gaps, values) for j, gaps, values in fitted.fillings(table)}
    columns = []
    for at, name in enumerate(whole.names):
        column = plain_values(whole.column(at))
        if positions.get(name) in found:
            column = _filled(column, *found[positions[name]])
        columns.append(pl.Series(name, column.tolist(), strict=False))
    return pl.DataFrame(columns)


def _filled(column: np.ndarray, gaps: np.ndarray, values: list[Any]) -> np.ndarray:
    """A column with its gaps (rows) filled, as texts where the others are: of a file without types."""
    found = column.astype(object)
    texts = any(isinstance(value, str) for value in np.delete(found, gaps))
    for row, value in zip(gaps, values, strict=True):
        short = float(f"{value:.6g}") if isinstance(value, float) else value
        found[row] = str(short) if texts else short
    # Whole numbers were read as floats for the sake of the gaps.
    whole = column.dtype.kind == "f" and all(float(value).is_integer() and abs(value) < 2**53 for value in found)
    return found.astype(np.int64) if whole else found
