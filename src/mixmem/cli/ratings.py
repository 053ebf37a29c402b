"""`mixmem crowd --ratings`: values of tasks from numeric ratings, as files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixmem import __version__
from mixmem.cli.console import written
from mixmem.errors import InputError
from mixmem.models.crowd.labels import read_truth
from mixmem.models.crowd.ratings import NumericRatings
from mixmem.output.tables import MEMBERSHIP_DIGITS, as_polars, write_table
from mixmem.progress import current
from mixmem.records import plain

RATING_FILES = ("ratings.csv", "workers.csv", "summary.json")


@dataclass(frozen=True)
class RatingRun:
    """A fit on its way to the files, and what summary.json will hold."""

    model: NumericRatings
    document: dict[str, Any]


def run_ratings(
    labels: str, model: str, columns: tuple[str, ...], truth: Path | None, truth_columns: tuple[str, ...] | None
) -> RatingRun:
    """Read, fit, and hold the values against the truth where one is given."""
    ratings = NumericRatings(model, columns=columns)
    with current().stage("fitting"):
        ratings.fit(labels)
    error = None
    if truth is not None:
        known = read_truth(truth, columns=truth_columns)
        shared = [task for task in ratings.ratings_.index.tolist() if task in known]
        if not shared:
            raise InputError("none of the tasks of the truth has ratings; check that both use the same ids and types")
        off = ratings.ratings_.loc[shared].to_numpy() - np.array([float(known[task]) for task in shared])
        error = {"tasks": len(shared), "rmse": float(np.sqrt((off**2).mean())), "mae": float(np.abs(off).mean())}
    tasks, workers = ratings.tasks_, ratings.workers_
    document = {
        "mixmem": __version__, "data": labels, "model": model, "converged": ratings.converged_,
        "counts": {"ratings": int(tasks["ratings"].sum()), "tasks": len(tasks), "workers": len(workers)},
        "truth": error,
    }  # fmt: skip
    return RatingRun(ratings, document)


def write_ratings(folder: Path, run: RatingRun) -> None:
    """Write ratings.csv, workers.csv and summary.json."""
    write_table(folder / "ratings.csv", as_polars(run.model.tasks_.reset_index(), MEMBERSHIP_DIGITS))
    write_table(folder / "workers.csv", as_polars(run.model.workers_.reset_index(), MEMBERSHIP_DIGITS))
    text = json.dumps(plain(run.document), indent=1, allow_nan=False)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")


def ratings_text(run: RatingRun, out: Path) -> str:
    """What was found, in a few lines."""
    counts, truth = run.document["counts"], run.document["truth"]
    lines = [
        f"{counts['ratings']:,} ratings by {counts['workers']:,} workers for {counts['tasks']:,} tasks, model "
        f"{run.document['model']}"
    ]
    if not run.document["converged"]:
        lines.append("NOT converged: values still change; treat them as approximate")
    if truth:
        lines.append(f"against the truth of {truth['tasks']:,} tasks: off by {truth['rmse']:.4g} (root mean square)")
    return "\n".join([*lines, written(out, RATING_FILES, "")])
