"""A further correction from a part of the rows: what sums change by as theta moves varies little from row to row.

Let D be the means over rows of what a pass's sums have more at a later theta than at an earlier one. After a correction
by all rows only the difference between D over all rows and D over the sample is left to correct, and a part of the rows
tells it: from m rows of n it comes with an error that is sqrt((1/m - 1/n) / (1/s - 1/n)) of it, for a sample of s rows.
The part is made of whole stretches, evenly spread. How much they differ among themselves says what the error is, also
where rows are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.engine.rows import Arrays, RowSum, n_stretches, stretch_rows
from mixmem.moments.sweep import Pass
from mixmem.typing import Array, Positions

LEAST_STRETCHES, MOST_PART = 8, 4
"""Stretches of a part at least, so that they tell how much they differ; all rows are taken instead of a part that is
more than one of so many."""
MARGIN = 1.5
"""By how much the error of a part is to be smaller than what may be left."""
SEEN = 2.0
"""What is left, over what the errors of single steps say: sweeps add to them (2.1 on a simulated table of 30
variables)."""


def stretches_of_part(excess: float, times: float, n_rows: int, n_variables: int) -> Positions:
    """Return the stretches that a further correction takes, evenly spread; none where it is to take all rows.

    ``excess`` is what the corrections so far leave over what may be left, and ``times`` how many times the sample's
    weight all rows have.

    >>> stretches_of_part(2.0, 200.0, 20_000_000, 500).tolist()[:5]  # 27 of 611
    [0, 22, 45, 67, 90]
    >>> stretches_of_part(2.0, 8.0, 1_000_000, 100).tolist()
    []
    """
    rows = n_rows / (1.0 + (times - 1.0) / (MARGIN * excess) ** 2)
    count = max(LEAST_STRETCHES, int(np.ceil(rows / stretch_rows(n_variables))))
    all_stretches = n_stretches(n_rows, n_variables)
    if MOST_PART * count > all_stretches:
        return np.empty(0, dtype=np.int64)
    return np.arange(count) * all_stretches // count


@dataclass(frozen=True)
class Change:
    """What a pass's sums have more at a later theta than at an earlier one, over stretches of rows.

    ``inverse`` (w, w) takes sums by cells to theta's units: the steps' problem is solved by it where nothing binds.
    """

    before: Pass
    after: Pass
    inverse: Array

    def sums(self, stretch: Encoded, number: int) -> RowSum:
        """Return the sums of a stretch: its change, then what tells how much stretches differ."""
        one, two = (work.sums(stretch, number).root for work in (self.before, self.after))
        change, weight = tuple(b - a for a, b in zip(one, two, strict=True)), np.asarray(stretch.total)
        step = change[0] @ self.inverse
        return RowSum({(0, number): (*change, step, step * step, step * weight, weight, weight * weight)})


@dataclass(frozen=True)
class Changed:
    """The means of a change over the stretches of a part (``cells`` and ``squares`` as in a pass), those of the
    ``steps`` that they lead to, and the ``errors`` of these."""

    cells: Array
    squares: Array
    steps: Array
    errors: Array

    @classmethod
    def of(cls, sums: Arrays, count: int, part: float) -> Changed:
        """Return means and errors from the sums of ``count`` stretches, a part of all."""
        cells, squares, steps, square, product, weight, weights = sums
        mean = steps / weight
        spread = np.maximum(square - 2.0 * mean * product + mean * mean * weights, 0.0)
        scale = (1.0 - part) * count / max(count - 1.0, 1.0)
        return cls(cells / weight, squares / weight, mean, np.sqrt(scale * spread) / weight)

    def added_to(self, sums: Arrays, total: float) -> Arrays:
        """Return sums over all rows, of weight ``total``, at the later theta, from those at the earlier one."""
        return sums[0] + total * self.cells, sums[1] + total * self.squares

    def unsure(self, sample: Changed, part: float, times: float) -> float:
        """Return the error of a correction by this change in place of the sample's, over the correction itself.

        As stretches differ, and at least as rows in any order would; ``part`` is the part of the rows, and ``times``
        how many times the sample's weight all rows have.
        """
        correction = float(((self.steps - sample.steps) ** 2).sum())
        seen = SEEN * float(np.sqrt((self.errors**2).sum() / max(correction, 1e-300)))
        return max(seen, float(np.sqrt((1.0 / part - 1.0) / max(times - 1.0, 1e-12))))
