"""Theta and memberships together at the maximum of the rows' likelihood, by accelerated block steps.

The objective is the sum over cells of log sum_h L_h x_ih over theta and memberships x, L_h the cell's likelihood in
component h: what ADMIXTURE and its like report. Tables of any columns are climbed by EM, whose plain step never lowers
it; tables of diploid biallelic loci by Newton steps, locus by locus and then row by row: on HapMap3 with k = 3 twelve
passes of these get further than 200 of EM. One accelerator serves both. It mixes the last steps so that their changes
cancel (Anderson); where that would lower the objective, which is so near saddles, it goes further and further along the
plain step instead; where that lowers it too, the plain step is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixmem.kernels import ROW_BLOCK, in_parts, in_threads
from mixmem.kernels.admixture import box_steps, locus_sums, row_sums
from mixmem.kernels.em import em_pass
from mixmem.kinds import Array, Positions
from mixmem.moments import waves
from mixmem.progress import Progress

Result = TypeVar("Result")

MOST_ROUNDS = 200
LEAST = 1e-12
"""No entry falls below: in EM a zero would stay one for ever, and a cell might become impossible."""
LEAST_FREQUENCY = 1e-6
"""No allele frequency comes nearer to zero or one."""
ROW_TILE = 1024
"""Rows of a locus handled together, while what is computed of them stays in the cache."""
DEPTH = 6
"""Steps that the accelerator mixes."""
PATIENCE = 3
"""Rounds in a row that must gain too little before it ends: near a saddle gains are small for a while."""


@dataclass(frozen=True)
class Maximum:
    """Theta (rows, k) and memberships (n, k) at the end, and the objective, a row's mean, at every round."""

    theta: Array
    memberships: Array
    history: tuple[float, ...]
    converged: bool
    reason: str


@dataclass(frozen=True)
class Cells:
    """Cells of one draw each: ``codes`` (n, q), where a column's codes start in the table of likelihoods (``starts``,
    (q,)), and the code of a missing cell (``absent``, (q,); -1 where there is none)."""

    codes: NDArray[np.unsignedinteger]
    starts: Positions
    absent: Positions

    @cached_property
    def lengths(self) -> Array:
        """Cells of each row that are not missing (n,)."""
        if (self.absent < 0).all():
            return np.full(len(self.codes), float(self.codes.shape[1]))
        return np.asarray((self.codes != self.absent).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class Genotypes:
    """Diploid biallelic loci, two draws each: ``codes`` (n, m) of 0, 1, 2 copies of the counted allele, 3 missing;
    theta's rows of the counted alleles (``rows``, (m,)) and of the ``others`` (m,)."""

    codes: NDArray[np.uint8]
    rows: Positions
    others: Positions

    @cached_property
    def loci(self) -> NDArray[np.uint8]:
        """The codes locus by locus (m, n)."""
        return np.ascontiguousarray(self.codes.T)

    def theta(self, frequencies: Array) -> Array:
        """Theta (rows, k) from the counted alleles' frequencies (m, k)."""
        out = np.empty((int(max(self.rows.max(), self.others.max())) + 1, frequencies.shape[1]))
        out[self.rows], out[self.others] = frequencies, 1.0 - frequencies
        return out


@dataclass(frozen=True)
class Rule:
    """How theta (rows, k) belongs to a table of cells: its likelihoods ``table(theta)`` (table's rows, k), the theta
    that makes cells held by components likeliest, ``update(counts, theta)`` with counts (table's rows, k), and
    ``inside(theta)``, a theta allowed near one that need not be. ``units`` (rows, 1) are typical sizes of theta's
    rows; ``scale(theta)`` what likelihoods are relative to, its logarithm summed over rows and their weights."""

    table: Callable[[Array], Array]
    update: Callable[[Array, Array], Array]
    inside: Callable[[Array], Array]
    units: Array | float = 1.0
    scale: Callable[[Array], float] | None = None


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


def maximise_cells(
    cells: Cells,
    rule: Rule,
    theta: Array,
    memberships: Array,
    *,
    progress: Progress,
    weights: Array | None = None,
    tol: float = 1e-6,
    max_rounds: int = MOST_ROUNDS,
) -> Maximum:
    """Run EM from theta (rows, k) and memberships (n, k), converged for that theta: from others EM goes astray.

    Rows may have weights (n,). It ends when :data:`PATIENCE` rounds in a row gain less than ``tol`` a cell.
    """
    steps = EMSteps(cells, rule, weights)
    per_row = float(steps.weights @ cells.lengths) / steps.total
    start = Point(theta, memberships_inside(memberships))
    return climb(steps, start, progress=progress, tol=tol, per_row=per_row, max_rounds=max_rounds)


def maximise_genotypes(
    genotypes: Genotypes,
    theta: Array,
    memberships: Array,
    *,
    progress: Progress,
    weights: Array | None = None,
    tol: float = 1e-8,
    max_rounds: int = MOST_ROUNDS,
) -> Maximum:
    """Block Newton steps from theta (rows, k) and memberships (n, k), best those of :func:`admixture_start`.

    Rows may have weights (n,). It ends when :data:`PATIENCE` rounds in a row gain less than ``tol`` a draw. BLAS is to
    be held to one thread, as :func:`mixmem.kernels.threads` does, or bits may depend on the number of threads.
    """
    steps = NewtonSteps(genotypes, weights)
    observed = 2.0 * (genotypes.loci < 3).sum(axis=0)
    per_row = float(steps.weights @ observed) / steps.total
    inside = np.clip(theta, LEAST_FREQUENCY, 1.0 - LEAST_FREQUENCY)
    start = Point(inside, memberships_inside(memberships))
    return climb(steps, start, progress=progress, tol=tol, per_row=per_row, max_rounds=max_rounds)


def climb(steps: Steps, start: Point, *, progress: Progress, tol: float, per_row: float, max_rounds: int) -> Maximum:
    """Accelerated steps from a start until gains stay below ``tol`` for each of a row's ``per_row`` draws."""
    now = steps.step(start)
    history, small, guesses = [now.value], 0, Guesses(steps)
    with progress.stage("em", max_rounds) as done:
        for _ in range(max_rounds):
            ahead = guesses.best_step(now)
            if ahead is None:
                reason = f"after {len(history) - 1} rounds no step raises the objective"
                return Maximum(now.at.theta, now.at.memberships, tuple(history), True, reason)
            small = small + 1 if ahead.value - now.value <= tol * per_row else 0
            now = ahead
            history.append(now.value)
            done(1)
            if small == PATIENCE:
                reason = f"after {len(history) - 1} rounds the objective rises by no more than {tol:g} a cell"
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


def _from(first: int, run: Callable[[int], Result]) -> Callable[[int], Result]:
    """run, counted from ``first`` on."""
    return lambda b: run(first + b)


def memberships_inside(x: Array, near: Array | None = None) -> Array:
    """Rows (n, k) brought to the simplex; what would leave it goes most of the way from ``near`` to its edge."""
    inside = np.maximum(x, LEAST if near is None else np.maximum(0.05 * near, LEAST))
    return np.asarray(inside / inside.sum(axis=1, keepdims=True))


class EMSteps:
    """Plain EM steps of a table of cells whose rows have weights (n,)."""

    def __init__(self, cells: Cells, rule: Rule, weights: Array | None = None):
        self.cells, self.rule = cells, rule
        self.weights = np.ones(len(cells.codes)) if weights is None else weights
        self.total = float(self.weights.sum())

    def step(self, start: Point) -> Stride:
        cells, table = self.cells, np.ascontiguousarray(self.rule.table(start.theta))
        x, slopes = start.memberships, np.empty_like(start.memberships)
        sums, value = np.zeros_like(table), 0.0
        for first, count in waves(len(x), table.nbytes + ROW_BLOCK):
            partials, values = self._passed(first, count, table, x, slopes)
            for block, part in zip(partials, values, strict=True):
                sums += block
                value += float(part)
        if self.rule.scale is not None:
            value += self.rule.scale(start.theta)
        known = cells.lengths > 0
        new = np.where(known[:, None], x * slopes / np.maximum(cells.lengths, 1.0)[:, None], x)
        to = Point(self.rule.update(table * sums, start.theta), memberships_inside(new))
        return Stride(start, to, value / self.total)

    def _passed(self, first: int, count: int, table: Array, x: Array, slopes: Array) -> tuple[Array, Array]:
        """What em_pass finds in ``count`` row blocks from ``first`` on: partials (count, table's rows, k), values."""
        partials, values, cells = np.empty((count, *table.shape)), np.empty(count), self.cells
        in_parts(
            lambda a, b: em_pass(
                cells.codes, cells.starts, cells.absent, table, x, self.weights, first + a, slopes, partials[a:b],
                values[a:b],
            ),
            count,
        )  # fmt: skip
        return partials, values

    def vector(self, point: Point) -> Array:
        return np.concatenate([(point.theta / self.rule.units).ravel(), point.memberships.ravel()])

    def point(self, vector: Array, near: Point) -> Point:
        theta = vector[: near.theta.size].reshape(near.theta.shape) * self.rule.units
        x = vector[near.theta.size :].reshape(near.memberships.shape)
        return Point(self.rule.inside(theta), memberships_inside(x, near.memberships))


class NewtonSteps:
    """Newton steps of all loci and then, at the new frequencies, of all rows; rows have weights (n,).

    The accelerator sees the memberships only: frequencies follow from them within a step or two.
    """

    def __init__(self, genotypes: Genotypes, weights: Array | None = None):
        self.genotypes = genotypes
        self.weights = np.ones(len(genotypes.codes)) if weights is None else weights
        self.total = float(self.weights.sum())

    def step(self, start: Point) -> Stride:
        x, p = np.ascontiguousarray(start.memberships.T), start.theta[self.genotypes.rows]
        k, n = x.shape
        hessians, values = np.zeros((k * (k + 1) // 2, n)), np.zeros(n)
        for first, count in waves(len(p), hessians.nbytes):
            for part, value in in_threads(_from(first, partial(self._block, x=x, p=p)), count):
                hessians += part
                values += value
        at = Point(self.genotypes.theta(p), start.memberships)
        to = Point(at.theta, _row_steps(hessians, start.memberships))
        return Stride(at, to, float(self.weights @ values) / self.total)

    def _block(self, block: int, x: Array, p: Array) -> tuple[Array, Array]:
        """Step the loci of a block, p (m, k) in place; what row_sums adds up of them; x (k, n)."""
        some = slice(block * ROW_BLOCK, (block + 1) * ROW_BLOCK)
        loci, own, (k, n) = self.genotypes.loci[some], p[some], x.shape
        tiles = [(first, min(n, first + ROW_TILE)) for first in range(0, n, ROW_TILE)]
        gradients, hessians = np.zeros(own.shape), np.zeros((len(own), k * (k + 1) // 2))
        for tile in tiles:
            locus_sums(loci, x, own, self.weights, *tile, gradients, hessians)
        box_steps(hessians, gradients, LEAST_FREQUENCY, 1.0 - LEAST_FREQUENCY, True, 1e-6, own)
        sums, values = np.zeros((k * (k + 1) // 2, n)), np.zeros(n)
        for tile in tiles:
            row_sums(loci, x, own, *tile, sums, values)
        return sums, values

    def vector(self, point: Point) -> Array:
        return point.memberships.ravel()

    def point(self, vector: Array, near: Point) -> Point:
        x = vector.reshape(near.memberships.shape)
        return Point(near.theta, memberships_inside(x, near.memberships))


def _row_steps(hessians: Array, x: Array) -> Array:
    """Memberships (n, k) after a Newton step on the simplex; hessians (k (k + 1) / 2, n) as row_sums gives them.

    A row's terms are g log(x'p) + (2 - g) log(x'(1 - p)), whose gradient is the Hessian times x, and that times x the
    number d of draws: maximising them less d sum(x) over x >= 0 keeps the sum at one without asking for it.
    """
    n, k = x.shape
    high, low = np.tril_indices(k)
    own = np.ascontiguousarray(hessians.T)
    full = np.empty((n, k, k))
    full[:, high, low] = full[:, low, high] = own
    gradients = (full @ x[:, :, None])[:, :, 0]
    gradients -= (gradients * x).sum(axis=1, keepdims=True)
    new = x.copy()
    box_steps(own, gradients, LEAST, 2.0, False, 1e-9, new)
    return memberships_inside(new)
