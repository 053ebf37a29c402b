"""The files of a fit, as a page is made from them: it shows the same when it is made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mixmem.data.polars_panics import panics_as_errors
from mixmem.output.groups import GROUPS_FILE, Groups
from mixmem.output.tables import component_names
from mixmem.results.distinctive import Label

TEXTS = dict.fromkeys(("variable", "level", "statistic"), pl.String)


MOST_BYTES = 100_000_000
"""Of memberships.csv: a page shows ten thousand rows, and counts as many as fit into this."""
PIECE_BYTES = 8_000_000


@dataclass(frozen=True)
class FitFiles:
    """What a fit found: labels of the rows of theta (rows, k), alpha (k,), memberships (n, k) with the rows' ids.

    ``bounds`` are the lower and upper ends (rows, k) of theta's intervals, where the fit has them; ``groups`` are the
    rows' groups, where a column of labels was named.
    """

    labels: Sequence[Label]
    theta: np.ndarray
    alpha: np.ndarray
    memberships: np.ndarray
    row_ids: np.ndarray
    bounds: tuple[np.ndarray, np.ndarray] | None = None
    groups: Groups | None = None

    def __post_init__(self) -> None:
        k, n = len(self.alpha), len(self.memberships)
        fits = self.theta.shape == (len(self.labels), k) and self.memberships.shape == (n, k)
        if not fits or len(self.row_ids) != n or (self.groups is not None and len(self.groups.codes) != n):
            raise ValueError(
                f"theta {self.theta.shape}, alpha ({k},) and memberships {self.memberships.shape} do not fit together"
            )

    @classmethod
    def read(cls, folder: Path) -> FitFiles:
        """Return what theta.csv, alpha.csv and memberships.csv hold, and intervals.csv and groups.csv if there are."""
        with panics_as_errors():
            theta = pl.read_csv(folder / "theta.csv", schema_overrides=TEXTS).with_columns(pl.col(*TEXTS).fill_null(""))
            alpha = pl.read_csv(folder / "alpha.csv")["alpha"].to_numpy()
            columns = component_names(len(alpha))
            rows = _rows(folder / "memberships.csv", columns)
            bounds = _bounds(folder / "intervals.csv", theta.height, len(alpha))
        labels = list(theta.select(*TEXTS).iter_rows())
        ids = rows.to_series(0).fill_null("").to_numpy()
        return cls(
            labels, theta.select(columns).to_numpy(), alpha, rows.select(columns).to_numpy(), ids, bounds,
            Groups.read(folder / GROUPS_FILE),
        )  # fmt: skip


def _rows(path: Path, columns: list[str]) -> pl.DataFrame:
    """Return the rows' ids, as texts, and their memberships; of a very large file every so many rows."""
    first = pl.read_csv(path, n_rows=0).columns[0]
    types = {first: pl.String, **dict.fromkeys(columns, pl.Float64)}
    every = -(-path.stat().st_size // MOST_BYTES)
    if every <= 1:
        return pl.read_csv(path, schema_overrides=types)
    # not scanned by polars: it maps the whole file, which counts as memory taken
    found, seen = [], 0
    for piece in _pieces(path):
        rows = pl.read_csv(piece, has_header=False, new_columns=list(types), schema_overrides=list(types.values()))
        found.append(rows[-seen % every :: every])
        seen += rows.height
    return pl.concat(found)


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the lines of a CSV file below its header, some MB at a time, cut at ends of rows."""
    with path.open("rb") as file:
        file.readline()
        held = b""
        while piece := file.read(PIECE_BYTES):
            piece = held + piece
            end = piece.rfind(b"\n") + 1
            while end and piece.count(b'"', 0, end) % 2:  # an id in quotes may hold an end of line
                end = piece.rfind(b"\n", 0, end - 1) + 1
            held = piece[end:]
            if end:
                yield piece[:end]
        if held:
            yield held


def _bounds(path: Path, rows: int, k: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the ends of theta's intervals, if the file is there and is about this theta."""
    if not path.is_file():
        return None
    found = pl.read_csv(path, schema_overrides=TEXTS).filter(pl.col("parameter") == "theta")
    if found.height != rows * k:
        return None
    return found["lower"].to_numpy().reshape(rows, k), found["upper"].to_numpy().reshape(rows, k)
