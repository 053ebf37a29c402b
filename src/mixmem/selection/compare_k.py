"""Numbers of components held against each other, by what halves of the rows show of each.

Halves are learned from by moments first. Where more components are refused only because they were not found again, or
only because rows are less likely with them, or are fewer than second moments show, or a table is small, halves are
sampled, as fits are: moments of halves of real tables may end at one of several answers by chance, and put levels at
zero. Agreement near the line, or in some splits only, is judged by more of them, until most say the same; their median
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.engine.local import in_tasks
from mixmem.moments.anchors import spread_rows
from mixmem.moments.sums import FirstMoments
from mixmem.progress import Progress
from mixmem.refinement.choose import choose_method
from mixmem.selection.halves import (
    HOLDS,
    LEAST_SCORED,
    MOST_SPLITS,
    SCORED_CELLS,
    SMALL_WORK,
    SPLITS,
    Halves,
    decided,
    gains,
    in_order,
    split_seeds,
)
from mixmem.typing import Array, Positions

SAMPLED_WORK = 1_500_000
"""Cells times the largest number of components up to which halves are sampled where moments leave doubts."""
NEAR_LINE, DIFFERS = 0.1, 0.3
"""How near to the agreement asked for, or with one split so far below it and another above, a number of components is
judged by more splits."""


@dataclass
class Compared:
    """What halves of the rows show of several numbers of components: likelihoods (ks, rows scored), means over splits,
    rows with ``weights``, and per k the mean and the least agreement of its components in every split."""

    likelihood: Array
    weights: Array
    agreements: list[list[tuple[float, float]]]

    @property
    def stability(self) -> Array:
        """Mean and worst agreement (ks, 2), medians over splits: a half that ended elsewhere by chance is outvoted."""
        return np.array([np.median(each, axis=0) for each in self.agreements])

    def worst(self, i: int) -> list[float]:
        """Return the least agreement of a component in every split, of the i-th k."""
        return [least for _, least in self.agreements[i]]

    @property
    def differ(self) -> NDArray[np.bool_]:
        """Which numbers of components (ks,) some splits find again and others do not."""
        worst = [self.worst(i) for i in range(len(self.agreements))]
        return np.array([min(each) < HOLDS - DIFFERS < HOLDS <= max(each) for each in worst])

    @property
    def recommended(self) -> tuple[int, Array, Array]:
        """Position of the k recommended, mean likelihoods, and errors of their differences from that k's."""
        return recommend(self.likelihood, self.stability[:, 1], self.weights)

    def doubtful(self, shown: int) -> bool:
        """Whether agreement alone or likelihood alone refuses more components, those recommended hardly agree, or are
        fewer than the position of the number that the spectrum shows: moments of both halves may have ended poorly."""
        chosen, worst = self.recommended[0], self.stability[:, 1]
        hardly = chosen > 0 and bool(worst[chosen] < HOLDS + NEAR_LINE)
        refused = range(chosen + 1, len(worst))
        return hardly or chosen < shown or any(worst[i] >= HOLDS or self.likelier(i, chosen) for i in refused)

    def likelier(self, i: int, chosen: int) -> bool:
        """Whether a larger k than the one recommended makes rows likelier."""
        gain, error = gains(self.likelihood[i : i + 1] - self.likelihood[chosen], self.weights)
        return i > chosen and bool(gain[0] > error[0])


def compare(
    table: Encoded,
    first: FirstMoments,
    ks: Sequence[int],
    alpha0: float,
    *,
    free_alpha0: bool,
    memory_limit: int | None,
    n_splits: int,
    progress: Progress,
    shown: int = 1,
    splits: int = SPLITS,
) -> Compared:
    """Return what halves of the rows show of every k, by so many splits and more where they do not decide.

    ``shown`` is the number of components that the spectrum of the second moments shows.
    """
    table, most = in_order(table), max(n_splits, MOST_SPLITS)
    seeds = split_seeds(most, splits)
    scored = spread_rows(np.arange(table.n_rows), max(LEAST_SCORED, SCORED_CELLS // table.n_variables))
    learn = partial(_learn, table, first, scored, alpha0, memory_limit, free_alpha0)
    work = table.codes.size * ks[-1]
    can_sample = work <= SAMPLED_WORK and _is_sampled(table, ks[-1])  # all numbers or none: likelihoods are compared
    way = "sampling" if can_sample and work <= SMALL_WORK else "moments"
    with progress.stage("halves of the rows", n_splits * len(ks)) as step:
        found = learn(ks, way, seeds[:n_splits], step)
    if can_sample and way == "moments" and found.doubtful(sum(k <= shown for k in ks) - 1):
        way = "sampling"
        with progress.stage("halves of the rows, sampled", n_splits * len(ks)) as step:
            found = learn(ks, way, seeds[:n_splits], step)
    while near := _open(found, most):
        with progress.stage("more halves of the rows", len(near)) as step:
            for i in near:
                following = seeds[len(found.agreements[i])]
                found.agreements[i] += learn([ks[i]], way, [following], step).agreements[0]
    return found


def _open(found: Compared, most: int) -> list[int]:
    """Return the numbers of components that agreement alone decides on, and nearly, or by the split, and of which the
    splits that were taken do not yet say the same."""
    chosen, worst = found.recommended[0], found.stability[:, 1]
    near = np.flatnonzero((np.abs(worst - HOLDS) < NEAR_LINE) | found.differ).tolist()
    return [
        i
        for i in near
        if i and (i == chosen or found.likelier(i, chosen))
        and len(found.agreements[i]) < most and not decided(found.worst(i))
    ]  # fmt: skip


def _is_sampled(table: Encoded, k: int) -> bool:
    """Whether a fit to the table is refined by sampling if nothing is asked for."""
    return choose_method("auto", table, k).method == "gibbs"


def _learn(
    table: Encoded,
    first: FirstMoments,
    scored: Positions,
    alpha0: float,
    memory_limit: int | None,
    free_alpha0: bool,
    ks: Sequence[int],
    way: str,
    seeds: Sequence[np.random.SeedSequence],
    step: Callable[[int], None],
) -> Compared:
    """Return what halves show of every k by one way, one split per seed."""
    likelihood = np.zeros((len(ks), len(scored)))
    agreements: list[list[tuple[float, float]]] = [[] for _ in ks]
    for seed in seeds:
        halves = Halves(table, first, scored, seed)
        tasks = [(k, alpha0, memory_limit, way, free_alpha0) for k in ks]
        for i, learned in enumerate(in_tasks(halves.learn, tasks)):
            likelihood[i] += learned.likelihood / len(seeds)
            agreements[i].append((float(learned.agreement.mean()), float(learned.agreement.min())))
            step(1)
    return Compared(likelihood, table.each[scored], agreements)


def recommend(likelihood: Array, worst: Array, weights: Array | None = None) -> tuple[int, Array, Array]:
    """Position of the largest k that holds, mean likelihoods, errors of their differences from that k's.

    ``likelihood`` (ks, rows), rows with ``weights``; differences are taken row by row, so what makes a row likely under
    every k cancels. ``worst`` (ks,) is the agreement of a k's weakest component.
    """
    chosen = 0
    for i in range(1, len(likelihood)):
        gain, error = gains(likelihood[i : i + 1] - likelihood[chosen], weights)
        if worst[i] >= HOLDS and gain[0] > error[0]:
            chosen = i
    error = gains(likelihood - likelihood[chosen], weights)[1]
    return chosen, np.average(likelihood, axis=1, weights=weights), error
