"""report.html of crowd labels: what a reader should look at, from the fit's tables; the template holds all markup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from mixmem.models.crowd.model import DawidSkene
from mixmem.models.crowd.results import RANDOM
from mixmem.output.page import shown_source, template
from mixmem.words import plain_number, short

SHOWN_TASKS, SHOWN_WORKERS, SHOWN_CLASSES, SHOWN_MATRICES = 20, 10, 20, 6
ENOUGH = 10
"""Labels that a worker must have given to be shown among the best or the worst."""
UNINFORMATIVE = 0.05
"""A worker whose labels tell less than this share of the class labels at random, as far as anyone can see."""


def random_workers(workers: pd.DataFrame) -> pd.DataFrame:
    """Workers of enough labels that tell next to nothing of the class, those with the most labels first."""
    found = workers[(workers["labels"] >= ENOUGH) & (workers["information"] < UNINFORMATIVE)]
    return found.sort_values("labels", ascending=False, kind="stable")


def render_crowd_page(
    document: Mapping[str, Any], model: DawidSkene, tasks: pd.DataFrame, workers: pd.DataFrame
) -> str:
    """The page, from what summary.json holds, the fitted model and its tables."""
    shown = [short(str(name)) for name in model.classes_[:SHOWN_CLASSES]]
    return template("crowd.html.jinja").render(
        crowd=document,
        source=shown_source(document["data"]["labels"]),
        classes=_classes(document),
        names=shown,
        serious=[notice for notice in document.get("warnings", []) if notice["severity"] == "serious"],
        left_out=max(len(model.classes_) - SHOWN_CLASSES, 0),
        matrices=_matrices(model, workers, shown),
        again=_rows(tasks.sort_values(["entropy", "votes"], ascending=[False, True], kind="stable").head(SHOWN_TASKS)),
        unanimous=float((tasks["agreement"] == 1.0).mean()),
        agreement=_histogram(tasks["agreement"].to_numpy()),
        best=_rows(_extreme(workers, ascending=False)),
        worst=_rows(_extreme(workers, ascending=True)),
        at_random=_rows(random_workers(workers).head(SHOWN_WORKERS)),
        enough=ENOUGH,
        random_name=RANDOM,
        number=plain_number,
        short=short,
    )


def _classes(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    largest = max(max(row["share"], row["votes"]) for row in document["classes"])
    return [
        {**row, "label": short(str(row["label"])), "width": 100.0 * row["share"] / largest}
        for row in document["classes"][:SHOWN_CLASSES]
    ]


def _matrices(model: DawidSkene, workers: pd.DataFrame, names: list[str]) -> list[dict[str, Any]]:
    """Confusion matrices, classes down and labels across: of all workers, then of each community, by labels given."""
    weights = workers["labels"].to_numpy(dtype=float)
    groups = [("All workers", np.ones(len(workers), dtype=bool))]
    if "community" in workers:
        own = workers["community"].to_numpy()
        names_in_order = sorted(set(own) - {RANDOM}) + [RANDOM] * bool((own == RANDOM).any())
        groups += [(f"Community {name}", own == name) for name in names_in_order]
    confusion, shown = model.confusion_, len(names)
    found = []
    for title, inside in groups[:SHOWN_MATRICES]:
        mean = np.average(confusion[inside], axis=0, weights=weights[inside])[:shown, :shown]
        rows = [{"name": name, "cells": [float(p) for p in row]} for name, row in zip(names, mean, strict=True)]
        found.append({"title": title, "workers": int(inside.sum()), "labels": int(weights[inside].sum()), "rows": rows})
    return found


def _extreme(workers: pd.DataFrame, *, ascending: bool) -> pd.DataFrame:
    known = workers[workers["labels"] >= ENOUGH]
    return known.sort_values(["information", "labels"], ascending=[ascending, False], kind="stable").head(SHOWN_WORKERS)


def _histogram(values: np.ndarray) -> list[dict[str, Any]]:
    """Shares of tasks by agreement in steps of a tenth."""
    counts = np.histogram(values, bins=10, range=(0.0, 1.0))[0]
    share, most = counts / max(len(values), 1), max(int(counts.max()), 1)
    return [
        {"from": b / 10, "to": (b + 1) / 10, "share": float(share[b]), "width": 100.0 * counts[b] / most}
        for b in range(10)
        if counts[: b + 1].any()
    ]


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    plain = frame.loc[:, [name for name in frame.columns if "(" not in name]]
    return [
        {"id": short(str(identity)), **values}
        for identity, values in zip(frame.index, plain.to_dict("records"), strict=True)
    ]
