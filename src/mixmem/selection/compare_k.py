"""Numbers of components held against each other, by what halves of the rows show of each.

Halves are learned from by moments first. Where more components are refused only because they were not found again, or
only because rows are less likely with them, or a table is small, halves are sampled, as fits are: moments of halves of
real tables may end at one of several answers by chance, and put levels at zero. Agreement near the line, or in some
splits only, is judged by more of them, and their median counts.
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
from mixmem.selection.halves import HOLDS, LEAST_SCORED, SCORED_CELLS, SMALL_WORK, Halves, gains
from mixmem.typing import Array, Positions

SAMPLED_WORK = 1_500_000
"""Cells times the largest number of components up to which halves are sampled where moments leave doubts."""
NEAR_LINE, DIFFERS, MORE_LOOKS = 0.1, 0.3, 2
"""How near to the agreement asked for, or with one split so far below it and another above, a number of components is
judged by as many splits again, and how often."""


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

    @property
    def differ(self) -> NDArray[np.bool_]:
        """Which numbers of components (ks,) some splits find again and others do not."""
        worst = [[least for _, least in each] for each in self.agreements]
        return np.array([min(each) < HOLDS - DIFFERS < HOLDS <= max(each) for each in worst])

    @property
    def recommended(self) -> tuple[int, Array, Array]:
        """Position of the k recommended, mean likelihoods, and errors of their differences from that k's."""
        return recommend(self.likelihood, self.stability[:, 1], self.weights)

    @property
    def doubtful(self) -> bool:
        """Whether agreement alone or likelihood alone refuses more components, or those recommended hardly agree."""
        chosen, worst = self.recommended[0], self.stability[:, 1]
        hardly = chosen > 0 and bool(worst[chosen] < HOLDS + NEAR_LINE)
        refused = range(chosen + 1, len(worst))
        return hardly or any(worst[i] >= HOLDS or self.likelier(i, chosen) for i in refused)

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
    seeds: Sequence[np.random.SeedSequence],
    progress: Progress,
) -> Compared:
    """Return what halves of the rows show of every k, one split per seed and more where they do not decide."""
    scored = spread_rows(np.arange(table.n_rows), max(LEAST_SCORED, SCORED_CELLS // table.n_variables))
    learn = partial(_learn, table, first, scored, alpha0, memory_limit, free_alpha0)
    work = table.codes.size * ks[-1]
    can_sample = work <= SAMPLED_WORK and _is_sampled(table, ks[-1])  # all numbers or none: likelihoods are compared
    way = "sampling" if can_sample and work <= SMALL_WORK else "moments"
    with progress.stage("halves of the rows", len(seeds) * len(ks)) as step:
        found = learn(ks, way, seeds, step)
    if can_sample and way == "moments" and found.doubtful:
        way = "sampling"
        with progress.stage("halves of the rows, sampled", len(seeds) * len(ks)) as step:
            found = learn(ks, way, seeds, step)
    for _ in range(MORE_LOOKS):
        if not (near := _near_the_line(found)):
            break
        more = [seed.spawn(1)[0] for seed in seeds]
        with progress.stage("more halves of the rows", len(more) * len(near)) as step:
            for i, again in zip(near, learn([ks[i] for i in near], way, more, step).agreements, strict=True):
                found.agreements[i] += again
    return found


def _near_the_line(found: Compared) -> list[int]:
    """Return the numbers of components that agreement alone decides on, and nearly, or by the split."""
    chosen, worst = found.recommended[0], found.stability[:, 1]
    near = np.flatnonzero((np.abs(worst - HOLDS) < NEAR_LINE) | found.differ).tolist()
    return [i for i in near if i and (i == chosen or found.likelier(i, chosen))]


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
