"""The paper's crowd experiment: errors on five sets of crowd labels, beside the published ones."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.experiments.pool import results
from mixmem.models.crowd.fits import PUBLISHED_ROUNDS, Settings, fit_from, start_counts
from mixmem.models.crowd.labels import Labels, read_labels
from mixmem.models.crowd.rounds import Passes
from mixmem.plots import crowd_figure, save
from mixmem.progress import current
from mixmem.storage.atomic import write_atomically

SETS = {"Birds": "bluebird", "RTE": "rte", "TREC": "trec", "Dogs": "dog", "Web": "web"}
QUICK_SETS = ("Birds", "RTE", "Dogs")
SEEDS, QUICK_SEEDS = 20, 3
HOME = "https://github.com/zhangyuc/SpectralMethodsMeetEM"

_PUBLISHED = Settings(model="ds", published=True, tol=-1.0, estimate_prior=False)
METHODS = {
    "ptpqp": replace(_PUBLISHED, start="ptpqp"),
    "pqp": replace(_PUBLISHED, start="tensor", solver="pqp"),
    "hals": replace(_PUBLISHED, start="tensor", solver="hals"),
    "tpm": replace(_PUBLISHED, start="tensor", solver="tpm"),
    "nojd0": replace(_PUBLISHED, start="tensor", solver="nojd0"),
    "nojd1": replace(_PUBLISHED, start="tensor", solver="nojd1"),
    "mv_em": _PUBLISHED,
    "majority": replace(_PUBLISHED, n_iter=0),
    "mixmem": Settings(),
}
"""Rows of the table. "ptpqp" has workers as variables; "pqp" to "nojd1" factorize the three-group tensor."""


@dataclass(frozen=True)
class Unit:
    """One method on one set from one seed."""

    dataset: str
    method: str
    seed: int


@dataclass(frozen=True)
class CrowdTable:
    """results.csv as a frame, and the seeds of methods that have randomness."""

    frame: pl.DataFrame
    seeds: int


def run_crowd_table(
    out: Path, *, data: Path | None = None, quick: bool = False, jobs: int | None = None, seed: int = 0
) -> CrowdTable:
    """Run every method on every set and write results.csv and crowd.png and .svg."""
    folder = data_folder(data)
    names = QUICK_SETS if quick else tuple(SETS)
    for name in names:
        files_of(folder, name)  # refused before anything is computed
    out.mkdir(parents=True, exist_ok=True)
    seeds = QUICK_SEEDS if quick else SEEDS
    units = [
        Unit(name, method, seed + number)
        for name in sorted(names, key=lambda name: name != "TREC")  # the largest first: all cores end together
        for method, settings in METHODS.items()
        for number in range(seeds if settings.start == "tensor" else 1)
    ]
    errors: dict[tuple[str, str, str], list[float]] = {}
    with current().stage(f"{len(units)} fits", len(units)) as step:
        for unit, found in results(partial(run_unit, folder=folder), units, jobs):
            for setting, error in found.items():
                errors.setdefault((unit.dataset, unit.method, setting), []).append(error)
            step(1)
    rows = summarize(errors, names)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    with write_atomically(out / "results.csv") as temporary:
        frame.with_columns(pl.col(pl.Float64).round(3)).write_csv(temporary)
    save(crowd_figure(rows, list(METHODS)), out / "crowd")
    return CrowdTable(frame, seeds)


def run_unit(unit: Unit, *, folder: Path) -> dict[str, float]:
    """Errors in percent by setting: "published" as the experiment was run, "em" after ten rounds, "community" after
    our default's rounds from the same start."""
    labels, known = read_set(folder, unit.dataset)
    settings = METHODS[unit.method]
    with threads(1):
        passes = Passes(labels, np.full(labels.n_tasks, -1, dtype=np.int32))
        counts = start_counts(passes, passes.shares(), settings, np.random.default_rng(unit.seed))
        return {
            name: _error(fit_from(passes, passes.shares(), counts, variant).posterior, known)
            for name, variant in variants(settings).items()
        }


def _error(posterior: np.ndarray, known: np.ndarray) -> float:
    """Errors in percent; ties go to the first class, as in the experiment."""
    sure = known >= 0
    return float(100.0 * (posterior[sure].argmax(axis=1) != known[sure]).mean())


def variants(settings: Settings) -> dict[str, Settings]:
    """What is run from one start."""
    if not settings.published:
        return {"default": settings}
    if settings.n_iter == 0:
        return {"votes": settings}
    if settings.start == "majority":
        return {"published": replace(settings, n_iter=PUBLISHED_ROUNDS)}
    return {
        "published": replace(settings, n_iter=1),
        "em": replace(settings, n_iter=PUBLISHED_ROUNDS),
        "community": Settings(
            "community", tol=1e-4, estimate_prior=False, start=settings.start, solver=settings.solver
        ),
    }


def summarize(errors: dict[tuple[str, str, str], list[float]], names: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each set, method and setting, in the table's order."""
    known = published()
    rows = []
    for (dataset, method, setting), values in sorted(
        errors.items(), key=lambda item: (list(METHODS).index(item[0][1]), item[0][2] != "published", item[0][2])
    ):
        rows.append({
            "dataset": dataset, "method": method, "setting": setting,
            "error": float(np.mean(values)), "spread": float(np.std(values)),
            "lowest": min(values), "highest": max(values),
            "published": known.get((dataset, method)), "seeds": len(values),
        })  # fmt: skip
    return sorted(rows, key=lambda row: list(names).index(row["dataset"]))


def published() -> dict[tuple[str, str], float]:
    """The paper's errors in percent by set and method."""
    with (Path(__file__).parent / "published_crowd.csv").open(newline="") as file:
        return {(row["dataset"], row["method"]): float(row["error_percent"]) for row in csv.DictReader(file)}


# --- The data sets


def data_folder(given: Path | None) -> Path:
    """The folder with the sets: the one given, or the one that MIXMEM_DATA names."""
    named = os.environ.get("MIXMEM_DATA")
    if given is None and not named:
        raise InputError(
            f"where are the crowd labels? Clone {HOME} and name its folder src with --data (or in MIXMEM_DATA)"
        )
    return Path(given or named or "")


def files_of(folder: Path, name: str) -> tuple[Path, Path]:
    """The labels and the truth of a set, in the folder itself or in one of the set's own."""
    stem = SETS[name]
    for place in (folder, folder / f"crowd_{stem}"):
        labels, truth = place / f"{stem}_crowd.txt", place / f"{stem}_truth.txt"
        if labels.is_file() and truth.is_file():
            return labels, truth
    raise InputError(f"{folder} lacks {stem}_crowd.txt or {stem}_truth.txt; clone {HOME} and name its folder src")


@lru_cache(maxsize=len(SETS))
def read_set(folder: Path, name: str) -> tuple[Labels, np.ndarray]:
    """Labels of a set and the known classes of its tasks, (n,), -1 where there is none.

    The files have no header: task, worker, label and task, label, counted from 1.
    """
    labels_file, truth_file = files_of(folder, name)
    labels = read_labels(np.loadtxt(labels_file, dtype=np.int64))
    truth = np.loadtxt(truth_file, dtype=np.int64)
    known = np.full(labels.n_tasks, -1, dtype=np.int32)
    here = np.isin(truth[:, 0], labels.tasks)  # a task may be repeated, always with the same class
    known[np.searchsorted(labels.tasks, truth[here, 0])] = np.searchsorted(labels.classes, truth[here, 1])
    return labels, known
