"""Several starts of sampling: a short chain from each, and the one that makes rows the likeliest goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.engine.local import in_threads
from mixmem.likelihood.marginal import LIKELIHOOD_ROWS, row_likelihood
from mixmem.likelihood.memberships import fit_rows
from mixmem.likelihood.table import LikelihoodTable
from mixmem.moments.anchors import spread_table
from mixmem.moments.estimate import Start
from mixmem.progress import Progress
from mixmem.records import Record
from mixmem.refinement.admixture_start import apart
from mixmem.refinement.gibbs import WARM_BATCHES, Unknowns, try_start
from mixmem.typing import Array

Likely = Callable[[Array, Array], Array]
"""Log-likelihoods of some rows under theta (rows, k) and alpha (k,)."""

HALF = "half of the rows"
"""What a start may be learned from: the account of the moments stands then for the table's."""
SAMPLED_APART = 0.1
"""Root mean square difference of memberships from which on ends of short chains are other answers: what is less may be
how far a sampled answer is known at all."""
COMPARED_ROWS = 20_000
"""Rows that tell which start is the likeliest."""
TIED, MOST_TIED, LONGER = 2.0, 3, 3
"""Standard errors within which rows do not tell the likeliest start from another, how many such go on, and how many
times as long."""
RIVAL = 10.0
"""Log-likelihood of all rows up to which another maximum counts as nearly as large: 20,000 times less likely."""


@dataclass(frozen=True)
class StartReport(Record):
    """A start that was tried, and the mean log-likelihood of a row that it led to."""

    way: str
    log_likelihood: float


@dataclass(frozen=True)
class Tried:
    """The start that goes on, what it was learned from, what was said of all, how far rivals lie apart, and, if the
    first goes on from where it was, where the likeliest short chain ended."""

    best: Start
    way: str
    reports: list[StartReport]
    apart: float = 0.0
    reached: Start | None = None


class _Ends:
    """Where short chains from several starts have come: theta (rows, k) and alpha (k,) each."""

    def __init__(
        self,
        rows: Encoded,
        starts: Sequence[Start],
        unknowns: Unknowns,
        seed: np.random.SeedSequence,
        step: Callable[[int], None],
    ):
        self.rows, self.starts, self.unknowns, self.seed, self.step = rows, starts, unknowns, seed, step
        self.cells = LikelihoodTable(rows)
        self.scored = LikelihoodTable(some_rows(rows, COMPARED_ROWS))
        self.some = some_rows(rows, LIKELIHOOD_ROWS)
        self.ends = [(start.theta, start.alpha) for start in starts]
        self.likelihoods = np.full((len(starts), len(self.scored.codes)), -np.inf)

    def run(self, which: Sequence[int], batches: int, kept: int = 1) -> None:
        """Let chains go on for so many batches, and average over those kept, side by side."""

        def chain(i: int) -> tuple[Array, Array]:
            at = self.ends[which[i]]
            end = try_start(self.rows, self.cells, *at, self.unknowns, seed=self.seed, batches=batches, kept=kept)
            self.step(1)
            return end

        for c, end in zip(which, in_threads(chain, len(which)), strict=True):
            self.ends[c] = end

    def score(self, which: Sequence[int]) -> None:
        """Find how likely rows are where these ended."""
        for c in which:
            self.likelihoods[c] = row_likelihood(self.scored, *self.ends[c], rough=True)

    @property
    def values(self) -> list[float]:
        """Mean log-likelihoods of a row."""
        return [float(value) for value in self.likelihoods.mean(axis=1)]

    @property
    def best(self) -> int:
        """Which is the likeliest."""
        return int(np.argmax(self.values))

    @property
    def rivals(self) -> list[int]:
        """Return which are nearly as likely as the best, all rows together."""
        values, best = self.values, self.best
        return [c for c, value in enumerate(values) if c != best and (values[best] - value) * self.rows.total < RIVAL]

    def away(self, others: Sequence[int]) -> dict[int, float]:
        """Return how far the memberships of others lie from those of the likeliest."""
        if not others:
            return {}
        own = fit_rows(self.some, *self.ends[self.best]).memberships
        return {c: apart(own, fit_rows(self.some, *self.ends[c]).memberships) for c in others}

    def reports(self) -> list[StartReport]:
        """Return what is said of each."""
        return [StartReport(start.account.way, value) for start, value in zip(self.starts, self.values, strict=True)]


def likeliest_start(
    rows: Encoded,
    starts: Sequence[Start],
    unknowns: Unknowns,
    *,
    agreed: bool,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> Tried:
    """Return the start under which rows are likeliest after a short chain, at its end.

    Of several that are nearly as likely, how far their memberships lie apart is told. The account is that of the first
    start, unless another kind of start is the likeliest. Starts that are ``agreed`` to lead to one answer, and do, are
    not run for longer: the first goes on from where it was.
    """
    everyone = range(len(starts))
    with progress.stage("starts", len(starts) + MOST_TIED) as step:
        found = _Ends(rows, starts, unknowns, seed, step)
        found.run(everyone, WARM_BATCHES)
        try:
            found.score(everyone)
            if agreed and (_one_answer(found) or _one_answer_on_average(found)):
                own = starts[0].account
                reached = replace(_at(starts[0], found.ends[found.best]), account=own)
                return Tried(starts[0], own.way, found.reports(), reached=reached)
            if len(equal := tied(found.likelihoods)) > 1:
                found.run(equal, LONGER * WARM_BATCHES)
                found.score(equal)
        except Exception:  # what was started is not lost to a figure about it: the first goes on
            return Tried(_at(starts[0], found.ends[0]), starts[0].account.way, [])
        away = found.away(found.rivals)
    best = found.best
    farthest = max(away.values(), default=0.0)
    same = away.get(0, SAMPLED_APART) < SAMPLED_APART  # the first start leads to the same answer
    reached = _at(starts[best], found.ends[best])
    if reached.account.way == HALF:
        reached = replace(reached, account=starts[0].account)
    return Tried(
        reached,
        starts[0 if same else best].account.way,
        found.reports(),
        farthest if farthest >= SAMPLED_APART else 0.0,
    )


def tied(likelihoods: Array) -> list[int]:
    """Return which starts may be the best by the likelihoods (starts, rows) that they led to, the likeliest first."""
    order = np.argsort(-likelihoods.mean(axis=1), kind="stable")
    behind = likelihoods[order[0]] - likelihoods[order]
    error = behind.std(axis=1) / np.sqrt(likelihoods.shape[1])
    return [int(c) for c in order[behind.mean(axis=1) <= TIED * error]][:MOST_TIED]


def fell_short(after: Array, reached: Start, likely: Likely, total: float) -> bool:
    """Return whether rows' log-likelihoods at the end of sampling are clearly below those that a short chain reached.

    Chains that begin where the moments are may settle elsewhere than the short chain from there. ``total`` is the
    weight of all rows.
    """
    try:
        behind = likely(reached.theta, reached.alpha) - after
    except Exception:  # what was sampled is not lost to a figure about it
        return False
    error = float(behind.std()) / np.sqrt(len(behind))
    return bool(behind.mean() > TIED * error and behind.mean() * total > RIVAL)


def some_rows(rows: Encoded, most: int) -> Encoded:
    """Return so many rows at most, spread over the table, each counted once."""
    return replace(spread_table(rows, most), weights=None)


def _one_answer(found: _Ends) -> bool:
    """Return whether the first start may be the best, and all that may be lie at the same memberships."""
    best, may = found.best, {*tied(found.likelihoods), *found.rivals}
    return 0 in {best, *may} and max(found.away(sorted(may - {best})).values(), default=0.0) < SAMPLED_APART


def _one_answer_on_average(found: _Ends) -> bool:
    """Return the same after longer chains, over which ends are averaged: where rows say little, those of short chains
    lie apart although there is but one answer."""
    may = sorted({0, *tied(found.likelihoods), *found.rivals})
    found.run(may, WARM_BATCHES, LONGER * WARM_BATCHES)
    found.score(may)
    return _one_answer(found)


def _at(start: Start, end: tuple[Array, Array]) -> Start:
    return replace(start, theta=end[0], alpha=end[1])
