"""Columns that say what another says: copies under other names, in other units, recoded, or cut into groups.

The model takes each for evidence of its own, so that they make components where there are none. Exact copies are found
by what rows hold; others by pairs: a column follows from another if that tells it in all but a hundredth of the rows,
and numbers go together if their ranks do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.moments.anchors import spread_rows
from mixmem.typing import Positions
from mixmem.words import listed

COMPARED_ROWS, COPIED_ROWS, HELD_ROWS, HELD_SHARE = 500, 5, 20, 0.05
"""Rows by which columns are found that may be copies, those that must differ from a column's commonest level, and how
many rows, and which share of all, must hold copies: fewer rise together by chance where columns are related."""
MISSED, MISSED_RARE = 0.01, 0.05
"""Share of rows in which a column may differ from what another tells of it, and of those not of its commonest level."""
ROWS_PER_LEVEL, MOST_LEVELS = 10, 30
"""Rows per level of a column that tells another, and levels of one that is cut from a number."""
RANKED, NEARLY_RANKED = 0.999, 0.995
"""Correlation of ranks at which numbers go together, and may do so by some rows."""
MOST_CODES, MOST_PAIRS = 1_200, 2_000
"""Levels of all columns together up to which their pairs are looked at, and pairs of a number and any column."""
SAME = "say the same in every row"
"""What copies do, if nothing else is said of them."""
MOST_GROUPS = 6
"""Groups of copies that are named."""


def copied_variables(table: Encoded, variables: Positions) -> tuple[tuple[list[str], ...], tuple[str, ...]]:
    """Return groups of the variables that say what their first says, and how each group does so.

    Neighbouring variants of a genome often do, and do not count. A variable is in one group at most, but for the first.
    """
    columns, names = table.coding.columns, table.schema.names
    members = [j for j in variables.tolist() if columns[j].own_kind.cells != "copies"]
    exact = _exact(table, members)
    copies = {j for group, _ in exact for j in group[1:]}
    found = [*exact, *_followers(table, [j for j in members if j not in copies])]
    return tuple([names[j] for j in group] for group, _ in found), tuple(way for _, way in found)


def _exact(table: Encoded, members: list[int]) -> list[tuple[list[int], str]]:
    """Return groups that say the same or rise together in the same rows: some rows tell which may, all which do."""
    columns, absent = table.coding.columns, table.coding.soft.absent
    for most in (COMPARED_ROWS, table.n_rows):
        codes = spread_rows(table.codes, most)
        alike: dict[bytes, list[int]] = {}
        for j in members:
            if (pattern := _pattern(codes[:, j], int(absent[j]), columns[j].is_number)) is not None:
                alike.setdefault(pattern, []).append(j)
        groups = [group for group in alike.values() if len(group) > 1]
        members = sorted(j for group in groups for j in group)
        if len(codes) == table.n_rows:
            break
    held = [table.codes[:, group[0]] != absent[group[0]] for group in groups]
    least = _least(table)
    return [
        (group, _together(table, group, rows)) for group, rows in zip(groups, held, strict=True) if rows.sum() >= least
    ]


def _least(table: Encoded) -> float:
    """Return how many rows must hold columns that are said to go together."""
    return max(min(HELD_ROWS, table.n_rows), HELD_SHARE * table.n_rows)


# --- Columns that follow from others, not in every row or not the other way round


@dataclass(frozen=True)
class _Pair:
    """Two columns in the rows that hold both: what their cells say, numbers or codes, and which of them are numbers."""

    one: NDArray[Any]
    other: NDArray[Any]
    numbers: tuple[bool, bool]
    n_rows: int

    @classmethod
    def of(cls, table: Encoded, codes: NDArray[np.generic], i: int, j: int) -> _Pair:
        """Return two columns of some rows' codes (n, p)."""
        columns, absent = table.coding.columns, table.coding.soft.absent
        held = (codes[:, i] != absent[i]) & (codes[:, j] != absent[j])
        cells = [
            np.asarray(columns[at].values)[codes[held, at]] if columns[at].is_number else codes[held, at]
            for at in (i, j)
        ]
        return cls(cells[0], cells[1], (columns[i].is_number, columns[j].is_number), len(codes))

    def turned(self) -> _Pair:
        """Return the same with the columns in the other order."""
        return _Pair(self.other, self.one, self.numbers[::-1], self.n_rows)

    def missed(self) -> int | None:
        """Return the rows in which the second column is not what the first tells; None if that says nothing."""
        n = len(self.one)
        _, levels, counts = np.unique(self.other, return_inverse=True, return_counts=True)
        if not n or len(counts) < 2:
            return None
        rare = n - int(counts.max())
        _, first = np.unique(self.one, return_inverse=True)
        n_first = int(first.max()) + 1
        if n_first * ROWS_PER_LEVEL <= n:
            told = np.zeros((n_first, len(counts)), np.int64)
            np.add.at(told, (first, levels), 1)
            missed = n - int(told.max(axis=1).sum())
        elif self.numbers[0] and len(counts) <= MOST_LEVELS:  # groups of a number: runs along it
            along = levels[np.lexsort((levels, first))]
            missed = int(np.count_nonzero(np.diff(along))) - (len(counts) - 1)
        else:
            return None
        return missed if rare >= COPIED_ROWS and missed <= min(MISSED * n, MISSED_RARE * rare) else None

    def ranked(self) -> float:
        """Return the correlation of two columns' ranks; 0 unless both are numbers."""
        if not all(self.numbers) or len(self.one) < HELD_ROWS:
            return 0.0
        one, other = _ranks(self.one), _ranks(self.other)
        spread = float(one.std() * other.std())
        return float(((one - one.mean()) * (other - other.mean())).mean()) / spread if spread > 0.0 else 0.0

    def where(self, missed: int) -> str:
        """Say in which rows something holds."""
        n = len(self.one)
        if missed:
            return f"{n - missed:,} of {n:,} rows"
        return "every row" if n == self.n_rows else f"the {n:,} rows that hold both"


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return ranks, those of equal values their mean."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - 0.5 * (counts + 1))[which])


def _followers(table: Encoded, members: list[int]) -> list[tuple[list[int], str]]:
    """Return pairs, or a column and several that it tells: some rows tell which may, all rows which do."""
    part = spread_rows(table.codes, COMPARED_ROWS)
    least, gone = _least(table), set[int]()
    found: list[tuple[list[int], str]] = []
    for i, j in _pairs(table, part, members):
        if i in gone or j in gone or not _may_follow(_Pair.of(table, part, i, j)):
            continue
        pair = _Pair.of(table, table.codes, i, j)
        if len(pair.one) < least:
            continue
        forth, back, ranked = pair.missed(), pair.turned().missed(), pair.ranked()
        if abs(ranked) >= RANKED:
            equal = int(np.count_nonzero(pair.one != pair.other))
            if equal <= MISSED * len(pair.one):
                found.append(([i, j], f"say the same in {pair.where(equal)}"))
            else:
                where = pair.where(0) if abs(ranked) > 1.0 - 1e-9 else "nearly every row that holds both"
                found.append(([i, j], f"{'rise together' if ranked > 0.0 else 'go opposite ways'} in {where}"))
            gone.add(j)
        elif forth is not None and back is not None:
            found.append(([i, j], f"say the same in {pair.where(max(forth, back))}"))
            gone.add(j)
        elif forth is not None:
            found.append(([i, j], f"go together: the first tells the second in {pair.where(forth)}"))
            gone.add(j)
        elif back is not None:
            found.append(([j, i], f"go together: the first tells the second in {pair.where(back)}"))
            gone.add(i)
    return found


def _pairs(table: Encoded, part: NDArray[np.generic], members: list[int]) -> list[tuple[int, int]]:
    """Return pairs of columns to look at, by codes of some rows (n, p), none of tables that are too wide for that.

    Of levels those that nearly tell each other, and all with a number in them.
    """
    numbers = {j for j in members if table.coding.columns[j].is_number}
    levels = sorted(set(members) - numbers)
    sizes = [int(table.schema.sizes[j]) for j in levels]
    few = 0 < len(numbers) * len(members) <= MOST_PAIRS
    pairs = [(i, j) for i, j in combinations(members, 2) if i in numbers or j in numbers] if few else []
    if levels and sum(sizes) <= MOST_CODES:
        held = [part[:, j, None] == np.arange(size) for j, size in zip(levels, sizes, strict=True)]
        rows = np.concatenate(held, axis=1).astype(np.float32)
        starts = np.cumsum([0, *sizes[:-1]])
        both = rows.T @ rows
        told = np.add.reduceat(np.maximum.reduceat(both, starts, axis=1), starts, axis=0)
        seen = np.add.reduceat(np.add.reduceat(both, starts, axis=1), starts, axis=0)
        nearly = told >= (1.0 - 2.0 * MISSED) * seen
        at = np.argwhere(np.triu(nearly | nearly.T, 1))
        pairs += [(levels[i], levels[j]) for i, j in at.tolist()]
    return sorted(pairs)


def _may_follow(pair: _Pair) -> bool:
    """Return whether one of two columns may follow from the other, by some rows of theirs."""
    return abs(pair.ranked()) >= NEARLY_RANKED or pair.missed() is not None or pair.turned().missed() is not None


def _together(table: Encoded, group: list[int], held: NDArray[np.bool_]) -> str:
    """Say what columns do that go together in the rows ``held`` (n,): numbers that differ only rise together."""
    columns, codes = table.coding.columns, table.codes[held]
    numbers = [np.asarray(columns[j].values)[codes[:, j]] for j in group if columns[j].is_number]
    same = all(np.array_equal(numbers[0], other) for other in numbers[1:])
    where = "every row" if held.all() else f"the {int(held.sum()):,} rows that hold them"
    return f"{'say the same' if same else 'rise together'} in {where}"


def copies_told(copies: Sequence[list[str]], together: Sequence[str] = ()) -> str:
    """Say which columns go together as copies do, and how.

    >>> copies_told([["a", "b"], ["c", "d"], ["e", "f"]])
    "'a' and 'b' say the same in every row; so do 'c' and 'd'; so do 'e' and 'f'"
    >>> copies_told([["a", "b"]], ["rise together in the 40 rows that hold them"])
    "'a' and 'b' rise together in the 40 rows that hold them"
    """
    ways = together or [SAME] * len(copies)
    alike = len(set(ways)) == 1
    if alike:
        said = [f"{listed(map(repr, copies[0]))} {ways[0]}"]
        said += [f"so do {listed(map(repr, group))}" for group in copies[1:MOST_GROUPS]]
    else:
        said = [f"{listed(map(repr, group))} {way}" for group, way in zip(copies, ways, strict=True)][:MOST_GROUPS]
    if (more := len(copies) - MOST_GROUPS) > 0:
        said.append(f"{'so' if alike else 'much the same'} do the columns of {more} further group{'s' * (more > 1)}")
    return "; ".join(said)


def _pattern(codes: NDArray[np.generic], absent: int, number: bool) -> bytes | None:
    """Return the order of a column's numbers, or which rows hold the same level, and which hold nothing.

    None if others may do so by chance.
    """
    held = codes != absent
    if not held.any():
        return None
    _, first, which, counts = np.unique(codes[held], return_index=True, return_inverse=True, return_counts=True)
    if len(which) - counts.max() < COPIED_ROWS or (not number and len(counts) > len(which) // 2):
        return None
    pattern = np.full(len(codes), -1, dtype=np.int32)
    pattern[held] = which if number else first[which]
    return bytes([number]) + pattern.tobytes()
