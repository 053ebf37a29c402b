"""Raw moments as sums over rows, and block tensors (paper, section 3.2 and appendix A).

Raw moments add up over chunks of rows, files and machines: a sum holds its coding and the stretches of the table it was
taken over, and ``+`` refuses what does not belong together. What is nonlinear in the means, the correction by alpha0
and that for missing cells, is applied once, after the last sum: a search over alpha0 reads no row again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded
from mixmem.data.soft_levels import Part, rows_of
from mixmem.data.united_levels import Recoding
from mixmem.engine.rows import Arrays, Blocks, RowSum, Slices, map_rows, sum_over
from mixmem.kernels.counts import count_cells
from mixmem.kernels.passes import add_features, scatter_sums
from mixmem.typing import Array

NO_WEIGHTS = np.empty(0)
"""What kernels take for rows of weight one."""


@dataclass(frozen=True)
class FirstMoments:
    """Total weight of the rows in which each cell occurs.

    Attributes
    ----------
    coding : Coding
        What cells there are: sums of tables that are coded alike add up.
    sums : RowSum
        Counts (cells,), and the rows' weight, by stretches of the table.

    Examples
    --------
    >>> from mixmem import encode, first_moments, n_stretches
    >>> table = encode([["x", 1], ["y", 2], ["y", 1], ["x", 1]])
    >>> whole = first_moments(table.take([0, 1])) + first_moments(table.take([2, 3]), first_stretch=1)
    >>> whole.counts
    array([2., 2., 3., 1.])
    """

    coding: Coding
    sums: RowSum

    def __add__(self, other: FirstMoments) -> FirstMoments:
        self.coding.refuse_other(other.coding, "the two sums")
        return FirstMoments(self.coding, self.sums + other.sums)

    def recoded(self, coding: Coding) -> FirstMoments:
        """Return the same counts by the cells of a coding that holds all of this one."""
        if coding == self.coding:
            return FirstMoments(coding, self.sums)
        way = Recoding.between(self.coding, coding)
        nodes: dict[tuple[int, int], Arrays] = {
            at: (way.sums(counts), total) for at, (counts, total) in self.sums.nodes.items()
        }
        return FirstMoments(coding, RowSum(nodes))

    @cached_property
    def _root(self) -> Arrays:
        return self.sums.root

    @property
    def counts(self) -> Array:
        """Return the weight of the rows in which each cell occurs (cells,)."""
        return self._root[0]

    @property
    def total(self) -> float:
        """Return the weight of all rows."""
        return float(self._root[1])

    @cached_property
    def observed(self) -> Array:
        """Return the share of the rows in which each variable is observed (p,)."""
        soft = self.coding.soft
        present = np.add.reduceat(self.counts * soft.present, soft.cell_offsets[:-1])
        return np.asarray(np.maximum(present, 1e-300) / self.total)

    @cached_property
    def means(self) -> Array:
        """Return E[b_j] of every variable, stacked (soft levels,), over rows that have it; even where none has."""
        soft = self.coding.soft
        if soft.shares is None:
            return self.counts / self.total
        found = soft.shares.T @ self.counts / np.repeat(self.observed * self.total, soft.sizes)
        return np.where(np.repeat(self._known, soft.sizes), found, 1.0 / np.repeat(soft.sizes, soft.sizes))

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        """(p,): observed in some row; a part of a table may lack a variable."""
        return self.observed * self.total > 1e-299

    @cached_property
    def inverse(self) -> Array:
        """Return one over the share observed (cells,), 0 for missing cells."""
        soft = self.coding.soft
        inverse = np.where(self._known, 1.0 / self.observed, 0.0)
        return np.asarray(np.repeat(inverse, np.diff(soft.cell_offsets)) * soft.present)

    def of(self, j: int) -> Array:
        """Return the counts of variable j by code (codes,), missing cells left out."""
        begin = int(self.coding.soft.cell_offsets[j])
        return self.counts[begin : begin + self.coding.columns[j].n_codes]

    @cached_property
    def missing(self) -> Array:
        """Return the weight of the rows in which each variable is missing (p,)."""
        soft = self.coding.soft
        last = soft.cell_offsets[1:] - 1
        return np.where(soft.absent >= 0, self.counts[last], 0.0)

    def mean(self, j: int) -> float:
        """Return the mean of a column of numbers."""
        counts = self.of(j)
        return float(counts @ self.coding.columns[j].values) / max(float(counts.sum()), 1e-300)

    def spread(self, part: Part, theta: Array) -> Array:
        """Return what the part's cells say of the components (its cells, k); theta holds its soft levels only."""
        return part.spread(theta, self.means[part.rows], self.inverse[part.cells])

    def collect(self, part: Part, sums: Array) -> Array:
        """Return sums over the part's soft levels (its rows, k) from those over its cells."""
        return part.collect(sums, self.means[part.rows], self.inverse[part.cells])


def first_moments(table: Encoded, *, first_stretch: int = 0) -> FirstMoments:
    """Count the cells of a table, or of a part of one.

    Parameters
    ----------
    table : Encoded
        Codes (n, p), which may have weights.
    first_stretch : int
        Where a part begins that was cut from a larger table at stretch borders (:func:`mixmem.stretch_rows`).

    Returns
    -------
    FirstMoments
        Sums that add up with those of other parts.

    Examples
    --------
    >>> import numpy as np
    >>> from mixmem import encode
    >>> first_moments(encode(np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1], [1, 0, 0]]))).means
    array([0.25, 0.75, 0.5 , 0.5 , 0.5 , 0.5 ])
    """
    codes, offsets = table.codes, table.coding.soft.cell_offsets
    weights = NO_WEIGHTS if table.weights is None else table.weights

    def add(rows: slice, begin: int, end: int, sums: Arrays) -> None:
        each = weights[rows] if len(weights) else weights
        count_cells(codes[rows], offsets, each, begin, end, sums[0])
        if begin == 0:
            sums[1][...] = each.sum() if len(weights) else rows.stop - rows.start

    work = Slices([(int(offsets[-1]),), ()], table.n_variables, add)
    return FirstMoments(table.coding, sum_over(work, table.n_rows, table.n_variables, first_stretch))


def mode_rows(coding: Coding, variables: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the soft levels of variables, in their order: row r of a block's mode is row ``mode_rows(...)[r]``."""
    return rows_of(coding.soft.offsets, variables)


def features_of(table: Encoded, part: Part, says: Array) -> Array:
    """Return the sums over a part's variables of what each row's cells say (n, q); says (cells of the part, q)."""
    values = np.zeros((table.n_rows, says.shape[1]))
    codes = table.codes
    map_rows(lambda rows: add_features(codes[rows], part.cell_starts, part.variables, says, values[rows]), len(codes))
    return values


def cell_sums(table: Encoded, part: Part, values: Array) -> Array:
    """Return the sums over rows of values (n, q) by the cells of some variables: (cells, q)."""

    def fill(first: int, partials: Arrays) -> None:
        scatter_sums(table.codes, part.cell_starts, part.variables, values, first, partials[0])

    work = Blocks([(len(part.cells), values.shape[1])], fill)
    return sum_over(work, table.n_rows, table.n_variables).root[0]


def second_moments(
    table: Encoded, left: NDArray[np.int64], right: NDArray[np.int64], *, first: FirstMoments | None = None
) -> Array:
    """Return raw second-order sums of two groups of variables: (soft levels of left, soft levels of right).

    Divide by the rows' weight and apply :func:`correct_second` for M^{js}.

    Parameters
    ----------
    table : Encoded
        Codes (n, p), which may have weights.
    left, right : arrays of int
        Two disjoint groups of variables.
    first : FirstMoments or None
        The table's first moments, if they are known already.

    Examples
    --------
    >>> import numpy as np
    >>> from mixmem import encode
    >>> second_moments(encode(np.array([[0, 1], [1, 1], [1, 0], [1, 0]])), np.array([0]), np.array([1]))
    array([[0., 1.],
           [2., 1.]])
    """
    soft, first = table.coding.soft, first_moments(table) if first is None else first
    mine, other = soft.part(left), soft.part(right)
    values = features_of(table, other, first.spread(other, np.eye(len(other.rows))))
    if table.weights is not None:
        values *= table.weights[:, None]
    return first.collect(mine, cell_sums(table, mine, values))
