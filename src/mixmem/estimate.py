"""The moment estimate: from codes to theta and alpha by either way through the middle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.assemble import Concentration, concentration
from mixmem.blocks import BlockReport, factorize_anchors, factorize_partitions
from mixmem.match import Matching, match_columns
from mixmem.moments import Array, BlockMoments, FirstMoments, mode_rows
from mixmem.plan import Plan
from mixmem.progress import Progress
from mixmem.solvers.contract import Effort
from mixmem.sweep import Swept, extend, sweep

MOST_SWEEPS = 100
"""What ``sweeps="auto"`` stops at; it ends earlier once theta changes little against its sampling error."""


@dataclass(frozen=True)
class Settings:
    """How to estimate: the estimator's parameters after checking."""

    n_components: int
    solver: str
    matching: str
    n_sweeps: int | None
    """None: until theta changes little."""
    n_restarts: int

    @property
    def effort(self) -> Effort:
        """A block's factorization need not be exact where sweeps start from it."""
        return Effort(self.solver, tol=1e-6 if self.n_sweeps == 0 else 1e-4)


@dataclass(frozen=True)
class Estimate:
    """Theta (rows, k) on the simplex per variable, alpha, and how they came about."""

    theta: Array
    concentration: Concentration
    blocks: tuple[BlockReport, ...]
    swept: Swept | None
    anchors_kept: Matching
    """The anchors' columns at the end against the anchor block's: the identity, if none changed places."""


def estimate(
    codes: NDArray[np.unsignedinteger],
    plan: Plan,
    first: FirstMoments,
    anchor_block: BlockMoments,
    alpha0: float,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> Estimate:
    """Anchor block, then the other variables by partitions or by one pass, then sweeps, then alpha.

    The result is a function of the arguments alone: ``seed`` is not used up.
    """
    restarts, order = (np.random.default_rng([*seed.generate_state(4), stage]) for stage in (0, 1))
    with progress.stage("anchor block"):
        start = factorize_anchors(
            anchor_block,
            plan,
            first.means,
            alpha0,
            settings.n_components,
            n_restarts=settings.n_restarts,
            effort=settings.effort,
            rng=restarts,
        )
    anchors = mode_rows(plan.schema, np.concatenate(plan.anchors))
    reference = start.theta[anchors]
    if plan.partitions:
        start = factorize_partitions(
            codes,
            plan,
            first,
            start,
            alpha0,
            matching=settings.matching,
            effort=settings.effort,
            rng=restarts,
            progress=progress,
        )
        theta = start.theta
    else:
        with progress.stage("one pass"):
            theta = extend(codes, plan.schema, first, start.theta, alpha0)
    weights, swept = start.weights, None
    if settings.n_components == 1:
        theta = first.means[:, None]  # one component is the mean: there is nothing to separate
    elif settings.n_sweeps != 0:
        swept = sweep(
            codes,
            plan.schema,
            first,
            theta,
            alpha0,
            n_sweeps=settings.n_sweeps or MOST_SWEEPS,
            tol=sweep_tolerance(settings.n_components, codes.shape[0]),
            early=settings.n_sweeps is None,
            rng=order,
            progress=progress,
        )
        theta, weights = swept.theta, swept.weights
    return Estimate(
        theta,
        concentration(weights, alpha0),
        start.reports,
        swept,
        match_columns(reference, theta[anchors], settings.matching),
    )


def sweep_tolerance(n_components: int, n_rows: int) -> float:
    """Distance to the sweeps' limit, root mean square, at which they end: a fiftieth of the least sampling error."""
    return 0.02 * float(np.sqrt(n_components / n_rows))
