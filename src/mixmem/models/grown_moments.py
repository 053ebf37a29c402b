"""Sums in a coding with more levels than they were counted in: rows so far had none of these, so nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mixmem.data.coding import Coding
from mixmem.data.united_levels import Recoding
from mixmem.engine.rows import RowSum
from mixmem.likelihood.table import LikelihoodTable
from mixmem.models.moments import Moments, Sums
from mixmem.models.moments_plan import MomentsPlan
from mixmem.moments.few_passes import no_rows, pass_at
from mixmem.moments.sums import FirstMoments
from mixmem.typing import Array, Positions


def grown(moments: Moments, coding: Coding) -> Moments:
    """Return sums of a pass as they would be in a coding that has all of theirs and more, nothing pooled in either.

    Theta of a level that is new is zero; what its cells say of the components follows from that.
    """
    old, way = moments.plan.coding, Recoding.between(moments.plan.coding, coding)
    first = moments.first.recoded(coding)
    asked = {"pass": _placed(moments.sums.asked["pass"], way.cells, coding.soft.n_cells)}
    if "held" in moments.sums.asked:
        mine, theirs = LikelihoodTable(no_rows(old)), LikelihoodTable(no_rows(coding))
        places = _places(mine.offsets, theirs.offsets, way.lookups)
        asked["held"] = _placed(moments.sums.asked["held"], places, theirs.n_rows)
    counted = replace(moments.sums.counted, base=coding, first=first)
    return Moments(grown_plan(moments.plan, coding, way, first), Sums(counted, asked), moments.parts)


def grown_plan(plan: MomentsPlan, coding: Coding, way: Recoding, first: FirstMoments) -> MomentsPlan:
    """Return a plan of a pass in a coding that has all of its own and more; ``first`` are moments in that coding."""
    assert plan.theta is not None
    assert plan.work is not None
    theta = _spread(plan.theta, plan.coding.soft.offsets, coding.soft.offsets, way.lookups)
    held = plan.held
    if held is not None:
        held = _spread(held, plan.coding.schema.offsets, coding.schema.offsets, way.lookups)
    work = pass_at(theta, first, plan.alpha0, np.random.SeedSequence(plan.seed))
    table = work.table.copy()
    table[way.cells] = plan.work.table  # what cells said so far stands, as the sums were taken by it
    work = replace(plan.work, starts=coding.soft.cell_offsets[plan.work.members], table=table)
    return replace(plan, coding=coding, theta=theta, held=held, work=work)


def _places(old: Positions, new: Positions, lookups: Mapping[int, np.ndarray]) -> Positions:
    """Return the new row of every old one, of tables whose variables begin at these offsets."""
    sizes = np.diff(old)
    parts = [new[j] + (lookups[j][:size] if j in lookups else np.arange(size)) for j, size in enumerate(sizes.tolist())]
    return np.concatenate(parts)


def _spread(values: Array, old: Positions, new: Positions, lookups: Mapping[int, np.ndarray]) -> Array:
    """Return rows of variables at their new places, zero where there was none."""
    out = np.zeros((int(new[-1]), values.shape[1]))
    out[_places(old, new, lookups)] = values
    return out


def _placed(sums: RowSum, places: Positions, n_rows: int) -> RowSum:
    """Return sums by rows of a table, the first array of every node, at their new places."""
    nodes = {}
    for at, (own, *others) in sums.nodes.items():
        out = np.zeros((n_rows, *own.shape[1:]))
        out[places] = own
        nodes[at] = (out, *others)
    return RowSum(nodes)
