"""Variables of few cells taken together, so that a pass over rows looks up fewer of them.

Two variables of four cells each are one of sixteen: what a row's two cells say is one row of a table that holds their
sums, and sums over rows by the sixteen cells give those by four and four.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixmem.data.soft_levels import Part
from mixmem.typing import Array

MOST_CELLS, FEWER_CELLS, ALL_CELLS = 64, 16, 16_384
"""Cells of joined variables at most; fewer where all of them would be more than the last number, and their table no
longer stay in the second-level cache (10,000 variables of four levels: a third of the time)."""


@dataclass(frozen=True)
class JoinedVariables:
    """Neighbours joined: number j has the members from ``bounds[j]`` to ``bounds[j + 1]``, and its cells begin at
    ``starts[j]``; a member's code counts ``steps`` (members,) there. ``groups`` are where groups begin among them.

    ``cells`` and ``sizes`` (members,) are where a member's own cells begin, and how many they are.
    """

    cells: NDArray[np.int64]
    sizes: NDArray[np.int64]
    steps: NDArray[np.int64]
    bounds: NDArray[np.int64]
    starts: NDArray[np.int64]
    groups: NDArray[np.int64]

    @classmethod
    def of(cls, cells: NDArray[np.int64], sizes: NDArray[np.int64], groups: NDArray[np.int64]) -> JoinedVariables:
        """Join the neighbours of each group as long as they have few cells; groups (groups + 1,) among the members.

        >>> found = JoinedVariables.of(np.array([0, 4, 8]), np.array([4, 4, 4]), np.array([0, 3]))
        >>> found.bounds.tolist(), found.steps.tolist(), found.starts.tolist()
        ([0, 3], [1, 4, 16], [0])
        """
        found = cls.up_to(cells, sizes, groups, MOST_CELLS)
        many = found.starts[-1] > ALL_CELLS
        return cls.up_to(cells, sizes, groups, FEWER_CELLS) if many else found

    @classmethod
    def up_to(
        cls, cells: NDArray[np.int64], sizes: NDArray[np.int64], groups: NDArray[np.int64], most: int
    ) -> JoinedVariables:
        """Join the neighbours of each group as long as they have so many cells at most."""
        steps, bounds, starts, begins = np.ones_like(sizes), [0], [0], [0]
        for first, last in zip(groups[:-1].tolist(), groups[1:].tolist(), strict=True):
            size = 1
            for member in range(first, last):
                if member > first and size * sizes[member] > most:
                    bounds.append(member)
                    starts.append(starts[-1] + size)
                    size = 1
                steps[member] = size
                size *= int(sizes[member])
            bounds.append(last)
            starts.append(starts[-1] + size)
            begins.append(len(bounds) - 1)
        return cls(cells, sizes, steps, np.array(bounds), np.array(starts[:-1]), np.array(begins))

    @cached_property
    def _alone(self) -> bool:
        """Whether nothing is joined, and cells lie in the order of the members."""
        return np.array_equal(self.cells, self.starts)

    @classmethod
    def of_part(cls, part: Part) -> JoinedVariables:
        """Join the neighbours among some variables, whose cells stand alone in a table."""
        return cls.of(part.cell_starts, part.cell_sizes, np.array([0, len(part.variables)]))

    def table(self, table: Array) -> Array:
        """Return what joined cells say (joined cells, q), the sums of what their members' cells say (cells, q)."""
        if self._alone:
            return table
        parts = []
        for first, last in zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True):
            found = np.zeros((1, table.shape[1]))
            for begin, size in zip(self.cells[first:last].tolist(), self.sizes[first:last].tolist(), strict=True):
                found = (table[begin : begin + size, None, :] + found).reshape(-1, table.shape[1])
            parts.append(found)
        return np.concatenate(parts)
