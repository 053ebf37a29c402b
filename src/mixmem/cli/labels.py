"""Labels that group the rows of a fit: a column of its table, or of another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixmem.data.read import read_table
from mixmem.data.table import Table, plain_values
from mixmem.data.table_checks import without_weights
from mixmem.errors import InputError
from mixmem.output.groups import Groups
from mixmem.words import listing, suggestion


@dataclass(frozen=True)
class GroupedBy:
    """What --by and --labels say: the column of labels, and the file that holds it if it is not the table itself."""

    column: str
    file: str | None = None

    def split(self, table: Table, weight: str | None = None) -> tuple[Table, Groups]:
        """Return a table without its labels, and the groups of those rows that have a weight."""
        if self.file is None:
            table, labels = without_labels(table, self.column)
        else:
            row_ids = np.arange(table.n_rows) if table.row_ids is None else table.row_ids
            labels = labels_of_file(self.file, self.column, row_ids.tolist())
        if weight is not None:
            labels = labels[without_weights(table, weight)[1] > 0.0]
        return table, Groups.of(self.column, labels)


def without_labels(table: Table, by: str) -> tuple[Table, np.ndarray]:
    """Return a table without its column of labels, which is not fitted, and the labels (n,)."""
    if table.loci is not None:
        raise InputError(
            f"--by {by}: genotype files hold no column of labels; give a table that does with --labels FILE"
        )
    labels = _column(table, by)
    return table.take([j for j, name in enumerate(table.names) if name != by]), labels


def labels_of_file(path: str | Path, by: str, row_ids: Sequence[Any], name: str | None = None) -> np.ndarray:
    """Return the label of every row, from a table of labels.

    Its rows are found by the column ``name``, by default its first, if that holds the rows' ids, else they go by order.
    """
    table = read_table(path)
    if table.loci is not None:
        raise InputError(f"--labels {path} holds genotypes; expected a table with the column {by!r}")
    labels = _column(table, by)
    first = name if name in table.names else table.names[0]
    place = {str(value): i for i, value in enumerate(_column(table, first).tolist())}
    wanted = [str(identity) for identity in row_ids]
    if first != by and len(place) == table.n_rows and all(identity in place for identity in wanted):
        return labels[[place[identity] for identity in wanted]]
    if table.n_rows == len(wanted):
        return labels
    absent = [identity for identity in wanted if identity not in place]
    raise InputError(
        f"{path} has {table.n_rows:,} rows for the {len(wanted):,} that were fitted, and its column "
        f"{first!r} lacks the ids {listing(absent, 3)}; expected one row each, or their ids in the first column"
    )


def _column(table: Table, by: str) -> np.ndarray:
    if by not in table.names:
        raise InputError(f"--by: there is no column {by!r}{suggestion(by, table.names)}")
    return plain_values(table.column(table.names.index(by)))
