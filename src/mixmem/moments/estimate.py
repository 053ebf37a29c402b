"""The moment estimate: from codes to theta and alpha by either way through the middle, and its account of itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded
from mixmem.moments.anchors import Plan
from mixmem.moments.block_factorization import BlockReport, Factored, factorize_anchors, factorize_partitions
from mixmem.moments.matching import Guarantee, Matching, match_columns
from mixmem.moments.solvers.contract import Effort
from mixmem.moments.sums import FirstMoments, features_of, first_moments, mode_rows
from mixmem.moments.sweep import FullTensor, Swept, sweep
from mixmem.moments.theta_from_factors import Concentration, concentration, simplex_rows, theta_of
from mixmem.moments.third_moments import BlockMoments
from mixmem.progress import Progress
from mixmem.records import Record
from mixmem.typing import Array

MOST_SWEEPS = 60
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
    memory_limit: int | None = None
    """Bytes that a fit may take; None for what there is."""
    block_start: str = "random"
    max_rounds: int = 300
    tol: float | None = None
    """Relative fall of a block's residual that ends its rounds; None: loose where sweeps start from it."""

    @property
    def effort(self) -> Effort:
        """A block's factorization need not be exact where sweeps start from it."""
        tol = (1e-6 if self.n_sweeps == 0 else 1e-4) if self.tol is None else self.tol
        return Effort(self.solver, max_iter=self.max_rounds, tol=tol)


# --- What a start says of itself


@dataclass(frozen=True)
class Account(Record):
    """What every start says of itself: whether it ended where it should, and in what sense."""

    converged: bool
    reason: str
    way: str = ""


@dataclass(frozen=True)
class Start:
    """Where refinement begins: theta (rows, k), noise included, alpha (k,), memberships (n, k) if it has them.

    ``account`` is what the start says of itself; only the moments tell of blocks, matching and guarantees.
    """

    theta: Array
    alpha: Array
    account: Account
    memberships: Array | None = None


@dataclass(frozen=True)
class PlanReport(Record):
    """The anchors by name, the number of partitions, and both in words.

    ``asked`` is the number of partitions asked for, and ``condition`` the condition number of each mode's anchor matrix
    (its columns of length one): large where components look alike there.
    """

    anchors: list[list[str]]
    partitions: int
    text: str
    asked: int | None = None
    condition: list[float] | None = None


@dataclass(frozen=True)
class BlocksReport(Record):
    """How the blocks went, together and each."""

    count: int
    negative_fraction: float
    converged: int
    each: list[BlockReport]


@dataclass(frozen=True)
class MatchReport(Record):
    """How one matrix was matched with another, and the theorems' conditions."""

    method: str
    permutation: list[int]
    assigned: bool
    guaranteed: bool
    conditions: list[Guarantee]

    @classmethod
    def of(cls, match: Matching) -> MatchReport:
        """Return the report of a matching."""
        conditions = [match.angle, match.procrustes]
        return cls(match.method, match.permutation.tolist(), match.assigned, match.guaranteed, conditions)


@dataclass(frozen=True)
class MatchingReport(Record):
    """How many partitions' blocks were matched, and in how many the theorem's condition is met at the permutation
    found, the argmax repeated a column, and the order was another than the anchors'; the anchors at the end against
    the block's."""

    blocks: int
    guaranteed: int
    assigned: int
    each: list[MatchReport]
    anchors_kept: MatchReport
    permuted: int = 0


@dataclass(frozen=True)
class SweepsReport(Record):
    """How the sweeps went: the root mean square change of theta per sweep; how far theta (root mean square) and the
    mean memberships (the largest) still are from where sweeps lead."""

    count: int
    groups: int
    changes: list[float]
    converged: bool
    reason: str
    theta_left: float = 0.0
    memberships_left: float = 0.0


@dataclass(frozen=True)
class CorrectionReport(Record):
    """How the estimate from a sample was corrected by passes over rows: by how much each moved theta, root mean square,
    what may be left, and what part of the rows each went over."""

    moved: list[float]
    left: float
    parts: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class MomentAccount(Account):
    """What the moment estimate says of itself; alpha's sum was off ``alpha0`` by the ``discrepancy``, relatively."""

    way: str = "moments"
    alpha0: float = 1.0
    discrepancy: float = 0.0
    plan: PlanReport | None = None
    blocks: BlocksReport | None = None
    matching: MatchingReport | None = None
    sweeps: SweepsReport | None = None
    correction: CorrectionReport | None = None


@dataclass(frozen=True)
class SplitAccount(Account):
    """What a start says of itself that only split the rows: fewer than three variables have no third moments."""

    way: str = "split rows"
    alpha0: float = 1.0


# --- The estimate


@dataclass(frozen=True)
class Estimate:
    """Theta of the soft levels (soft levels, k), on the simplex per variable, alpha, and how they came about."""

    theta: Array
    concentration: Concentration
    account: Account

    def start(self, first: FirstMoments) -> Start:
        """Return where refinement begins: theta as users see it."""
        return Start(theta_of(self.theta, first), self.concentration.alpha, self.account)


def estimate(
    table: Encoded,
    plan: Plan,
    first: FirstMoments,
    anchor_block: BlockMoments | None,
    alpha0: float,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> Estimate:
    """Estimate from the anchor block, then the other variables by partitions or by one pass, then sweeps, then alpha.

    The result is a function of the arguments alone: ``seed`` is not used up. Fewer than three variables have no third
    moments and no block: rows are split instead.
    """
    if anchor_block is None:
        return _from_split_rows(table, first, alpha0, settings)
    factored = from_anchors(table, plan, first, anchor_block, alpha0, settings, seed=seed, progress=progress)
    theta, weights, swept = factored.theta, factored.weights, None
    if settings.n_components == 1:
        theta = first.means[:, None]  # one component is the mean: there is nothing to separate
    elif settings.n_sweeps != 0 or not plan.complete:  # else the paper's way: blocks alone
        tensor = extended(table, first, theta, alpha0, progress)
        theta = tensor.theta
    if settings.n_components > 1 and settings.n_sweeps != 0:
        swept = swept_to_rest(tensor, alpha0, settings, seed, progress)
        theta, weights = swept.theta, swept.weights
    rows = mode_rows(table.coding, np.concatenate(plan.anchors))
    kept = match_columns(factored.anchors, theta[rows], settings.matching)
    found = concentration(weights, alpha0)
    return Estimate(theta, found, account_of(plan, factored, kept, swept, found, theta))


def start_of(
    found: Estimate,
    table: Encoded,
    first: FirstMoments,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> Start:
    """Return where refinement begins; where rare levels were pooled, sweeps go on with every level for itself."""
    if not table.coding.pooled or settings.n_sweeps == 0 or settings.n_components == 1 or table.n_variables < 3:
        return found.start(first)
    theta, alpha0 = level_for_itself(found.theta, table.coding), found.concentration.alpha0
    table = table.unpooled
    first = first_moments(table)
    tensor = FullTensor(table, first, theta, alpha0)
    swept = swept_to_rest(tensor, alpha0, settings, seed, progress)
    found = replace(found, theta=swept.theta, concentration=concentration(swept.weights, alpha0))
    return found.start(first)


def level_for_itself(theta: Array, coding: Coding) -> Array:
    """Return the moments' theta of every level from that of a coding which may have pools (soft levels, k)."""
    if not coding.pooled:
        return theta
    offsets = coding.soft.offsets
    parts = []
    for j, column in enumerate(coding.columns):
        own = theta[offsets[j] : offsets[j + 1]]
        parts.append(column.own_kind.parameters(column, own, column.frequencies) if len(column.frequencies) else own)
    return np.concatenate(parts)


def groups_rng(seed: np.random.SeedSequence) -> np.random.Generator:
    """Return what draws the groups of variables: the same ones each time."""
    return np.random.default_rng([*seed.generate_state(4), 1])


def anchors_rng(seed: np.random.SeedSequence) -> np.random.Generator:
    """Return what draws the starts of the anchor block: the same ones each time."""
    return np.random.default_rng([*seed.generate_state(4), 0])


def swept_to_rest(
    tensor: FullTensor,
    alpha0: float,
    settings: Settings,
    seed: np.random.SeedSequence,
    progress: Progress,
    n_effective: float | None = None,
) -> Swept:
    """Sweep until theta is as near to its limit as so many rows of even weight ask for, by default those of the
    table."""
    k, n_rows = settings.n_components, tensor.data.n_effective if n_effective is None else n_effective
    return sweep(
        tensor,
        n_sweeps=settings.n_sweeps or MOST_SWEEPS,
        tol=sweep_tolerance(k, n_rows),
        early=settings.n_sweeps is None,
        shares_tol=share_tolerance(k, alpha0, n_rows),
        rng=groups_rng(seed),
        progress=progress,
    )


def from_anchors(
    table: Encoded,
    plan: Plan,
    first: FirstMoments,
    anchor_block: BlockMoments,
    alpha0: float,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> Factored:
    """Factorize the anchor block, and the partitions' blocks if there are any."""
    restarts = anchors_rng(seed)
    with progress.stage("anchor block"):
        factored = factorize_anchors(
            anchor_block,
            first.means,
            alpha0,
            settings.n_components,
            n_restarts=settings.n_restarts,
            effort=settings.effort,
            rng=restarts,
        )
    if not plan.partitions:
        return factored
    return factorize_partitions(
        table,
        plan,
        first,
        factored,
        alpha0,
        matching=settings.matching,
        block_start=settings.block_start,
        effort=settings.effort,
        rng=restarts,
        progress=progress,
    )


def extended(table: Encoded, first: FirstMoments, theta: Array, alpha0: float, progress: Progress) -> FullTensor:
    """Return the full tensor with theta of all variables: those not known yet come from the others in a pass."""
    with progress.stage("one pass"):
        tensor = FullTensor(table, first, theta, alpha0)
        tensor.extend()
    return tensor


def sweep_tolerance(n_components: int, n_rows: float) -> float:
    """Return the distance to the sweeps' limit, root mean square, at which they end: a fiftieth of the least sampling
    error."""
    return 0.02 * float(np.sqrt(n_components / n_rows))


def share_tolerance(n_components: int, alpha0: float, n_rows: float) -> float:
    """Return the distance of the components' shares to the sweeps' limit at which they end: a fifth of the sampling
    error that mean memberships of equal shares would have if memberships were seen."""
    return 0.2 * float(np.sqrt((n_components - 1) / ((alpha0 + 1.0) * n_rows))) / n_components


def anchor_conditions(plan: Plan, theta: Array) -> list[float]:
    """Return the condition number of each mode's anchor matrix, columns of length one; theta (soft levels, k)."""
    found = []
    for mode in plan.anchors:
        own = theta[mode_rows(plan.coding, mode)]
        found.append(float(np.linalg.cond(own / np.maximum(np.linalg.norm(own, axis=0), 1e-300))))
    return found


def account_of(
    plan: Plan, factored: Factored, kept: Matching | None, swept: Swept | None, found: Concentration, theta: Array
) -> MomentAccount:
    """Return what the moment estimate says of itself; ``kept`` is how the anchors at the end match the block's."""
    blocks, matched = factored.reports, factored.matchings
    names = np.asarray(plan.coding.names, dtype=object)
    return MomentAccount(
        converged=swept.converged if swept is not None else all(block.converged for block in blocks),
        reason=swept.reason if swept is not None else blocks[-1].reason,
        alpha0=found.alpha0,
        discrepancy=found.discrepancy,
        plan=PlanReport(
            [names[mode].tolist() for mode in plan.anchors],
            len(plan.partitions),
            str(plan),
            plan.asked,
            anchor_conditions(plan, theta),
        ),
        blocks=BlocksReport(
            len(blocks),
            float(np.mean([block.negative_fraction for block in blocks])),
            sum(block.converged for block in blocks),
            list(blocks),
        ),
        matching=None
        if kept is None
        else MatchingReport(
            len(matched),
            sum(match.guaranteed for match in matched),
            sum(match.assigned for match in matched),
            [MatchReport.of(match) for match in matched],
            MatchReport.of(kept),
            sum(match.permuted for match in matched),
        ),
        sweeps=None if swept is None else sweeps_report(swept),
    )


def sweeps_report(swept: Swept) -> SweepsReport:
    """Return how sweeps went."""
    return SweepsReport(
        len(swept.changes), swept.n_groups, list(swept.changes), swept.converged, swept.reason, swept.left,
        swept.shares_left,
    )  # fmt: skip


def _from_split_rows(table: Encoded, first: FirstMoments, alpha0: float, settings: Settings) -> Estimate:
    """Take components of one or two variables: parts of the rows in the order of what the variables have in common.

    That is a description, and a start for refinement; mixtures cannot be told from two variables alone.
    """
    part, k = table.coding.soft.whole, settings.n_components
    says = _cells_of_rows(table, first)
    counted = table.each
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
    reason = "rows split by their first direction: fewer than three variables have no third moments"
    return Estimate(theta, concentration(np.ones(k), alpha0), SplitAccount(True, reason, alpha0=alpha0))


def _cells_of_rows(table: Encoded, first: FirstMoments) -> Array:
    """Return b_ij of every row, variables side by side (n, soft levels)."""
    whole = table.coding.soft.whole
    return features_of(table, whole, first.spread(whole, np.eye(len(whole.rows))))
