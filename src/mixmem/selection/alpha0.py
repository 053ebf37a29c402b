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
from mixmem.likelihood.marginal import row_likelihood
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
COARSE, HALVINGS, ROUGH_HALVINGS = 5, 3, 2
"""Points of the first look over the range, and how often the distance to its best one is halved then: less often where
alpha0 is sampled from there on. One halving is too few: alpha0 was 15 to 40 % too low, and chains of long rows were
still on their way up from there when they ended."""
SCORED_CELLS, PEAK_CELLS, LEAST_SCORED, MOST_SCORED = 30_000, 400_000, 250, 4_000
"""Cells whose likelihood ranks points, cells that tell where between the best of them the peak is, and the least and
the most rows. Of 36 drawn tables of 5,000 x 100, alpha0 from few cells alone was off by 8 %, from many by 4 %."""


@dataclass(frozen=True)
class Alpha0:
    """The estimate of alpha0 and how it was found.

    ``value``; ``tried`` the points (alpha0, mean log-likelihood of the rows that rank them); ``at_bound`` if the best
    lies at the end of the range; ``standard_error`` of its logarithm, from the likelihood's curvature. Theta's own
    error is not in that: where theta is poor (few rows, strongly mixed) the truth can lie further off.
    """

    value: float
    standard_error: float
    tried: tuple[tuple[float, float], ...]
    at_bound: bool


class _Fold:
    """Rows to estimate theta from, rows left out, and theta and its weights at the points seen so far."""

    def __init__(self, table: Encoded, left_out: Encoded, theta: Array):
        self.table, self.left_out, self.first = table, left_out, first_moments(table)
        self.seen: dict[float, tuple[Array, Array]] = {}
        self.start = theta

    def learn(self, point: float, order: np.random.Generator) -> tuple[Array, Array]:
        """Return theta and its weights at log alpha0, swept from the nearest point seen so far."""
        if point not in self.seen:
            near = min(self.seen, key=lambda other: abs(other - point), default=None)
            start = self.start if near is None else self.seen[near][0]
            tensor = FullTensor(self.table, self.first, start, float(np.exp(point)))
            swept = sweep(
                tensor, n_sweeps=SWEEPS, n_groups=GROUPS, tol=0.0, early=False, rng=order, progress=Progress()
            )  # fmt: skip
            self.seen[point] = swept.theta, swept.weights
        return self.seen[point]


class _Scores:
    """The mean log-likelihood of rows left out, by log alpha0: of as many rows of every fold as have ``n_cells``."""

    def __init__(self, folds: list[_Fold], n_cells: int, seed: np.random.SeedSequence):
        self.folds, self.seed, self.tried = folds, seed, dict[float, float]()
        self.rows = [_scored(fold.left_out, n_cells // len(folds), len(folds)) for fold in folds]
        self.cells = [LikelihoodTable(rows) for rows in self.rows]

    def look(self, point: float) -> None:
        """Score a point that was not looked at."""
        if point in self.tried:
            return
        order, total, alpha0 = np.random.default_rng([*self.seed.generate_state(4), 3]), 0.0, float(np.exp(point))
        for fold, rows, cells in zip(self.folds, self.rows, self.cells, strict=True):
            theta, weights = fold.learn(point, order)
            alpha = concentration(weights, alpha0).alpha
            total += float(row_likelihood(cells, theta_of(theta, fold.first), alpha, rough=True) @ rows.each)
        self.tried[point] = total / sum(rows.total for rows in self.rows)

    @property
    def best(self) -> float:
        """The likeliest point."""
        return max(self.tried, key=self.tried.__getitem__)


def _scored(left_out: Encoded, n_cells: int, n_folds: int) -> Encoded:
    """Return as many rows, evenly spread, as have so many cells, within bounds."""
    most = int(np.clip(n_cells // left_out.n_variables, -(-LEAST_SCORED // n_folds), MOST_SCORED // n_folds))
    return left_out.take(spread_rows(np.arange(left_out.n_rows), most))


def choose_alpha0(
    table: Encoded,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
    first: FirstMoments | None = None,
    rough: bool = False,
) -> Alpha0:
    """Return the alpha0 whose moment estimate gives rows that it does not come from the highest likelihood.

    ``first`` are the table's first moments, if they are known already; ``rough`` is enough where sampling follows.
    """
    rng = np.random.default_rng([*seed.generate_state(4), 2])
    part = part_of(table, MOST_ROWS, MOST_VARIABLES, rng)
    if first is None or part is not table:
        first = first_moments(part)
    theta = _begun(part, replace(settings, n_sweeps=SWEEPS), first, rng, seed)
    folds = _folds(part, theta, rng)
    scores = _Scores(folds, SCORED_CELLS, seed)
    low, high = float(np.log(RANGE[0])), float(np.log(RANGE[1]))
    halvings = ROUGH_HALVINGS if rough else HALVINGS
    with progress.stage("alpha0", COARSE + 2 * halvings) as step:
        coarse = np.linspace(low, high, COARSE)
        for point in coarse[np.argsort(np.abs(coarse), kind="stable")].tolist():  # alpha0 = 1 first, then outwards
            scores.look(point)
            step(1)
        reach = float(coarse[1] - coarse[0])
        for _ in range(halvings):
            reach /= 2.0
            best = scores.best
            for point in (max(best - reach, low), min(best + reach, high)):
                scores.look(point)
                step(1)
    near = scores if rough else _around_the_peak(folds, scores, seed)
    peak, error = _peak(near.tried, sum(rows.n_rows for rows in near.rows))
    points = tuple((float(np.exp(point)), scores.tried[point]) for point in sorted(scores.tried))
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
    n = part.n_rows
    if n < 10 * FOLDS:
        return [_Fold(part, part, theta)]
    fold = np.empty(n, dtype=np.int64)
    fold[rng.permutation(n)] = np.arange(n) % FOLDS
    return [_Fold(part.take(fold != f), part.take(fold == f), theta) for f in range(FOLDS)]


def _around_the_peak(folds: list[_Fold], rough: _Scores, seed: np.random.SeedSequence) -> _Scores:
    """Return the scores by many rows of the likeliest point and its neighbours, going on to where these rows peak."""
    scores, points = _Scores(folds, PEAK_CELLS, seed), sorted(rough.tried)
    place = points.index(rough.best)
    while True:
        begin = min(max(place - 1, 0), len(points) - 3)  # three at the ends, too
        for near in points[begin : begin + 3]:
            scores.look(near)
        if points[place] == scores.best:
            return scores
        place = points.index(scores.best)


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
