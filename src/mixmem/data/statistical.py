"""Files of statistics programs and spreadsheets -> `Table`: SPSS, Stata, Excel, with value labels as levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.frames import from_pandas
from mixmem.data.level_text import canonical_text
from mixmem.data.table import Coded, Column, Table, Unusable
from mixmem.errors import InputError
from mixmem.extras import needs
from mixmem.words import listed, listing, quoted, suggestion

if TYPE_CHECKING:
    import pandas as pd


def read_labelled(path: Path) -> Table:
    """The table in a file of SPSS (.sav, .zsav, .por) or Stata (.dta).

    Values that the file declares missing are missing. A variable most of whose values have labels holds those labels,
    in the order of the values, and the few others as they are, which is said; it is ordinal where the file calls its
    measure so and all have labels.
    """
    pyreadstat = needs("pyreadstat", f"reading {path}", "survey")
    reader = {".dta": pyreadstat.read_dta, ".por": pyreadstat.read_por}.get(path.suffix.lower(), pyreadstat.read_sav)
    try:
        frame, meta = reader(str(path))
    except Exception as error:  # pyreadstat raises its own errors and those of its C library
        raise InputError(f"{path} cannot be read ({_first_line(error)}); check what the file is") from error
    table = from_pandas(frame)
    columns, strays = [], {}
    for j, name in enumerate(table.names):
        column, others = _labelled(table.column(j), meta.variable_value_labels.get(name))
        columns.append(column)
        if others:
            strays[name] = others
    measures = {
        name: measure for name, measure in (getattr(meta, "variable_measure", None) or {}).items() if name not in strays
    }
    on_scale = tuple(map(_on_scale, columns, map(measures.get, table.names)))
    return Table(table.names, on_scale, table.n_rows, remarks=_said(path, strays))


def _said(path: Path, strays: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """What to say of values without a label, by column."""
    if not strays:
        return ()
    held = listed([f"{name!r} ({listed(others, 4)})" for name, others in strays.items()])
    name, others = next(iter(strays.items()))
    return (
        f"{path}: among labelled values, some without a label are levels of their own: {held}; if one means a missing "
        f"cell, say so, such as --missing {quoted(f'{name}={others[0]}')}",
    )


def _on_scale(column: Column, measure: str | None) -> Column:
    """A labelled column whose order is one from the least to the most, if the file says so."""
    return (
        replace(column, scale=True) if isinstance(column, Coded) and column.ordered and measure == "ordinal" else column
    )


def _labelled(column: Column, labels: dict[Any, str] | None) -> tuple[Column, list[str]]:
    """A column with labels for its values, and the texts of those few that have none; as it is where many have none."""
    if not labels or isinstance(column, Unusable):
        return column, []
    if isinstance(column, Coded):
        values, codes = list(column.values), column.codes
    else:
        numbers = np.asarray(column, dtype=np.float64)
        present = ~np.isnan(numbers)
        distinct, place = np.unique(numbers[present], return_inverse=True)
        values, codes = distinct.tolist(), np.full(len(numbers), -1, dtype=np.int64)
        codes[present] = place
    strays = [value for value in values if value not in labels]
    if any(isinstance(value, str) for value in labels) != isinstance(column, Coded):
        return column, []
    if 2 * len(strays) >= len(values) > 0:
        return column, []
    known = sorted({*labels, *strays})
    texts = _texts(known, labels)
    lookup = np.array([*(known.index(value) for value in values), -1], dtype=np.int64)
    others = [text for value, text in zip(known, texts, strict=True) if value in strays]
    return Coded(tuple(texts), lookup[codes], ordered=True), others


def _texts(values: Sequence[Any], labels: Mapping[Any, str]) -> list[str]:
    """The labels of values, with the value beside a label that stands for several; values as they are without one."""
    plain = {value: canonical_text(value, "str") for value in values}
    said = [labels.get(value, plain[value]) for value in values]
    often = Counter(said)
    return [text if often[text] == 1 else f"{text} ({plain[value]})" for value, text in zip(values, said, strict=True)]


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
