"""Files of statistics programs and spreadsheets -> `Table`: SPSS, Stata, Excel, with value labels as levels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.frames import from_pandas
from mixmem.data.table import Coded, Column, Table
from mixmem.errors import InputError
from mixmem.extras import needs
from mixmem.words import listing, suggestion

if TYPE_CHECKING:
    import pandas as pd


def read_labelled(path: Path) -> Table:
    """The table in a file of SPSS (.sav, .zsav, .por) or Stata (.dta).

    Values that the file declares missing are missing. A variable whose values all have labels holds those labels, in
    the order of the values; it is ordinal where the file calls its measure so.
    """
    pyreadstat = needs("pyreadstat", f"reading {path}", "survey")
    reader = {".dta": pyreadstat.read_dta, ".por": pyreadstat.read_por}.get(path.suffix.lower(), pyreadstat.read_sav)
    try:
        frame, meta = reader(str(path))
    except Exception as error:  # pyreadstat raises its own errors and those of its C library
        raise InputError(f"{path} cannot be read ({_first_line(error)}); check what the file is") from error
    table = from_pandas(frame)
    columns = [_labelled(table.column(j), meta.variable_value_labels.get(name)) for j, name in enumerate(table.names)]
    measures = getattr(meta, "variable_measure", None) or {}
    return Table(table.names, tuple(map(_on_scale, columns, map(measures.get, table.names))), table.n_rows)


def _on_scale(column: Column, measure: str | None) -> Column:
    """A labelled column whose order is one from the least to the most, if the file says so."""
    return (
        replace(column, scale=True) if isinstance(column, Coded) and column.ordered and measure == "ordinal" else column
    )


def _labelled(column: Column, labels: dict[Any, str] | None) -> Column:
    """A column with labels for its values, where each value that occurs has one of its own."""
    if not labels or len(set(labels.values())) < len(labels):
        return column
    known = sorted(labels, key=lambda value: (isinstance(value, str), value))
    if isinstance(column, Coded):
        codes = {value: code for code, value in enumerate(known)}
        if not set(column.values) <= set(codes):
            return column
        lookup = np.array([*(codes[value] for value in column.values), -1], dtype=np.int64)
        return Coded(tuple(labels[value] for value in known), lookup[column.codes], ordered=True)
    if not isinstance(column, np.ndarray) or any(isinstance(value, str) for value in known):
        return column
    numbers = np.asarray(column, dtype=np.float64)
    values = np.array(known, dtype=np.float64)
    present = ~np.isnan(numbers)
    if not np.isin(numbers[present], values).all():
        return column
    held = np.full(len(numbers), -1, dtype=np.int64)
    held[present] = np.searchsorted(values, numbers[present])
    return Coded(tuple(labels[value] for value in known), held, ordered=True)


def read_excel(path: Path, sheet: str | None) -> Table:
    """The table in a sheet of a workbook (.xlsx, .xls, .ods), the first one unless it is named: FILE::SHEET."""
    needs("python_calamine", f"reading {path}", "excel")
    import pandas as pd

    try:
        with pd.ExcelFile(path, engine="calamine") as book:
            names = [str(name) for name in book.sheet_names]
            if sheet is not None and sheet not in names:
                raise InputError(f"{path} has no sheet {sheet!r}{suggestion(sheet, names)}")
            frame = book.parse(names[0] if sheet is None else sheet)
    except InputError:
        raise
    except Exception as error:  # calamine's errors have no common class
        raise InputError(f"{path} cannot be read ({_first_line(error)}); check what the file is") from error
    _refuse_no_names(path, frame)
    table = from_pandas(frame)
    said: tuple[str, ...] = ()
    if sheet is None and len(names) > 1:
        said = (f"{path}: read the first of its sheets, {listing(names)}; say {path.name}::SHEET for another",)
    return Table(table.names, table.columns, table.n_rows, remarks=said)


def _refuse_no_names(path: Path, frame: pd.DataFrame) -> None:
    """Refuse a sheet whose first line does not name its columns."""
    odd = [j for j, name in enumerate(frame.columns, start=1) if str(name).startswith("Unnamed:")]
    if odd:
        raise InputError(
            f"{path}: column {odd[0]} has no name in the sheet's first line; expected names there: delete lines above "
            "the names, or name the column"
        )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
