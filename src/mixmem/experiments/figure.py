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
from mixmem.experiments.cells import CELLS, QUICK, Cell, draw, negative_share, of_authors_programs, published
from mixmem.experiments.ledger import Ledger, Line, Unit, Way
from mixmem.experiments.pool import results
from mixmem.plots import error_figure, save
from mixmem.progress import Progress, current, showing
from mixmem.storage.atomic import write_atomically
from mixmem.words import suggestion

TRIES, QUICK_TRIES = 5, 1
QUICK_COSTLY = (Cell(1000, 0.0, 3), Cell(1000, 0.0, 10))
"""Cells in which a quick run has the ways that take long."""
COSTLY_SECONDS = {"nojd0": 12.0, "nojd1": 22.0, "mixmem": 5.0}
NEAR = 0.25
"""A mean error within this share of the published one counts as reproduced."""
SCHEMA = {
    "n": pl.Int64, "delta": pl.Float64, "k": pl.Int64, "method": pl.String, "setting": pl.String, "rmse": pl.Float64,
    "spread": pl.Float64, "published": pl.Float64, "ratio": pl.Float64, "authors_program": pl.Float64,
    "cpu_seconds": pl.Float64, "negative_fraction": pl.Float64, "tries": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A finished run: the table of results.csv, and how many estimates failed."""

    frame: pl.DataFrame
    failures: int
    seconds: float

    def beaten(self, setting: str) -> tuple[int, int] | None:
        """Cells in which our own way errs less than the published ptpqp, and all compared; None without it."""
        ours = self.frame.filter(
            (pl.col("method") == "mixmem") & (pl.col("setting") == setting) & pl.col("rmse").is_not_null()
        ).to_dicts()
        known = [(row["rmse"], published().get((Cell(row["n"], row["delta"], row["k"]), "ptpqp"))) for row in ours]
        compared = [(error, bound) for error, bound in known if bound is not None]
        return (sum(error < bound for error, bound in compared), len(compared)) if compared else None


@dataclass(frozen=True)
class Extent:
    """What a run covers: its ways, and whether those that take long run on every table."""

    ways: tuple[Way, ...]
    quick: bool = False
    full: bool = False

    def at(self, unit: Unit) -> list[Way]:
        """Return the ways that run on a table, if not all are wanted: those that take long on the first of some cells.

        The default fit in every cell, joint diagonalization in all directions in those without contamination.
        """
        first = unit.attempt == 0 and (not self.quick or unit.cell in QUICK_COSTLY)
        clean = unit.cell.delta == 0.0
        return [
            (method, setting)
            for method, setting in self.ways
            if self.full or (method, setting) not in methods.COSTLY or (first and (clean or setting == methods.DEFAULT))
        ]

    def cost(self, unit: Unit) -> float:
        """Return roughly the seconds of a table: for the order and the estimate only."""
        costly = [way for way in self.at(unit) if way in methods.COSTLY]
        return unit.cell.cost + sum(COSTLY_SECONDS[method] for method, _ in costly)


def run_figure(
    out: Path,
    *,
    tries: int | None = None,
    quick: bool = False,
    full: bool = False,
    names: Sequence[str] | None = None,
    settings: Sequence[str] | None = None,
    jobs: int | None = None,
    seed: int = 0,
    cells: Sequence[Cell] | None = None,
) -> Figure:
    """Run what is not in the folder yet, then write results.csv and the figures.

    ``names`` are methods (default all), ``settings`` theirs (default all), ``cells`` the cells (default all 48, or the
    quick ones). ``full`` runs what takes long on every table.
    """
    began = time.perf_counter()
    extent = Extent(tuple(ways_of(methods.METHODS if names is None else names, settings)), quick, full)
    cells = cells or (QUICK if quick else CELLS)
    tries = tries or (QUICK_TRIES if quick else TRIES)
    asked = {
        "study": "figure",
        "mixmem": __version__,
        "seed": seed,
        "tries": tries,
        "full": full,
        "methods": [f"{method} {setting}" for method, setting in extent.ways],
        "cells": [[cell.n, cell.delta, cell.k] for cell in cells],
    }
    ledger = Ledger(out, asked, extent.at)
    finished = ledger.finished
    units = [Unit(cell, attempt) for cell in cells for attempt in range(tries)]
    left = sorted((unit for unit in units if extent.at(unit) and unit not in finished), key=extent.cost, reverse=True)
    progress = current()
    if finished and left:
        progress.say(f"going on in {out}: {len(finished)} of {len(units)} tables are done")
    # Weighed by cost, because the longest come first: counted alone they would make the estimate too long.
    weight = {unit: round(100 * extent.cost(unit)) for unit in left}
    with progress.stage(f"{len(left)} tables", sum(weight.values())) as step:
        for unit, lines in results(partial(run_unit, extent=extent, seed=seed), left, jobs):
            ledger.add(lines)
            step(weight[unit])
    frame = summarize(ledger.lines)
    write_results(out, frame)
    failures = sum(math.isnan(line.rmse) for line in ledger.lines)
    return Figure(frame, failures, time.perf_counter() - began)


def ways_of(names: Sequence[str], settings: Sequence[str] | None = None) -> list[Way]:
    """The methods of these names in each of their settings, or those of them named, in the paper's order."""
    every = list(dict.fromkeys(setting for own in methods.SETTINGS.values() for setting in own))
    for kind, wanted, known in (("method", names, methods.METHODS), ("setting", settings or (), every)):
        for name in wanted:
            if name not in known:
                raise InputError(f"there is no {kind} {name!r}{suggestion(name, known)}")
    found = [
        (name, setting)
        for name in methods.METHODS
        if name in names
        for setting in methods.SETTINGS[name]
        if settings is None or setting in settings
    ]
    if not found:
        raise InputError(
            f"--methods and --settings name none together; expected some of {','.join(methods.METHODS)} in some of "
            f"{','.join(every)}"
        )
    return found


def run_unit(unit: Unit, *, extent: Extent, seed: int) -> list[Line]:
    """Draw the table of a try and run every method on it; one that fails is recorded and stops nothing."""
    # Fits inside must neither draw bars into this run's, nor warn in the middle of them: their outcome is in the table.
    with threads(1), showing(Progress), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ways = extent.at(unit)
        _warm(extent.ways)
        table, method_seed = draw(unit.cell, unit.attempt, seed)
        share = negative_share(table)
        cell = unit.cell
        lines = []
        for method, setting in ways:
            error, reason = math.nan, ""
            began = time.process_time()
            try:
                theta = methods.estimate(method, setting, table, method_seed)
            except Exception as failure:
                reason = f"{type(failure).__name__}: {' '.join(str(failure).split())}"[:200]
            seconds = time.process_time() - began
            if not reason:
                error, reason = _error(setting, table.theta, theta)
            lines.append(
                Line(cell.n, cell.delta, cell.k, unit.attempt, method, setting, error, seconds, share, reason)
            )  # fmt: skip
    return lines


def _error(setting: str, truth: np.ndarray, theta: np.ndarray) -> tuple[float, str]:
    """Root mean square error against the truth without contamination, or why there is none."""
    if np.shape(theta) != truth.shape:
        return math.nan, f"theta has the shape {np.shape(theta)}, expected {truth.shape}"
    if not np.isfinite(theta).all():
        return math.nan, "theta is not finite"
    return methods.error(setting, truth, theta), ""


_warmed: set[tuple[Way, ...]] = set()


def _warm(ways: tuple[Way, ...]) -> None:
    """Let a process compile or load every kernel once, or the first table's seconds would hold it."""
    if ways in _warmed:
        return
    _warmed.add(ways)
    table, seed = draw(Cell(60, 0.0, 2), 0, 0, variables=9)
    for method, setting in ways:
        try:
            methods.estimate(method, setting, table, seed)
        except Exception:  # if it is not the small table's fault, it will fail again where that is recorded
            continue


def summarize(lines: Sequence[Line]) -> pl.DataFrame:
    """results.csv: one row a cell, method and setting; failed tries count in none of the numbers.

    ``rmse`` is the mean over tries, ``spread`` their standard deviation, ``cpu_seconds`` the median on one core.
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
            "authors_program": of_authors_programs().get((cell, method)),
            "cpu_seconds": float(np.median([line.cpu_seconds for line in good])) if good else None,
            "negative_fraction": float(np.mean([line.negative_fraction for line in group])),
            "tries": len(good),
        })  # fmt: skip
    rank = {(method, setting): (i, j) for i, method in enumerate(methods.METHODS)
            for j, setting in enumerate(methods.SETTINGS[method])}  # fmt: skip
    rows.sort(key=lambda row: (row["n"], row["delta"], row["k"], rank[row["method"], row["setting"]]))
    return pl.DataFrame(rows, schema=SCHEMA)


PICTURES = {
    "figure": (methods.AUTHORS, "the methods as the authors' programs ran them"),
    "figure_fair": (methods.FAIR, "every method done well, on distinct variables, and mixmem"),
}


def write_results(out: Path, frame: pl.DataFrame) -> None:
    """results.csv; figure.* with the authors' settings; figure_fair.* with the fair ones and our own ways."""
    with write_atomically(out / "results.csv") as temporary:
        frame.with_columns(pl.col(pl.Float64).round_sig_figs(6)).write_csv(temporary)
    for stem, (setting, title) in PICTURES.items():
        shown = [setting] if setting == methods.AUTHORS else [setting, methods.MOMENTS, methods.DEFAULT]
        rows = frame.filter(pl.col("setting").is_in(shown)).to_dicts()
        for row in rows:
            row["method"] = row["method"] if row["setting"] in PAPERS else f"mixmem, {OURS[row['setting']]}"
        if rows:
            save(error_figure(rows, LINES, title), out / stem)


PAPERS = (methods.AUTHORS, methods.FAIR)
OURS = {methods.MOMENTS: "moments alone", methods.DEFAULT: "default fit"}
LINES = (
    *(method for method in methods.METHODS if method != "mixmem"),
    *(f"mixmem, {words}" for words in OURS.values()),
)


def standing(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """A row for each method and setting: cells, those near the published error, and the mean ratio to it.

    ``near_either`` counts also those near the error of the authors' own program, where that was run.
    """
    near = (pl.col("ratio") - 1.0).abs() <= NEAR
    near_program = ((pl.col("rmse") / pl.col("authors_program") - 1.0).abs() <= NEAR).fill_null(value=False)
    grouped = frame.group_by("method", "setting", maintain_order=True).agg(
        pl.len().alias("cells"),
        near.sum().alias("near"),
        (near | (near_program & pl.col("ratio").is_not_null())).sum().alias("near_either"),
        pl.col("ratio").mean(),
        pl.col("rmse").mean(),
        pl.col("cpu_seconds").median(),
        pl.col("ratio").is_not_null().sum().alias("compared"),
    )
    return grouped.to_dicts()
