"""Ordered levels: answers from "never" to "always", grades, stages.

Theta has a row per level, as of categories, and the moments see levels as they see those of categories. Sampling ties
neighbouring levels (:mod:`mixmem.refinement.ordered_prior`), and a missing cell is filled with the middle of what is
likely rather than with its peak.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mixmem.data.kinds.base import Column
from mixmem.data.kinds.categorical import Categorical
from mixmem.typing import Array


class Ordinal(Categorical):
    """Categories in an order, from the least to the most."""

    words = "categories in an order"
    nouns = ("ordered category", "ordered categories")
    ordered = True

    def most_likely(self, column: Column, theta: Array, memberships: Array) -> list[Any]:
        """Return the median level: the least that is reached in half of the cases."""
        reached = np.cumsum(memberships @ theta.T, axis=1)
        at = (reached < 0.5 * reached[:, -1:]).sum(axis=1)
        return list(np.array(self.held(column), dtype=object)[at])
