"""What is asked of the columns of a table while they are coded, and who is told what is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mixmem.data.coding import Coding
from mixmem.data.column_refusals import Judged
from mixmem.data.schema import Schema


@dataclass(frozen=True)
class Asked:
    """Kinds declared by column, the schema or the coding to keep to, if there is one, the rows' weights."""

    declared: Mapping[str, str]
    schema: Schema | None
    coding: Coding | None
    weights: np.ndarray | None
    most_values: int
    """Of a column of numbers so many values are kept apart."""
    judged: Judged
    """Who is told of columns that are of no use, where variables are learned."""
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The order of levels, of columns where it is declared."""
    unknown: UnknownLevels | None = None
    """Who is told of levels that the schema does not have; None to refuse them."""

    @property
    def settled(self) -> bool:
        """Whether a model that is learned already says of what kind columns are; later rows of a fit have a coding."""
        return self.schema is not None and self.coding is None


@dataclass
class UnknownLevels:
    """Cells with levels that a model does not know, counted by column and level."""

    cells: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, name: str, level: str, n_cells: int) -> None:
        """Count the cells of one level."""
        self.cells[name, level] += n_cells

    def said(self) -> tuple[str, ...]:
        """What to tell, if there are any."""
        if not self.cells:
            return ()
        (name, level), _ = self.cells.most_common(1)[0]
        total, columns = self.cells.total(), len({column for column, _ in self.cells})
        where = f"column {name!r}" if columns == 1 else f"{columns:,} columns"
        return (
            f"{total:,} cell{'s' * (total > 1)} of {where} hold{'s' * (total == 1)} a level that the model does not "
            f"know, such as {level!r} in {name!r}, and count{'s' * (total == 1)} as missing; recode them, or fit again "
            "with such rows",
        )
