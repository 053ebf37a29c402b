"""Theta and memberships together at the maximum of the rows' likelihood, by accelerated block steps.

The objective is the sum over cells of log sum_h L_h x_ih over theta and memberships x, L_h the cell's likelihood in
component h: what ADMIXTURE and its like report. Tables of any columns are climbed by EM, whose plain step never lowers
it; tables of diploid biallelic loci by Newton steps, locus by locus and then row by row: on HapMap3 with k = 3 twelve
passes of these get further than 200 of EM. One accelerator serves both. It mixes the last steps so that their changes
cancel (Anderson); where that would lower the objective, which is so near saddles, it goes further and further along the
plain step instead; where that lowers it too, the plain step is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mixmem.progress import Progress
from mixmem.typing import Array

MOST_ROUNDS = 200
LEAST = 1e-12
"""No entry falls below: in EM a zero would stay one for ever, and a cell might become impossible."""
DEPTH = 6
"""Steps that the accelerator mixes."""
PATIENCE = 3
"""Rounds in a row that must gain and move too little before it ends: near a saddle gains are small for a while."""


@dataclass(frozen=True)
class Maximum:
    """Theta (rows, k) and memberships (n, k) at the end, and the objective, a row's mean, at every round."""

    theta: Array
    memberships: Array
    history: tuple[float, ...]
    converged: bool
    reason: str

    def ordered(self, order: NDArray[np.int64]) -> Maximum:
        """Return the same with components in another order."""
        return replace(self, theta=self.theta[:, order], memberships=self.memberships[:, order])


@dataclass(frozen=True)
class Point:
    """Theta (rows, k) and memberships (n, k)."""

    theta: Array
    memberships: Array


@dataclass(frozen=True)
class Stride:
    """A plain step: from ``at``, where the objective is ``value``, a row's mean, to ``to``."""

    at: Point
    to: Point
    value: float


class Steps(Protocol):
    """What the accelerator needs: plain steps, and points as vectors and back, brought inside; ``near`` is inside."""

    def step(self, start: Point) -> Stride: ...
    def vector(self, point: Point) -> Array: ...
    def point(self, vector: Array, near: Point) -> Point: ...


def climb(
    steps: Steps,
    start: Point,
    *,
    progress: Progress,
    tol: float,
    per_row: float,
    max_rounds: int,
    settled: float = np.inf,
) -> Maximum:
    """Take accelerated steps from a start until they gain and move too little.

    That is ``tol`` for each of a row's ``per_row`` draws, and ``settled`` for every membership: where the objective is
    flat, memberships are still far from where they end when its gains are small already.
    """
    now = steps.step(start)
    history, small, guesses = [now.value], 0, Guesses(steps)
    with progress.stage("em", max_rounds) as done:
        for _ in range(max_rounds):
            ahead = guesses.best_step(now)
            if ahead is None:
                reason = f"after {len(history) - 1} rounds no step raises the objective"
                return Maximum(now.at.theta, now.at.memberships, tuple(history), True, reason)
            moved = float(np.abs(ahead.at.memberships - now.at.memberships).max())
            small = small + 1 if ahead.value - now.value <= tol * per_row and moved <= settled else 0
            now = ahead
            history.append(now.value)
            done(1)
            if small == PATIENCE:
                reason = f"after {len(history) - 1} rounds the objective rises by no more than {tol:g} per cell"
                if settled < np.inf:
                    reason += f" and no membership changes by more than {settled:g}"
                return Maximum(now.at.theta, now.at.memberships, tuple(history), True, reason)
    reason = f"stopped after {max_rounds} rounds"
    return Maximum(now.at.theta, now.at.memberships, tuple(history), False, reason)


class Guesses:
    """Where to go on from a plain step: a mixture of the last ones, or along it, or to its end."""

    def __init__(self, steps: Steps):
        self.steps = steps
        self.stretch = 1.0
        self.changes: list[tuple[Array, Array]] = []  # of the plain steps' ends, and of their lengths
        self.last: tuple[Array, Array] | None = None

    def best_step(self, now: Stride) -> Stride | None:
        """The plain step from the first guess that does not lower the objective; None if all do."""
        for guess in self._guesses(now):
            ahead = self.steps.step(guess)
            if ahead.value >= now.value:
                return ahead
        return None

    def _guesses(self, now: Stride) -> Iterator[Point]:
        end = self.steps.vector(now.to)
        move = end - self.steps.vector(now.at)
        if self.last is not None:
            self.changes = [*self.changes, (end - self.last[0], move - self.last[1])][-DEPTH:]
        self.last = end, move
        if self.stretch > 1.0:
            stretch, self.stretch = self.stretch, min(2.0 * self.stretch, 64.0)
            yield self.steps.point(end + (stretch - 1.0) * move, now.to)
            self.stretch = 1.0
        elif self.changes:
            yield self.steps.point(end - self._mixture(move), now.to)
            self.stretch = 2.0
        yield now.to
        for short in (0.25, 0.01):
            yield self.steps.point(end - (1.0 - short) * move, now.to)

    def _mixture(self, move: Array) -> Array:
        """Anderson's: changes of ends, weighted so that the same mixture of changes of moves is nearest to the move."""
        ends, moves = (np.stack(parts) for parts in zip(*self.changes, strict=True))
        gram = moves @ moves.T
        gram[np.diag_indices_from(gram)] += 1e-10 * np.trace(gram) + 1e-300
        return np.asarray(np.linalg.solve(gram, moves @ move) @ ends)


def memberships_inside(x: Array, near: Array | None = None) -> Array:
    """Rows (n, k) brought to the simplex; what would leave it goes most of the way from ``near`` to its edge."""
    inside = np.maximum(x, LEAST if near is None else np.maximum(0.05 * near, LEAST))
    return np.asarray(inside / inside.sum(axis=1, keepdims=True))
