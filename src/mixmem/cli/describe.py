"""`mixmem info`: what would be fitted, and every reason why it would be refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.encoding import MIN_VARIABLES, Encoded, encode
from mixmem.errors import InputError
from mixmem.moments import first_moments
from mixmem.plan import largest_k
from mixmem.progress import current
from mixmem.read import Coded, Table, read_table
from mixmem.schema import Schema, listing

MOST_LINES = 40
"""Variables listed in full; of a wider table the first ones."""
FIRST_LINES = 25
RARE_ROWS = 5
NEARLY_CONSTANT = 0.98
MANY_LEVELS = 30
"""Levels beyond which a variable is more often a code or a number than a category."""
MOST_REASONS = 12
NAME_WIDTH, LEVELS_WIDTH = 28, 36


@dataclass(frozen=True)
class Description:
    """The text for standard output, and what `fit` would refuse."""

    text: str
    problems: tuple[str, ...]


def describe(data: str, *, row_id: str | None = None) -> Description:
    """Look at a table as `fit` would; unlike it, go on after the first bad column."""
    with current().stage("reading"):
        table = read_table(data, row_id=row_id)
        encoded, problems = _encode_what_can_be(table)
    with current().stage("counting"):
        counts = first_moments(encoded.codes, encoded.schema).counts
    lines = _head(data, table, encoded)
    if encoded.schema.n_variables:
        lines += ["", *_variables(encoded.schema, counts, len(encoded.codes))]
        lines += ["", *table_warnings(encoded)]
    return Description("\n".join(lines).rstrip(), tuple(problems))


def refusal(description: Description) -> None:
    """Refuse as `fit` would, with all reasons at once."""
    if description.problems:
        count = len(description.problems)
        reasons = "".join(f"\n  - {problem}" for problem in description.problems[:MOST_REASONS])
        if count > MOST_REASONS:
            reasons += f"\n  ... and {count - MOST_REASONS} more"
        raise InputError(f"fit would refuse this table for {count} reason{'s' * (count > 1)}:{reasons}")


def _encode_what_can_be(table: Table) -> tuple[Encoded, list[str]]:
    try:
        return encode(table), []
    except InputError:
        if table.n_rows < 2:
            raise  # nothing can be said of columns without rows
    problems, good = [], []
    for j in range(table.n_columns):
        try:
            _encode_some(table, [j])
            good.append(j)
        except InputError as problem:
            problems.append(str(problem))
    if len(good) < MIN_VARIABLES:
        problems.append(
            f"{len(good)} usable variable{'s' * (len(good) != 1)}; expected at least {MIN_VARIABLES}: memberships show "
            "in how three variables go together"
        )
    return _encode_some(table, good), problems


def _encode_some(table: Table, positions: list[int]) -> Encoded:
    """Encode these columns alone. The encoder wants three at least, so as many of plain zeros and ones go with them."""
    part = table.take(positions)
    columns: list[np.ndarray | Coded] = list(part.columns.T if isinstance(part.columns, np.ndarray) else part.columns)
    padding = np.arange(table.n_rows) % 2
    names = (*part.names, *(f"\0padding {i}" for i in range(MIN_VARIABLES)))
    encoded = encode(Table(names, (*columns, *[padding] * MIN_VARIABLES), table.n_rows, table.row_ids))
    schema = Schema(encoded.schema.variables[: len(positions)])
    return Encoded(encoded.codes[:, : len(positions)], schema, encoded.row_ids)


# --- The text


def _head(data: str, table: Table, encoded: Encoded) -> list[str]:
    size = encoded.codes.nbytes
    unit, scale = next((u, s) for u, s in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)) if size >= s or s == 1.0)
    schema = encoded.schema
    lines = [
        f"{'standard input' if data == '-' else data}: {table.n_rows:,} rows, {table.n_columns:,} columns",
        f"  usable variables  {schema.n_variables:,} ({schema.n_rows:,} levels in all)",
        f"  memory as codes   {size / scale:.3g} {unit}",
    ]
    if schema.n_variables >= MIN_VARIABLES:
        lines.append(f"  largest k         {largest_k(schema):,} (what the anchors could carry; fewer is usual)")
    return lines


def _variables(schema: Schema, counts: np.ndarray, n: int) -> list[str]:
    count = len(schema.variables) if len(schema.variables) <= MOST_LINES else FIRST_LINES
    width = min(NAME_WIDTH, max(8, *(len(_one_line(v.name)) for v in schema.variables[:count])))
    head = f"{'variable':<{width}}  {'kind':<12}{'levels':>7}  {'first levels':<{LEVELS_WIDTH}}  most frequent"
    lines = [head]
    for j, variable in enumerate(schema.variables[:count]):
        own = counts[schema.offsets[j] : schema.offsets[j + 1]]
        top = int(own.argmax())
        levels = _cut(", ".join(map(_one_line, variable.levels[:12])), LEVELS_WIDTH)
        frequent = f"{_cut(_one_line(variable.levels[top]), 24)} ({own[top] / n:.0%})"
        name = _cut(_one_line(variable.name), width)
        lines.append(
            f"{name:<{width}}  {variable.kind:<12}{len(variable.levels):>7}  {levels:<{LEVELS_WIDTH}}  {frequent}"
        )
    if count < len(schema.variables):
        sizes = schema.n_levels[count:]
        lines.append(
            f"... and {len(sizes):,} more with {sizes.min()} to {sizes.max()} levels (median {np.median(sizes):g})"
        )
    return lines


def table_warnings(table: Encoded) -> list[str]:
    """What in a table that can be fitted will be learned poorly, a line each."""
    schema, n = table.schema, len(table.codes)
    counts = first_moments(table.codes, schema).counts
    starts = schema.offsets[:-1]
    names = np.array(schema.names, dtype=object)
    top = np.maximum.reduceat(counts, starts) / n
    rare = np.add.reduceat((counts < RARE_ROWS).astype(np.int64), starts)
    found = []
    if rare.any():
        found.append(
            f"{int(rare.sum()):,} level(s) occur in fewer than {RARE_ROWS} rows and are learned poorly, in "
            f"{listing(names[rare > 0], 5)}: merge them with others"
        )
    if (top > NEARLY_CONSTANT).any():
        found.append(
            f"nearly constant (one level in more than {NEARLY_CONSTANT:.0%} of the rows): "
            f"{listing(names[top > NEARLY_CONSTANT], 5)}: they say little"
        )
    if (schema.n_levels > MANY_LEVELS).any():
        found.append(
            f"more than {MANY_LEVELS} levels: {listing(names[schema.n_levels > MANY_LEVELS], 5)}: "
            "merge levels, or drop what is no category"
        )
    return [f"warning: {text}" for text in found]


def _one_line(text: str) -> str:
    return " ".join(text.split()) if text.strip() else repr(text)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
