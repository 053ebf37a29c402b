"""The moment estimate: from codes to theta and alpha by either way through the middle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.kernels.passes import add_features
from mixmem.moments.anchors import Plan
from mixmem.moments.block_factorization import BlockReport, factorize_anchors, factorize_partitions
from mixmem.moments.matching import Matching, match_columns
from mixmem.moments.solvers.contract import Effort
from mixmem.moments.sums import BlockMoments, FirstMoments, mode_rows, row_weights
from mixmem.moments.sweep import Swept, extend, sweep
from mixmem.moments.theta_from_factors import Concentration, concentration, simplex_rows
from mixmem.progress import Progress
from mixmem.typing import Array

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
    """Theta (soft levels, k) on the simplex per variable, alpha, and how they came about."""

    theta: Array
    concentration: Concentration
    blocks: tuple[BlockReport, ...]
    swept: Swept | None
    anchors_kept: Matching
    """The anchors' columns at the end against the anchor block's: the identity, if none changed places."""
    memberships: Array | None = None
    """(n, k), where the start of a likelihood brought them."""


def estimate(
    codes: NDArray[np.unsignedinteger],
    plan: Plan,
    first: FirstMoments,
    anchor_block: BlockMoments | None,
    alpha0: float,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
    weights: Array | None = None,
) -> Estimate:
    """Anchor block, then the other variables by partitions or by one pass, then sweeps, then alpha.

    The result is a function of the arguments alone: ``seed`` is not used up. Fewer than three variables have no third
    moments and no block: rows are split instead.
    """
    if anchor_block is None:
        return _from_split_rows(codes, plan, first, alpha0, settings, weights)
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
            weights=weights,
        )
        theta = start.theta
    else:
        with progress.stage("one pass"):
            theta = extend(codes, plan.schema, first, start.theta, alpha0, weights)
    component_weights, swept = start.weights, None
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
            tol=sweep_tolerance(settings.n_components, first.total),
            early=settings.n_sweeps is None,
            rng=order,
            progress=progress,
            weights=weights,
        )
        theta, component_weights = swept.theta, swept.weights
    return Estimate(
        theta,
        concentration(component_weights, alpha0),
        start.reports,
        swept,
        match_columns(reference, theta[anchors], settings.matching),
    )


def sweep_tolerance(n_components: int, n_rows: float) -> float:
    """Distance to the sweeps' limit, root mean square, at which they end: a fiftieth of the least sampling error."""
    return 0.02 * float(np.sqrt(n_components / n_rows))


def _from_split_rows(
    codes: NDArray[np.unsignedinteger],
    plan: Plan,
    first: FirstMoments,
    alpha0: float,
    settings: Settings,
    weights: Array | None,
) -> Estimate:
    """Components of one or two variables: parts of the rows in the order of what the variables have in common.

    That is a description, and a start for refinement; mixtures cannot be told from two variables alone.
    """
    part, k = plan.schema.features.whole, settings.n_components
    says = np.zeros((len(codes), len(part.rows)))
    add_features(codes, part.cell_starts, part.variables, first.spread(part, np.eye(len(part.rows))), says)
    counted = row_weights(codes, weights)
    about = (says - first.means) * np.sqrt(counted)[:, None]
    direction = np.linalg.svd(about, full_matrices=False)[2][0]
    score = (says - first.means) @ direction
    order = np.argsort(score, kind="stable")
    reached = np.cumsum(counted[order]) / counted.sum()
    edges = score[order][np.searchsorted(reached, np.arange(1, k) / k)]
    group = np.searchsorted(edges, score, side="left")
    theta = np.empty((len(part.rows), k))
    for h in range(k):
        mine = group == h if (group == h).any() else np.ones(len(group), dtype=bool)
        theta[:, h] = np.average(says[mine], axis=0, weights=counted[mine])
    theta, _ = simplex_rows(np.maximum(theta, 0.0), part.sizes, first.means)
    even = concentration(np.ones(k), alpha0)
    return Estimate(theta, even, (), None, match_columns(theta, theta, settings.matching))
