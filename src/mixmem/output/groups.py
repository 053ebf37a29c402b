"""Groups of rows by a column of labels: kept beside a fit, so that its page can be made again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mixmem.data.table import is_missing
from mixmem.errors import InputError

GROUPS_FILE = "groups.csv"
MOST_GROUPS = 200
"""Groups that a page can show side by side."""
NONE = "(missing)"
"""The group of rows without a label."""


@dataclass(frozen=True)
class Groups:
    """Rows by a label: row i belongs to names[codes[i]]; ``by`` is what the column of labels is called."""

    by: str
    names: tuple[str, ...]
    codes: np.ndarray

    @classmethod
    def of(cls, by: str, labels: np.ndarray) -> Groups:
        """Return the groups of a column of labels (n,), in the order of their names, numbers by size.

        >>> Groups.of("age", np.array([30, 9, None, 30], dtype=object)).names
        ('9', '30', '(missing)')
        """
        texts = np.array([NONE if is_missing(value) else _text(value) for value in labels.tolist()], dtype=object)
        names = sorted(set(texts.tolist()), key=_place)
        if len(names) > MOST_GROUPS:
            raise InputError(
                f"column {by!r} has {len(names):,} different values; expected groups, at most {MOST_GROUPS}: name "
                "another column with --by, or cut this one into classes"
            )
        code = {name: g for g, name in enumerate(names)}
        return cls(by, tuple(names), np.array([code[text] for text in texts], dtype=np.int64))

    @property
    def counts(self) -> np.ndarray:
        """Rows per group."""
        return np.bincount(self.codes, minlength=len(self.names))

    def means(self, memberships: np.ndarray) -> np.ndarray:
        """Return the mean memberships (groups, k) of every group's rows."""
        sums = np.zeros((len(self.names), memberships.shape[1]))
        np.add.at(sums, self.codes, memberships)
        return np.asarray(sums / self.counts[:, None])

    def write(self, path: Path, row_ids: np.ndarray) -> None:
        """Write a line per row: its id and its group."""
        ids = pl.Series("row", [str(value) for value in row_ids.tolist()])
        name = self.by if self.by != "row" else "group"
        pl.DataFrame([ids, pl.Series(name, [self.names[code] for code in self.codes])]).write_csv(path)

    @classmethod
    def read(cls, path: Path) -> Groups | None:
        """Return the groups that a file holds; None if there is no such file."""
        if not path.is_file():
            return None
        frame = pl.read_csv(path, infer_schema_length=0)
        return cls.of(frame.columns[1], frame.to_series(1).fill_null("").to_numpy())


def _text(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _place(name: str) -> tuple[bool, bool, float, str]:
    """Return what names are sorted by: numbers first, by size; rows without a label last."""
    try:
        value = float(name)
    except ValueError:
        value = math.nan
    return name == NONE, not math.isfinite(value), value if math.isfinite(value) else 0.0, name
