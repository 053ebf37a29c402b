"""Which variables are anchors and how the rest is split (paper, section 4.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded
from mixmem.data.schema import Schema
from mixmem.data.soft_levels import starts_of
from mixmem.errors import InputError
from mixmem.moments.memory import BLOCK_BYTES, block_bytes
from mixmem.moments.sums import FirstMoments, cell_sums, features_of, first_moments, mode_rows
from mixmem.moments.third_moments import BlockMoments, third_moments
from mixmem.typing import Array, Modes

SKETCH_CELLS, SKETCH_ROWS = 10_000_000, (1_000, 20_000)
"""Cells, and the least and most rows, that suffice to rank variables by how much they say about the memberships."""


@dataclass(frozen=True)
class Plan:
    """Three disjoint sets of anchor variables and, for the paper's way, the partitions of the other variables.

    Attributes
    ----------
    coding : Coding
        How the table's cells are coded.
    anchors : three (a,) arrays
        Positions of the anchor variables of each mode: pi^u, pi^v and pi^w.
    partitions : tuple of three arrays each
        Positions of the further variables of each partition, per mode; ``block(r)`` is partition r with the anchors in
        front of every mode. Without partitions, the variables outside the anchors come from one pass (``rest``).
    asked : int or None
        Partitions asked for: there are fewer where fewer variables are left over by the anchors.
    """

    coding: Coding
    anchors: Modes
    partitions: tuple[Modes, ...]
    asked: int | None = None

    @property
    def rest(self) -> NDArray[np.int64]:
        """Return the variables that are not anchors."""
        return np.setdiff1d(np.arange(self.coding.n_variables), np.concatenate(self.anchors))

    @property
    def complete(self) -> bool:
        """Return whether anchors and partitions hold every variable."""
        return bool(self.partitions) or not len(self.rest)

    def block(self, r: int) -> Modes:
        """Return the variables of the three modes of partition r: anchors first."""
        u, v, w = (np.concatenate([a, b]) for a, b in zip(self.anchors, self.partitions[r], strict=True))
        return u, v, w

    def __str__(self) -> str:
        names = np.asarray(self.coding.names, dtype=object)
        lines = [f"plan for {self.coding.n_variables} variables ({self.coding.schema.n_rows} rows of theta)"]
        for label, mode in zip("uvw", self.anchors, strict=True):
            shown = ", ".join(map(str, names[mode[:6]])) + (", …" if len(mode) > 6 else "")
            rows = int(self.coding.soft.sizes[mode].sum())
            lines.append(f"  anchors {label}: {len(mode)} variables, {rows} rows: {shown}")
        if self.partitions:
            sizes = [sum(len(mode) for mode in part) for part in self.partitions]
            shapes = [
                tuple(int(self.coding.soft.sizes[mode].sum()) for mode in self.block(r)) for r in range(len(sizes))
            ]
            largest = " x ".join(map(str, max(shapes, key=math.prod)))
            lines.append(
                f"  {len(sizes)} partitions of {min(sizes)} to {max(sizes)} further variables; largest block {largest}"
            )
        else:
            lines.append(f"  {len(self.rest)} further variables, by one pass from the anchors")
        return "\n".join(lines)


def capacity(coding: Coding, mode: NDArray[np.int64]) -> int:
    """Largest column rank theta of these variables can have: their rows sum to one, so d_j - 1 each, plus 1."""
    return int(1 + (coding.soft.sizes[mode] - 1).sum())


def carries(coding: Coding, modes: Modes, k: int) -> bool:
    """Whether a block of these modes can identify k components (Kruskal: the ranks sum to at least 2k + 2)."""
    return k == 1 or sum(min(k, capacity(coding, mode)) for mode in modes) >= 2 * k + 2


def largest_k(coding: Coding) -> int:
    """The largest k that anchors dealt from all variables can carry; the data may show fewer."""
    a, b, c = sorted(capacity(coding, mode) for mode in _deal(coding, np.arange(coding.n_variables)))
    if a < 2:
        return 1
    # `carries` solved for k: with the two smaller ranks full first, then with all three
    return a + b - 2 if a + b - 2 <= c else (a + b + c - 2) // 2


def make_plan(
    table: Encoded,
    n_components: int,
    *,
    anchors: str | Sequence[Sequence[str]] = "auto",
    n_partitions: str | int = "auto",
    rng: np.random.Generator,
    first: FirstMoments | None = None,
    memory_limit: int | None = None,
) -> Plan:
    """Choose anchors from the data (or take them by name) and split the other variables at random.

    Anchors found are those whose levels vary most with the rest of the table, taken greedily so that each mode spans
    as many directions as it can: full column rank, columns far apart in angle. Where their block would take too much
    memory, variables with fewer levels are taken, as far as these carry the components.

    Parameters
    ----------
    table : Encoded
        Codes (n, p).
    n_components : int
        Number of components k.
    anchors : "auto" or three lists of names
        The variables pi^u, pi^v, pi^w of the first block.
    n_partitions : "auto" or int
        Blocks that the other variables are split into; "auto" for none.
    rng : numpy random generator
        What is random about it.
    first : FirstMoments or None
        The table's first moments, if they are known already.
    memory_limit : int or None
        Bytes that the anchors' block may take, if others can be found; None for a gigabyte.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import numpy as np
    >>> from mixmem import make_plan, simulate_gdlm
    >>> table = simulate_gdlm(200, 9, 2, random_state=0).encoded
    >>> [len(mode) for mode in make_plan(table, 2, rng=np.random.default_rng(0)).anchors]
    [3, 3, 3]
    """
    coding = table.coding
    k = n_components
    everything = np.arange(coding.n_variables)
    if coding.n_variables < 3:  # there are no third moments
        return Plan(coding, _deal(coding, everything), ())
    if isinstance(anchors, str):
        # the paper's way keeps its blocks small; the default way forms one block only and can afford a better one
        rows = max(min(4 * k, 80 + 2 * k), 48) if n_partitions == "auto" else max(2 * k, 16)
        size = int(np.ceil(rows / coding.soft.sizes.mean()))
        most = BLOCK_BYTES if memory_limit is None else memory_limit
        short = coding.n_variables <= 3 * size + (size if n_partitions == "auto" else 0)
        modes = _deal(coding, rng.permutation(everything)) if short else None
        if modes is None or block_bytes(coding, modes, table.n_rows, k) > most:
            modes = _found(table, k, min(size, coding.n_variables // 3), rng, first, most)
        advice = f"at most {largest_k(coding)} components, or more variables"
    else:
        modes = _named(coding.schema, anchors)
        advice = "fewer components or more anchors"
    if not carries(coding, modes, k):
        ranks = ", ".join(str(capacity(coding, mode)) for mode in modes)
        raise InputError(
            f"n_components={k} is more than the anchors can carry: their three groups of variables have ranks of at "
            f"most {ranks}; use {advice}"
        )
    partitions: tuple[Modes, ...] = ()
    rest = np.setdiff1d(everything, np.concatenate(modes))
    if n_partitions != "auto" and len(rest):
        parts = np.array_split(rng.permutation(rest), min(int(n_partitions), len(rest)))
        partitions = tuple(_thirds(np.sort(part), turn) for turn, part in enumerate(parts))
    return Plan(coding, modes, partitions, None if n_partitions == "auto" else int(n_partitions))


def anchor_moments(table: Encoded, plan: Plan) -> BlockMoments | None:
    """Return the anchor block's raw moments; None where there are fewer than three variables."""
    return third_moments(table, [plan.anchors])[0] if plan.coding.n_variables >= 3 else None


def _thirds(variables: NDArray[np.int64], turn: int) -> Modes:
    """Split evenly in three; the mode that gets the odd variable takes turns."""
    parts = [variables[(m + turn) % 3 :: 3] for m in range(3)]
    return parts[0], parts[1], parts[2]


def _deal(coding: Coding, order: NDArray[np.int64]) -> Modes:
    """Deal variables to three modes, those with most levels first, each to the mode of least rank so far."""
    order = order[np.argsort(-coding.soft.sizes[order], kind="stable")]
    hands: list[list[int]] = [[], [], []]
    ranks = [1, 1, 1]
    for j in order:
        least = ranks.index(min(ranks))
        hands[least].append(int(j))
        ranks[least] += int(coding.soft.sizes[j]) - 1
    u, v, w = (np.sort(np.asarray(hand, dtype=np.int64)) for hand in hands)
    return u, v, w


def _named(schema: Schema, anchors: Sequence[Sequence[str]]) -> Modes:
    if len(anchors) != 3 or any(isinstance(group, str) or len(group) == 0 for group in anchors):
        raise InputError(f"anchors must be 'auto' or three non-empty lists of variable names; got {anchors!r}")
    u, v, w = (np.sort(schema.index(list(group))) for group in anchors)
    together = np.concatenate([u, v, w])
    repeated = together[np.bincount(together)[together] > 1]
    if len(repeated):
        raise InputError(
            f"anchors must not share variables, and {schema.names[repeated[0]]!r} is named more than once; "
            "keep it in one of the three lists"
        )
    return u, v, w


def _found(table: Encoded, k: int, size: int, rng: np.random.Generator, first: FirstMoments | None, most: int) -> Modes:
    """Choose three sets of ``size`` variables whose covariance with a random sketch of the others is large and varied.

    All variables are dealt where these do not carry k components. If that takes more than ``most`` bytes, variables of
    ever fewer levels are tried, more of them where a few do not carry the components; without success it stays.
    """
    coding, sizes = table.coding, table.coding.soft.sizes
    covariance = _sketched(table, k, rng, first)
    strength = np.add.reduceat((covariance**2).sum(axis=1), coding.soft.offsets[:-1])
    order = np.argsort(-strength, kind="stable")

    def fits(modes: Modes) -> bool:
        return block_bytes(coding, modes, table.n_rows, k) <= most

    chosen = _spread(coding, covariance, order[: 12 * size], max(1, k - 1), size)
    if not carries(coding, chosen, k):
        chosen = _deal(coding, rng.permutation(np.arange(table.n_variables)))
    if fits(chosen):
        return chosen
    for widest in np.unique(sizes)[::-1]:
        narrow = order[sizes[order] <= widest]
        wanted = min(size, len(narrow) // 3)
        while wanted:
            modes = _spread(coding, covariance, narrow[: 12 * wanted], max(1, k - 1), wanted)
            if not fits(modes):
                break
            if carries(coding, modes, k):
                return modes
            wanted = 0 if wanted == len(narrow) // 3 else min(2 * wanted, len(narrow) // 3)
    return chosen


def _sketched(table: Encoded, k: int, rng: np.random.Generator, first: FirstMoments | None) -> Array:
    """Return the covariance of the soft levels with a random sketch of the other variables: (soft levels, 2 k + 8).

    The sketch of row i is a random combination of its cells; a variable is compared with the half of the table it is
    not in, since a variable's covariance with itself says nothing about memberships.
    """
    p = table.n_variables
    most = int(np.clip(SKETCH_CELLS // p, *SKETCH_ROWS))
    part = spread_table(table, most)
    if first is None or part is not table:
        first = first_moments(part)
    soft, width, weights = table.coding.soft, 2 * k + 8, part.each
    directions = rng.standard_normal((int(soft.offsets[-1]), width))
    halves = [soft.part(half) for half in np.array_split(rng.permutation(p), 2)]
    covariance = np.empty_like(directions)
    for mine, other in ((halves[0], halves[1]), (halves[1], halves[0])):
        sketch = features_of(part, other, first.spread(other, directions[other.rows]))
        sketch -= np.average(sketch, axis=0, weights=weights)
        covariance[mine.rows] = first.collect(mine, cell_sums(part, mine, sketch * weights[:, None])) / first.total
    return covariance


def spread_rows(rows: NDArray[Any], most: int) -> NDArray[Any]:
    """At most that many rows of an array, evenly spread: files are often sorted."""
    n = rows.shape[0]
    return rows if n <= most else np.ascontiguousarray(rows[np.arange(most) * n // most])


def spread_table(table: Encoded, most: int) -> Encoded:
    """Return at most that many rows of a table, evenly spread; the table itself if it has no more."""
    return table if table.n_rows <= most else table.take(spread_rows(np.arange(table.n_rows), most))


def part_of(table: Encoded, most_rows: int, most_variables: int, rng: np.random.Generator) -> Encoded:
    """Return at most so many rows, evenly spread, and variables, drawn at random, of a table that may be large."""
    part = spread_table(table, most_rows)
    if table.n_variables <= most_variables:
        return part
    return part.take_variables(np.sort(rng.choice(table.n_variables, most_variables, replace=False)))


def _spread(coding: Coding, covariance: Array, candidates: NDArray[np.int64], rank: int, size: int) -> Modes:
    """Fill three modes in turn, each time with the candidate that adds most to what the mode spans so far.

    A mode's span has at most ``rank`` directions (covariances of k components span k - 1); once it is full the mode
    starts over, so that every direction is carried by several variables.
    """
    sizes = coding.soft.sizes[candidates]
    starts = starts_of(sizes)
    original = covariance[mode_rows(coding, candidates)]
    residuals = [original.copy() for _ in range(3)]
    taken = np.zeros(len(candidates), dtype=bool)
    modes: list[list[int]] = [[], [], []]
    for turn in range(3 * size):
        m = turn % 3
        if len(modes[m]) and len(modes[m]) % rank == 0:
            residuals[m] = original.copy()
        added = np.add.reduceat((residuals[m] ** 2).sum(axis=1), starts)
        best = int(np.argmax(np.where(taken, -1.0, added)))
        taken[best] = True
        modes[m].append(int(candidates[best]))
        own = residuals[m][starts[best] : starts[best] + sizes[best]]
        leading = np.linalg.svd(own, full_matrices=False)[2][0]
        residuals[m] -= np.outer(residuals[m] @ leading, leading)
    u, v, w = (np.sort(np.asarray(mode, dtype=np.int64)) for mode in modes)
    return u, v, w
