"""The components' corners, moved together to where long rows are likeliest.

Theta errs most, for its size, where all its rows err alike: theta (I + E) with a k x k matrix E, of which the moments
know as much as third moments of the rows' memberships do. In rows of thousands of cells the memberships themselves are
known well, and many lie on the faces of the simplex: the likelihood knows the corners many times better. It needs no
further pass over cells: under theta M a row's likelihood at memberships x is that under theta at M x, and nearly a
Gaussian. So every row is laid out as a Gaussian once, and M found by EM: the memberships' posterior given M
(expectation propagation, as in :mod:`mixmem.kernels.long_rows`), then M given that, by least squares with columns that
sum to one. In rows of some hundred cells the Gaussian is not near enough, and corners would move by its error; where
rows are few against their length each has too much of a say in the theta that it is laid out by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.engine.rows import Arrays, Blocks, map_rows, sum_over
from mixmem.kernels.corners import corner_sums, row_gaussians
from mixmem.likelihood.memberships import fit_rows
from mixmem.likelihood.table import LikelihoodTable
from mixmem.moments.anchors import spread_table
from mixmem.typing import Array

LEAST_VARIABLES = 2_000
"""Variables from which on corners are moved."""
LEAST_ROWS = 0.5
"""Rows per variable from which on they are. Both were chosen on simulated tables, on which memberships gained about one
per cent, and lost as much at worst; with fewer rows or variables they gained or lost by up to a tenth."""
MOST_COMPONENTS = 20
"""Components up to which they are: a step sums as many numbers as the fourth power of that."""
MOST_ROWS = 10_000
"""Rows, spread over the table, that are laid out."""
STEPS, CLOSE = 40, 1e-4
"""Steps at most, and the largest change of an entry of M that ends them."""
LAYOUTS, NEAR = 3, 0.03
"""How often rows are laid out at most: again where an entry of M has moved so far that the Gaussians are not near."""
STRIDE = 30.0
"""How many times the length of a step it is continued at most."""


@dataclass(frozen=True)
class Corners:
    """Theta (rows, k) and alpha (k,) after the corners have moved, and by how much theta did, root mean square."""

    theta: Array
    alpha: Array
    moved: float


def can_move(table: Encoded, k: int) -> bool:
    """Return whether rows are long and many enough, and components few enough, for the likelihood to move corners."""
    n, p = table.codes.shape
    return p >= LEAST_VARIABLES and n >= LEAST_ROWS * p and 1 < k <= MOST_COMPONENTS


def move_corners(table: Encoded, theta: Array, alpha: Array) -> Corners:
    """Move the components of theta (rows, k) together; of alpha (k,) the sum stays and the shares follow."""
    part, cells = spread_table(table, MOST_ROWS), LikelihoodTable(table.take(slice(0, 0)))
    found, shares = theta, alpha
    for _ in range(LAYOUTS):
        matrix, follow = _likeliest(part, found, shares)
        if not np.isfinite(matrix).all():
            break
        found, shares = cells.inside(found @ matrix), follow
        if np.abs(matrix - np.eye(len(alpha))).max() < NEAR:
            break
    return Corners(found, shares, float(np.sqrt(((found - theta) ** 2).mean())))


def _likeliest(table: Encoded, theta: Array, alpha: Array) -> tuple[Array, Array]:
    """Return the M (k, k) under which rows are likeliest, laid out at theta (rows, k), and the alpha that follows."""
    rows = _Rows(table, theta, alpha)
    matrix, shares = np.eye(len(alpha)), alpha
    before: tuple[Array, Array] | None = None
    for made in range(STEPS):
        step, shares = rows.step(matrix, shares)
        change = step - matrix
        if np.abs(change).max() < CLOSE:
            break
        ahead = step
        if before is not None and made % 3 == 2:
            ahead = _continued(*before, change)
        before, matrix = (matrix, change), ahead
    return matrix, shares


def _continued(start: Array, first: Array, second: Array) -> Array:
    """Return where two steps from ``start``, these changes (k, k), lead to if they go on as they do (SQUAREM)."""
    bend = second - first
    stride = float(np.clip(np.sqrt((first**2).sum() / max((bend**2).sum(), 1e-300)), 1.0, STRIDE))
    return np.asarray(start + 2.0 * stride * first + stride**2 * bend)


class _Rows:
    """Rows laid out as Gaussians."""

    def __init__(self, table: Encoded, theta: Array, alpha: Array):
        cells = LikelihoodTable(table)
        n, k = table.n_rows, len(alpha)
        self.weights = table.each
        self.hessians, self.slopes, self.factors = np.empty((n, k, k)), np.empty((n, k)), np.empty((n, k, 2))
        modes = fit_rows(table, theta, alpha, memberships="mode").memberships
        likely = np.ascontiguousarray(cells.likelihoods(theta))

        def lay_out(rows: slice) -> None:
            row_gaussians(
                cells.codes[rows], cells.starts, cells.absent, likely, alpha, 1, 1e-6, modes[rows],
                self.hessians[rows], self.slopes[rows], self.factors[rows],
            )  # fmt: skip

        map_rows(lay_out, n)

    def step(self, corners: Array, alpha: Array) -> tuple[Array, Array]:
        """Return the corners (k, k) that are likeliest given the memberships expected under these, and alpha."""
        k = len(alpha)

        def fill(first: int, partials: Arrays) -> None:
            corner_sums(self.hessians, self.slopes, alpha, corners, self.weights, first, self.factors, *partials)

        shapes = [(k,), (k, k, k, k), (k, k)]
        sums, curvature, pulls = sum_over(Blocks(shapes, fill), len(self.slopes), k).root
        return _columns_of_one(curvature.reshape(k * k, k * k), pulls), alpha.sum() * sums / sums.sum()


def _columns_of_one(curvature: Array, pulls: Array) -> Array:
    """Return the M (k, k) whose columns sum to one with the largest pulls' M - M' curvature M / 2 over its entries."""
    k = len(pulls)
    columns = np.tile(np.eye(k), k)  # of the entries of M, row after row: which column each is in
    system = np.block([[curvature, columns.T], [columns, np.zeros((k, k))]])
    found = np.linalg.solve(system, np.concatenate([pulls.ravel(), np.ones(k)]))
    return np.asarray(found[: k * k].reshape(k, k))
