"""A long table (task, worker, label) -> `Labels`: codes sorted by task, and the rules for bad input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixmem.data.read import read_table
from mixmem.data.table import Coded, Table, usable
from mixmem.errors import InputError
from mixmem.kernels.crowd import by_task
from mixmem.words import listing, suggestion

COLUMNS = ("task", "worker", "label")
"""Names of the columns, crowd-kit's own."""
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
    source: Any, *, columns: Sequence[str] = COLUMNS, classes: Sequence[Any] | np.ndarray | None = None
) -> Labels:
    """Labels from a frame (pandas, polars, pyarrow), an array of three columns, or a file.

    ``columns`` names those of the task, the worker and the label; others are left alone. ``classes`` lists the classes
    where some of them may never have been given as a label; without it they are the labels that occur. Refused: an
    empty table, missing cells, ids of several types in a column, a label that is not in ``classes``.

    >>> labels = read_labels([["t1", "ann", "cat"], ["t1", "bob", "dog"], ["t2", "ann", "cat"]])
    >>> labels.n_tasks, labels.classes.tolist(), labels.starts.tolist()
    (2, ['cat', 'dog'], [0, 2, 3])
    """
    if isinstance(source, Labels):
        return source
    tasks, workers, labels = (_coded(*column) for column in _columns(read_table(source), columns))
    if classes is not None:
        labels = _recoded(labels, np.asarray(classes), columns[2])
    if len(labels.values) > MOST_CLASSES:
        raise InputError(
            f"column {columns[2]!r} holds {len(labels.values):,} different labels; expected classes, at most "
            f"{MOST_CLASSES:,}: is it the right column?"
        )
    starts, sorted_workers, sorted_labels, repeats, contradictions = by_task(
        tasks.codes, workers.codes, labels.codes, len(tasks.values), len(workers.values)
    )
    return Labels(
        tasks.values, workers.values, labels.values, starts, sorted_workers, sorted_labels, repeats, contradictions
    )


def read_truth(source: Any, *, columns: Sequence[str] = ("task", "label")) -> dict[Any, Any]:
    """Known classes by task: a mapping, a pandas Series by task, a frame or file with the two columns.

    >>> read_truth([["t1", "cat"], ["t2", "dog"], ["t2", "dog"]])
    {'t1': 'cat', 't2': 'dog'}
    """
    if isinstance(source, dict):
        return source
    if hasattr(source, "to_dict") and getattr(source, "ndim", 0) == 1:
        source = np.array([[task, label] for task, label in source.items()], dtype=object).reshape(-1, 2)
    (tasks, labels) = (_coded(*column) for column in _columns(read_table(source), columns))
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
    for i, task in enumerate(labels.tasks.tolist()):
        if task in truth:
            known[i] = place.get(truth[task], labels.n_classes)
    if truth and (known < 0).all():
        raise InputError(
            f"none of the {len(truth):,} tasks of the truth has labels: {listing(map(str, truth), 3)} there, "
            f"{listing(map(str, labels.tasks[:4]), 3)} here; check that both use the same ids and types"
        )
    return known


# --- Columns as codes


@dataclass(frozen=True)
class _Codes:
    """Distinct values in order, and the place of every cell among them (int32)."""

    values: np.ndarray
    codes: np.ndarray


def _columns(table: Table, names: Sequence[str]) -> list[tuple[np.ndarray | Coded, str]]:
    """The named columns; those of a bare array are taken in order."""
    if table.n_rows == 0:
        raise InputError(f"the table has no rows; expected the columns {listing(names)} and at least one row")
    if table.positional:
        if table.n_columns != len(names):
            raise InputError(f"got {table.n_columns} columns; expected {len(names)}: {', '.join(names)}")
        places = list(range(len(names)))
    else:
        for name in names:
            if name not in table.names:
                raise InputError(
                    f"there is no column {name!r}{suggestion(name, table.names)}; name the columns with columns= "
                    "(--columns on the command line)"
                )
        places = [table.names.index(name) for name in names]
    if isinstance(table.columns, np.ndarray):
        return [(table.columns[:, j], name) for j, name in zip(places, names, strict=True)]
    return [(usable(table.columns[j]), name) for j, name in zip(places, names, strict=True)]


def _coded(column: np.ndarray | Coded, name: str) -> _Codes:
    if isinstance(column, Coded):
        return _from_coded(column, name)
    if column.dtype.kind == "f":
        _refuse_missing(np.isnan(column), name)
    if column.dtype.kind in "iu" and (span := int(column.max()) - int(column.min()) + 1) <= 4 * len(column) + 1024:
        # A table of all numbers between the least and the largest: sorting ten million takes seconds.
        least = column.min()
        places = column - least
        present = np.zeros(span, dtype=bool)
        present[places] = True
        return _Codes(np.flatnonzero(present) + least, (np.cumsum(present, dtype=np.int32) - np.int32(1))[places])
    values, codes = np.unique(column, return_inverse=True)
    return _Codes(values, codes.astype(np.int32))


def _from_coded(column: Coded, name: str) -> _Codes:
    _refuse_missing(column.codes < 0, name)
    used = np.flatnonzero(np.bincount(column.codes, minlength=len(column.values)))
    values = [column.values[v] for v in used]
    types = sorted({type(value).__name__ for value in values})
    if len(types) > 1:
        examples = {type(value).__name__: value for value in values}
        found = ", ".join(f"{kind} such as {examples[kind]!r}" for kind in types)
        raise InputError(f"column {name!r} holds several types ({found}); expected one: convert the column to text")
    order = list(range(len(values))) if column.ordered else sorted(range(len(values)), key=values.__getitem__)
    place = np.zeros(len(column.values), dtype=np.int32)
    place[used[order]] = np.arange(len(used))
    array = np.empty(len(values), dtype=object)
    array[:] = [values[v] for v in order]
    return _Codes(array, place[column.codes])


def _recoded(labels: _Codes, classes: np.ndarray, name: str) -> _Codes:
    """The labels as places among given classes."""
    place = {value: j for j, value in enumerate(classes.tolist())}
    unknown = [value for value in labels.values.tolist() if value not in place]
    if unknown:
        raise InputError(
            f"column {name!r} holds the label {unknown[0]!r}, which is not a class; expected one of "
            f"{listing(map(str, place))}"
        )
    return _Codes(classes, np.array([place[value] for value in labels.values.tolist()], dtype=np.int32)[labels.codes])


def _refuse_missing(missing: np.ndarray, name: str) -> None:
    if missing.any():
        raise InputError(
            f"column {name!r} is missing in {int(missing.sum()):,} row(s), first in row {int(missing.argmax()) + 1}; "
            "expected a value in every row: drop the rows of labels that were not given"
        )
