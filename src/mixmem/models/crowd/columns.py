"""Columns of a table as people have it: named otherwise, or one column per worker; and their cells as codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixmem.data.table import Coded, Table, usable
from mixmem.errors import InputError
from mixmem.words import listed, listing, suggestion

COLUMNS = ("task", "worker", "label")
"""Names of the columns, crowd-kit's own."""
OTHER_NAMES = {
    "task": (
        "task_id", "taskid", "item", "item_id", "itemid", "question", "question_id", "questionid", "unit", "unit_id",
        "_unit_id", "example", "example_id", "instance", "instance_id", "object", "object_id", "document",
        "document_id", "doc", "doc_id", "docid", "image", "image_id", "sample", "sample_id", "row", "id", "hitid",
        "orig_id",
    ),
    "worker": (
        "worker_id", "workerid", "_worker_id", "annotator", "annotator_id", "annotatorid", "rater", "rater_id", "coder",
        "coder_id", "labeler", "labeler_id", "labeller", "labeller_id", "user", "user_id", "userid", "judge",
        "judge_id", "performer", "assessor", "source", "respondent", "amt_worker_ids", "turker", "participant",
    ),
    "label": (
        "labels", "answer", "response", "annotation", "rating", "class", "category", "judgment", "judgement", "vote",
        "value", "choice", "code", "result", "output", "score",
    ),
    "truth": (
        "true_label", "truth", "gold", "gold_label", "true", "true_class", "ground_truth", "gt", "correct_answer",
        "correct_label", "true_answer", "gold_answer", "label", "correct", "class", "answer", "category", "value",
    ),
}  # fmt: skip
"""Names that a column may have instead, in lower case; blanks and hyphens count as underscores."""
SURELY_TRUTH = OTHER_NAMES["truth"][: OTHER_NAMES["truth"].index("label")]
"""Names that no worker's column has."""
ANSWERS = "answer_"
"""How the only column of labels begins in files of Mechanical Turk (Answer.sentiment)."""
FEWEST_SHARED = 0.5
"""In a table with a column per worker, at least this share of columns has a value in common with all others' values."""


@dataclass(frozen=True)
class Codes:
    """Distinct values in order, and the place of every cell among them (int32)."""

    values: np.ndarray
    codes: np.ndarray


@dataclass(frozen=True)
class Found:
    """Columns with the names they have in the table, and a sentence where they were not called as expected."""

    columns: list[tuple[np.ndarray | Coded, str]]
    note: str | None = None


def label_columns(table: Table, names: Sequence[str]) -> Found:
    """Task, worker and label: by the names given, by usual ones, or from a table with a column per worker."""
    if table.positional and table.remarks and tuple(names) == COLUMNS:
        return Found(named_columns(table, names), "took the columns in order as task, worker and label")
    if table.positional or tuple(names) != COLUMNS or all(name in table.names for name in names):
        return Found(named_columns(table, names))
    guessed = _guess(table.names, COLUMNS)
    if guessed is not None:
        told = ", ".join(
            f"{column!r} as the {role}" for column, role in zip(guessed, COLUMNS, strict=True) if column != role
        )
        return Found(named_columns(table, guessed), f"took column {told}")
    wide = _from_wide(table)
    return wide or Found(named_columns(table, names))


def truth_columns(
    table: Table, names: Sequence[str] | None, like: Sequence[str]
) -> list[tuple[np.ndarray | Coded, str]]:
    """Task and class: by the names given; else called ``like`` those of the labels, or by usual names."""
    if names is not None or table.positional or all(name in table.names for name in like):
        return named_columns(table, names or like, "--truth-columns")
    return named_columns(table, _guess(table.names, ("task", "truth")) or like, "--truth-columns")


def named_columns(
    table: Table, names: Sequence[str], option: str = "--columns"
) -> list[tuple[np.ndarray | Coded, str]]:
    """The named columns; those of a bare array are taken in order. ``option`` is how the command line names them."""
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
                    f"({option} on the command line)"
                )
        places = [table.names.index(name) for name in names]
    if isinstance(table.columns, np.ndarray):
        return [(table.columns[:, j], name) for j, name in zip(places, names, strict=True)]
    return [(usable(table.columns[j]), name) for j, name in zip(places, names, strict=True)]


def _guess(names: Sequence[str], roles: Sequence[str]) -> tuple[str, ...] | None:
    """The columns that go by a usual name of every role; None where one is missing or two could be meant."""
    plain = {name: _plain(name) for name in names}
    taken: list[str] = []
    for role in roles:
        # The usual names stand in the order of how telling they are: the first that occurs is meant.
        for usual in (role, *OTHER_NAMES[role]):
            matching = [name for name in names if plain[name] == usual and name not in taken]
            if matching:
                taken.append(matching[0])
                break
        else:
            answers = [name for name in names if role == "label" and plain[name].startswith(ANSWERS)]
            if len(answers) != 1:
                return None
            taken.append(answers[0])
    return tuple(taken)


def _plain(name: str) -> str:
    """A column's name without the differences that people do not mean."""
    return name.strip().lower().translate(str.maketrans(" -.", "___"))


def _from_wide(table: Table) -> Found | None:
    """A table with one row per task and one column per worker as long columns; None if it does not look like one."""
    plain = [_plain(name) for name in table.names]
    if table.n_columns < 3 or any(name in ("worker", *OTHER_NAMES["worker"]) for name in plain):
        return None
    task = next((j for j, name in enumerate(plain) if name in ("task", *OTHER_NAMES["task"])), 0)
    keys = plain_values(table, task)
    if len(set(keys.tolist())) < len(keys) or (keys == None).any():  # noqa: E711 (an array)
        return None
    truths = [j for j in range(table.n_columns) if j != task and plain[j] in SURELY_TRUTH]
    workers = [j for j in range(table.n_columns) if j != task and j not in truths]
    cells = [plain_values(table, j) for j in workers]
    given = [{value for value in column.tolist() if value is not None} for column in cells]
    union = set().union(*given)
    shared = [any(own & other for k, other in enumerate(given) if k != j) for j, own in enumerate(given)]
    if not union or len(union) > max(20, len(keys) // 2) or np.mean(shared) < FEWEST_SHARED:
        return None
    filled = [np.flatnonzero([value is not None for value in column]) for column in cells]
    names = np.array([table.names[j] for j in workers], dtype=object)
    columns = (
        np.concatenate([keys[rows] for rows in filled]),
        np.repeat(names, [len(rows) for rows in filled]),
        np.concatenate([column[rows] for column, rows in zip(cells, filled, strict=True)]),
    )
    note = (
        f"took {table.names[task]!r} as the task and every other column as a worker ({listed(names[:3].tolist())}"
        f"{', ...' if len(names) > 3 else ''}), empty cells as labels not given"
    )
    if truths:
        note += f"; left out {table.names[truths[0]]!r}, which looks like the truth: give it as truth or gold labels"
    return Found([(_as_coded(column), name) for column, name in zip(columns, COLUMNS, strict=True)], note)


def plain_values(table: Table, place: int) -> np.ndarray:
    """A column's cells as Python objects, None where missing."""
    column = usable(table.column(place))
    if isinstance(column, Coded):
        values = np.array([*column.values, None], dtype=object)
        return values[column.codes]
    whole = column.dtype.kind == "f" and bool((np.isnan(column) | (column == np.round(column))).all())
    found = [None if value != value else int(value) if whole else value for value in column.tolist()]
    return np.array(found, dtype=object)


def _as_coded(cells: np.ndarray) -> Coded:
    values = list(dict.fromkeys(cells.tolist()))
    place = {value: v for v, value in enumerate(values)}
    return Coded(tuple(values), np.array([place[value] for value in cells.tolist()], dtype=np.int32))


def coded(column: np.ndarray | Coded, name: str) -> Codes:
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
        return Codes(np.flatnonzero(present) + least, (np.cumsum(present, dtype=np.int32) - np.int32(1))[places])
    values, codes = np.unique(column, return_inverse=True)
    return Codes(values, codes.astype(np.int32))


def _from_coded(column: Coded, name: str) -> Codes:
    blank = [v for v, value in enumerate(column.values) if isinstance(value, str) and not value.strip()]
    _refuse_missing((column.codes < 0) | np.isin(column.codes, blank), name)
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
    return Codes(array, place[column.codes])


def recoded(labels: Codes, classes: np.ndarray, name: str) -> Codes:
    """The labels as places among given classes."""
    place = {value: j for j, value in enumerate(classes.tolist())}
    unknown = [value for value in labels.values.tolist() if value not in place]
    if unknown:
        raise InputError(
            f"column {name!r} holds the label {unknown[0]!r}, which is not a class; expected one of "
            f"{listing(map(str, place))}"
        )
    return Codes(classes, np.array([place[value] for value in labels.values.tolist()], dtype=np.int32)[labels.codes])


def _refuse_missing(missing: np.ndarray, name: str) -> None:
    if missing.any():
        raise InputError(
            f"column {name!r} is missing in {int(missing.sum()):,} row(s), first in row {int(missing.argmax()) + 1}; "
            "expected a value in every row: drop the rows of labels that were not given"
        )
