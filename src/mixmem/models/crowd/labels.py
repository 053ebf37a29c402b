"""A long table (task, worker, label) -> `Labels`: codes sorted by task, and the rules for bad input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixmem.data.read import read_table
from mixmem.errors import InputError
from mixmem.kernels.crowd import by_task
from mixmem.models.crowd.columns import COLUMNS, Codes, coded, label_columns, recoded, truth_columns
from mixmem.words import listing

MOST_CLASSES = 1000


@dataclass(frozen=True)
class Labels:
    """Labels of workers for tasks, sorted by task: task i has labels starts[i] to starts[i + 1].

    ``tasks`` (n,), ``worker_ids`` (W,) and ``classes`` (K,) hold the ids in order; ``workers`` (m,) and ``labels`` (m,)
    are places among them. Every row counts as a label of its own, so a worker who labelled a task several times has
    several votes; ``repeats`` says how many rows repeat a (task, worker) pair, ``contradictions`` how many of those
    differ from the pair's first label.
    """

    tasks: np.ndarray
    worker_ids: np.ndarray
    classes: np.ndarray
    starts: np.ndarray
    workers: np.ndarray
    labels: np.ndarray
    repeats: int = 0
    contradictions: int = 0
    note: str | None = None
    """How the table's columns were understood, where they had other names."""

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    @property
    def n_workers(self) -> int:
        return len(self.worker_ids)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def n_labels(self) -> int:
        return len(self.labels)

    @property
    def task_of(self) -> np.ndarray:
        """The task of every label, (m,)."""
        return np.repeat(np.arange(self.n_tasks, dtype=np.int32), np.diff(self.starts))

    def take(self, kept: np.ndarray) -> Labels:
        """The same tasks, workers and classes with the labels kept, (m,) booleans; tasks may be left without any."""
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        return replace(self, starts=starts, workers=self.workers[kept], labels=self.labels[kept])


def read_labels(
    source: Any, *, columns: Sequence[str] = COLUMNS, classes: Sequence[Any] | np.ndarray | None = None,
    clean: bool = False,
) -> Labels:  # fmt: skip
    """Labels from a frame (pandas, polars, pyarrow), an array of three columns, or a file.

    ``columns`` names those of the task, the worker and the label; others are left alone. ``classes`` lists the classes
    where some of them may never have been given as a label; without it they are the labels that occur. ``clean`` takes
    labels that differ in case or blanks only for the same. Columns with other usual names (item, annotator, answer)
    are found, and so is a table with a column per worker; ``Labels.note`` tells. Refused: an empty table, missing
    cells, ids of several types in a column, a label that is not in ``classes``.

    >>> labels = read_labels([["t1", "ann", "cat"], ["t1", "bob", "dog"], ["t2", "ann", "cat"]])
    >>> labels.n_tasks, labels.classes.tolist(), labels.starts.tolist()
    (2, ['cat', 'dog'], [0, 2, 3])
    """
    if isinstance(source, Labels):
        return source
    found = label_columns(read_table(source), columns)
    tasks, workers, labels = (coded(*column) for column in found.columns)
    if clean:
        labels = _cleaned(labels)
    if classes is not None:
        labels = recoded(labels, np.asarray(classes), columns[2])
    if len(labels.values) > MOST_CLASSES:
        raise InputError(
            f"column {columns[2]!r} holds {len(labels.values):,} different labels; expected classes, at most "
            f"{MOST_CLASSES:,}: is it the right column?"
        )
    starts, sorted_workers, sorted_labels, repeats, contradictions = by_task(
        tasks.codes, workers.codes, labels.codes, len(tasks.values), len(workers.values)
    )
    return Labels(
        tasks.values, workers.values, labels.values, starts, sorted_workers, sorted_labels, repeats, contradictions,
        found.note,
    )  # fmt: skip


def read_truth(
    source: Any, *, columns: Sequence[str] | None = None, like: Sequence[str] = ("task", "label")
) -> dict[Any, Any]:
    """Known classes by task: a mapping, a pandas Series by task, a frame or file with the two columns.

    ``columns`` names them; without it they are called ``like`` those of the labels, or by a usual name.

    >>> read_truth([["t1", "cat"], ["t2", "dog"], ["t2", "dog"]])
    {'t1': 'cat', 't2': 'dog'}
    """
    if isinstance(source, dict):
        return source
    if hasattr(source, "to_dict") and getattr(source, "ndim", 0) == 1:
        source = np.array([[task, label] for task, label in source.items()], dtype=object).reshape(-1, 2)
    (tasks, labels) = (coded(*column) for column in truth_columns(read_table(source), columns, like))
    truth: dict[Any, Any] = {}
    for task, label in zip(tasks.values[tasks.codes].tolist(), labels.values[labels.codes].tolist(), strict=True):
        if truth.setdefault(task, label) != label:
            raise InputError(
                f"the truth says both {truth[task]!r} and {label!r} of task {task!r}; expected one class: drop one"
            )
    return truth


def known_classes(labels: Labels, truth: dict[Any, Any]) -> np.ndarray:
    """The class of every task as a place among the classes, (n,); -1 where unknown, K where no worker ever gave it.

    Tasks of the truth that have no labels are left out; if none has, the ids do not go together and it is refused.
    """
    place = {value: j for j, value in enumerate(labels.classes.tolist())}
    known = np.full(labels.n_tasks, -1, dtype=np.int32)
    if not truth:
        return known
    for i, task in enumerate(labels.tasks.tolist()):
        if task in truth:
            known[i] = place.get(truth[task], labels.n_classes)
    if (known < 0).all():
        raise InputError(
            f"none of the {len(truth):,} tasks of the truth has labels: {listing(map(str, truth), 3)} there, "
            f"{listing(map(str, labels.tasks.tolist()), 3)} here; check that both use the same ids and types"
        )
    return known


def spelled_alike(truth: dict[Any, Any], classes: np.ndarray) -> dict[Any, Any]:
    """Return known classes spelled as the labels are, where they differ in case or blanks only.

    >>> spelled_alike({"t1": "Cat ", "t2": "bird"}, np.array(["cat", "dog"]))
    {'t1': 'cat', 't2': 'bird'}
    """
    called = {plain_text(value): value for value in classes.tolist()}
    return {task: called.get(plain_text(value), value) for task, value in truth.items()}


def with_classes(labels: Labels, gold: dict[Any, Any], classes: Sequence[Any] | None) -> Labels:
    """Return the labels with the classes that only the gold labels have, in order."""
    new = set(gold.values()) - set(labels.classes.tolist())
    if not new:
        return labels
    if classes is not None:
        raise InputError(f"the true labels hold {sorted(map(str, new))[0]!r}, which is not in classes; add it there")
    try:
        every = sorted({*labels.classes.tolist(), *new})
    except TypeError:
        example = next(iter(new))
        raise InputError(
            f"the true labels hold {example!r} ({type(example).__name__}), the labels {labels.classes[0]!r} "
            f"({type(labels.classes[0]).__name__}); expected one type: convert one of them"
        ) from None
    place = {value: j for j, value in enumerate(every)}
    lookup = np.array([place[value] for value in labels.classes.tolist()], dtype=np.int32)
    array = np.array(every, dtype=labels.classes.dtype)
    return replace(labels, classes=array, labels=lookup[labels.labels])


def joined(first: Labels, second: Labels) -> Labels:
    """Return the labels of both, those of ``first`` before those of ``second`` in every task."""
    tasks, task_places = _united(first.tasks, second.tasks, "tasks")
    workers, worker_places = _united(first.worker_ids, second.worker_ids, "workers")
    if set(second.classes.tolist()) <= set(first.classes.tolist()):
        place = {value: j for j, value in enumerate(first.classes.tolist())}
        classes = first.classes
        class_places = [
            np.array([place[value] for value in each.classes.tolist()], dtype=np.int32) for each in (first, second)
        ]
    else:
        classes, class_places = _united(first.classes, second.classes, "labels")
    both = (first, second)
    codes = [
        np.concatenate([places[getattr(each, name)] for places, each in zip(lookup, both, strict=True)])
        for lookup, name in ((task_places, "task_of"), (worker_places, "workers"), (class_places, "labels"))
    ]
    starts, who, what, repeats, contradictions = by_task(*codes, len(tasks), len(workers))
    return Labels(tasks, workers, classes, starts, who, what, repeats, contradictions, second.note)


def _united(first: np.ndarray, second: np.ndarray, what: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """All ids in order, and the places of the first's and of the second's among them."""
    try:
        every = np.unique(np.concatenate([first, second]))
        if type(first[0]) is not type(second[0]) and {first.dtype.kind, second.dtype.kind} & set("OU"):
            raise TypeError
    except TypeError:
        raise InputError(
            f"the new {what} are of another type ({type(second[0]).__name__}) than those fitted "
            f"({type(first[0]).__name__}); convert one of them"
        ) from None
    return every, [np.searchsorted(every, ids).astype(np.int32) for ids in (first, second)]


def plain_text(value: Any) -> Any:
    """Return a label without the differences that people do not mean: case, and blanks around and between words.

    >>> plain_text(" Yes  please"), plain_text(3)
    ('yes please', 3)
    """
    return " ".join(value.split()).casefold() if isinstance(value, str) else value


def _cleaned(labels: Codes) -> Codes:
    """Labels that differ in case or blanks only as one, called as most of them are."""
    given = np.bincount(labels.codes, minlength=len(labels.values))
    called: dict[Any, int] = {}
    for v, value in enumerate(labels.values.tolist()):
        best = called.setdefault(plain_text(value), v)
        if given[v] > given[best]:
            called[plain_text(value)] = v
    kept = sorted(called.values())
    place = {v: j for j, v in enumerate(kept)}
    lookup = np.array([place[called[plain_text(value)]] for value in labels.values.tolist()], dtype=np.int32)
    return Codes(labels.values[kept], lookup[labels.codes])
