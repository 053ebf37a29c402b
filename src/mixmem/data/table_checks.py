"""What is asked of a table before it is coded: declarations, weights, values that mean missing, its shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.column_coders import NO_WEIGHT, as_numbers
from mixmem.data.kinds import KINDS
from mixmem.data.level_text import canonical_text, type_of_texts
from mixmem.data.schema import Schema
from mixmem.data.table import Coded, Column, Table, Unusable
from mixmem.errors import InputError
from mixmem.words import suggestion

if TYPE_CHECKING:
    pass

MIN_VARIABLES = 2
"""A component shows in how variables go together."""

IGNORED = "ignore"
"""Declared of a column that takes no part."""


# --- What is asked of the table as a whole


def check_declared(declared: Mapping[str, str], orders: Mapping[str, tuple[str, ...]], table: Table) -> None:
    for name, kind in declared.items():
        if name not in table.names:
            raise InputError(f"there is no variable {name!r}{suggestion(name, table.names)}")
        if kind not in KINDS and kind != IGNORED:
            raise InputError(f"variable {name!r} is declared {kind!r}; expected one of {', '.join(KINDS)}, {IGNORED}")
        if name in orders and (kind == IGNORED or not KINDS[kind].ordered):
            raise InputError(
                f"variable {name!r} is declared {kind!r} with an order of its levels; expected an order with the kind "
                "ordinal only"
            )
        if table.loci is not None and kind != IGNORED and KINDS[kind].cells != "copies":
            raise InputError(
                f"variable {name!r} is declared {kind!r}, but variants of a genotype file are of kind dosage; expected "
                f"{IGNORED} or nothing"
            )


def without_weights(table: Table, name: str) -> tuple[Table, np.ndarray]:
    """The table without its column of weights, and the weights (n,)."""
    if name not in table.names:
        raise InputError(f"there is no column {name!r} to take weights from{suggestion(name, table.names)}")
    position = table.names.index(name)
    numbers = as_numbers(table.column(position), position, table, remedy=NO_WEIGHT)
    weights = check_weights(numbers, table.n_rows, f"column {name!r}")
    return table.take([j for j in range(table.n_columns) if j != position]), weights


def check_weights(weights: Any, n_rows: int, where: str = "sample_weight") -> np.ndarray:
    """Weights (n,) as positive floats."""
    try:
        found = np.asarray(weights, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} must be numbers, one a row ({error})") from error
    if found.shape != (n_rows,):
        raise InputError(f"{where} has shape {found.shape}; expected ({n_rows},), a weight for every row")
    if not found.any():
        raise InputError(f"{where}: every weight is zero; expected some rows to count")
    if not np.isfinite(found).all() or (found < 0.0).any():
        bad = int(np.argmax(~(np.isfinite(found) & (found >= 0.0))))
        raise InputError(f"{where}, row {bad + 1} holds {found[bad]}; expected finite weights of at least 0")
    return found


def blanked(table: Table, missing: Any) -> Table:
    """The table with the given values made missing."""
    if table.loci is not None:
        raise InputError("genotype files say themselves which cells are missing; expected missing=None")
    if not isinstance(missing, Mapping):
        missing = dict.fromkeys(table.names, missing)
    columns: list[Column] = [table.column(j) for j in range(table.n_columns)]
    for name, given in missing.items():
        if name not in table.names:
            raise InputError(f"missing names a column {name!r} that is not there{suggestion(name, table.names)}")
        listed = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
        texts = {form for value in listed for form in (canonical_text(value, "str"), _as_typed(value))}
        j = table.names.index(name)
        columns[j] = _blanked_column(columns[j], texts)
    return replace(table, columns=tuple(columns))


def _as_typed(value: Any) -> str:
    """The canonical text of what a text stands for."""
    return canonical_text(value, type_of_texts([value])) if isinstance(value, str) else canonical_text(value, "str")


def _blanked_column(column: Column, texts: set[str]) -> Column:
    if isinstance(column, Unusable):
        return column
    if isinstance(column, Coded):
        typed = [canonical_text(v, "str") in texts or (column.untyped and _as_typed(v) in texts) for v in column.values]
        gone = np.append(np.array(typed, dtype=bool), False)
        return replace(column, codes=np.where(gone[column.codes], -1, column.codes))
    present = [value for value in np.unique(column).tolist() if canonical_text(value, "str") in texts]
    if not present:
        return column
    return np.where(np.isin(column, present), np.nan, column.astype(np.float64))


def check_shape(table: Table, schema: Schema | None) -> None:
    shape = (table.n_rows, table.n_columns)
    if table.n_rows < 1:
        raise InputError(
            f"the table has no rows (0 sample(s), {table.n_columns} columns); expected at least one: look whether it "
            "ends after the names of its columns"
        )
    if schema is not None:
        return
    if table.n_columns < MIN_VARIABLES:
        raise InputError(
            f"the table has {table.n_columns} feature(s) (shape={shape}) while a minimum of {MIN_VARIABLES} is "
            "required: memberships show in how columns go together; " + _separator_hint(table)
        )
    if table.n_rows < 2:
        raise InputError(
            "the table has one row (1 sample); expected at least 2, since one does not tell which answers there are: "
            "give the table more rows"
        )


def _separator_hint(table: Table) -> str:
    """What to do about too few columns: a file with another separator has all of them in one."""
    for separator, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if table.n_columns == 1 and separator in table.names[0]:
            return f"the columns seem to be separated by {word}: save the file with commas, or tabs as .tsv"
    return "give the table more columns"


def refuse_alike(table: Table) -> None:
    """Genotypes among which nothing differs say nothing of components."""
    genotypes = np.asarray(table.columns)
    if genotypes.size and not ((genotypes >= 0) & (genotypes != genotypes.max(axis=0))).any():
        raise InputError(
            f"all {table.n_rows} samples have the same genotype at each of the {table.n_columns} variants; expected "
            "variants at which they differ"
        )
