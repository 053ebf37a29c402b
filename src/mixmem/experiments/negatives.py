"""How many entries of the empirical moments are negative, in every cell of the paper's simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from mixmem.engine.local import threads
from mixmem.experiments import methods
from mixmem.experiments.cells import CELLS, VARIABLES, Cell, draw, negative_share
from mixmem.experiments.pool import results
from mixmem.plots import negatives_figure, save
from mixmem.progress import current
from mixmem.results.simulate import Simulation
from mixmem.storage.atomic import write_atomically

STATED = (0.2, 0.5)
"""The paper: "typically exhibits between 20 % and 50 % negative entries"."""
COUNTED = 10
"""Variables of the tables in which the authors' program counted them; the figure's have 25."""
TRIES, QUICK_TRIES = 5, 1


@dataclass(frozen=True)
class Counted:
    """One table: its cell, the number of the try, and its number of variables."""

    cell: Cell
    attempt: int
    variables: int

    @property
    def cost(self) -> int:
        """Roughly the work: rows times entries of the tensor, and what does not depend on the rows."""
        return (self.cell.n + 300) * self.variables**3


def run_negatives(
    out: Path, *, tries: int | None = None, quick: bool = False, jobs: int | None = None, seed: int = 0,
    cells: Sequence[Cell] = CELLS,
) -> pl.DataFrame:  # fmt: skip
    """Shares of negative entries, mean and range over tries, written to results.csv and negatives.png and .svg."""
    out.mkdir(parents=True, exist_ok=True)
    tries = tries or (QUICK_TRIES if quick else TRIES)
    widths = (COUNTED, VARIABLES)
    units = [Counted(cell, attempt, width) for width in widths for cell in cells for attempt in range(tries)]
    found: dict[Counted, tuple[float, float]] = {}
    with current().stage(f"{len(units)} tables", sum(unit.cost for unit in units)) as step:
        for unit, shares in results(partial(shares_of, seed=seed), sorted(units, key=lambda u: -u.cost), jobs):
            found[unit] = shares
            step(unit.cost)
    rows = []
    for width in widths:
        for cell in sorted(cells):
            distinct, full = np.array([found[Counted(cell, attempt, width)] for attempt in range(tries)]).T
            rows.append({
                "variables": width, "n": cell.n, "delta": cell.delta, "k": cell.k,
                "negative_fraction": float(distinct.mean()), "smallest": float(distinct.min()),
                "largest": float(distinct.max()), "negative_full": float(full.mean()), "tries": tries,
            })  # fmt: skip
    frame = pl.DataFrame(rows)
    with write_atomically(out / "results.csv") as temporary:
        frame.with_columns(pl.col(pl.Float64).round_sig_figs(6)).write_csv(temporary)
    save(negatives_figure(rows, STATED), out / "negatives")
    return frame


def shares_of(unit: Counted, *, seed: int) -> tuple[float, float]:
    """Shares in the tensor of distinct variables, and in the full one with same-variable blocks."""
    table = draw(unit.cell, unit.attempt, seed, unit.variables)[0]
    return negative_share(table), full_share(table)


def full_share(table: Simulation) -> float:
    """Share of negative entries of the full symmetric tensor, the one the paper's experiment formed."""
    with threads(1):
        tensor = methods.symmetric_moments(table.codes, table.schema, float(table.alpha.sum()))[0]
    return float((tensor < 0.0).mean())
