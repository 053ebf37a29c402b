"""`mixmem crowd`: labels of tasks and worth of workers, as files and a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mixmem import __version__
from mixmem.cli.attempts import Attempts
from mixmem.cli.compilation import announce_compilation
from mixmem.cli.console import written
from mixmem.models.crowd.labels import Labels, known_classes, read_labels, read_truth
from mixmem.models.crowd.model import DawidSkene, MajorityVote
from mixmem.models.crowd.scoring import calibration_error, error_rate
from mixmem.output.crowd_page import random_workers, render_crowd_page
from mixmem.output.tables import MEMBERSHIP_DIGITS, as_polars, write_table
from mixmem.progress import current
from mixmem.records import plain

CROWD_FILES = ("report.html", "labels.csv", "workers.csv", "summary.json")
"""What is written: a run that leaves a file out removes that of an earlier one."""


@dataclass(frozen=True)
class CrowdRun:
    """A fit on its way to the files, its tables, and what summary.json will hold."""

    model: DawidSkene
    tasks: pd.DataFrame
    workers: pd.DataFrame
    document: dict[str, Any]
    attempts: Attempts


def run_crowd(
    labels: str,
    settings: Mapping[str, Any],
    *,
    truth: Path | None = None,
    gold: Path | None = None,
    quiet: bool = False,
) -> CrowdRun:
    """Read, fit, and hold the result against the truth where one is given."""
    model = DawidSkene(**settings)
    model.check()  # before the data are read: that may take long
    progress = current()
    with progress.stage("reading"):
        pair = (model.columns[0], model.columns[2])
        known = None if truth is None else read_truth(truth, columns=pair)
        sure = None if gold is None else read_truth(gold, columns=pair)
        table = read_labels(labels, columns=model.columns)
        if known is not None:
            known_classes(table, known)  # refuses ids that do not go together before the fit
    announce_compilation(quiet)
    with progress.stage("fitting"):
        model.fit(table, sure)
    tasks, workers, attempts = model.tasks_, model.workers_, Attempts()
    errors = None
    if known is not None:
        errors = attempts.attempt("the comparison with the truth", lambda: _against(known, table, model))
    document = {
        "mixmem": __version__,
        "data": {"labels": labels, "truth": _path(truth), "gold": _path(gold)},
        "settings": {**settings, "columns": list(model.columns)},
        "model": model.model_,
        "held_out": model.held_out_,
        "rounds": len(model.loss_history_),
        "converged": model.converged_,
        "loss": model.loss_history_[-1] if model.loss_history_ else None,
        "expected_error": float(1.0 - tasks["probability"].mean()),
        **_described(table, model, workers),
        "truth": errors,
        "seconds": dict(progress.seconds),
    }
    return CrowdRun(model, tasks, workers, document, attempts)


def write_crowd(folder: Path, run: CrowdRun) -> None:
    """Write labels.csv, workers.csv, report.html and, with the notices, summary.json."""
    shares = run.model.probas_.set_axis([f"p({name})" for name in run.model.classes_], axis=1)
    write_table(
        folder / "labels.csv", as_polars(pd.concat([run.tasks, shares], axis=1).reset_index(), MEMBERSHIP_DIGITS)
    )
    write_table(folder / "workers.csv", as_polars(run.workers.reset_index(), MEMBERSHIP_DIGITS))
    run.attempts.write(folder / "report.html", lambda path: path.write_text(_page(run), encoding="utf-8"))
    run.document["warnings"] = run.attempts.to_plain()
    text = json.dumps(plain(run.document), indent=1, allow_nan=False, default=_plain)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")


def _page(run: CrowdRun) -> str:
    return render_crowd_page(run.document, run.model, run.tasks, run.workers)


def _described(table: Labels, model: DawidSkene, workers: pd.DataFrame) -> dict[str, Any]:
    given = np.bincount(table.labels, minlength=table.n_classes) / table.n_labels
    votes = dict(zip(table.classes.tolist(), given.tolist(), strict=True))
    shares = model.probas_.to_numpy().mean(axis=0).tolist()
    at_random = random_workers(workers)
    return {
        "counts": {
            "labels": table.n_labels,
            "tasks": table.n_tasks,
            "workers": table.n_workers,
            "repeats": table.repeats,
            "contradictions": table.contradictions,
        },
        "classes": [
            {"label": name, "share": share, "votes": votes.get(name, 0.0)}
            for name, share in zip(model.classes_.tolist(), shares, strict=True)
        ],
        "random_workers": len(at_random),
        "random_label_share": float(at_random["labels"].sum() / table.n_labels),
    }


def _against(truth: dict[Any, Any], table: Labels, model: DawidSkene) -> dict[str, Any]:
    """Errors where the truth is known; a true class that no worker ever gave is an error."""
    known = known_classes(model.encoded_, truth)
    posterior = model.probas_.to_numpy()
    votes = MajorityVote(columns=model.columns).fit(table).probas_
    votes = votes.reindex(columns=model.probas_.columns, fill_value=0.0).to_numpy()
    return {
        "tasks": int((known >= 0).sum()),
        "tasks_without_labels": len(truth) - int((known >= 0).sum()),
        "classes_never_given": int((known == len(model.classes_)).sum()),
        "error": error_rate(posterior, known),
        "majority_error": error_rate(votes, known),
        "calibration_error": calibration_error(posterior, known),
    }


def crowd_text(run: CrowdRun, out: Path) -> str:
    """What was found, in a few lines."""
    d = run.document
    counts = d["counts"]
    lines = [
        f"{counts['labels']:,} labels by {counts['workers']:,} workers for {counts['tasks']:,} tasks in "
        f"{len(d['classes'])} class{'es' * (len(d['classes']) > 1)}",
        f"model {d['model']}, {d['rounds']} rounds, {'converged' if d['converged'] else 'NOT converged: try --rounds'}",
        f"expected to be wrong: {d['expected_error']:.1%} of the labels found",
    ]
    if truth := d["truth"]:
        lines.append(
            f"wrong against the truth of {truth['tasks']:,} tasks: {truth['error']:.2%} "
            f"(majority vote {truth['majority_error']:.2%})"
        )
        if truth["tasks_without_labels"]:
            lines.append(f"{truth['tasks_without_labels']:,} tasks of the truth have no labels and are left out")
    if counts["repeats"]:
        lines.append(
            f"{counts['repeats']:,} rows repeat a task and worker ({counts['contradictions']:,} with another label); "
            "each counts"
        )
    if d["random_workers"]:
        lines.append(f"{d['random_workers']:,} workers label at random ({d['random_label_share']:.1%} of the labels)")
    return "\n".join([*lines, written(out, CROWD_FILES, "report.html")])


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
