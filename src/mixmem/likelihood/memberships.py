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

from mixmem.data.schema import Schema
from mixmem.engine.local import in_threads
from mixmem.kernels import ROW_BLOCK
from mixmem.kernels.simplex import memberships as newton
from mixmem.kernels.special import log_gamma
from mixmem.likelihood.table import Evidence
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
    codes: NDArray[np.unsignedinteger],
    schema: Schema,
    theta: Array,
    alpha: Array,
    *,
    max_steps: int = 50,
    tol: float = 1e-8,
    progress: Progress | None = None,
) -> RowFit:
    """Find the memberships of rows by Newton's method, and their likelihoods.

    A row of which nothing is known gets alpha / alpha0, the mean of all rows.

    Parameters
    ----------
    codes : (n, p) array of unsigned integers
        Coded table.
    schema : Schema
        Its variables.
    theta : (rows, k) array
        Parameters of every variable in every component.
    alpha : (k,) array
        Concentrations of the Dirichlet distribution of memberships.
    max_steps : int
        Newton steps per row at most.
    tol : float
        Relative miss of optimality that ends a row's steps.
    progress : Progress or None
        Where to report progress; None reports nowhere.

    Returns
    -------
    RowFit

    Examples
    --------
    >>> from mixmem import fit_rows, simulate_gdlm
    >>> drawn = simulate_gdlm(100, 12, 2, random_state=0)
    >>> fit_rows(drawn.codes, drawn.schema, drawn.theta, drawn.alpha).memberships.shape
    (100, 2)
    """
    n, k = codes.shape[0], theta.shape[1]
    evidence = Evidence(codes, schema)
    table = evidence.table(theta)
    x = np.tile(alpha / alpha.sum(), (n, 1))
    conditional, curvature, gap, shapes = np.empty(n), np.empty(n), np.empty(n), np.empty((n, k))
    steps = np.empty(n, np.int64)

    def solve(block: int) -> None:
        rows = slice(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK))
        newton(
            evidence.codes[rows], evidence.starts, evidence.absent, table, alpha, max_steps, tol, x[rows],
            conditional[rows], curvature[rows], shapes[rows], steps[rows], gap[rows],
        )  # fmt: skip
        step(rows.stop - rows.start)

    with (progress or Progress()).stage("memberships", n) as step:
        in_threads(solve, -(-n // ROW_BLOCK))
    conditional += evidence.scale(theta)
    weight = alpha.sum() + evidence.lengths
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
