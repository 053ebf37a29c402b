"""What is said of a column in view of the others: that it may be a weight, or repeats what another one says."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from mixmem.cli.facts import Facts
from mixmem.data.table_checks import IGNORED
from mixmem.words import listed, quoted

COUNTS = re.compile(r"(.*[_. -])?(freq|frequency|frequencies|n|count|counts|cnt|num|cases)", re.IGNORECASE)
"""Names of columns that may say how many rows each stands for, if the other columns are categories and each of their
patterns has one row."""
WEIGHTS = re.compile(
    r"(.*[_. -])?(wgt|wgts|fnlwgt|sampwt|sample[_. -]?weights?|survey[_. -]?weights?|perwt|hhwt|finalwt|wtss\w*)"
    r"|(psp|an|pop)(weight|wght|wt)",
    re.IGNORECASE,
)
"""Names of columns that survey weights have."""
DESIGNS = re.compile(r"[dp](weight|wght|wt)", re.IGNORECASE)
"""Names that survey weights have (design, population), and bodies' (dad's, patient's) beside other sizes of them."""
SIZES = re.compile(r"(.*[_. -])?([a-z]?(ht|hgt|height)|bmi|wt)", re.IGNORECASE)
"""Names of the sizes of bodies."""
BODIES = re.compile(r"(.*[_. -])?(weights?|wt)", re.IGNORECASE)
"""Names that survey weights have, and what weighs something too: weights that were made for it have mean one."""
MEAN_ONE = 0.05
MOST_LEVELS = 30
"""Levels of a column up to which others are compared with them."""
LEAST_MARKED = 5
"""Rows that hold a level, and rows that do not, at least."""


def of_weights(facts: Facts) -> Iterator[str]:
    """Say which columns may tell how many rows each stands for, of a table without weights."""
    if facts.table.weights is not None:
        return
    for j, name in enumerate(facts.table.schema.names):
        if (COUNTS.fullmatch(name) and _counts_patterns(facts, j)) or _weighs_rows(facts, j, name):
            yield f"column {name!r} may say how many rows each stands for: if so, say --weight {quoted(name)}"


def _counts_patterns(facts: Facts, j: int) -> bool:
    """Whether a column holds whole numbers from 0 up beside categories, no pattern of which has two rows."""
    table = facts.table
    others = np.arange(table.n_variables) != j
    if not (table.schema.has("plain") | ~others).all():
        return False
    numbers = numbers_of(facts, j)
    if numbers is None or (table.codes[:, j] == table.coding.soft.absent[j]).any():
        return False
    held = numbers[:-1]
    if (held < 0.0).any() or (held != np.rint(held)).any():
        return False
    return len(np.unique(table.codes[:, others], axis=0)) == table.n_rows


def _weighs_rows(facts: Facts, j: int, name: str) -> bool:
    """Whether a column of positive numbers, none of them missing, is called as survey weights are.

    It has mean one, too, if bodies may be meant.
    """
    column, design = facts.table.coding.columns[j], DESIGNS.fullmatch(name)
    if not column.is_number or facts.missing[j] or min(column.values) <= 0.0:
        return False
    if BODIES.fullmatch(name) or (design and any(map(SIZES.fullmatch, facts.table.schema.names))):
        return abs(facts.counted.mean(j) - 1.0) < MEAN_ONE
    return bool(design or WEIGHTS.fullmatch(name))


def of_dummies(facts: Facts) -> Iterator[str]:
    """Say which columns of two levels tell in every row whether another column holds one of its levels."""
    table, soft = facts.table, facts.table.coding.soft
    sizes = np.where(table.schema.has("plain"), table.schema.sizes, 0)
    two = {_marks(table.codes[:, j], 0, int(soft.absent[j])): j for j in np.flatnonzero(sizes == 2).tolist()}
    for j in np.flatnonzero((sizes > 2) & (sizes <= MOST_LEVELS)).tolist() if two else ():
        found = [_marks(table.codes[:, j], level, int(soft.absent[j])) for level in range(sizes[j])]
        names = [table.schema.names[two[marks]] for marks in found if marks and marks in two]
        if names:
            one, of = len(names) == 1, table.schema.names[j]
            yield (
                f"{listed(map(repr, names))} {'says' if one else 'each say'} in every row only whether {of!r} holds a "
                f"certain level: the model takes {'it' if one else 'them'} for evidence of {'its' if one else 'their'} "
                "own; "
                f"leave {'it' if one else 'them'} out, such as with --kind {quoted(f'{names[0]}={IGNORED}')}"
            )


def _marks(codes: np.ndarray, level: int, absent: int) -> bytes:
    """Return which rows hold a level, which another one and which nothing, the same for either level of two.

    Nothing if few rows are of one sort: that may be chance.
    """
    marks = np.where(codes == absent, 2, codes == level).astype(np.int8)
    held = marks[marks < 2]
    if not LEAST_MARKED <= held.sum() <= len(held) - LEAST_MARKED:
        return b""
    marks[marks < 2] ^= held[0]
    return marks.tobytes()


def numbers_of(facts: Facts, j: int) -> np.ndarray | None:
    """Return the numbers that codes of a variable stand for, NaN for a missing cell; None if cells hold no numbers."""
    column, variable = facts.table.coding.columns[j], facts.table.schema.variables[j]
    if column.is_number:
        values = np.asarray(column.values, dtype=float)
    elif variable.value_type in ("int", "float"):
        values = np.array([float(level) for level in variable.levels])
    else:
        return None
    if variable.own_kind.cells == "copies":  # a cell holds several of the levels
        return None
    return np.append(values, np.nan)  # a missing cell has the code after the last
