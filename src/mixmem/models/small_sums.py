"""Sums that tell of few rows, where whoever counts has asked that none do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixmem.errors import InputError
from mixmem.models.moments_plan import MomentsPlan
from mixmem.words import plain_number

if TYPE_CHECKING:
    from mixmem.models.moments import Sums


def refuse_small(plan: MomentsPlan, rows: Sums, least: int, part: str) -> None:
    """Refuse sums that tell of fewer rows than ``least``; ``rows`` are those sums with every row counted once."""
    # every node for itself: the last stretch of a part may hold few rows
    nodes = [counts for counts, _ in rows.counted.first.sums.nodes.values()]
    offsets = plan.coding.soft.cell_offsets
    counts = np.min([np.where(counts > 0.0, counts, np.inf) for counts in nodes], axis=0)
    few = np.flatnonzero(counts < least)
    if len(few):
        j = int(np.searchsorted(offsets, few[0], side="right")) - 1
        column, code = plan.coding.columns[j], int(few[0] - offsets[j])
        held = "a missing cell" if code == column.n_codes else repr(column.held()[code])
        raise InputError(
            f"part {part!r}: {plain_number(float(counts[few[0]]))} rows hold {held} in {column.name!r}, fewer than the "
            f"{least} asked for, and so do {len(few) - 1:,} other cells; merge rare levels before you count"
        )
    if "triples" in rows.asked:
        triples = rows.asked["triples"].root[0]
        small = int(((triples > 0.0) & (triples < least)).sum())
        if small:
            raise InputError(
                f"part {part!r}: {small:,} of {triples.size:,} triples of the anchors are held by fewer than {least} "
                "rows; make the plan with --start rows or with a sample (--sample), which ask for no triples, or name "
                "fewer anchors with fewer levels (--anchors)"
            )
