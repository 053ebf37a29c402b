"""Choosing alpha0: how mixed the rows are, from the likelihood of rows that theta was not estimated from.

Second moments hold nothing about alpha0 and third moments only a little, but the likelihood does: the moment estimate
is made at several alpha0, and where the rows' likelihood peaks is kept. Scored on the rows it comes from, theta would
explain their noise, and alpha0 come out too small; so rows are left out in turns, theta is estimated from the others,
and those left out are scored. A part of a large table is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.likelihood.marginal import LIKELIHOOD_ROWS, row_likelihood
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
FOLDS = 4
"""Parts of the rows that are left out in turn."""
SWEEPS, GROUPS = 4, 5
"""Sweeps at each point, from the estimate at the nearest one, and the groups that variables are taken in: enough to
rank points."""
COARSE, HALVINGS = 5, 3
"""Points of the first look over the range, and how often the distance to its best one is halved then."""
SCORED_CELLS, LEAST_SCORED = 30_000, 250
"""Cells, and rows at least, whose likelihood ranks points."""


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


class _Fold:
    """Rows to estimate theta from, rows left out to score it on, and theta at the points seen so far."""

    def __init__(self, table: Encoded, scored: Encoded, theta: Array):
        self.table, self.first = table, first_moments(table)
        self.scored, self.cells = scored, LikelihoodTable(scored)
        self.thetas: dict[float, Array] = {}
        self.start = theta

    def score(self, point: float, order: np.random.Generator) -> float:
        """Return the summed log-likelihood of the rows left out at log alpha0."""
        alpha0 = float(np.exp(point))
        near = self.thetas[min(self.thetas, key=lambda seen: abs(seen - point))] if self.thetas else self.start
        tensor = FullTensor(self.table, self.first, near, alpha0)
        swept = sweep(
            tensor, n_sweeps=SWEEPS, n_groups=GROUPS, tol=0.0, early=False, rng=order, progress=Progress()
        )  # fmt: skip
        self.thetas[point] = swept.theta
        alpha = concentration(swept.weights, alpha0).alpha
        likelihood = row_likelihood(self.cells, theta_of(swept.theta, self.first), alpha, rough=True)
        return float(likelihood @ self.scored.each)


def choose_alpha0(
    table: Encoded,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
    first: FirstMoments | None = None,
) -> Alpha0:
    """Return the alpha0 whose moment estimate gives rows that it does not come from the highest likelihood.

    ``first`` are the table's first moments, if they are known already.
    """
    rng = np.random.default_rng([*seed.generate_state(4), 2])
    part = part_of(table, MOST_ROWS, MOST_VARIABLES, rng)
    if first is None or part is not table:
        first = first_moments(part)
    theta = _begun(part, replace(settings, n_sweeps=SWEEPS), first, rng, seed)
    folds = _folds(part, theta, rng)
    weight = sum(fold.scored.total for fold in folds)
    tried: dict[float, float] = {}

    def look(point: float) -> None:
        step(1)
        if point not in tried:
            order = np.random.default_rng([*seed.generate_state(4), 3])
            tried[point] = sum(fold.score(point, order) for fold in folds) / weight

    low, high = float(np.log(RANGE[0])), float(np.log(RANGE[1]))
    with progress.stage("alpha0", COARSE + 2 * HALVINGS) as step:
        coarse = np.linspace(low, high, COARSE)
        for point in coarse[np.argsort(np.abs(coarse), kind="stable")].tolist():  # alpha0 = 1 first, then outwards
            look(point)
        reach = float(coarse[1] - coarse[0])
        for _ in range(HALVINGS):
            reach /= 2.0
            best = max(tried, key=tried.__getitem__)
            look(max(best - reach, low))
            look(min(best + reach, high))
    peak, error = _peak(tried, sum(fold.scored.n_rows for fold in folds))
    points = tuple((float(np.exp(point)), tried[point]) for point in sorted(tried))
    return Alpha0(float(np.exp(peak)), error, points, bool(peak <= low + 1e-6 or peak >= high - 1e-6))


def _begun(
    part: Encoded, settings: Settings, first: FirstMoments, rng: np.random.Generator, seed: np.random.SeedSequence
) -> Array:
    """Return theta at alpha0 = 1, from the anchors of a part: where all folds start."""
    plan = make_plan(part, settings.n_components, rng=rng, first=first, memory_limit=settings.memory_limit)
    block = anchor_moments(part, plan)
    assert block is not None
    factored = from_anchors(part, plan, first, block, 1.0, settings, seed=seed, progress=Progress())
    return extended(part, first, factored.theta, 1.0, Progress()).theta


def _folds(part: Encoded, theta: Array, rng: np.random.Generator) -> list[_Fold]:
    """Return the parts of the rows that are left out in turn; too few rows are scored on themselves."""
    n, most = part.n_rows, int(np.clip(SCORED_CELLS // part.n_variables, LEAST_SCORED, LIKELIHOOD_ROWS))
    if n < 10 * FOLDS:
        return [_Fold(part, part, theta)]
    fold = np.empty(n, dtype=np.int64)
    fold[rng.permutation(n)] = np.arange(n) % FOLDS
    return [
        _Fold(part.take(fold != f), part.take(spread_rows(np.flatnonzero(fold == f), -(-most // FOLDS))), theta)
        for f in range(FOLDS)
    ]


def _peak(tried: dict[float, float], n_rows: int) -> tuple[float, float]:
    """Where the log-likelihood peaks, in log alpha0, and the standard error of that.

    A parabola through the best point and its neighbours. Where it does not curve down the best point stands, with an
    infinite error.
    """
    points = np.array(sorted(tried))
    values = np.array([tried[point] for point in points])
    middle = int(np.clip(values.argmax(), 1, len(points) - 2))
    near = slice(middle - 1, middle + 2)
    second, slope, _ = np.polyfit(points[near] - points[middle], values[near], 2)
    if second >= 0.0:
        return float(points[values.argmax()]), float("inf")
    peak = float(np.clip(points[middle] - slope / (2.0 * second), points[near][0], points[near][-1]))
    return peak, float(1.0 / np.sqrt(-2.0 * second * n_rows))
