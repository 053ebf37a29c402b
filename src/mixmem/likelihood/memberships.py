"""Memberships of rows, given theta and alpha.

The estimate with the least error is the posterior mean. Below a hundred cells, and of few components, it is summed over
nodes (:mod:`mixmem.likelihood.nodes`) at once; other rows, whose likelihood is nearly a Gaussian, have it by
expectation propagation from their mode (:mod:`mixmem.kernels.long_rows`). Rows that too few nodes explain take the
mode: the maximum of the posterior density in softmax coordinates, where x maximises
log p(row | x) + sum_h alpha_h log x_h on the simplex. In the memberships' own coordinates the Dirichlet density with
alpha_h < 1 is unbounded at the corners and has no usable maximum; in softmax coordinates its exponents are alpha_h
instead of alpha_h - 1, the problem is concave with one interior solution, and where every cell points to a single
component the maximum is the posterior mean exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.engine.rows import map_rows
from mixmem.kernels.long_rows import posterior_memberships
from mixmem.kernels.simplex import memberships as newton
from mixmem.likelihood.marginal import mean_memberships
from mixmem.likelihood.table import LikelihoodTable
from mixmem.progress import Progress
from mixmem.typing import Array


@dataclass(frozen=True)
class RowFit:
    """Hold the memberships of rows, and how well they explain them.

    Attributes
    ----------
    memberships : (n, k) array
        Memberships of every row; each row sums to one.
    conditional : (n,) array
        Log-likelihood of every row at its memberships.
    n_steps : (n,) array of integers
        Newton steps to the mode; none for a mean that is summed over nodes.
    gap : (n,) array
        Relative miss of optimality of the mode; none for a mean that is summed over nodes.
    """

    memberships: Array
    conditional: Array
    n_steps: NDArray[np.int64]
    gap: Array


def fit_rows(
    table: Encoded,
    theta: Array,
    alpha: Array,
    *,
    memberships: str = "mean",
    max_steps: int = 50,
    tol: float = 1e-8,
    progress: Progress | None = None,
) -> RowFit:
    """Find the memberships of rows, and their likelihoods given those.

    A row of which nothing is known gets alpha / alpha0, the mean of all rows.

    Parameters
    ----------
    table : Encoded
        Codes (n, p).
    theta : array (rows, k)
        Theta, noise included.
    alpha : array (k,)
        Concentration of the components.
    memberships : "mean" or "mode"
        The posterior mean, which errs least, for rows that are short enough or long enough for it to be had at once,
        and the mode for the others; or the mode for all.
    max_steps, tol
        Newton steps at most, and the relative miss of optimality at which they end.
    progress
        Who is told how far it is.

    Returns
    -------
    RowFit

    Examples
    --------
    >>> from mixmem import fit_rows, simulate_gdlm
    >>> drawn = simulate_gdlm(10, 6, 2, random_state=0)
    >>> fit_rows(drawn.encoded, drawn.theta, drawn.alpha).memberships.shape
    (10, 2)
    """
    n = table.n_rows
    cells = LikelihoodTable(table)
    likely = cells.likelihoods(theta)
    x = np.tile(alpha / alpha.sum(), (n, 1))
    conditional, gap = np.empty(n), np.empty(n)
    steps = np.empty(n, np.int64)
    known = np.zeros(n, dtype=bool)
    if memberships == "mean" and len(alpha) > 1:
        means, known = mean_memberships(cells, theta, alpha)
        x[known] = means[known]

    found = newton if memberships == "mode" else posterior_memberships

    def solve(rows: slice) -> None:
        for of_nodes, find, most in ((True, newton, 0), (False, found, max_steps)):
            some = np.flatnonzero(known[rows] == of_nodes) + rows.start
            if len(some):
                own, values, made, missed = x[some], conditional[some], steps[some], gap[some]
                find(cells.codes[some], cells.starts, cells.absent, likely, alpha, most, tol, own, values, made, missed)
                x[some], conditional[some], steps[some], gap[some] = own, values, made, 0.0 if of_nodes else missed

    with (progress or Progress()).stage("memberships", n) as step:
        map_rows(solve, n, step)
    conditional += cells.scale(theta)
    return RowFit(x, conditional, steps, gap)
