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


@dataclass(frozen=True)
class Measured:
    """``values`` (m,) ascending, ``codes`` (n,) into them, m where missing; ``knots``: the smallest value, quantiles
    between, the largest; ``edges`` (m - 1,): numbers up to edges[c] and above edges[c - 1] have code c."""

    values: Array
    codes: NDArray[np.int64]
    knots: tuple[float, ...]
    edges: Array

    @property
    def missing(self) -> bool:
        return bool((self.codes == len(self.values)).any())


def measure(column: Array, weights: Array | None = None, most: int = MOST_VALUES) -> Measured:
    """Code a column of numbers (n,), NaN where missing; there are no knots where everything is.

    Knots go by the rows' weights (n,). Of more than ``most`` distinct values those between the extremes are gathered.

    >>> import numpy as np
    >>> found = measure(np.array([2.5, np.nan, 1.0, 2.5]))
    >>> found.values, found.codes
    (array([1. , 2.5]), array([1, 2, 0, 1]))
    """
    present = ~np.isnan(column)
    values, inverse = np.unique(column[present], return_inverse=True)
    counted = np.ones(len(inverse)) if weights is None else weights[present]
    first = last = values
    if len(values) > most:
        values, inverse, first, last = _gathered(values, inverse, counted, most)
    codes = np.full(len(column), len(values), dtype=np.int64)
    codes[present] = inverse
    counts = np.bincount(inverse, counted).astype(np.float64)
    return Measured(values, codes, _knots(values, counts) if len(values) else (), _between(last[:-1], first[1:]))


def rounded(column: Array, edges: Array, n_values: int) -> NDArray[np.int64]:
    """Return the codes (n,) of numbers on a grid that is fixed already, ``n_values`` where missing (NaN).

    >>> import numpy as np
    >>> found = measure(np.array([2.5, 1.0, 4.0]))
    >>> rounded(np.array([1.2, 9.0, np.nan, 2.5]), found.edges, 3)
    array([0, 2, 3, 1])
    """
    codes = np.searchsorted(edges, column, side="left")
    return np.where(np.isnan(column), n_values, codes)


def _between(low: Array, high: Array) -> Array:
    """Return numbers from low on and below high, midway where there is room: two floats may have none between them."""
    middle = low + 0.5 * (high - low)
    return np.where(middle < high, middle, low)


def _gathered(
    values: Array, inverse: NDArray[np.int64], counted: Array, most: int
) -> tuple[Array, NDArray[np.int64], Array, Array]:
    """Gather the values between the extremes in groups of neighbours, about as many cells each, at their means.

    Returns the groups' values, the cells' groups, and the smallest and the largest number of every group.
    """
    counts = np.bincount(inverse, counted)
    inner = slice(EXTREMES, len(values) - EXTREMES)
    reached = np.cumsum(counts[inner]) - 0.5 * counts[inner]
    group = np.floor(reached / counts[inner].sum() * (most - 2 * EXTREMES)).astype(np.int64)
    label = np.concatenate([np.arange(EXTREMES), EXTREMES + group, EXTREMES + group[-1] + 1 + np.arange(EXTREMES)])
    _, begins, label = np.unique(label, return_index=True, return_inverse=True)
    # about the middle, so that large values lose no digits
    middle = 0.5 * (values[0] + values[-1])
    means = middle + np.bincount(label, counts * (values - middle)) / np.bincount(label, counts)
    ends = np.append(begins[1:], len(values)) - 1
    grid = np.where(np.bincount(label) == 1, values[begins], means)
    return grid, label[inverse], values[begins], values[ends]


def _knots(values: Array, counts: Array) -> tuple[float, ...]:
    """Smallest and largest value, and up to two between them that split the cells evenly.

    Where many cells hold the smallest value, as in counts of rare events, the others are split.
    """
    inner: list[float] = []
    for first in (0, 1):
        reached = np.cumsum(counts[first:])
        found = values[first:][np.searchsorted(reached, np.array(KNOTS) * reached[-1])] if len(reached) else []
        inner = sorted({float(v) for v in found if values[0] < v < values[-1]})
        if len(inner) == len(KNOTS):
            break
    return float(values[0]), *inner, float(values[-1])
