"""Factorizing blocks: the anchor block from random starts, every partition's block from one, or from the anchors'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.engine.local import in_tasks, n_tasks
from mixmem.moments.anchors import Plan
from mixmem.moments.matching import Matching, match_columns
from mixmem.moments.solvers import decompose, random_start, solver_for
from mixmem.moments.solvers.compressed import compressed_pqp
from mixmem.moments.solvers.contract import Effort, Factorization, Factors, rescaled
from mixmem.moments.sums import FirstMoments
from mixmem.moments.theta_from_factors import block_theta
from mixmem.moments.third_moments import BlockMoments, third_moments
from mixmem.progress import Progress
from mixmem.records import Record
from mixmem.typing import Array

FEW, LARGE = 12, 100_000
"""Components, and entries of the anchors' block, above which its modes are updated against compressed ones."""
BATCH_BYTES = 64_000_000
"""Memory for the tensors in flight at once; blocks are factorized in batches that fit."""


@dataclass(frozen=True)
class BlockReport(Record):
    """How one block went: its shape, share of negative entries, and residual relative to the tensor."""

    shape: tuple[int, ...]
    negative_fraction: float
    relative_residual: float
    sweeps: int
    converged: bool
    reason: str


@dataclass(frozen=True)
class Factored:
    """Theta known so far (zero rows where nothing is), the components' weights (k,), how blocks and matching went."""

    theta: Array
    weights: Array
    anchors: Array
    """The anchors' theta as the anchor block has it (their rows, k), mode after mode."""
    reports: tuple[BlockReport, ...]
    matchings: tuple[Matching, ...] = ()


def factorize_anchors(
    block: BlockMoments,
    means: Array,
    alpha0: float,
    n_components: int,
    *,
    n_restarts: int,
    effort: Effort,
    rng: np.random.Generator,
) -> Factored:
    """Factorize the anchor block from several random starts and keep the best."""
    tensor = block.corrected(alpha0)
    starts = [random_start(tensor.shape, n_components, child) for child in rng.spawn(n_restarts)]
    if effort.solver == "pqp" and n_components > FEW and tensor.size > LARGE:
        pairs, scale = block.corrected_pairs(alpha0), float(np.abs(tensor).max()) or 1.0
        found = compressed_pqp(tensor / scale, pairs, n_components, starts, max_iter=effort.max_iter, tol=effort.tol)
        found = rescaled(found, scale)
    else:
        runs = _solve([block], [tensor], [0] * n_restarts, starts, alpha0, effort, rng)
        found = min(runs, key=lambda result: result.residual)
    parts, weights = block_theta(found, block, means)
    theta = np.zeros((len(means), n_components))
    for where, part in zip(block.rows, parts, strict=True):
        theta[where] = part
    return Factored(theta, weights, np.concatenate(parts), (_report(tensor, found),))


def factorize_partitions(
    table: Encoded,
    plan: Plan,
    first: FirstMoments,
    start: Factored,
    alpha0: float,
    *,
    matching: str,
    block_start: str,
    effort: Effort,
    rng: np.random.Generator,
    progress: Progress,
) -> Factored:
    """The paper's way through the middle: every partition's block on its own, then matched over the anchors.

    A block starts at random, and finds the components in an order of its own, or at the anchors' solution, whose order
    it keeps: ``block_start`` is "random" or "anchors".
    """
    means, sizes = first.means, table.coding.soft.sizes
    theta = start.theta.copy()
    reports, matchings = list(start.reports), list(start.matchings)
    anchor_sizes = [len(mode) for mode in plan.anchors]
    blocks = [plan.block(r) for r in range(len(plan.partitions))]
    largest = max(int(np.prod([sizes[mode].sum() for mode in modes])) for modes in blocks)
    batch = max(1, BATCH_BYTES // (8 * largest))
    children = rng.spawn(len(blocks))
    with progress.stage("blocks", len(blocks)) as step:
        for begin in range(0, len(blocks), batch):
            moments = third_moments(table, blocks[begin : begin + batch])
            tensors = [block.corrected(alpha0) for block in moments]
            if block_start == "random":
                k = start.theta.shape[1]
                own = children[begin : begin + len(moments)]
                starts = [random_start(tensor.shape, k, child) for tensor, child in zip(tensors, own, strict=True)]
            else:
                starts = [_warm_start(block, start, means) for block in moments]
            found = _solve(moments, tensors, range(len(tensors)), starts, alpha0, effort, rng)
            for block, tensor, result in zip(moments, tensors, found, strict=True):
                parts, _ = block_theta(result, block, means)
                cuts = [int(sizes[mode[:m]].sum()) for mode, m in zip(block.modes, anchor_sizes, strict=True)]
                mine = np.concatenate([part[:cut] for part, cut in zip(parts, cuts, strict=True)])
                shared = np.concatenate([where[:cut] for where, cut in zip(block.rows, cuts, strict=True)])
                matched = match_columns(start.theta[shared], mine, matching)
                for part, where, cut in zip(parts, block.rows, cuts, strict=True):
                    theta[where[cut:]] = part[cut:, matched.permutation]
                reports.append(_report(tensor, result))
                matchings.append(matched)
            step(len(moments))
    return Factored(theta, start.weights, start.anchors, tuple(reports), tuple(matchings))


def _warm_start(block: BlockMoments, start: Factored, means: Array) -> Factors:
    """Anchor rows from the anchors' solution, the others the same for every component: their mean."""
    factors = []
    for where in block.rows:
        known = start.theta[where]
        factors.append(np.where(known.sum(axis=1, keepdims=True) > 0.0, known, means[where][:, None]) + 1e-6)
    return factors[0], factors[1], factors[2] * np.maximum(start.weights, 1e-6 * start.weights.max())


def _solve(
    blocks: Sequence[BlockMoments],
    tensors: Sequence[Array],
    which: Sequence[int],
    starts: Sequence[Factors],
    alpha0: float,
    effort: Effort,
    rng: np.random.Generator,
) -> list[Factorization]:
    """Scale (algorithm 1, first line), run the solver, scale back: one result a start, or a tensor if it needs none."""
    scales = [float(np.abs(tensor).max()) or 1.0 for tensor in tensors]
    k = starts[0][0].shape[1]
    solver = solver_for(effort.solver, *tensors, k=k)
    if solver.descend is None:
        children = rng.spawn(len(tensors))
        results = []
        for block, tensor, scale, child in zip(blocks, tensors, scales, children, strict=True):
            pairs = block.corrected_pairs(alpha0)
            found = decompose(solver, tensor / scale, k, pairs, child, max_iter=effort.max_iter, tol=effort.tol)
            results.append(rescaled(found, scale))
        return results
    shape = np.max([tensor.shape for tensor in tensors], axis=0)
    padded = np.zeros((len(tensors), *shape))
    for r, tensor in enumerate(tensors):
        padded[r][tuple(slice(d) for d in tensor.shape)] = tensor / scales[r]
    run = partial(solver.descend, max_iter=effort.max_iter, tol=effort.tol, inner=effort.inner)
    tasks: list[Any] = [(padded, which, starts)]
    if (most := min(n_tasks(), len(starts))) > 1:
        parts = [part.tolist() for part in np.array_split(np.arange(len(starts)), most)]
        tasks = [(padded[[which[r] for r in part]], range(len(part)), [starts[r] for r in part]) for part in parts]
    results = [result for some in in_tasks(run, tasks) for result in some]
    return [rescaled(result, scales[w]) for w, result in zip(which, results, strict=True)]


def _report(tensor: Array, found: Factorization) -> BlockReport:
    norm = float((tensor**2).sum()) or 1.0
    return BlockReport(
        shape=(tensor.shape[0], tensor.shape[1], tensor.shape[2]),
        negative_fraction=float((tensor < 0.0).mean()),
        relative_residual=float(np.sqrt(max(found.residual, 0.0) / norm)),
        sweeps=found.n_sweeps,
        converged=found.converged,
        reason=found.reason,
    )
