"""What in a table that can be fitted will be learned poorly, or is likely to be something else than it looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from mixmem.cli.attempts import Attempts
from mixmem.cli.column_relations import numbers_of, of_weights
from mixmem.cli.facts import Facts
from mixmem.data.encode import Encoded
from mixmem.data.infer_kinds import MOST_INTEGERS
from mixmem.data.level_text import NUMBER_TEXT
from mixmem.data.number_texts import few_texts
from mixmem.data.schema import Schema, Variable
from mixmem.data.table_checks import IGNORED
from mixmem.results.doubts import may_be_survey_weights, survey_weights
from mixmem.words import listing, quoted

RARE_ROWS = 5
NEARLY_CONSTANT = 0.98
SEVERAL = 5
"""Distinct numbers with fractions from which on a category may be a measurement."""
MANY_LEVELS = 30
"""Levels beyond which a variable is more often a code or a number than a category."""
MOSTLY_MISSING = 0.5
SUSPECT_ROWS, SUSPECT_DISTANCE, SUSPECT_GAP = 0.03, 2.5, 1.0
"""A number's smallest or largest value looks like a code for missing if more than this share of the rows hold it and
it lies so many interquartile ranges of the others beyond their nearer quartile, and from the next value. (Cholesterol 0
of the heart data: 19 %, 3.2 and 1.3. Zeros of counts: up to 2 and 1.)"""
CODE_ROWS = 2
"""Rows that hold a number which means a missing cell, at least: one row alone is an outlier, or a slip of the pen."""
MOST_CELLS, LEAST_ROWS = 5_000_000, 20
"""Cells up to which rows and columns are compared with each other, and the least rows."""
REPEATED, EXPLAINED, UNLIKELY = 0.1, 0.4, 0.05
"""Share of rows that must repeat another to be told, share of a row's surprise that groups of alike rows may leave, and
how many rows like it may be expected then."""
MANY_ANSWERS, FLAT = 8, 0.03
"""Columns from which on, and share of rows above which, rows of one number throughout are told."""
SAME_SUM = 0.01
"""Spread of the rows' sums, as a share of that of the column that varies most, up to which only rounding is left."""
MISSING_WORDS = frozenset(
    {
        "?", "-", "--", ".", "*", "n/a", "na", "n.a.", "unknown", "missing", "refused", "dk", "dk/na", "#n/a", "nil",
        "not available", "not known", "no answer", "not answered", "don't know", "do not know", "not asked", "skipped",
        "not applicable", "inapplicable", "refusal", "no response", "nk", "n/k", "n.k.", "unk", "unk.", "d/k", "d.k.",
        "not stated", "not recorded", "not reported", "unspecified", "not specified", "prefer not to say",
    }
)  # fmt: skip
"""Texts that often mean a missing cell."""
MISSING_NUMBERS = frozenset([-1, -8, -9, 9, 88, 98, 99, 998, 999, 9999, -88, -98, -99, -998, -999, -9999])
"""Numbers that often do, where they lie away from a category's others: above them, or below if they are negative."""


def looked_at(facts: Facts, attempts: Attempts) -> list[str]:
    """Return what is to be said of a table beside a result; nothing, and a notice, if that fails."""
    return attempts.attempt("a look at the table", lambda: table_warnings(facts)) or []


def of_counts(table: Encoded) -> Iterator[str]:
    """Say of weights that are taken for counts that they may be a survey's, before a fit says so."""
    if may_be_survey_weights(table):
        yield survey_weights(table.each).text


def table_warnings(facts: Facts) -> list[str]:
    """Say what in a table that can be fitted will be learned poorly, one line each."""
    table = facts.table
    parts = [_of_categories(facts), _of_variants(facts), _of_gaps(facts), _of_numbers(facts)]
    if table.codes.size <= MOST_CELLS:
        parts += [of_weights(facts), _of_rows(facts)]
    found = [text for part in parts for text in part]
    empty = (table.codes == table.coding.soft.absent).all(axis=1)
    if empty.any():
        ids = [str(row) for row in table.row_ids[empty][:5]]
        found.append(f"{int(empty.sum()):,} row(s) hold nothing and get the mean of all memberships: {', '.join(ids)}")
    return found


def _of_categories(facts: Facts) -> Iterator[str]:
    schema, n, soft = facts.table.schema, facts.table.n_rows, facts.table.coding.soft
    counts = facts.counted.counts
    category = schema.has("plain")
    names = np.array(schema.names, dtype=object)
    starts = soft.cell_offsets[:-1]
    levels = np.where(soft.present, counts, RARE_ROWS)
    top = np.where(category, np.maximum.reduceat(levels, starts) / n, 0.0)
    rare = np.where(category, np.add.reduceat((levels < RARE_ROWS).astype(np.int64), starts), 0)
    if rare.any():
        yield (
            f"{int(rare.sum()):,} level(s) occur in fewer than {RARE_ROWS} rows and are learned poorly, in "
            f"{listing(names[rare > 0], 5)}: merge them with others{_or_count(schema, rare)}"
        )
    if (top > NEARLY_CONSTANT).any():
        yield (
            f"nearly constant (one level in more than {NEARLY_CONSTANT:.0%} of the rows): "
            f"{listing(names[top > NEARLY_CONSTANT], 5)}: they say little"
        )
    yield from _of_levels(facts)
    for variable in schema.variables:
        if category[schema.index([variable.name])[0]] and _few_numbers(variable):
            yield (
                f"{variable.name!r} holds {len(variable.levels)} distinct numbers and is taken for categories: if it "
                f"is a measurement, say --kind {quoted(f'{variable.name}=continuous')}"
            )
    if schema.n_variables < 3:
        yield "two variables do not tell mixtures from groups of rows: what is found is a description"
    if (many := category & (schema.sizes > MANY_LEVELS)).any():
        yield f"more than {MANY_LEVELS} levels: {listing(names[many], 5)}: merge levels, or drop what is no category"


def _of_levels(facts: Facts) -> Iterator[str]:
    """What is said of levels alike, and of those that may mean a missing cell: a line for columns of one cause."""
    variables = {j: variable for j, variable in enumerate(facts.table.schema.variables) if variable.own_kind.plain}
    alike = {variable.name: same for variable in variables.values() if (same := _alike(variable.levels)) is not None}
    if alike:
        name, same = next(iter(alike.items()))
        more = f", and so in {len(alike) - 1:,} further columns" if len(alike) > 1 else ""
        yield (
            f"{name!r} has levels that differ by case or blanks only, {listing(same)}{more}: write them alike if they "
            "mean the same"
        )
    gone: dict[str, list[str]] = {}
    for j, variable in variables.items():
        for level in _mean_missing(variable, facts.counted.of(j)):
            gone.setdefault(level, []).append(variable.name)
    for level, names in gone.items():
        alone = len(names) == 1 or _held_elsewhere(facts, level, names)
        options = [f"{name}={level}" for name in names] if alone else [level]
        yield (
            f"{level!r} in {listing(names, 5)} often means a missing cell: if it does here, say "
            f"{' '.join(f'--missing {quoted(option)}' for option in options)}"
        )


def _held_elsewhere(facts: Facts, level: str, names: Sequence[str]) -> bool:
    """Whether a number that may mean a missing cell in some columns may be a value of another one.

    Of a column of numbers, new rows may hold all that lie between its ends. Words mean the same in every column.
    """
    if not NUMBER_TEXT.fullmatch(level):
        return False
    others = [column for column in facts.table.coding.columns if column.name not in names]
    return any(
        column.values[0] <= float(level) <= column.values[-1]
        if column.is_number
        else column.own_kind.cells == "levels" and level in column.levels
        for column in others
    )


def _alike(levels: Sequence[str]) -> list[str] | None:
    """The first levels that are the same but for case and blanks, if there are any."""
    found: dict[str, list[str]] = {}
    for level in levels:
        found.setdefault(" ".join(level.casefold().split()), []).append(level)
    return next((same for same in found.values() if len(same) > 1), None)


def _mean_missing(variable: Variable, counts: np.ndarray) -> list[str]:
    """Levels that often mean a missing cell: words or marks for it, and numbers such as 99 away from the others.

    Those among numbers were told of when the table was coded.
    """
    told = few_texts(variable.levels, MOST_INTEGERS)
    found = [level for level in variable.levels if level.casefold().strip() in MISSING_WORDS and level not in told]
    if found or variable.value_type not in ("int", "float"):
        return found
    held = {float(level): count for level, count in zip(variable.levels, counts, strict=True)}
    numbers = sorted(held)
    answers = [number for number in numbers if number not in MISSING_NUMBERS]
    if len(answers) < 2:
        return []
    step = max(b - a for a, b in pairwise(answers))
    for ends in (reversed([n for n in numbers if n < min(answers[0], 0.0)]), [n for n in numbers if n > answers[-1]]):
        for number in ends:  # from the answers outwards
            if min(abs(number - answers[0]), abs(number - answers[-1])) > step:
                if held[number] >= CODE_ROWS:
                    found.append(_plain(number))
            else:
                answers = sorted([*answers, number])
    return found


def _few_numbers(variable: Variable) -> bool:
    """Whether the levels are numbers with fractions, and several."""
    fractions = variable.value_type == "float" and any(not float(level).is_integer() for level in variable.levels)
    return fractions and len(variable.levels) >= SEVERAL


def _or_count(schema: Schema, rare: np.ndarray) -> str:
    """What else to do about rare levels that are whole numbers from 0 or 1 up, as counts are."""
    for j in np.flatnonzero(rare):
        variable = schema.variables[j]
        whole = variable.value_type in ("int", "float") and all(float(level).is_integer() for level in variable.levels)
        if whole and variable.levels[0] in ("0", "1") and len(variable.levels) > 5:
            return f", or, if {variable.name!r} counts something, say --kind {quoted(f'{variable.name}=count')}"
    return ""


def _of_variants(facts: Facts) -> Iterator[str]:
    schema, soft = facts.table.schema, facts.table.coding.soft
    variant = np.array([variable.own_kind.cells == "copies" for variable in schema.variables])
    held = np.where(soft.present, facts.counted.counts, 0.0)
    starts = soft.cell_offsets[:-1]
    same = variant & (np.maximum.reduceat(held, starts) == np.add.reduceat(held, starts))
    if same.any():
        names = np.array(schema.names, dtype=object)[same]
        yield f"{len(names):,} variant(s) are the same in all samples, or missing, and say nothing: {listing(names, 5)}"


def _of_gaps(facts: Facts) -> Iterator[str]:
    mostly = facts.missing > MOSTLY_MISSING * facts.table.n_rows
    if mostly.any():
        names = np.array(facts.table.schema.names, dtype=object)[mostly]
        yield (
            f"more than half of the cells are missing: {listing(names, 5)}: they are learned from the rest; leave them "
            f"out with --kind {quoted(f'{names[0]}={IGNORED}')} if cells are missing for a reason"
        )


def _of_numbers(facts: Facts) -> Iterator[str]:
    for j, column in enumerate(facts.table.coding.columns):
        if not column.is_number:
            continue
        own = facts.counted.of(j)
        for at in _suspects(column.values, own):
            value = _plain(column.values[at])
            yield (
                f"{column.name!r} is {value} in {own[at] / own.sum():.0%} of its rows, far from all others: if that "
                f"means a missing cell, say so with --missing {quoted(f'{column.name}={value}')}"
            )


def _spread(numbers: np.ndarray) -> float:
    """How far numbers lie apart, leaving out those that are missing."""
    known = numbers[np.isfinite(numbers)]
    return float(np.ptp(known)) if len(known) else 0.0


def _of_rows(facts: Facts) -> Iterator[str]:
    """What is said of rows that repeat others, that hold one number throughout, or whose numbers add up to the same."""
    table = facts.table
    if table.n_rows < LEAST_ROWS or table.n_variables < 3:
        return
    values = [numbers_of(facts, j) for j in range(table.n_variables)]
    numbers = [own[table.codes[:, j]] for j, own in enumerate(values) if own is not None]
    flat = np.zeros(table.n_rows, dtype=bool)
    if len(numbers) == table.n_variables:
        spread, sums = np.ptp(numbers, axis=0), np.sum(numbers, axis=0)
        flat = (spread == 0.0) & (np.max(spread, where=np.isfinite(spread), initial=0.0) > 1.0)
        if table.n_variables >= MANY_ANSWERS and flat.mean() > FLAT:
            yield (
                f"{int(flat.sum()):,} of {table.n_rows:,} rows hold the same number in every column, as answers given "
                "without reading do: such rows make a component of their own; leave them out if they mean nothing"
            )
        known = sums[np.isfinite(sums)]
        if len(known) >= LEAST_ROWS and np.ptp(known) <= SAME_SUM * max(map(_spread, numbers)):
            yield (
                f"the variables add up to {_plain(round(float(np.median(known)), 2))} in every row, as ranks and "
                "shares of a whole do: each says what the others leave over, which can pass for components"
            )
    if table.weights is None and (repeats := _repeats(facts, ~flat)) > REPEATED * table.n_rows:
        yield (
            f"{repeats:,} of {table.n_rows:,} rows repeat another cell by cell, more than chance gives: if rows were "
            "copied, leave the copies out; they make everything look surer than it is"
        )


def _repeats(facts: Facts, some: np.ndarray) -> int:
    """How many of some rows (n,) repeat another of them; 0 if groups of alike rows could explain it."""
    table = facts.table
    rows = np.ascontiguousarray(table.codes[some])
    whole = rows.view(f"V{rows.dtype.itemsize * rows.shape[1]}")[:, 0]
    _, which, counts = np.unique(whole, return_inverse=True, return_counts=True)
    if len(counts) == len(rows):
        return 0
    surprise = np.zeros(len(rows))
    for j in range(table.n_variables):
        shares = np.append(facts.counted.of(j) / table.n_rows, 1.0)  # a missing cell surprises no one
        surprise += np.log(np.maximum(shares, 1e-9))[rows[:, j]]
    expected = table.n_rows * np.exp(EXPLAINED * np.median(surprise[counts[which] > 1]))
    return len(rows) - len(counts) if expected < UNLIKELY else 0


def _suspects(values: np.ndarray, counts: np.ndarray) -> Iterator[int]:
    """Ends of a column of numbers, values (m,) ascending with their counts, that look like codes for missing cells."""
    if len(values) < 5:
        return
    for end, others in ((0, slice(1, None)), (-1, slice(None, -1))):
        if counts[end] < CODE_ROWS or counts[end] <= SUSPECT_ROWS * counts.sum():
            continue
        reached = np.cumsum(counts[others]) / counts[others].sum()
        low, high = values[others][np.searchsorted(reached, (0.25, 0.75))]
        width = high - low
        beyond = low - values[0] if end == 0 else values[-1] - high
        gap = abs(values[others][end] - values[end])
        if width > 0.0 and beyond > SUSPECT_DISTANCE * width and gap > SUSPECT_GAP * width:
            yield end


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
