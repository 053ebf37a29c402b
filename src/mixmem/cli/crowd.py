"""`mixmem crowd`: labels of tasks and worth of workers, as files and a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mixmem import __version__
from mixmem.cli.attempts import Attempts
from mixmem.cli.compilation import announce_compilation
from mixmem.cli.console import noted, warned, written
from mixmem.errors import InputError
from mixmem.models.crowd.agreement import agreement
from mixmem.models.crowd.columns import plain_values
from mixmem.models.crowd.labels import Labels, known_classes, read_labels, read_truth, spelled_alike
from mixmem.models.crowd.model import DawidSkene
from mixmem.models.crowd.scoring import calibration_error, error_rate, expected_error, log_loss
from mixmem.output.crowd_page import random_workers, render_crowd_page
from mixmem.output.tables import MEMBERSHIP_DIGITS, as_polars, write_table
from mixmem.progress import current
from mixmem.records import plain
from mixmem.results.notices import Notice

CROWD_FILES = (
    "report.html", "labels.csv", "workers.csv", "summary.json", "model.mixmem", "next_labels.csv", "label_quality.csv",
    "ratings.csv",
)  # fmt: skip
"""What is written: a run that leaves a file out removes that of an earlier one."""


@dataclass(frozen=True)
class CrowdInput:
    """What a run reads: labels, a truth to count errors against, gold labels and the names of their columns, an earlier
    model to add the labels to, and a classifier's probabilities."""

    labels: str
    truth: Path | None = None
    gold: Path | None = None
    truth_columns: tuple[str, ...] | None = None
    update: Path | None = None
    classifier: Path | None = None


@dataclass(frozen=True)
class CrowdRun:
    """A fit on its way to the files, its tables, and what summary.json will hold."""

    model: DawidSkene
    tasks: pd.DataFrame
    workers: pd.DataFrame
    document: dict[str, Any]
    attempts: Attempts

    @property
    def notices(self) -> list[Notice]:
        """What speaks against the result, and what could not be made beside it."""
        return [*self.model.notices_, *self.attempts.notices]


def names_of(text: str) -> tuple[str, ...]:
    """Names of columns from an option's text."""
    return tuple(name.strip() for name in text.split(","))


def truth_names(text: str | None) -> tuple[str, ...] | None:
    """Names of the columns of a truth, or None where they are to be found."""
    names = None if text is None else names_of(text)
    if names is not None and (len(names) != 2 or not all(names)):
        raise InputError(f"--truth-columns must name two columns, of the task and of its class; got {text!r}")
    return names


def run_crowd(source: CrowdInput, settings: Mapping[str, Any], *, quiet: bool = False) -> CrowdRun:
    """Read, fit, and hold the result against the truth where one is given."""
    model = DawidSkene(**settings)
    model.check()  # before the data are read: that may take long
    progress = current()
    with progress.stage("reading"):
        if source.update is not None:
            model = _earlier(source.update, settings)
        pair = (model.columns[0], model.columns[2])
        truth, gold = (
            None if path is None else read_truth(path, columns=source.truth_columns, like=pair)
            for path in (source.truth, source.gold)
        )
        table = read_labels(source.labels, columns=model.columns, clean=model.clean)
        if truth is not None and model.clean:
            truth = spelled_alike(truth, table.classes)
        voice = None if source.classifier is None else _probabilities(source.classifier, table)
        if truth is not None and source.update is None:
            known_classes(table, truth)  # refuses ids that do not go together before the fit
    announce_compilation(quiet)
    with progress.stage("fitting"):
        if source.update is None:
            model.fit(table, gold, voice)
        else:
            model.partial_fit(table, gold)
    tasks, workers, attempts = model.tasks_, model.workers_, Attempts()
    errors = None
    if truth is not None:
        errors = attempts.attempt("the comparison with the truth", lambda: _against(truth, model))
    paths = {
        name: None if value is None else str(value) for name, value in vars(source).items() if name != "truth_columns"
    }
    document = {
        "mixmem": __version__,
        "data": paths,
        "settings": {**settings, "columns": list(model.columns)},
        "model": model.model_,
        "held_out": model.held_out_,
        "rounds": len(model.loss_history_),
        "converged": model.converged_,
        "loss": model.loss_history_[-1] if model.loss_history_ else None,
        "expected_error": expected_error(model.probas_),
        "dependence": None if model.dependence_ is None else asdict(model.dependence_),
        "agreement": attempts.attempt("agreement", lambda: agreement(model.encoded_).to_plain()),
        **_described(model.encoded_, model, workers),
        "gold_tasks": len(model.gold_),
        "truth": errors,
        "seconds": dict(progress.seconds),
    }
    return CrowdRun(model, tasks, workers, document, attempts)


def write_crowd(folder: Path, run: CrowdRun, *, budget: int | None = None, quality: bool = False) -> None:
    """Write tables, model, page and, with the notices, summary.json."""
    shares = run.model.probas_.set_axis([f"p({name})" for name in run.model.classes_], axis=1)
    write_table(
        folder / "labels.csv", as_polars(pd.concat([run.tasks, shares], axis=1).reset_index(), MEMBERSHIP_DIGITS)
    )
    write_table(folder / "workers.csv", as_polars(run.workers.reset_index(), MEMBERSHIP_DIGITS))
    if budget is not None:
        write_table(folder / "next_labels.csv", as_polars(run.model.advise(budget).reset_index(), MEMBERSHIP_DIGITS))
    if quality:
        write_table(folder / "label_quality.csv", as_polars(run.model.label_quality_, MEMBERSHIP_DIGITS))
    run.attempts.write(folder / "model.mixmem", run.model.save)
    run.document["warnings"] = plain(run.notices)
    run.attempts.write(folder / "report.html", lambda path: path.write_text(_page(run), encoding="utf-8"))
    run.document["warnings"] = plain(run.notices)
    text = json.dumps(plain(run.document), indent=1, allow_nan=False, default=_plain)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")


def _earlier(path: Path, settings: Mapping[str, Any]) -> DawidSkene:
    """The model of an earlier run, with this run's threads and seed; its other settings stay."""
    model = DawidSkene.load(path / "model.mixmem" if path.is_dir() else path)
    return model.set_params(
        n_jobs=settings["n_jobs"], random_state=settings["random_state"], columns=settings["columns"]
    )


def _probabilities(path: Path, table: Labels) -> pd.DataFrame:
    """A classifier's probabilities by task; classes are matched by their text."""
    from mixmem.data.read import read_table

    found = read_table(path)
    names = {str(value): value for value in table.classes.tolist()}
    columns = {name: j for j, name in enumerate(found.names) if name in names}
    rest = [j for j, name in enumerate(found.names) if name not in names]
    if not rest or len(columns) < len(names):
        missing = next((name for name in names if name not in columns), "task")
        raise InputError(f"{path} has no column {missing!r}; expected the task and one column for every class")
    place = next((j for j in rest if found.names[j] == "task"), rest[0])
    numbers = {names[name]: np.asarray(found.column(j), dtype=float) for name, j in columns.items()}
    return pd.DataFrame(numbers, index=plain_values(found, place))


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


def _against(truth: dict[Any, Any], model: DawidSkene) -> dict[str, Any]:
    """Errors where the truth is known and was not given as gold; a true class that no worker ever gave is an error."""
    known = known_classes(model.encoded_, truth)
    here = int((known >= 0).sum())
    if model.gold_:
        given = known_classes(model.encoded_, model.gold_)
        known = np.where(given >= 0, -1, known)
    scored = int((known >= 0).sum())
    counts = {
        "tasks": scored,
        "tasks_without_labels": len(truth) - here,
        "gold_left_out": here - scored,
        "classes_never_given": int((known == len(model.classes_)).sum()),
    }
    if not scored:
        return {**counts, "error": None, "majority_error": None, "calibration_error": None, "log_loss": None,
                "expected_error": None}  # fmt: skip
    posterior = model.probas_.to_numpy()
    votes = np.zeros_like(posterior)
    np.add.at(votes, (model.encoded_.task_of, model.encoded_.labels), 1.0)
    return {
        **counts,
        "error": error_rate(posterior, known),
        "expected_error": expected_error(posterior[known >= 0]),
        "majority_error": error_rate(votes, known),
        "calibration_error": calibration_error(posterior, known),
        "log_loss": log_loss(posterior, known),
    }


def crowd_text(run: CrowdRun, out: Path) -> str:
    """What was found, in a few lines."""
    d = run.document
    counts = d["counts"]
    lines = [
        *warned(run.model.notices_),
        f"{counts['labels']:,} labels by {counts['workers']:,} workers for {counts['tasks']:,} tasks in "
        f"{len(d['classes'])} class{'es' * (len(d['classes']) > 1)}",
        f"model {d['model']}, {d['rounds']} rounds, {'converged' if d['converged'] else 'NOT converged: try --rounds'}",
        f"expected to be wrong: {d['expected_error']:.1%} of the labels found",
    ]
    if (truth := d["truth"]) and truth["error"] is not None:
        lines.append(
            f"wrong against the truth of {truth['tasks']:,} tasks: {truth['error']:.2%} "
            f"(majority vote {truth['majority_error']:.2%})"
        )
    if truth and truth["tasks_without_labels"]:
        lines.append(f"{truth['tasks_without_labels']:,} tasks of the truth have no labels and are left out")
    if truth and truth["gold_left_out"]:
        lines.append(f"{truth['gold_left_out']:,} tasks of the truth were given as gold and are not counted")
    lines += noted(run.model.notices_)
    if counts["repeats"]:
        lines.append(
            f"{counts['repeats']:,} rows repeat a task and worker ({counts['contradictions']:,} with another label); "
            "each counts"
        )
    if d["random_workers"]:
        who = "workers label" if d["random_workers"] > 1 else "worker labels"
        lines.append(f"{d['random_workers']:,} {who} at random ({d['random_label_share']:.1%} of the labels)")
    return "\n".join([*lines, written(out, CROWD_FILES, "report.html")])


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
