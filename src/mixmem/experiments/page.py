"""One page with every number that the paper publishes, and what a run found beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mixmem import __version__
from mixmem.experiments import crowd, methods
from mixmem.experiments.cells import CELLS, VARIABLES, Cell, published
from mixmem.experiments.negatives import COUNTED
from mixmem.experiments.runtime import PAPER_PARTITIONS, PAPER_SECONDS, PARTITIONS
from mixmem.output.page import template
from mixmem.storage.atomic import write_atomically

PAGE = "reproduction.html"
KS = tuple(sorted({cell.k for cell in CELLS}))


def write_page(
    out: Path,
    *,
    figure: pl.DataFrame,
    negatives: pl.DataFrame,
    runtime: pl.DataFrame,
    crowd_table: pl.DataFrame | None,
    crowd_note: str,
    quick: bool,
    seed: int,
) -> Path:
    """Write the page from the tables of the studies; the crowd's is None where it was not run."""
    most = int(figure["tries"].max() or 1)  # type: ignore[arg-type]
    found = {
        (Cell(row["n"], row["delta"], row["k"]), row["method"], row["setting"]): row
        for row in figure.filter(pl.col("rmse").is_not_null()).to_dicts()
    }
    text = template("reproduction.html.jinja").render(
        version=__version__, seed=seed, quick=quick, tries=most, ks=KS,
        figure=[
            {"method": method, "rows": _by_row(found, method, method, (methods.AUTHORS, methods.FAIR), most)}
            for method in dict.fromkeys(method for _, method in published())
        ],
        ours=_by_row(found, "ptpqp", "mixmem", (methods.MOMENTS, methods.DEFAULT), most),
        negatives=_negatives(negatives), runtime=_runtime(runtime), falls=falls(runtime),
        crowd=_crowd(crowd_table), sets=list(crowd.SETS), crowd_note=crowd_note,
    )  # fmt: skip
    with write_atomically(out / PAGE) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return out / PAGE


def _by_row(
    found: Mapping[tuple[Cell, str, str], Mapping[str, Any]],
    beside: str,
    method: str,
    settings: tuple[str, str],
    most: int,
) -> list[dict[str, Any]]:
    """Return a row for every n and delta: the published error and this run's in two settings, for every k."""

    def said(cell: Cell, setting: str) -> str | None:
        row = found.get((cell, method, setting))
        return None if row is None else f"{row['rmse']:.3f}{'*' * (row['tries'] < most)}"

    rows = []
    for n, delta in dict.fromkeys((cell.n, cell.delta) for cell in CELLS):
        cells = [Cell(n, delta, k) for k in KS]
        rows.append({
            "n": n,
            "delta": delta,
            "cells": [
                {"published": published()[cell, beside], **{setting: said(cell, setting) for setting in settings}}
                for cell in cells
            ],
        })  # fmt: skip
    return rows


def _negatives(frame: pl.DataFrame) -> list[dict[str, Any]]:
    def spread(values: list[float]) -> str | None:
        return f"{min(values):.0%} to {max(values):.0%}" if values else None

    rows = []
    for width in (COUNTED, VARIABLES):
        for n in sorted({cell.n for cell in CELLS}):
            here = frame.filter((pl.col("variables") == width) & (pl.col("n") == n))
            full, distinct = (spread(here[key].to_list()) for key in ("negative_full", "negative_fraction"))
            rows.append({"variables": width, "n": n, "full": full, "distinct": distinct})
    return rows


def _runtime(frame: pl.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for k, paper in PAPER_SECONDS.items():
        found: list[str | None] = []
        for number in (PAPER_PARTITIONS, None):
            here = frame.filter((pl.col("k") == k) & (pl.col("cores") == 1) & pl.col("partitions").eq_missing(number))
            row = here.to_dicts()[0] if here.height else None
            found += [f"{row['cpu_seconds']:.2f}", f"{row['rmse']:.4f}"] if row else [None, None]
        rows.append({"k": k, "paper": paper, "found": found})
    return rows


def falls(frame: pl.DataFrame) -> str:
    """Say whether the time on one core falls with the number of partitions, as the paper found."""
    told = []
    for k in PAPER_SECONDS:
        here = frame.filter((pl.col("k") == k) & (pl.col("cores") == 1) & pl.col("partitions").is_not_null())
        if here.height > 1:
            times = here.sort("partitions")["cpu_seconds"].to_list()
            way = "falls all the way" if times == sorted(times, reverse=True) else "does not fall all the way"
            told.append(f"k = {k}: {', '.join(f'{value:.2f}' for value in times)} s ({way})")
    first, last = PARTITIONS[0], PARTITIONS[-1]
    return f"By number of partitions, {first} to {last}: {'; '.join(told)}." if told else ""


def _crowd(frame: pl.DataFrame | None) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], float] = {}
    if frame is not None:
        wanted = frame.filter(pl.col("setting").is_in(["published", "default"]))
        found = {(row["dataset"], row["method"]): row["error"] for row in wanted.to_dicts()}
    known = crowd.published()
    names = [method for method in crowd.METHODS if any((name, method) in known for name in crowd.SETS)]
    return [
        {
            "method": method,
            "cells": [{"published": known.get((s, method)), "found": found.get((s, method))} for s in crowd.SETS],
        }
        for method in (*names, "mixmem")
    ]
