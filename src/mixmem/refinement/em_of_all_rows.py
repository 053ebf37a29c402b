"""EM over rows that are not held: every round is a pass, and memberships are found anew for the theta of the round.

What is climbed is the likelihood of theta alone, each row at its likeliest memberships, which has the same maximum as
that of theta and memberships together (:mod:`mixmem.refinement.em`). A step is EM's, and the accelerator is the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.engine.rows import Arrays, Blocks, RowSum, sum_over
from mixmem.kernels import ROW_BLOCK
from mixmem.kernels.em import em_pass
from mixmem.likelihood.memberships import fit_rows
from mixmem.likelihood.table import LikelihoodTable
from mixmem.progress import Progress
from mixmem.refinement.ascent import MOST_ROUNDS, Maximum, Point, Stride, climb, memberships_inside
from mixmem.refinement.em import Rule
from mixmem.typing import Array

BARRIER = 1e-6
"""What keeps memberships off zero while they are found, as a weight of their logarithms: a row has that much less than
one cell of a component that it has no part in."""

RoundSums = Callable[[Array], Arrays]
"""The sums over all rows of a round at a theta, as :func:`round_sums` gives them of some."""


def round_sums(table: Encoded, theta: Array, first_stretch: int = 0) -> RowSum:
    """Return sums over rows which, times the cells' likelihoods, are the cells held (table's rows, k) at the rows'
    likeliest memberships, and the log-likelihood there."""
    cells, each = LikelihoodTable(table), table.each
    alpha = np.full(theta.shape[1], BARRIER)
    x = memberships_inside(fit_rows(table, theta, alpha, memberships="mode").memberships)
    beside = each * (BARRIER * np.log(x).sum(axis=1) + cells.scale(theta))
    slopes, likely = np.empty_like(x), np.ascontiguousarray(cells.likelihoods(theta))

    def fill(first: int, partials: Arrays) -> None:
        em_pass(cells.codes, cells.starts, cells.absent, likely, x, each, first, slopes, *partials)
        for b in range(len(partials[1])):
            partials[1][b] += beside[(first + b) * ROW_BLOCK : (first + b + 1) * ROW_BLOCK].sum()

    return sum_over(Blocks([likely.shape, ()], fill), table.n_rows, table.n_variables, first_stretch)


def most_likely_of_all(
    sample: Encoded, theta: Array, sums: RoundSums, total: float, *, progress: Progress, tol: float = 1e-6
) -> Maximum:
    """Return theta (rows, k) at the maximum over all rows, of weight ``total``, and the sample's memberships there.

    It begins at ``theta``, as a rule where the sample's own likelihood is largest, and ends as
    :func:`mixmem.refinement.em.maximise_cells` does.
    """
    cells, k = LikelihoodTable(sample), theta.shape[1]
    steps = _Rounds(Rule(cells.likelihoods, cells.fitted, cells.inside, cells.units), sums, total)
    present = (cells.codes != cells.absent).sum(axis=1)
    per_row = float(sample.each @ present) / sample.total
    start = Point(theta, np.full((1, k), 1.0 / k))
    found = climb(steps, start, progress=progress, tol=tol, per_row=per_row, max_rounds=MOST_ROUNDS)
    own = fit_rows(sample, found.theta, np.full(k, BARRIER), memberships="mode").memberships
    return Maximum(found.theta, own, found.history, found.converged, f"{found.reason}, over all rows")


class _Rounds:
    """EM steps of theta; points have no memberships worth the name, since every round finds them."""

    def __init__(self, rule: Rule, sums: RoundSums, total: float):
        self.rule, self.sums, self.total = rule, sums, total

    def step(self, start: Point) -> Stride:
        sums, value = self.sums(start.theta)
        counts = self.rule.table(start.theta) * sums
        to = Point(self.rule.update(counts, start.theta), start.memberships)
        return Stride(start, to, float(value) / self.total)

    def vector(self, point: Point) -> Array:
        return np.asarray((point.theta / self.rule.units).ravel())

    def point(self, vector: Array, near: Point) -> Point:
        return Point(self.rule.inside(vector.reshape(near.theta.shape) * self.rule.units), near.memberships)
