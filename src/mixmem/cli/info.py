"""`mixmem info`: what would be fitted, and every reason why it would be refused."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import escape
from itertools import chain, pairwise, takewhile
from typing import Any

import numpy as np

from mixmem.cli.facts import Facts
from mixmem.cli.reading import Described
from mixmem.cli.table_warnings import of_counts, table_warnings
from mixmem.data.encode import Encoded, encode
from mixmem.data.schema import Schema, Variable
from mixmem.data.table import Coded, Locus, Table
from mixmem.data.table_checks import IGNORED, MIN_VARIABLES, without_weights
from mixmem.errors import InputError, TableWarning
from mixmem.moments.anchors import largest_k
from mixmem.progress import current
from mixmem.selection.copies import copied_variables, copies_told
from mixmem.words import counted, listing, one_line, plain_number, quoted, short

MOST_LINES = 40
"""Variables listed in full; of a wider table the first ones."""
FIRST_LINES = 25
MOST_REASONS = 12
NAME_WIDTH = 28
LEAST_ALIKE, MOST_WAYS = 3, 12
"""Columns from which on a pattern stands for them, and options that are named to declare columns ordinal."""


@dataclass(frozen=True)
class Description:
    """The text for standard output, and what `fit` would refuse."""

    text: str
    problems: tuple[str, ...]


def describe(data: str, described: Described | None = None) -> Description:
    """Look at a table as `fit` would; unlike it, go on after the first bad column."""
    with current().stage("reading"):
        table, found = (described or Described()).read(data)
        table = table.take([j for j, name in enumerate(table.names) if (found.kinds or {}).get(name) != IGNORED])
        table, weights, bad = _weighed(table, found.weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)  # they are part of the text
            encoded, problems = _encode_what_can_be(table, found, weights)
    with current().stage("counting"):
        facts = Facts.of(encoded)
    lines = _head(data, table, facts, found.weight)
    if encoded.schema.n_variables:
        lines += ["", *_variables(facts)]
        lines += ["", *(f"note: {remark}" for remark in (*encoded.remarks, *_scales(encoded.schema, table.names)))]
        lines += [f"warning: {text}" for text in (*table_warnings(facts), *of_counts(encoded), *_copies(encoded))]
    return Description("\n".join(lines).rstrip(), (*bad, *problems))


def refusal(description: Description) -> None:
    """Refuse as `fit` would, with all reasons at once."""
    if description.problems:
        count = len(description.problems)
        reasons = "".join(f"\n  - {problem}" for problem in description.problems[:MOST_REASONS])
        if count > MOST_REASONS:
            reasons += f"\n  ... and {count - MOST_REASONS} more"
        raise InputError(f"fit would refuse this table for {count} reason{'s' * (count > 1)}:{reasons}")


def _weighed(table: Table, weight: str | None) -> tuple[Table, np.ndarray | None, list[str]]:
    """Return the table without its column of weights, if there is one, the weights, and what is wrong with them."""
    if weight is None:
        return table, None, []
    try:
        return *without_weights(table, weight), []
    except InputError as problem:
        if weight not in table.names:
            raise
        return table.take([j for j, name in enumerate(table.names) if name != weight]), None, [str(problem)]


def _encode_what_can_be(table: Table, described: Described, weights: np.ndarray | None) -> tuple[Encoded, list[str]]:
    everything = list(range(table.n_columns))
    try:
        kinds, missing = _own(described.kinds, table), _own(described.missing, table)
        return encode(table, kinds=kinds, missing=missing, weights=weights, columns=described.columns), []
    except InputError:
        if table.n_rows < 2:
            raise  # nothing can be said of columns without rows
    good, problems = _good(table, everything, described, weights)
    encoded = _encode_some(table, good, described, weights)
    if (usable := encoded.n_variables) < MIN_VARIABLES:
        problems.append(
            f"{usable} usable variable{'s' * (usable != 1)}; expected at least {MIN_VARIABLES}: memberships show "
            "in how variables go together"
        )
        if not usable:
            problems += encoded.remarks
    return encoded, problems


def _good(
    table: Table, positions: list[int], described: Described, weights: np.ndarray | None
) -> tuple[list[int], list[str]]:
    """The columns that can be encoded, and what is wrong with the others: halves are tried until they are good."""
    try:
        _encode_some(table, positions, described, weights)
        return positions, []
    except InputError as problem:
        if len(positions) == 1:
            return [], [str(problem)]
    half = len(positions) // 2
    left, right = (_good(table, part, described, weights) for part in (positions[:half], positions[half:]))
    return left[0] + right[0], left[1] + right[1]


def _encode_some(table: Table, positions: list[int], described: Described, weights: np.ndarray | None) -> Encoded:
    """Encode these columns alone. The encoder wants some at least, so as many of plain zeros and ones go with them."""
    part = table.take(positions)
    kinds, missing = _own(described.kinds, part), _own(described.missing, part)
    padding = np.arange(table.n_rows) % 2
    names = (*part.names, *(f"\0padding {i}" for i in range(MIN_VARIABLES)))
    columns: np.ndarray | tuple[np.ndarray | Coded, ...]
    loci = part.loci
    if loci is not None:
        columns = np.column_stack([part.columns, *[padding.astype(np.int8)] * MIN_VARIABLES])  # type: ignore[list-item]
        loci = (*loci, *[Locus(("0", "1"))] * MIN_VARIABLES)
    else:
        own = part.columns.T if isinstance(part.columns, np.ndarray) else part.columns
        columns = (*own, *[padding] * MIN_VARIABLES)
        if missing is not None and not isinstance(missing, dict):
            missing = dict.fromkeys(part.names, missing)  # the padding has values of its own
    padded = replace(part, names=names, columns=columns, loci=loci)
    encoded = encode(padded, kinds=kinds, missing=missing, weights=weights, columns=described.columns)
    return encoded.take_variables(np.arange(encoded.n_variables - MIN_VARIABLES))


def _own(declared: Any, table: Table) -> Any:
    """Of what is declared by column, that of the table's own."""
    if not isinstance(declared, Mapping):
        return declared
    return {name: declared[name] for name in table.names if name in declared}


# --- The text


def _copies(table: Encoded) -> Iterator[str]:
    copies, together = copied_variables(table, np.arange(table.n_variables))
    if copies:
        yield f"{copies_told(copies, together)}: a fit takes each for evidence of its own; leave all but one out"


def _head(data: str, table: Table, facts: Facts, weight: str | None) -> list[str]:
    encoded = facts.table
    size = encoded.codes.nbytes
    unit, scale = next((u, s) for u, s in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)) if size >= s or s == 1.0)
    schema = encoded.schema
    lines = [
        f"{'standard input' if data == '-' else data}: {counted(table.n_rows, 'row')}, "
        f"{counted(table.n_columns, 'column')}",
        f"  usable variables  {schema.n_variables:,}{_kinds(schema)}",
    ]
    if encoded.weights is not None:
        none = table.n_rows - encoded.n_rows
        lines.append(
            f"  weights           column {weight!r}: {encoded.n_rows:,} rows stand for {plain_number(encoded.total)}"
            f"{f'; {none:,} of weight 0 are left out' if none else ''}"
        )
    if gaps := int(facts.missing.sum()):
        lines.append(f"  missing cells     {gaps:,} of {encoded.codes.size:,} ({_percent(gaps / encoded.codes.size)})")
    lines.append(f"  memory as codes   {size / scale:.3g} {unit}")
    if schema.n_variables >= MIN_VARIABLES:
        lines.append(
            f"  largest k         {largest_k(encoded.coding):,} (beyond it a fit has no guarantee; fewer is usual)"
        )
    return lines


def _scales(schema: Schema, columns: Sequence[str]) -> list[str]:
    """Name columns whose levels may stand in an order that is not made use of: neighbouring whole numbers.

    ``columns`` are all of the table, also those that are left out: a pattern would declare them, too.
    """
    names = [variable.name for variable in schema.variables if _is_scale(variable)]
    if not names:
        return []
    ways = _patterns(names, [name for name in columns if name not in names])
    options = [f"--kind {quoted(f'{of}=ordinal')}" for of in ways[:MOST_WAYS]]
    rest = f", and so on for {len(ways) - MOST_WAYS:,} more" if len(ways) > MOST_WAYS else ""
    one = len(names) == 1
    return [
        f"{listing(names, 5)} {'holds' if one else 'hold'} neighbouring whole numbers and {'is' if one else 'are'} "
        f"taken for categories without an order: if {'it is an answer' if one else 'they are answers'} on a scale, "
        f"say {' '.join(options)}{rest}"
    ]


def _patterns(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return names and patterns that fit these columns and none of the others.

    >>> _patterns(["pain1", "pain2", "pain3", "person", "q1"], ["pid", "q1a"])
    ['pain*', 'person', 'q1']
    """
    taken = {name[:length] for name in others for length in range(len(name) + 1)}
    alike: dict[str, list[str]] = {}
    for name in names:
        starts = (name[:length] for length in range(len(name) + 1))
        alike.setdefault(next((start for start in starts if start not in taken), name), []).append(name)
    ways = [[f"{escape(_start(same))}*"] if len(same) >= LEAST_ALIKE else same for same in alike.values()]
    return list(chain.from_iterable(ways))


def _start(names: Sequence[str]) -> str:
    """Return what all names begin with."""
    pairs = zip(min(names), max(names), strict=False)
    return "".join(first for first, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_scale(variable: Variable) -> bool:
    """Whether levels are at least four whole numbers, each one more than the last; one between may be unused."""
    if not variable.own_kind.plain or variable.own_kind.ordered or len(variable.levels) < 4:
        return False
    if variable.value_type not in ("int", "float"):
        return False
    numbers = [float(level) for level in variable.levels]
    steps = [after - before for before, after in pairwise(numbers)]
    return steps.count(1.0) + (2.0 in steps) == len(steps)


def _kinds(schema: Schema) -> str:
    """Say how many variables there are of each kind, where there is more than one kind, and how many levels."""
    kinds = Counter(variable.kind for variable in schema.variables)
    levels = sum(len(variable.levels) for variable in schema.variables if not variable.is_number)
    parts = [f"{count:,} {kind}" for kind, count in kinds.items()]
    if len(kinds) == 1:
        parts = [] if schema.has("plain").all() else list(kinds)
    if levels:
        parts.append(f"{levels:,} {_level_word(schema.variables)} in all")
    return f" ({', '.join(parts)})" if parts else ""


def _level_word(variables: Sequence[Variable]) -> str:
    """Return what the levels of these variables are called."""
    words = {variable.own_kind.level_word for variable in variables}
    return words.pop() if len(words) == 1 else "levels"


def _variables(facts: Facts) -> list[str]:
    schema, n, gaps, columns = facts.table.schema, facts.table.n_rows, facts.missing, facts.table.coding.columns
    count = len(columns) if len(columns) <= MOST_LINES else FIRST_LINES
    width = min(NAME_WIDTH, max(8, *(len(one_line(column.name)) for column in columns[:count])))
    lines = [f"{'variable':<{width}}  {'kind':<12}{'missing':>14}  holds"]
    for j, column in enumerate(columns[:count]):
        missing = f"{gaps[j]:,} ({_percent(gaps[j] / n)})" if gaps[j] else "0"
        holds = column.own_kind.describe(column, facts.first.of(j) * (n / facts.table.total))
        lines.append(f"{short(one_line(column.name), width):<{width}}  {column.kind:<12}{missing:>14}  {holds}")
    if count < len(columns):
        rest = schema.variables[count:]
        sizes = [len(variable.levels) for variable in rest if not variable.is_number]
        word = _level_word(rest)
        held = f" with {min(sizes)} to {max(sizes)} {word} (median {np.median(sizes):g})" if sizes else ""
        if sizes and min(sizes) == max(sizes):
            held = f" with {sizes[0]} {word} each"
        lines.append(f"... and {len(rest):,} more{held}")
    return lines


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"
