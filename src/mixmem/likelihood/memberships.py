"""Memberships of rows and their likelihood, given theta and alpha.

The estimate is the maximum of the posterior density in softmax coordinates: x maximises
log p(row | x) + sum_h alpha_h log x_h on the simplex. In the memberships' own coordinates the Dirichlet density with
alpha_h < 1 is unbounded at the corners and has no usable maximum; in softmax coordinates its exponents are alpha_h
instead of alpha_h - 1, the problem is concave with one interior solution, and where every cell points to a single
component the maximum is the posterior mean exactly. The same curvature gives the row's marginal likelihood by Laplace's
method. Along log x_h the log posterior curves like that of a Gamma variable of shape alpha_h + x_h^2 K_hh (K minus the
Hessian of the log-likelihood), for which Laplace's method has a known error, Stirling's; that error is taken off. It is
exact where cells point to single components and for a component no cell supports.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.engine.rows import map_rows
from mixmem.kernels.simplex import memberships as newton
from mixmem.kernels.special import log_gamma
from mixmem.likelihood.table import LikelihoodTable
from mixmem.progress import Progress
from mixmem.typing import Array


@dataclass(frozen=True)
class RowFit:
    """Hold the memberships of rows and their likelihoods.

    Attributes
    ----------
    memberships : (n, k) array
        Memberships of every row; each row sums to one.
    conditional : (n,) array
        Log-likelihood of every row at its memberships.
    marginal : (n,) array
        Log-likelihood with memberships integrated out under the Dirichlet distribution.
    n_steps : (n,) array of integers
        Newton steps.
    gap : (n,) array
        Relative miss of optimality.
    """

    memberships: Array
    conditional: Array
    marginal: Array
    n_steps: NDArray[np.int64]
    gap: Array


def fit_rows(
    table: Encoded,
    theta: Array,
    alpha: Array,
    *,
    max_steps: int = 50,
    tol: float = 1e-8,
    progress: Progress | None = None,
) -> RowFit:
    """Find the memberships of rows, and their likelihoods.

    A row of which nothing is known gets alpha / alpha0, the mean of all rows.

    Parameters
    ----------
    table : Encoded
        Codes (n, p).
    theta : array (rows, k)
        Theta, noise included.
    alpha : array (k,)
        Concentration of the components.
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
    n, k = table.n_rows, theta.shape[1]
    cells = LikelihoodTable(table)
    likely = cells.likelihoods(theta)
    x = np.tile(alpha / alpha.sum(), (n, 1))
    conditional, curvature, gap, shapes = np.empty(n), np.empty(n), np.empty(n), np.empty((n, k))
    steps = np.empty(n, np.int64)

    def solve(rows: slice) -> None:
        newton(
            cells.codes[rows], cells.starts, cells.absent, likely, alpha, max_steps, tol, x[rows],
            conditional[rows], curvature[rows], shapes[rows], steps[rows], gap[rows],
        )  # fmt: skip

    with (progress or Progress()).stage("memberships", n) as step:
        map_rows(solve, n, step)
    conditional += cells.scale(theta)
    weight = alpha.sum() + cells.lengths
    laplace = (
        conditional
        + (alpha * np.log(x)).sum(axis=1)
        + 0.5 * (k - 1) * np.log(2.0 * np.pi)
        - 0.5 * (curvature - np.log(weight))
    )
    prior = float(log_gamma(alpha.sum())) - log_gamma(alpha).sum()
    correction = _stirling_error(shapes).sum(axis=1) - _stirling_error(weight)
    return RowFit(x, conditional, laplace + prior + correction, steps, gap)


def _stirling_error(a: Array) -> Array:
    """log Gamma(a) less what Laplace's method gives for it in these coordinates."""
    return np.asarray(log_gamma(a) - (0.5 * np.log(2.0 * np.pi / a) + a * np.log(a) - a))
