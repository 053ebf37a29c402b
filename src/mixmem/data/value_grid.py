"""The grid that a column of numbers is rounded to: its values as codes, and the knots of its soft levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.typing import Array

MOST_VALUES, EXTREMES = 1000, 100
"""Values that a column keeps apart, and how many of them are its smallest and its largest, as they are. Those between
are gathered by rank, each group at its mean: with a thousand of them nothing is lost that a sample could show."""
KNOTS = (1 / 3, 2 / 3)
"""Inner knots lie at these quantiles."""
ATOM_SHARE, ATOM_CELLS, ATOM_EXCESS, ATOM_NEAR = 0.1, 10.0, 3.0, 1 / 3
"""A value is an atom if this share of the cells hold it, at least so many cells, so many times as many as hold either
neighbour a step away, and this part of all others within a standard deviation: readings rounded to tens are none."""
FAR_SHARE, FAR_CELLS, FAR_REACH = 0.005, 2.0, 3.0
"""Far out are cells more than so many times as far from the median as all on their side but this share of the cells,
and at least so many cells."""


@dataclass(frozen=True)
class Taken:
    """How a column of numbers is to be measured.

    ``most`` values are kept apart. ``atoms`` are values that are levels of their own; None: they are to be found.
    ``fenced``: the outer knots leave cells outside that are far out.
    """

    most: int = MOST_VALUES
    atoms: tuple[float, ...] | None = ()
    fenced: bool = False


@dataclass(frozen=True)
class Measured:
    """``values`` (m,) ascending, ``codes`` (n,) into them, m where missing; ``edges`` (m - 1,): numbers up to edges[c]
    and above edges[c - 1] have code c; ``resolution``: the step in which values differ; ``atoms``: values that a large
    share of the cells hold; ``knots`` of the others: the smallest value, quantiles between, the largest."""

    values: Array
    codes: NDArray[np.int64]
    knots: tuple[float, ...]
    edges: Array
    resolution: float = 0.0
    atoms: tuple[float, ...] = ()

    @property
    def missing(self) -> bool:
        return bool((self.codes == len(self.values)).any())


def measure(column: Array, weights: Array | None = None, taken: Taken | None = None) -> Measured:
    """Code a column of numbers (n,), NaN where missing; there are no knots where everything is.

    Resolution, atoms and knots go by the rows' weights (n,). Of more distinct values than are kept apart those between
    the extremes are gathered.

    >>> import numpy as np
    >>> found = measure(np.array([2.5, np.nan, 1.0, 2.5]))
    >>> found.values, found.codes
    (array([1. , 2.5]), array([1, 2, 0, 1]))
    """
    taken = taken or Taken()
    present = ~np.isnan(column)
    values, inverse = np.unique(column[present], return_inverse=True)
    counted = np.ones(len(inverse)) if weights is None else weights[present]
    counts = np.bincount(inverse, counted).astype(np.float64)
    resolution = _resolution(values, counts)
    atoms = _atoms(values, counts, resolution) if taken.atoms is None else taken.atoms
    first = last = values
    if len(values) > taken.most:
        values, inverse, first, last = _gathered(values, inverse, counted, taken.most, atoms)
        counts = np.bincount(inverse, counted).astype(np.float64)
    codes = np.full(len(column), len(values), dtype=np.int64)
    codes[present] = inverse
    others = ~np.isin(values, atoms)
    others = others if others.any() else np.ones(len(values), dtype=bool)
    knots = _knots(values[others], counts[others], taken.fenced) if len(values) else ()
    return Measured(values, codes, knots, _edges(first, last, atoms), resolution, atoms)


def rounded(column: Array, edges: Array, n_values: int) -> NDArray[np.int64]:
    """Return the codes (n,) of numbers on a grid that is fixed already, ``n_values`` where missing (NaN).

    >>> import numpy as np
    >>> found = measure(np.array([2.5, 1.0, 4.0]))
    >>> rounded(np.array([1.2, 9.0, np.nan, 2.5]), found.edges, 3)
    array([0, 2, 3, 1])
    """
    codes = np.searchsorted(edges, column, side="left")
    return np.where(np.isnan(column), n_values, codes)


def _resolution(values: Array, counts: Array) -> float:
    """Return the step in which values (m,) differ: the median over the cells of the way to the nearest other value.

    Whole numbers have 1, whatever a few odd ones do; measurements of which no two are equal next to nothing.
    """
    if len(values) < 2:
        return 0.0
    steps = np.diff(values)
    nearest = np.minimum(np.append(steps, np.inf), np.concatenate([[np.inf], steps]))
    order = np.argsort(nearest, kind="stable")
    reached = np.cumsum(counts[order])
    return float(nearest[order][np.searchsorted(reached, 0.5 * reached[-1])])


def _atoms(values: Array, counts: Array, resolution: float) -> tuple[float, ...]:
    """Return the values that a large share of the cells hold, and far fewer hold a neighbour of; two others are left.

    >>> import numpy as np
    >>> _atoms(np.array([38.0, 39.0, 40.0, 41.0]), np.array([9.0, 8.0, 70.0, 11.0]), 1.0)
    (40.0,)
    """
    total = counts.sum()
    found = []
    for at in np.flatnonzero(counts >= max(ATOM_SHARE * total, ATOM_CELLS)).tolist():
        others, away = counts.copy(), np.abs(values - values[at])
        others[at] = 0.0
        reached = np.cumsum(others)
        low, high = values[np.minimum(np.searchsorted(reached, np.array([0.16, 0.84]) * reached[-1]), len(values) - 1)]
        near = others[away <= 0.5 * (high - low)].sum()
        beside = others[away < 1.5 * resolution].max(initial=0.0)
        if counts[at] >= max(ATOM_EXCESS * beside, ATOM_NEAR * near):
            found.append(float(values[at]) + 0.0)  # never -0
    return tuple(found) if len(values) - len(found) >= 2 else ()


def _edges(first: Array, last: Array, atoms: tuple[float, ...]) -> Array:
    """Return what parts the groups of numbers whose smallest and largest are given (m,) each: (m - 1,).

    Midway between them, where there is room: two floats may have none between them. Nothing is rounded to an atom.
    """
    low, high = last[:-1], first[1:]
    middle = low + 0.5 * (high - low)
    edges = np.where(middle < high, middle, low)
    edges = np.where(np.isin(high, atoms), np.nextafter(high, -np.inf), edges)
    return np.where(np.isin(low, atoms), low, edges)


def _gathered(
    values: Array, inverse: NDArray[np.int64], counted: Array, most: int, atoms: tuple[float, ...]
) -> tuple[Array, NDArray[np.int64], Array, Array]:
    """Gather the values between the extremes in groups of neighbours, about as many cells each, at their means.

    Atoms stay by themselves.

    Returns the groups' values, the cells' groups, and the smallest and the largest number of every group.
    """
    counts = np.bincount(inverse, counted)
    inner = slice(EXTREMES, len(values) - EXTREMES)
    reached = np.cumsum(counts[inner]) - 0.5 * counts[inner]
    group = np.floor(reached / counts[inner].sum() * (most - 2 * EXTREMES)).astype(np.int64)
    label = np.concatenate([np.arange(EXTREMES), EXTREMES + group, EXTREMES + group[-1] + 1 + np.arange(EXTREMES)])
    before, upto = (np.searchsorted(np.sort(atoms), values, side) for side in ("left", "right"))
    label = (2 * len(atoms) + 1) * label + before + upto
    _, begins, label = np.unique(label, return_index=True, return_inverse=True)
    # about the middle, so that large values lose no digits
    middle = 0.5 * (values[0] + values[-1])
    means = middle + np.bincount(label, counts * (values - middle)) / np.bincount(label, counts)
    ends = np.append(begins[1:], len(values)) - 1
    grid = np.where(np.bincount(label) == 1, values[begins], means)
    return grid, label[inverse], values[begins], values[ends]


def _knots(values: Array, counts: Array, fenced: bool) -> tuple[float, ...]:
    """Smallest and largest value, and up to two between them that split the cells evenly; cells far out left outside.

    Where many cells hold the smallest value, as in counts of rare events, the others are split.
    """
    low, high = _fences(values, counts) if fenced else (float(values[0]), float(values[-1]))
    inner: list[float] = []
    for first in (0, 1):
        reached = np.cumsum(counts[first:])
        found = values[first:][np.searchsorted(reached, np.array(KNOTS) * reached[-1])] if len(reached) else []
        inner = sorted({float(v) for v in found if low < v < high})
        if len(inner) == len(KNOTS):
            break
    return low, *inner, high


def _fences(values: Array, counts: Array) -> tuple[float, float]:
    """Return the smallest and the largest of the values (m,) that are not far out."""
    reached = np.cumsum(counts)
    tail = max(FAR_SHARE * reached[-1], FAR_CELLS)
    ends = float(values[0]), float(values[-1])
    if reached[-1] <= 2.0 * tail:
        return ends
    low, middle, high = values[np.searchsorted(reached, (tail, 0.5 * reached[-1], reached[-1] - tail))].tolist()
    if not low < middle < high:
        return ends
    near = values[(values >= middle - FAR_REACH * (middle - low)) & (values <= middle + FAR_REACH * (high - middle))]
    return float(near[0]), float(near[-1])
