"""Sweeps over the full moment tensor, which is never formed.

Let f_ij = theta_j' b_ij (length k) be what cell (i, j) says of the components, and take a group A of variables. The
step for j in A is the least-squares problem over every block M^{jst} with s != t and neither in A: all pairs of
distinct variables outside the group. With u_i the sum of f_is over s outside A, those pairs' raw moments contract to
u_i * u_i - sum_s f_is * f_is, because (sum_s f_s)^2 holds every pair and every same-variable square once. With
m_s = E[f_is], m = sum_s m_s, c1 = alpha0 / (alpha0 + 2) and c2 = 2 alpha0^2 / ((alpha0 + 1) (alpha0 + 2)),

    Z_j = E[b_ij g_i'] + E[b_ij] (c2 (m * m - sum_s m_s * m_s) - c1 (E[u * u] - sum_s E[f_s * f_s]))'
    g_i = u_i * u_i - 2 c1 m * u_i + y_i,   y_i = sum_s (2 c1 m_s * f_is - f_is * f_is)
    Q   = P * P - sum_s P_s * P_s,          P_s = theta_s' theta_s,  P = sum_s P_s

and theta_j times the weights minimises 1/2 tr(X Q X') - tr(X Z_j') over X >= 0. u and y are sums over a row's cells of
rows of one table (theta | 2 c1 m theta - theta^2), so a step costs one pass over the cells of A, and a sweep O(n p k).
Variables not known yet have zero rows in theta and add nothing: from the anchors to all variables is one such step.

The tables of theta, f and g are by *cells* (codes), of which b_ij are mixtures of soft levels: see
mixmem.data.soft_levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.data.soft_levels import Part, SoftLevels
from mixmem.engine.local import in_parts, threads_for
from mixmem.engine.rows import Arrays, Blocks, RowSum, map_rows, sum_over
from mixmem.kernels.grams import gram_sums
from mixmem.kernels.nqp import exact_rows
from mixmem.kernels.passes import add_joined, group_sums, pair_sums
from mixmem.moments.collective import Left, SlowMode
from mixmem.moments.joined_variables import JoinedVariables
from mixmem.moments.sums import NO_WEIGHTS, FirstMoments
from mixmem.moments.theta_from_factors import simplex_rows
from mixmem.progress import Progress
from mixmem.typing import Array

PATIENCE, MORE_PATIENCE, ALONE = 8, 24, 0.5
"""Sweeps in which the distance left must halve, else they are given up: where one or two components have this share of
what still moves, since one too many drifts for hundreds, and where many move, away from a poor start."""
CYCLES, PRECISION = 500, 1e-9
"""Bounds of the exact solution of a row's program; ill-conditioned ones end at the number of cycles."""


@dataclass(frozen=True)
class Pass:
    """What a pass over rows takes with it: the sums of all groups' steps at one theta are a function of the rows alone.

    ``members`` (p,) are the variables group by group, ``bounds`` (groups + 1,) where groups begin, ``starts`` (p,)
    where cells begin in ``table`` (cells, 2w) of what cells say and ``sizes`` (p,) how many each has, ``slopes``
    (groups, w) as in the kernel.
    """

    members: NDArray[np.int64]
    bounds: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    table: Array
    slopes: Array
    k: int

    def sums(self, rows: Encoded, first_stretch: int = 0) -> RowSum:
        """Return the sums over some rows: of b_ij g_i' (cells, w), and of u * u of every group (groups, w)."""
        weights = NO_WEIGHTS if rows.weights is None else rows.weights
        joined, table = self._joined

        def fill(first: int, partials: Arrays) -> None:
            group_sums(
                rows.codes, weights, joined.cells, joined.sizes, self.members, joined.steps, joined.bounds,
                joined.starts, joined.groups, table, self.slopes, first, *partials,
            )  # fmt: skip

        n_groups, width = self.slopes.shape
        work = Blocks([(len(self.table), width), (n_groups, width)], fill)
        return sum_over(work, rows.n_rows, rows.n_variables, first_stretch)

    @cached_property
    def _joined(self) -> tuple[JoinedVariables, Array]:
        """Neighbours joined, and what their cells say."""
        joined = JoinedVariables.of(self.starts, self.sizes, self.bounds)
        return joined, joined.table(self.table)


@dataclass(frozen=True)
class Correction:
    """What the means over all rows have more than those over a sample of weight ``size``, at one theta.

    ``cells`` (cells, k) is added to the means of b_ij g_i', ``squares`` (p, k) to those of u * u of the group that a
    variable is in. Held fixed, it lets sweeps over the sample lead to where sweeps over all rows would, but for what is
    of second order in how far theta still moves.
    """

    cells: Array
    squares: Array
    size: float

    @classmethod
    def of(cls, work: Pass, everything: Arrays, total: float, sample: Arrays, size: float) -> Correction:
        """Return the correction by a pass's sums over all rows, of weight ``total``, and over the sample."""
        cells, squares = (
            a[..., : work.k] / total - b[..., : work.k] / size for a, b in zip(everything, sample, strict=True)
        )
        by_variable = np.empty((len(work.members), work.k))
        by_variable[work.members] = np.repeat(squares, np.diff(work.bounds), axis=0)
        return cls(cells, by_variable, size)


@dataclass(frozen=True)
class Swept:
    """Theta after the sweeps, the components' weights w_h (k,), the root mean square change of theta per sweep."""

    theta: Array
    weights: Array
    changes: tuple[float, ...]
    n_groups: int
    converged: bool
    reason: str
    left: float = np.inf
    """How far theta is from where sweeps lead, root mean square, as far as can be told."""
    shares_left: float = np.inf
    """The same of the components' shares of the weights, the largest distance."""


class FullTensor:
    """The alternating least squares step on the tensor of all distinct triples, with its per-row state.

    Theta (soft levels, k) is that of the moments. Holds the rows' features of all variables (``totals``, (2, n, w):
    U and Y), kept up to date as theta changes. Rows may have weights (n,). With a ``correction`` the rows are a sample,
    and ``first`` the first moments of all rows.
    """

    def __init__(
        self,
        table: Encoded,
        first: FirstMoments,
        theta: Array,
        alpha0: float,
        correction: Correction | None = None,
    ):
        self.data, self.codes, self.soft, self.first = table, table.codes, table.coding.soft, first
        self.row_weights = NO_WEIGHTS if table.weights is None else table.weights
        self.n_rows, self.k, self.correction = table.n_rows, theta.shape[1], correction
        self.size = first.total if correction is None else correction.size
        self.once = alpha0 / (alpha0 + 2.0)
        self.twice = 2.0 * alpha0**2 / ((alpha0 + 1.0) * (alpha0 + 2.0))
        self.width = -(-self.k // 4) * 4  # whole vector registers: a padded loop is faster than a ragged one
        self.theta, self.weights = theta.copy(), np.ones(self.k)
        self.joins: dict[int, tuple[Part, JoinedVariables]] = {}  # a part is kept, so that no other gets its id
        self.totals = self._state()
        self.place()

    def _state(self) -> Array:
        return np.empty((2, self.n_rows, self.width))

    def place(self) -> None:
        """Compute the state anew from theta, free of what rounding has left in it."""
        everything = self.soft.whole
        self.table = self._says(everything, self.theta)
        self.totals[...] = 0.0
        known = np.flatnonzero(np.add.reduceat(self.theta.sum(axis=1), self.soft.offsets[:-1]) > 0.0)
        self._add(self.soft.part(known), self.table[self.soft.part(known).cells])
        self.sums = self._sums(everything)

    def moved(self, move: Array) -> Array:
        """Return theta moved by so much (soft levels, k), on the simplex."""
        return simplex_rows(np.maximum(self.theta + move, 0.0), self.soft.sizes, self.first.means)[0]

    def _add(self, part: Part, table: Array) -> None:
        """Add what cells of a part say (its cells, 2w) to every row's features."""
        if not len(part.variables):
            return
        joined = self._joined(part)
        says, (u, y) = joined.table(table), self.totals

        def add(rows: slice) -> None:
            add_joined(
                self.codes[rows], part.variables, joined.steps, joined.bounds, joined.starts, says, u[rows], y[rows]
            )

        map_rows(add, self.n_rows)

    def _joined(self, part: Part) -> JoinedVariables:
        """Return the variables of a part joined, found once."""
        if id(part) not in self.joins:
            self.joins[id(part)] = part, JoinedVariables.of_part(part)
        return self.joins[id(part)][1]

    def _own(self, part: Part, theta: Array) -> Array:
        """m_s = theta_s' E[b_s] of every variable of a part (variables, k)."""
        return np.asarray(np.add.reduceat(theta * self.first.means[part.rows][:, None], part.starts, axis=0))

    def _says(self, part: Part, theta: Array) -> Array:
        """Cells' (f | 2 c1 m f - f^2) of a part (its cells, 2w), padded; theta holds just its rows."""
        f = self.first.spread(part, theta)
        own = np.repeat(self._own(part, theta), part.cell_sizes, axis=0)
        out = np.zeros((len(f), 2 * self.width))
        out[:, : self.k] = f
        out[:, self.width : self.width + self.k] = f * (2.0 * self.once * own - f)
        return out

    def _sums(self, part: Part) -> tuple[Array, ...]:
        """Sums over variables: P (k, k), P_s * P_s (k, k), m (k,), m_s * m_s (k,), E[f_s * f_s] (k,)."""
        theta, f = self.theta[part.rows], self.table[part.cells, : self.k]
        gram, squares = gram_sums(theta, part.starts, part.sizes)
        own = self._own(part, theta)
        shares = self.first.counts[part.cells][:, None] / self.first.total
        return gram, squares, own.sum(axis=0), (own**2).sum(axis=0), (f**2 * shares).sum(axis=0)

    def program(self, part: Part) -> tuple[Array, Array]:
        """Q (k, k) and Z (rows of the part, k): the step's least-squares problem for some variables."""
        return self._program(part, self._without(part))

    def _without(self, part: Part) -> tuple[Array, ...]:
        """The sums over the variables outside a part."""
        return tuple(total - mine for total, mine in zip(self.sums, self._sums(part), strict=True))

    def _program(self, part: Part, others: tuple[Array, ...]) -> tuple[Array, Array]:
        gram, squares, m, m_squares, f_squares = others
        total, square = self._row_sums(part, m)
        level = self.twice * (m * m - m_squares) - self.once * (square / self.size - f_squares)
        z = self.first.collect(part, total) / self.size + np.outer(self.first.means[part.rows], level)
        return gram * gram - squares, z

    def _row_sums(self, part: Part, m: Array) -> tuple[Array, Array]:
        """Sums over rows of b_ij g_i' (cells of the part, k) and of u * u (k,); m (k,) is that of the others."""
        slope = np.zeros(self.width)
        slope[: self.k] = 2.0 * self.once * m
        table, joined = self.table[part.cells], self._joined(part)
        # of variables not known yet there is nothing to take off
        says = joined.table(table) if table.any() else table[:0]

        def fill(first: int, partials: Arrays) -> None:
            pair_sums(
                self.codes, self.row_weights, joined.cells, joined.sizes, part.variables, joined.steps, joined.bounds,
                joined.starts, says, *self.totals, slope, first, *partials,
            )  # fmt: skip

        work = Blocks([(len(part.cells), self.width), (self.width,)], fill)
        total, square = (sums[..., : self.k] for sums in sum_over(work, self.n_rows, self.data.n_variables).root)
        if self.correction is not None:
            total = total + self.size * self.correction.cells[part.cells]
            square = square + self.size * self.correction.squares[part.variables[0]]
        return total, square

    def solve(self, part: Part) -> tuple[Array, Array]:
        """Theta of some variables by one step (their rows, k), and their weights, mean over the variables (k,)."""
        with threads_for(3 * self.n_rows * len(part.variables) * self.width):
            return self._solve(part, self._without(part))

    def _solve(self, part: Part, others: tuple[Array, ...]) -> tuple[Array, Array]:
        q, z = self._program(part, others)
        scale = float(np.diag(q).max()) or 1.0
        x = self.theta[part.rows] * self.weights
        q, z = q / scale, -z / scale
        in_parts(lambda a, b: exact_rows(q, z[a:b], x[a:b], CYCLES, PRECISION), len(x))
        theta, sums = simplex_rows(x, part.sizes, self.first.means[part.rows])
        return theta, np.asarray(sums.mean(axis=0))

    def step(self, part: Part) -> Array:
        """Solve for some variables' theta and put it in place; returns their weights, mean over the variables (k,)."""
        with threads_for(3 * self.n_rows * len(part.variables) * self.width):
            others = self._without(part)
            theta, weights = self._solve(part, others)
            table = self._says(part, theta)
            self._add(part, table - self.table[part.cells])
            self.theta[part.rows], self.table[part.cells] = theta, table
            self.sums = tuple(rest + new for rest, new in zip(others, self._sums(part), strict=True))
            return weights

    def pass_over(self, groups: Sequence[Part]) -> Pass:
        """Return what sums all groups' steps over any rows at the present theta, without anything kept per row."""
        slopes = np.zeros((len(groups), self.width))
        for slope, group in zip(slopes, groups, strict=True):
            slope[: self.k] = 2.0 * self.once * self._without(group)[2]
        members = np.concatenate([group.variables for group in groups])
        bounds = np.cumsum([0, *(len(group.variables) for group in groups)])
        sizes = np.diff(self.soft.cell_offsets)[members]
        return Pass(members, bounds, self.soft.cell_offsets[members], sizes, self.table, slopes, self.k)

    @property
    def unknown(self) -> NDArray[np.int64]:
        """Variables of which nothing is known yet: zero rows of theta."""
        return np.flatnonzero(np.add.reduceat(self.theta.sum(axis=1), self.soft.offsets[:-1]) == 0.0)

    def extend(self) -> None:
        """Take all variables that are not known yet from those that are, the anchors as a rule, in one pass."""
        unknown = self.unknown
        if len(unknown):
            self.step(self.soft.part(unknown))


class UnheldTensor(FullTensor):
    """The same for rows that are not held: every step reads all of them, and nothing is kept per row.

    ``sample`` has the coding of all rows, ``first`` their first moments, and ``sums`` gives a pass's sums over them.
    """

    def __init__(
        self, sample: Encoded, first: FirstMoments, theta: Array, alpha0: float, sums: Callable[[Pass], Arrays]
    ):
        self.pass_sums = sums
        super().__init__(sample, first, theta, alpha0)
        self.n_rows = int(first.total)  # what threads are counted by

    def _state(self) -> Array:
        return np.empty((2, 0, self.width))

    def _add(self, part: Part, table: Array) -> None:
        """Keep nothing."""

    def _row_sums(self, part: Part, m: Array) -> tuple[Array, Array]:
        others = self.soft.part(np.setdiff1d(np.arange(self.data.n_variables), part.variables))
        cells, squares = self.pass_sums(self.pass_over([part, others]))
        return cells[part.cells, : self.k], squares[0, : self.k]


def groups_for(n_variables: int) -> int:
    """Groups a sweep takes the variables in: each on its own in a short table, at least three in a long one.

    A step leaves out the pairs inside its own group; with 25 variables that costs accuracy (a third of the table left
    out: RMSE 0.074 instead of 0.065 at n = 5000, k = 20), with hundreds nothing that could be measured.
    """
    return max(3, min(n_variables, 2500 // n_variables))


def split_in_groups(soft: SoftLevels, rng: np.random.Generator, n_groups: int | None = None) -> list[Part]:
    """Return the variables in groups drawn at random, by default in as many as :func:`groups_for` says."""
    p = len(soft.sizes)
    split = np.array_split(rng.permutation(p), groups_for(p) if n_groups is None else min(n_groups, p))
    return [soft.part(np.sort(group)) for group in split]


def sweep(
    tensor: FullTensor,
    *,
    n_sweeps: int,
    tol: float,
    rng: np.random.Generator,
    progress: Progress,
    early: bool = True,
    shares_tol: float = np.inf,
    n_groups: int | None = None,
) -> Swept:
    """Alternate over groups of variables until theta is within ``tol`` (root mean square) of where sweeps lead, and
    the components' shares within ``shares_tol``.

    After every sweep theta is moved to where its slow mode leads (:mod:`mixmem.moments.collective`). Without
    ``early``, all ``n_sweeps`` are made, and nothing but them. ``n_groups`` is how many the variables are taken in.
    """
    n_variables = tensor.data.n_variables
    changes: list[float] = []
    # the same groups in every sweep: a new split each time would keep theta moving and never let it settle
    groups = split_in_groups(tensor.soft, rng, n_groups)
    n_groups = len(groups)
    tensor.weights = np.ones(tensor.k)
    trust, lefts = 1.0, [np.inf]
    with progress.stage("sweeps", n_sweeps * n_groups) as step:
        for turn in range(n_sweeps):
            before = tensor.theta.copy()
            found = np.zeros(tensor.k)
            for group in groups:
                found += tensor.step(group) * len(group.variables) / n_variables
                step(1)
            tensor.weights = found
            changes.append(float(np.sqrt(((tensor.theta - before) ** 2).mean())))
            last = turn == n_sweeps - 1
            if not (early or last):
                continue
            left = SlowMode(tensor.theta, found).left(tensor.theta, tensor.theta - before)
            lefts.append(left.theta)
            if turn and max(left.theta, changes[-1]) <= tol and left.shares <= shares_tol:
                theta = tensor.moved(left.move) if early else tensor.theta
                reason = (
                    f"after {_count(changes)} theta is within {left.theta:.1g} and mean memberships are within "
                    f"{left.shares:.1g} of where they settle"
                )
                return Swept(
                    theta.copy(), found * left.factors, tuple(changes), n_groups, True, reason, left.theta, left.shares
                )
            patience = PATIENCE if _moved_by_few(left) else MORE_PATIENCE
            if last or (turn >= patience and lefts[-1] > 0.5 * lefts[-1 - patience]):
                break
            if turn and changes[-1] > 0.7 * changes[-2]:
                trust /= 2.0
            if not turn or changes[-1] <= changes[-2]:
                tensor.theta = tensor.moved(trust * left.move)
                tensor.place()
    reason = _unsettled(found / found.sum(), left, changes)
    return Swept(tensor.theta.copy(), found, tuple(changes), n_groups, False, reason, left.theta, left.shares)


def _moved_by_few(left: Left) -> bool:
    """Whether one or two components have most of what still moves; with three components it is always few."""
    squares = np.sort(left.by_component**2)[::-1]
    return len(squares) <= 3 or bool(squares[:2].sum() > ALONE * squares.sum())


def _count(changes: list[float]) -> str:
    return "1 sweep" if len(changes) == 1 else f"{len(changes)} sweeps"


def _unsettled(shares: Array, left: Left, changes: list[float]) -> str:
    """Say why sweeps have not settled: often one component is too many, and drifts while the others stand."""
    reason = f"stopped after {_count(changes)}, with theta still changing by {changes[-1]:.1g} per sweep"
    drifting = int(np.argmax(left.by_component))
    others = np.delete(left.by_component, drifting)
    if len(others) and left.by_component[drifting] > 2.0 * np.median(others):
        share = f"{shares[drifting]:.1%}"
        reason += f", most of all in the component that holds {share} of the memberships: it may be one too many"
    return reason
