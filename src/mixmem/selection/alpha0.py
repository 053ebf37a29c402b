"""Choosing alpha0: how mixed the rows are, from the likelihood of the moment estimate.

Second moments hold nothing about alpha0 and third moments only a little, but the likelihood does: the moment
estimate is made at several alpha0, and where the rows' likelihood peaks is kept. A row's likelihood, memberships
integrated out, comes from a particle filter over its cells. A part of a large table is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.engine.rows import map_rows
from mixmem.kernels.particles import marginal_likelihood
from mixmem.likelihood.marginal import LIKELIHOOD_ROWS
from mixmem.likelihood.table import LikelihoodTable
from mixmem.moments.anchors import anchor_moments, make_plan, part_of, spread_rows
from mixmem.moments.estimate import Settings, extended, from_anchors
from mixmem.moments.sums import FirstMoments, first_moments
from mixmem.moments.sweep import FullTensor, sweep
from mixmem.moments.theta_from_factors import concentration, theta_of
from mixmem.progress import Progress
from mixmem.typing import Array

MOST_ROWS, MOST_VARIABLES = 5_000, 100
RANGE = (0.03, 48.0)
"""Bounds of the search: from rows that belong to one component each to rows all nearly alike."""
PARTICLES = 64
SWEEPS = 5
"""Sweeps at each point, from the estimate at the nearest one: enough to rank them."""
COARSE, FINE, REACH = 6, 7, 0.9
"""Points of the first look over the range, of the second around its best, and how far the second reaches, in log."""


@dataclass(frozen=True)
class Alpha0:
    """The estimate of alpha0 and how it was found.

    ``value``; ``tried`` the points (alpha0, mean log-likelihood of a row); ``at_bound`` if the best lies at the end of
    the range; ``standard_error`` of its logarithm, from the likelihood's curvature. Theta's own error is not in that:
    where theta is poor (few rows, strongly mixed) the truth can lie further off.
    """

    value: float
    standard_error: float
    tried: tuple[tuple[float, float], ...]
    at_bound: bool


def choose_alpha0(
    table: Encoded,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
    first: FirstMoments | None = None,
) -> Alpha0:
    """Return the alpha0 whose moment estimate gives the rows the highest likelihood, on a part of the table.

    ``first`` are the table's first moments, if they are known already.
    """
    rng = np.random.default_rng([*seed.generate_state(4), 2])
    settings = replace(settings, n_sweeps=SWEEPS)
    part = part_of(table, MOST_ROWS, MOST_VARIABLES, rng)
    if first is None or part is not table:
        first = first_moments(part)
    plan = make_plan(part, settings.n_components, rng=rng, first=first, memory_limit=settings.memory_limit)
    block = anchor_moments(part, plan)
    assert block is not None
    scored = part.take(spread_rows(np.arange(part.n_rows), LIKELIHOOD_ROWS))
    cells = LikelihoodTable(scored)
    tried: dict[float, float] = {}
    thetas: dict[float, Array] = {}
    order = np.random.default_rng([*seed.generate_state(4), 3])
    quick = partial(sweep, n_sweeps=SWEEPS, tol=0.0, progress=Progress())

    def begun(alpha0: float) -> FullTensor:
        """Return the estimate at the first point, from the anchors."""
        factored = from_anchors(part, plan, first, block, alpha0, settings, seed=seed, progress=Progress())
        tensor = extended(part, first, factored.theta, alpha0, Progress())
        quick(tensor, early=False, rng=np.random.default_rng([*seed.generate_state(4), 1]))
        tensor.place()
        return tensor

    def look(points: Array) -> None:
        for point in points.tolist():
            step(1)
            if point in tried:
                continue
            alpha0 = float(np.exp(point))
            if thetas:
                near = thetas[min(thetas, key=lambda known: abs(known - point))]
                tensor = FullTensor(part, first, near, alpha0)
            else:
                tensor = begun(alpha0)
            swept = quick(tensor, rng=order)
            thetas[point] = swept.theta
            alpha = concentration(swept.weights, alpha0).alpha
            likelihood = _likelihood(cells, theta_of(swept.theta, first), alpha)
            tried[point] = float(np.average(likelihood, weights=scored.weights))

    low, high = float(np.log(RANGE[0])), float(np.log(RANGE[1]))
    with progress.stage("alpha0", COARSE + FINE) as step:
        coarse = np.linspace(low, high, COARSE)
        look(coarse[np.argsort(np.abs(coarse), kind="stable")])  # alpha0 = 1 first, then outwards
        center = float(np.clip(max(tried, key=tried.__getitem__), low + REACH, high - REACH))
        look(np.linspace(center - REACH, center + REACH, FINE))
    best, error = _peak(tried, scored.n_rows)
    points = tuple((float(np.exp(point)), tried[point]) for point in sorted(tried))
    return Alpha0(float(np.exp(best)), error, points, bool(best <= low + 1e-6 or best >= high - 1e-6))


def _likelihood(cells: LikelihoodTable, theta: Array, alpha: Array) -> Array:
    """Return the rows' likelihoods (n,) by particles, which blur them.

    The sharp ones of :mod:`mixmem.likelihood.marginal` find a worse alpha0 here: theta is scored on the rows it comes
    from, and that pulls alpha0 down.
    """
    likely, marks, out = cells.likelihoods(theta), cells.marks(theta), np.empty(len(cells.codes))

    def some(rows: slice) -> None:
        marginal_likelihood(
            cells.codes[rows], cells.starts, cells.absent, likely, marks, alpha, PARTICLES, 0, out[rows]
        )

    map_rows(some, len(out))
    return out + cells.scale(theta)


def _peak(tried: dict[float, float], n_rows: int) -> tuple[float, float]:
    """Where the log-likelihood peaks, in log alpha0, and the standard error of that.

    A parabola through the five points around the best one: single likelihoods carry the particles' noise. Where it does
    not curve down the best point stands, with an infinite error.
    """
    points = np.array(sorted(tried))
    values = np.array([tried[point] for point in points])
    middle = int(np.clip(values.argmax(), 2, len(points) - 3))
    near = slice(middle - 2, middle + 3)
    second, slope, _ = np.polyfit(points[near], values[near], 2)
    if second >= 0.0:
        return float(points[values.argmax()]), float("inf")
    peak = float(np.clip(-slope / (2.0 * second), points[near][0], points[near][-1]))
    return peak, float(1.0 / np.sqrt(-2.0 * second * n_rows))
