"""Which kind a column is that was not declared."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST_INTEGERS = 12
"""Whole numbers of more distinct values than this are no categories unless they are declared so: counts if they begin
at 0 or 1 and a tenth of them is no larger than this, continuous otherwise."""
CELLS_PER_VALUE = 10
"""Numbers with fractions are categories, too, where no more are distinct and so many cells hold each on average."""
EARLY = 1000
"""Cells that are looked at first."""


def _kind_of(column: np.ndarray, low: Any, high: Any, whole: bool) -> str:
    """The kind of a column of numbers that was not declared."""
    if column.dtype.kind == "b" or (whole and int(high) - int(low) < MOST_INTEGERS):
        return "categorical"
    present = column[~np.isnan(column)] if column.dtype.kind == "f" else column
    if not whole:
        # a column that is no few values shows so early: no need to sort all of it
        few = len(np.unique(present[:EARLY])) <= MOST_INTEGERS
        values = len(np.unique(present)) if few else len(present)
        return "categorical" if values <= min(MOST_INTEGERS, len(present) / CELLS_PER_VALUE) else "continuous"
    if len(np.unique(present)) <= MOST_INTEGERS:
        return "categorical"
    return "count" if low in (0, 1) and np.quantile(present, 0.1) <= MOST_INTEGERS else "continuous"
