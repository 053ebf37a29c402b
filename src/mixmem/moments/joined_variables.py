"""Variables of few cells taken together, so that a pass over rows looks up fewer of them.

Two variables of four cells each are one of sixteen: what a row's two cells say is one row of a table that holds their
sums, and sums over rows by the sixteen cells give those by four and four.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.typing import Array

MOST_CELLS = 16
"""Cells of joined variables at most: more would no longer stay in the first-level cache."""


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
        ([0, 2, 3], [1, 4, 1], [0, 16])
        """
        steps, bounds, starts, begins = np.ones_like(sizes), [0], [0], [0]
        for first, last in zip(groups[:-1].tolist(), groups[1:].tolist(), strict=True):
            size = 1
            for member in range(first, last):
                if member > first and size * sizes[member] > MOST_CELLS:
                    bounds.append(member)
                    starts.append(starts[-1] + size)
                    size = 1
                steps[member] = size
                size *= int(sizes[member])
            bounds.append(last)
            starts.append(starts[-1] + size)
            begins.append(len(bounds) - 1)
        return cls(cells, sizes, steps, np.array(bounds), np.array(starts[:-1]), np.array(begins))

    def table(self, table: Array) -> Array:
        """Return what joined cells say (joined cells, q), the sums of what their members' cells say (cells, q)."""
        parts = []
        for first, last in zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True):
            found = np.zeros((1, table.shape[1]))
            for begin, size in zip(self.cells[first:last].tolist(), self.sizes[first:last].tolist(), strict=True):
                found = (table[begin : begin + size, None, :] + found).reshape(-1, table.shape[1])
            parts.append(found)
        return np.concatenate(parts)
