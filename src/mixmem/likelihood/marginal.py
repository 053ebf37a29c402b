"""The likelihood of rows with their memberships integrated out."""

from __future__ import annotations

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.engine.rows import map_rows
from mixmem.kernels.particles import marginal_likelihood
from mixmem.likelihood.memberships import fit_rows
from mixmem.likelihood.table import LikelihoodTable
from mixmem.typing import Array

LIKELIHOOD_ROWS = 1_000
"""Rows whose mean likelihood is taken where fits are compared."""
PARTICLES = 64
LONG_ROW = 300
"""Variables from which a row's likelihood is taken by Laplace's method: particles cost more there, and it errs less."""


def log_marginal(table: Encoded, theta: Array, alpha: Array) -> Array:
    """Return log p(row) of every row (n,), memberships integrated out, by what suits the rows' length."""
    if table.n_variables > LONG_ROW:
        return fit_rows(table, theta, alpha).marginal
    return row_likelihood(table, theta, alpha)


def row_likelihood(table: Encoded | LikelihoodTable, theta: Array, alpha: Array, n_particles: int = PARTICLES) -> Array:
    """Return log p(row | theta, alpha) of every row (n,), memberships integrated out by a particle filter.

    The same for the same arguments; equal rows get equal values, in any company.

    Parameters
    ----------
    table : Encoded or LikelihoodTable
        Codes (n, p); laid out already where several thetas are tried on the same rows.
    theta : array (rows, k)
        Theta, noise included.
    alpha : array (k,)
        Concentration of the components.
    n_particles : int
        More of them err less.

    Examples
    --------
    >>> from mixmem import row_likelihood, simulate_gdlm
    >>> drawn = simulate_gdlm(10, 6, 2, random_state=0)
    >>> row_likelihood(drawn.encoded, drawn.theta, drawn.alpha).shape
    (10,)
    """
    cells = table if isinstance(table, LikelihoodTable) else LikelihoodTable(table)
    likely, marks, out = cells.likelihoods(theta), cells.marks(theta), np.empty(len(cells.codes))

    def some(rows: slice) -> None:
        marginal_likelihood(
            cells.codes[rows], cells.starts, cells.absent, likely, marks, alpha, n_particles, 0, out[rows]
        )

    map_rows(some, len(out))
    return out + cells.scale(theta)
