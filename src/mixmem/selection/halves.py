"""Halves of the rows: whether what one shows is found again on the other, and makes its rows likely.

Moments are quick, and where they leave no doubt nothing more is asked. Real tables often have several answers that are
nearly as good, of which the moments of a half take one by chance; where they leave doubts, or a table is small, halves
are learned from as the whole table is: by sampling, from several starts, the likeliest kept.

Which rows go to which half depends on what the rows hold alone. So the splits are the same whatever the seed and the
order of the rows, and the same for a fit as for the choice of k: neither says of a table what the other denies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.engine.local import in_threads, threads_for
from mixmem.likelihood.marginal import row_likelihood
from mixmem.likelihood.table import LikelihoodTable
from mixmem.moments.anchors import anchor_moments, largest_k, make_plan, spread_rows, spread_table
from mixmem.moments.components import align_components
from mixmem.moments.estimate import Account, Settings, Start, estimate
from mixmem.moments.sums import FirstMoments, first_moments
from mixmem.moments.theta_from_factors import theta_of
from mixmem.progress import Progress
from mixmem.refinement.choose import rows_in_order
from mixmem.refinement.gibbs import Unknowns, try_start
from mixmem.refinement.latent_classes import latent_class_start, within_reach
from mixmem.refinement.maximum_likelihood import stepped
from mixmem.refinement.starts import HALF
from mixmem.typing import Array, Positions

SWEEPS, RESTARTS = 5, 3
"""Effort of one fit. Sweeps until nothing changes took ten times as long where k is too large and chose the same k."""
LEAST_ROWS = 20
"""Rows below which halves tell nothing."""
SCORED_CELLS, LEAST_SCORED = 100_000, 500
"""Cells whose likelihood is taken, and the least rows: the standard error of a mean needs no more."""
MOST_WORK, SMALL_WORK = 5_000_000, 60_000
"""Cells times components up to which a fit is held against halves of its rows: beyond, that takes too long, and a part
of the rows would not show what all of them do; and up to which halves are sampled in any case, not where moments leave
doubts alone."""
SAMPLED_SCORED = 500
"""Rows that tell which of several starts in a half ended best."""
LOST, HOLDS, SURE = 0.5, 0.85, 0.92
"""Agreement over halves of the rows: below the first a component was not found again, and not merely less well; the
second is what the weakest of a k needs for the k to hold; from the third on one split that was sampled is enough."""
MOST_SPLITS, MAJORITY, SCORED_SPLITS = 5, 3, 2
"""Splits that are taken at most where one leaves doubts, how many have to say the same for no more to be taken, and how
many tell how much likelier rows are than with one component less."""
SPLITS = 2_718_281_828
"""What the splits are drawn from."""
CHECKED_CELLS, LEAST_CHECKED, LONGEST_CHECKED = 30_000, 200, 200
"""Cells whose likelihood is taken then, the least rows, and variables beyond which none is: likelihoods of long rows
take longer than many a fit."""


@dataclass(frozen=True)
class Learned:
    """What halves of the rows show.

    ``ends`` are theta (rows, k) and alpha (k,) of each half, ``agreement`` (k,) how far the other half agrees on each
    component of the first (1 for the same, 0 for nothing in common), ``likelihood`` (rows scored,) that of each row by
    the half without it.
    """

    ends: tuple[tuple[Array, Array], ...]
    agreement: Array
    likelihood: Array


@dataclass(frozen=True)
class _Half:
    """Rows that are fitted, with their first moments, and rows that are held out, as they are scored."""

    fitted: Encoded
    first: FirstMoments
    held_out: NDArray[np.bool_]
    cells: LikelihoodTable


class Halves:
    """Two random halves of a table's rows. Of the rows ``scored``, those of one are scored by what the other shows."""

    def __init__(self, table: Encoded, first: FirstMoments, scored: Positions, seed: np.random.SeedSequence):
        self.first, self.seed, self.units = first, seed, LikelihoodTable(table).units
        half = np.random.default_rng(seed).permutation(table.n_rows) < table.n_rows // 2
        self.parts = [self._half(table, fitted, scored) for fitted in (half, ~half)]

    @staticmethod
    def _half(table: Encoded, fitted: NDArray[np.bool_], scored: Positions) -> _Half:
        part, held_out = table.take(fitted), ~fitted[scored]
        return _Half(part, first_moments(part), held_out, LikelihoodTable(table.take(scored[held_out])))

    def learn(
        self, k: int, alpha0: float, memory_limit: int | None, way: str = "moments", free_alpha0: bool = True
    ) -> Learned:
        """Return what the halves show with k components, by "moments", latent "classes" or "sampling"."""
        likelihood = np.zeros(len(self.parts[0].held_out))
        ends, deviations = [], []
        for part in self.parts:
            if way == "sampling" and k > 1:
                theta, alpha, deviation = self._by_sampling(part, k, alpha0, memory_limit, free_alpha0)
            elif way == "classes":
                theta, alpha, deviation = self._by_classes(part, k, alpha0)
            else:
                theta, alpha, deviation = self._by_moments(part, k, alpha0, memory_limit)
            likelihood[part.held_out] = row_likelihood(part.cells, theta, alpha)
            ends.append((theta, alpha))
            deviations.append(deviation)
        return Learned(tuple(ends), agreement(deviations[0], deviations[1]), likelihood)

    def _by_moments(self, part: _Half, k: int, alpha0: float, memory_limit: int | None) -> tuple[Array, Array, Array]:
        """Return theta, alpha and how the moments' theta deviates from the table's means."""
        table, means = part.fitted, self.first.means[:, None]
        with threads_for(table.codes.size * k):
            rng = np.random.default_rng(self.seed)
            plan = make_plan(table, k, rng=rng, first=part.first, memory_limit=memory_limit)
            block, settings = anchor_moments(table, plan), effort(k, memory_limit)
            found = estimate(table, plan, part.first, block, alpha0, settings, seed=self.seed, progress=Progress())
            alpha = found.concentration.alpha
            theta = stepped(table, theta_of(found.theta, self.first), alpha)
        return theta, alpha, found.theta - means

    def _by_classes(self, part: _Half, k: int, alpha0: float) -> tuple[Array, Array, Array]:
        start = latent_class_start(part.fitted, part.first, k, alpha0, seed=self.seed, progress=Progress())
        return start.theta, start.alpha, self._deviation(part, start.theta)

    def _by_sampling(
        self, part: _Half, k: int, alpha0: float, memory_limit: int | None, free_alpha0: bool
    ) -> tuple[Array, Array, Array]:
        """Return the likeliest of what short chains end at, from moments and from latent classes."""
        begin = [self._by_classes(part, k, alpha0)[:2]]
        if largest_k(part.fitted.coding) >= k:
            begin.append(self._by_moments(part, k, alpha0, memory_limit)[:2])
        rows, unknowns = rows_in_order(part.fitted), Unknowns(free_alpha0, contamination=False)
        cells = LikelihoodTable(rows)
        ends = in_threads(lambda c: try_start(rows, cells, *begin[c], unknowns, seed=self.seed), len(begin))
        scored = LikelihoodTable(replace(spread_table(rows, SAMPLED_SCORED), weights=None))
        theta, alpha = max(ends, key=lambda end: float(row_likelihood(scored, *end, rough=True).mean()))
        return theta, alpha, self._deviation(part, theta)

    def _deviation(self, part: _Half, theta: Array) -> Array:
        """Return how theta deviates from the table's, in units of each row; no number outweighs a category.

        Variances have no say: those of long tails are chance, however well components agree.
        """
        alone = theta_of(self.first.means[:, None], self.first)
        says = np.array([statistic != "variance" for _, _, statistic in part.fitted.schema.labels])
        return np.clip((theta - alone) / self.units, -1.0, 1.0)[says]


def effort(k: int, memory_limit: int | None) -> Settings:
    """Return the settings of a fit to half of the rows."""
    return Settings(
        k, solver="pqp", matching="procrustes", n_sweeps=SWEEPS, n_restarts=RESTARTS, memory_limit=memory_limit
    )


def agreement(one: Array, other: Array) -> Array:
    """Return the cosine of every component of one with its match in the other (k,): two matrices (rows, k).

    Columns are deviations from the table's means. One component is the mean, whose deviation is chance.
    """
    if one.shape[1] == 1:
        return np.ones(1)
    other = other[:, align_components(one, other)]
    lengths = np.linalg.norm(one, axis=0) * np.linalg.norm(other, axis=0)
    return np.asarray((one * other).sum(axis=0) / np.maximum(lengths, 1e-300))


def gains(differences: Array, weights: Array | None) -> tuple[Array, Array]:
    """Return means of differences (ks, rows) over rows, and their standard errors: (ks,) each."""
    mean = np.average(differences, axis=1, weights=weights)
    share = np.full(differences.shape[1], 1.0 / differences.shape[1]) if weights is None else weights / weights.sum()
    spread = np.average((differences - mean[:, None]) ** 2, axis=1, weights=weights)
    return mean, np.sqrt(spread * (share**2).sum() / (1.0 - (share**2).sum()))


@dataclass(frozen=True)
class FoundAgain:
    """What halves of the rows say of k components, split by split: the components of the first half (rows, k), how far
    the other agrees on each (k,), and, of the first splits, how much likelier k components make rows that were not
    fitted than k - 1 do (rows scored,), None for long rows. ``weights`` are those of the rows scored, ``starts`` what
    halves ended at, ``sampled`` whether by sampling."""

    thetas: tuple[Array, ...]
    agreements: tuple[Array, ...]
    differences: tuple[Array, ...] | None
    weights: Array
    starts: tuple[Start, ...] = ()
    sampled: bool = False

    @property
    def gain(self) -> tuple[float, float] | None:
        """Return the mean difference per row over the splits that were scored, and its standard error."""
        if self.differences is None:
            return None
        mean, error = gains(np.mean(self.differences, axis=0)[None], self.weights)
        return float(mean[0]), float(error[0])

    @property
    def holds(self) -> bool:
        """Whether every component is found again in most splits, and rows are not more likely with one less."""
        gain = self.gain
        return self.weakest >= HOLDS and (gain is None or gain[0] >= -gain[1])

    @property
    def worst(self) -> list[float]:
        """Return the agreement on the weakest component in every split."""
        return [float(each.min()) for each in self.agreements]

    @property
    def weakest(self) -> float:
        """Return the agreement on the weakest component, in the middle one of the splits."""
        return float(np.median(self.worst))

    def and_with(self, other: FoundAgain) -> FoundAgain:
        """Return this and another split of the same rows."""
        both = (*(self.differences or ()), *(other.differences or ()))
        return FoundAgain(
            self.thetas + other.thetas, self.agreements + other.agreements, both or None, self.weights,
            self.starts + other.starts, other.sampled,
        )  # fmt: skip


def split_seeds(how_many: int, splits: int = SPLITS) -> list[np.random.SeedSequence]:
    """Return the seeds of the first splits, the same for every table."""
    return np.random.SeedSequence(splits).spawn(how_many)


def decided(worst: Sequence[float]) -> bool:
    """Return whether most of the splits that may be taken say the same of the weakest component: lost, found less well,
    or found again.

    >>> decided([0.9, 0.3, 0.95]), decided([0.9, 0.3, 0.95, 0.86])
    (False, True)
    """
    return int(np.bincount(np.digitize(worst, (LOST, HOLDS))).max()) >= MAJORITY


def found_again(
    table: Encoded,
    first: FirstMoments,
    k: int,
    alpha0: float,
    *,
    memory_limit: int | None,
    sampled: bool = False,
    free_alpha0: bool = True,
    splits: int = SPLITS,
) -> FoundAgain | None:
    """Return what halves of the table's rows say of k components; None if they are not looked at.

    Where one split leaves doubts, others are taken until most say the same. Not looked at are tables of one component,
    of few rows, of fewer than three variables, large ones, and those whose halves take more memory than the limit: the
    fit itself goes on.
    Whole weights are the rows that they stand for.
    ``sampled`` says that the fit is refined by sampling: then halves are, too, where they are few or moments leave
    doubts, with alpha0 drawn if it is free.
    """
    counted = table.weights is not None and table.whole
    n, p = int(table.total) if counted else table.n_rows, table.n_variables
    if k < 2 or p < 3 or n < max(LEAST_ROWS, 2 * k) or n * p * k > MOST_WORK:
        return None
    if counted:  # halves of counted patterns would have none in common
        table = table.repeated("a look at halves of the rows")
        first = first_moments(table)
    if memory_limit is not None and memory_of_halves(table, k) > memory_limit:
        return None
    quick = "moments" if within_reach(table, k) else "classes"
    ways = [quick]
    if sampled:
        ways = ["sampling"] if n * p * k <= SMALL_WORK or quick == "classes" else [quick, "sampling"]
    table = in_order(table)
    one, *more = split_seeds(MOST_SPLITS, splits)
    once = partial(_once, table, first, k, alpha0, memory_limit, free_alpha0)
    for way in ways:
        found = once(one, way)
        if found.holds and (not found.sampled or found.weakest >= SURE):
            return found
    for place, other in enumerate(more, 1):
        if decided(found.worst):
            break
        found = found.and_with(once(other, ways[-1], scoring=place < SCORED_SPLITS))
    return found


def in_order(table: Encoded) -> Encoded:
    """Return the table with its rows in an order that depends on what they hold alone, and of equal rows on weights."""
    return table.take(np.lexsort((table.each, *table.codes.T[::-1])))


def memory_of_halves(table: Encoded, k: int) -> int:
    """Return the bytes of a table, of two halves of its rows, and of one's memberships as found and in a step of EM."""
    return 2 * table.codes.nbytes + 8 * (table.n_rows // 2) * (8 * k + 8)


def _once(
    table: Encoded,
    first: FirstMoments,
    k: int,
    alpha0: float,
    memory_limit: int | None,
    free_alpha0: bool,
    seed: np.random.SeedSequence,
    way: str,
    scoring: bool = True,
) -> FoundAgain:
    """Return what one split says."""
    n, p = table.codes.shape
    scoring = scoring and p <= LONGEST_CHECKED
    scored = spread_rows(np.arange(n), max(LEAST_CHECKED, CHECKED_CELLS // p) if scoring else 0)
    halves = Halves(table, first, scored, seed)
    found = halves.learn(k, alpha0, memory_limit, way, free_alpha0)
    differences = None
    if scoring:
        less = halves.learn(k - 1, alpha0, memory_limit, way, free_alpha0)
        differences = (found.likelihood - less.likelihood,)
    account = Account(True, "learned from half of the rows", HALF)
    starts = tuple(Start(*end, account) for end in found.ends)
    sampled = way == "sampling"
    return FoundAgain((found.ends[0][0],), (found.agreement,), differences, table.each[scored], starts, sampled)
