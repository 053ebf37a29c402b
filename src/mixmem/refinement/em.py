"""EM on tables of cells, one draw each: plain steps for the accelerator of :mod:`mixmem.refinement.ascent`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixmem.engine.rows import Arrays, Blocks, sum_over
from mixmem.kernels.em import em_pass
from mixmem.progress import Progress
from mixmem.refinement.ascent import MOST_ROUNDS, Maximum, Point, Stride, climb, memberships_inside
from mixmem.typing import Array, Positions


@dataclass(frozen=True)
class Cells:
    """Cells of one draw each: ``codes`` (n, q), where a column's codes start in the table of likelihoods (``starts``,
    (q,)), and the code of a missing cell (``absent``, (q,); -1 where there is none)."""

    codes: NDArray[np.unsignedinteger]
    starts: Positions
    absent: Positions

    @cached_property
    def lengths(self) -> Array:
        """Cells of each row that are not missing (n,)."""
        if (self.absent < 0).all():
            return np.full(len(self.codes), float(self.codes.shape[1]))
        return np.asarray((self.codes != self.absent).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class Rule:
    """How theta (rows, k) belongs to a table of cells: its likelihoods ``table(theta)`` (table's rows, k), the theta
    that makes cells held by components likeliest, ``update(counts, theta)`` with counts (table's rows, k), and
    ``inside(theta)``, a theta allowed near one that need not be. ``units`` (rows, 1) are typical sizes of theta's
    rows; ``scale(theta)`` what likelihoods are relative to, its logarithm summed over rows and their weights."""

    table: Callable[[Array], Array]
    update: Callable[[Array, Array], Array]
    inside: Callable[[Array], Array]
    units: Array | float = 1.0
    scale: Callable[[Array], float] | None = None


def maximise_cells(
    cells: Cells,
    rule: Rule,
    theta: Array,
    memberships: Array,
    *,
    progress: Progress,
    weights: Array | None = None,
    tol: float = 1e-6,
    max_rounds: int = MOST_ROUNDS,
) -> Maximum:
    """Run EM from theta (rows, k) and memberships (n, k), converged for that theta: from others EM goes astray.

    Rows may have weights (n,). It ends when :data:`PATIENCE` rounds in a row gain less than ``tol`` a cell.
    """
    steps = EMSteps(cells, rule, weights)
    per_row = float(steps.weights @ cells.lengths) / steps.total
    start = Point(theta, memberships_inside(memberships))
    return climb(steps, start, progress=progress, tol=tol, per_row=per_row, max_rounds=max_rounds)


class EMSteps:
    """Plain EM steps of a table of cells whose rows have weights (n,).

    ``extra`` (table's rows, k) is added to what components hold of the cells, where the rows are a sample of more.
    """

    def __init__(self, cells: Cells, rule: Rule, weights: Array | None = None, extra: Array | float = 0.0):
        self.cells, self.rule, self.extra = cells, rule, extra
        self.weights = np.ones(len(cells.codes)) if weights is None else weights
        self.total = float(self.weights.sum())

    def step(self, start: Point) -> Stride:
        cells, table = self.cells, np.ascontiguousarray(self.rule.table(start.theta))
        x, slopes = start.memberships, np.empty_like(start.memberships)

        def fill(first: int, partials: Arrays) -> None:
            em_pass(
                cells.codes, cells.starts, cells.absent, table, x, self.weights, first, slopes, partials[0],
                partials[1],
            )  # fmt: skip

        sums, likelihood = sum_over(Blocks([table.shape, ()], fill), *cells.codes.shape).root
        value = float(likelihood)
        if self.rule.scale is not None:
            value += self.rule.scale(start.theta)
        known = cells.lengths > 0
        new = np.where(known[:, None], x * slopes / np.maximum(cells.lengths, 1.0)[:, None], x)
        to = Point(self.rule.update(table * sums + self.extra, start.theta), memberships_inside(new))
        return Stride(start, to, value / self.total)

    def vector(self, point: Point) -> Array:
        return np.concatenate([(point.theta / self.rule.units).ravel(), point.memberships.ravel()])

    def point(self, vector: Array, near: Point) -> Point:
        theta = vector[: near.theta.size].reshape(near.theta.shape) * self.rule.units
        x = vector[near.theta.size :].reshape(near.memberships.shape)
        return Point(self.rule.inside(theta), memberships_inside(x, near.memberships))
