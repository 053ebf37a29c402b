"""EM on theta with the memberships of long rows integrated out.

A round finds the posterior of every row's memberships, sums the components expected of its cells, and takes theta's
posterior mean given these, under a Dirichlet(eta) prior. Three things set it apart from the joint maximum
(:mod:`mixmem.refinement.maximum_likelihood`), which errs more than the moments:

- Cells are expected over the memberships' posterior, not at one point of it.
- eta is learned once, from the first round's counts. Cells that several components share tell less of theta than so
  many cells of one: counts are taken times their components' purity, the mean share of a cell where it counts.
- A row's memberships are those that the *other* rows' theta gives. A row has drawn theta towards itself, by about
  (X'X)^-1 x_i (1 - p) in a cell of probability p as in least squares, which is taken off. Otherwise rows seem more
  extreme than they are, theta less so, and each round carries both further.

Rounds are few: their number was chosen on simulated tables, on which more gained theta less than a hundredth, and
memberships that are read off theta as those of new rows lost as much. In the longest rows the corners are moved in the
end (:mod:`mixmem.refinement.corners`), after rounds or without any.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.engine.rows import Arrays, Blocks, sum_over
from mixmem.kernels.long_rows import integrated_pass
from mixmem.kernels.special import log_gamma
from mixmem.likelihood.memberships import fit_rows
from mixmem.likelihood.table import LikelihoodTable
from mixmem.progress import Progress
from mixmem.refinement.corners import can_move, move_corners
from mixmem.refinement.gibbs import LOG_ETA
from mixmem.typing import Array

ROUNDS = 5
NEWTON_STEPS, NEWTON_CLOSE = 5, 1e-6


@dataclass(frozen=True)
class Integrated:
    """Theta (rows, k) and alpha (k,) after the rounds.

    ``changes`` are theta's, root mean square, round by round; ``eta`` is the strength of its prior, None without
    rounds; ``corners`` is theta's change when all components were moved together, None if they were not.
    """

    theta: Array
    alpha: Array
    eta: float | None
    changes: tuple[float, ...]
    corners: float | None = None

    def ordered(self, order: NDArray[np.int64]) -> Integrated:
        """Return the same with components in another order."""
        return replace(self, theta=self.theta[:, order], alpha=self.alpha[order])


def integrate_memberships(
    table: Encoded, theta: Array, alpha: Array, *, progress: Progress, rounds: int = ROUNDS
) -> Integrated:
    """Run rounds from theta (rows, k) and alpha (k,), of which the sum stays and the shares follow the memberships."""
    with progress.stage("integrated", rounds + 1) as step:
        found = Integrated(theta, alpha, None, ())
        if rounds:
            found = _rounds(table, theta, alpha, rounds, step)
        if can_move(table, len(alpha)):
            moved = move_corners(table, found.theta, found.alpha)
            found = replace(found, theta=moved.theta, alpha=moved.alpha, corners=moved.moved)
        step(1)
    return found


def _rounds(table: Encoded, theta: Array, alpha: Array, rounds: int, step: Callable[[int], None]) -> Integrated:
    """Run rounds of EM."""
    cells, weights = LikelihoodTable(table), table.each
    modes = fit_rows(table, theta, alpha, memberships="mode").memberships
    means = modes.copy()
    changes: list[float] = []
    eta = 0.0
    for made in range(rounds):
        counts, squares = _expected(cells, weights, theta, alpha, modes, means)
        if made == 0:
            held = cells.level_counts(counts)
            eta = learned_eta(held * squares / np.maximum(counts.sum(axis=0), 1e-300), cells)
        new = cells.fitted(counts, theta, eta)
        changes.append(float(np.sqrt(((new - theta) ** 2).mean())))
        theta = new
        share = np.average(means, axis=0, weights=weights)
        alpha = alpha.sum() * share / share.sum()
        step(1)
    return Integrated(theta, alpha, eta, tuple(changes))


def _expected(
    cells: LikelihoodTable, weights: Array, theta: Array, alpha: Array, modes: Array, means: Array
) -> tuple[Array, Array]:
    """Return the cells expected in components (table's rows, k), and the sums of squares of these expectations (k,).

    The rows' modes and means (n, k) are brought to where theta and alpha put them.
    """
    likely = np.ascontiguousarray(cells.likelihoods(theta))
    influence = np.linalg.pinv((weights[:, None] * means).T @ means)

    def fill(first: int, partials: Arrays) -> None:
        integrated_pass(
            cells.codes, cells.starts, cells.absent, likely, alpha, NEWTON_STEPS, NEWTON_CLOSE, influence, weights,
            first, modes, means, *partials,
        )  # fmt: skip

    counts, squares = sum_over(Blocks([likely.shape, (len(alpha),)], fill), *cells.codes.shape).root
    return counts, squares


def learned_eta(counts: Array, cells: LikelihoodTable) -> float:
    """Return the eta under which counts of levels (level rows, k) are likeliest, log eta ~ Normal(log 0.5, 1)."""
    sizes = cells.level_sizes
    totals = np.add.reduceat(counts, np.cumsum(sizes) - sizes, axis=0)

    def log_density(at: float) -> float:
        eta = math.exp(at)
        of_levels = log_gamma(counts + eta).sum() - counts.size * math.lgamma(eta)
        of_totals = counts.shape[1] * log_gamma(sizes * eta).sum() - log_gamma(totals + eta * sizes[:, None]).sum()
        return float(of_levels + of_totals) - 0.5 * (at - math.log(0.5)) ** 2

    low, high = LOG_ETA
    for _ in range(16):  # it has one maximum: thirds of the range are left out until little is left
        third = (high - low) / 3.0
        if log_density(low + third) < log_density(high - third):
            low += third
        else:
            high -= third
    return math.exp(0.5 * (low + high))
