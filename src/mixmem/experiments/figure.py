"""The paper's figure: errors of every method in all 48 cells, beside the published ones."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mixmem import __version__
from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.experiments import methods
from mixmem.experiments.cells import CELLS, QUICK, Cell, draw, negative_share, published
from mixmem.experiments.ledger import Ledger, Line, Unit, Way
from mixmem.experiments.pool import results
from mixmem.moments.components import rmse
from mixmem.plots import error_figure, save
from mixmem.progress import Progress, current, showing
from mixmem.storage.atomic import write_atomically
from mixmem.words import suggestion

TRIES, QUICK_TRIES = 5, 2
NEAR = 0.25
"""A mean error within this share of the published one counts as reproduced."""
SCHEMA = {
    "n": pl.Int64, "delta": pl.Float64, "k": pl.Int64, "method": pl.String, "setting": pl.String, "rmse": pl.Float64,
    "spread": pl.Float64, "published": pl.Float64, "ratio": pl.Float64, "seconds": pl.Float64,
    "negative_fraction": pl.Float64, "tries": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A finished run: the table of results.csv, and how many estimates failed."""

    frame: pl.DataFrame
    failures: int
    seconds: float

    @property
    def beaten(self) -> tuple[int, int] | None:
        """Cells in which the default way errs less than the published ptpqp, and all compared; None without it."""
        ours = self.frame.filter((pl.col("method") == "mixmem") & pl.col("rmse").is_not_null()).to_dicts()
        known = [(row["rmse"], published().get((Cell(row["n"], row["delta"], row["k"]), "ptpqp"))) for row in ours]
        compared = [(error, bound) for error, bound in known if bound is not None]
        return (sum(error < bound for error, bound in compared), len(compared)) if compared else None


def run_figure(
    out: Path,
    *,
    tries: int | None = None,
    quick: bool = False,
    names: Sequence[str] | None = None,
    jobs: int | None = None,
    seed: int = 0,
    cells: Sequence[Cell] | None = None,
) -> Figure:
    """Run what is not in the folder yet, then write results.csv and the figures.

    ``names`` are methods (default all), ``cells`` the cells (default all 48, or the quick ones).
    """
    began = time.perf_counter()
    ways = ways_of(methods.METHODS if names is None else names)
    cells = cells or (QUICK if quick else CELLS)
    tries = tries or (QUICK_TRIES if quick else TRIES)
    settings = {
        "study": "figure",
        "mixmem": __version__,
        "seed": seed,
        "tries": tries,
        "methods": [f"{method} {setting}" for method, setting in ways],
        "cells": [[cell.n, cell.delta, cell.k] for cell in cells],
    }
    ledger = Ledger(out, settings, ways)
    finished = ledger.finished
    units = [Unit(cell, attempt) for cell in cells for attempt in range(tries)]
    left = sorted((unit for unit in units if unit not in finished), key=lambda unit: -unit.cell.cost)
    progress = current()
    if finished and left:
        progress.say(f"going on in {out}: {len(finished)} of {len(units)} tables are done")
    # Weighed by cost, because the longest come first: counted alone they would make the estimate too long.
    weight = {unit: round(100 * unit.cell.cost) for unit in left}
    with progress.stage(f"{len(left)} tables", sum(weight.values())) as step:
        for unit, lines in results(partial(run_unit, ways=ways, seed=seed), left, jobs):
            ledger.add(lines)
            step(weight[unit])
    frame = summarize(ledger.lines)
    write_results(out, frame)
    failures = sum(math.isnan(line.rmse) for line in ledger.lines)
    return Figure(frame, failures, time.perf_counter() - began)


def ways_of(names: Sequence[str]) -> list[Way]:
    """The methods of these names in each of their settings, in the paper's order."""
    for name in names:
        if name not in methods.METHODS:
            raise InputError(f"there is no method {name!r}{suggestion(name, methods.METHODS)}")
    if not names:
        raise InputError(f"--methods names none; expected some of {','.join(methods.METHODS)}")
    return [(name, setting) for name in methods.METHODS if name in names for setting in methods.SETTINGS[name]]


def run_unit(unit: Unit, *, ways: Sequence[Way], seed: int) -> list[Line]:
    """Draw the table of a try and run every method on it; one that fails is recorded and stops nothing."""
    # Fits inside must neither draw bars into this run's, nor warn in the middle of them: their outcome is in the table.
    with threads(1), showing(Progress), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _warm(tuple(ways))
        table, method_seed = draw(unit.cell, unit.attempt, seed)
        share = negative_share(table)
        cell = unit.cell
        lines = []
        for method, setting in ways:
            error, reason = math.nan, ""
            began = time.perf_counter()
            try:
                theta = methods.estimate(method, setting, table, method_seed)
            except Exception as failure:
                reason = f"{type(failure).__name__}: {' '.join(str(failure).split())}"[:200]
            seconds = time.perf_counter() - began
            if not reason:
                error, reason = _error(table.theta, theta)
            lines.append(
                Line(cell.n, cell.delta, cell.k, unit.attempt, method, setting, error, seconds, share, reason)
            )  # fmt: skip
    return lines


def _error(truth: np.ndarray, theta: np.ndarray) -> tuple[float, str]:
    """Root mean square error against the truth without contamination, or why there is none."""
    if np.shape(theta) != truth.shape:
        return math.nan, f"theta has the shape {np.shape(theta)}, expected {truth.shape}"
    if not np.isfinite(theta).all():
        return math.nan, "theta is not finite"
    return rmse(truth, theta), ""


_warmed: set[tuple[Way, ...]] = set()


def _warm(ways: tuple[Way, ...]) -> None:
    """Let a process compile or load every kernel once, or the first table's seconds would hold it."""
    if ways in _warmed:
        return
    _warmed.add(ways)
    table, seed = draw(Cell(60, 0.0, 2), 0, 0)
    for method, setting in ways:
        try:
            methods.estimate(method, setting, table, seed)
        except Exception:  # if it is not the small table's fault, it will fail again where that is recorded
            continue


def summarize(lines: Sequence[Line]) -> pl.DataFrame:
    """results.csv: one row a cell, method and setting; failed tries count in none of the numbers.

    ``rmse`` is the mean over tries, ``spread`` their standard deviation, ``seconds`` the median on one core.
    """
    groups: dict[tuple[Cell, str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.unit.cell, *line.way), []).append(line)
    rows: list[dict[str, Any]] = []
    for (cell, method, setting), group in groups.items():
        good = sorted((line for line in group if not math.isnan(line.rmse)), key=lambda line: line.attempt)
        errors = [line.rmse for line in good]
        mean = float(np.mean(errors)) if good else None
        known = published().get((cell, method))
        rows.append({
            "n": cell.n, "delta": cell.delta, "k": cell.k, "method": method, "setting": setting,
            "rmse": mean,
            "spread": float(np.std(errors)) if good else None,
            "published": known,
            "ratio": mean / known if known and mean is not None else None,
            "seconds": float(np.median([line.seconds for line in good])) if good else None,
            "negative_fraction": float(np.mean([line.negative_fraction for line in group])),
            "tries": len(good),
        })  # fmt: skip
    rank = {method: i for i, method in enumerate(methods.METHODS)}
    rows.sort(key=lambda row: (row["n"], row["delta"], row["k"], rank[row["method"]], row["setting"] != "published"))
    return pl.DataFrame(rows, schema=SCHEMA)


def write_results(out: Path, frame: pl.DataFrame) -> None:
    """results.csv; figure.* with the settings of the paper's experiment; figure_fair.* with the unbiased ones."""
    with write_atomically(out / "results.csv") as temporary:
        frame.with_columns(pl.col(pl.Float64).round_sig_figs(6)).write_csv(temporary)
    both = frame.filter(pl.col("setting") == "published")["method"].unique().to_list()
    as_paper = frame.filter((pl.col("setting") == "published") | ~pl.col("method").is_in(both))
    save(error_figure(as_paper.to_dicts(), methods.METHODS, "settings of the paper's experiment"), out / "figure")
    if both:
        fair = frame.filter(pl.col("setting") == "fair")
        save(error_figure(fair.to_dicts(), methods.METHODS, "distinct variables only"), out / "figure_fair")


def standing(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """A row for each method and setting: cells, those near the published error, and the mean ratio to it."""
    grouped = frame.group_by("method", "setting", maintain_order=True).agg(
        pl.len().alias("cells"),
        ((pl.col("ratio") - 1.0).abs() <= NEAR).sum().alias("near"),
        pl.col("ratio").mean(),
        pl.col("rmse").mean(),
        pl.col("seconds").median(),
        pl.col("ratio").is_not_null().sum().alias("compared"),
    )
    return grouped.to_dicts()
