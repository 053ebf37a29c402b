"""Facts of a table that several commands tell: counted once and handed on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.moments.sums import FirstMoments, first_moments


@dataclass(frozen=True)
class Facts:
    """A coded table with its first moments; ``counted`` are those of its rows, each counted once."""

    table: Encoded
    first: FirstMoments

    @classmethod
    def of(cls, table: Encoded, first: FirstMoments | None = None) -> Facts:
        """Return the facts of a table, whose first moments may be known already."""
        return cls(table, first_moments(table) if first is None else first)

    @cached_property
    def counted(self) -> FirstMoments:
        return self.first if self.table.weights is None else first_moments(replace(self.table, weights=None))

    @cached_property
    def missing(self) -> np.ndarray:
        """Missing cells of every variable (p,)."""
        return self.counted.missing.astype(np.int64)

    @property
    def number_means(self) -> dict[str, float]:
        """Means of the numbers by name, rows by their weights."""
        numbers = np.flatnonzero(self.table.schema.has("number")).tolist()
        return {self.table.schema.names[j]: self.first.mean(j) for j in numbers}
