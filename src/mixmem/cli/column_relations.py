"""What is said of a column in view of the others: that it may be a weight."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from mixmem.cli.facts import Facts
from mixmem.words import quoted

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
