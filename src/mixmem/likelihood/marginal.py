"""The likelihood of rows with their memberships integrated out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixmem.data.schema import Schema
from mixmem.engine.local import in_parts
from mixmem.kernels.particles import marginal_likelihood
from mixmem.likelihood.memberships import fit_rows
from mixmem.likelihood.table import Evidence
from mixmem.typing import Array

LIKELIHOOD_ROWS = 1_000
"""Rows whose mean likelihood is taken where fits are compared."""
PARTICLES = 64
LONG_ROW = 300
"""Variables from which a row's likelihood is taken by Laplace's method: particles cost more there, and it errs less."""


def log_marginal(codes: NDArray[np.unsignedinteger], schema: Schema, theta: Array, alpha: Array) -> Array:
    """log p(row) of every row (n,), memberships integrated out, by what suits the rows' length."""
    if schema.n_variables > LONG_ROW:
        return fit_rows(codes, schema, theta, alpha).marginal
    return row_likelihood(codes, schema, theta, alpha)


def row_likelihood(
    codes: NDArray[np.unsignedinteger], schema: Schema, theta: Array, alpha: Array, n_particles: int = PARTICLES
) -> Array:
    """Return log p(row | theta, alpha) of every row, memberships integrated out by a particle filter.

    The result is the same for the same arguments, whatever the other rows are.

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
    n_particles : int
        Particles per row: the more, the smaller the error.

    Returns
    -------
    (n,) array

    Examples
    --------
    >>> from mixmem import row_likelihood, simulate_gdlm
    >>> drawn = simulate_gdlm(100, 12, 2, random_state=0)
    >>> row_likelihood(drawn.codes, drawn.schema, drawn.theta, drawn.alpha).shape
    (100,)
    """
    evidence, out = Evidence(codes, schema), np.empty(codes.shape[0])
    table, marks = evidence.table(theta), evidence.marks(theta)
    in_parts(
        lambda a, b: marginal_likelihood(
            evidence.codes[a:b],
            evidence.starts,
            evidence.absent,
            table,
            marks,
            alpha,
            n_particles,
            0,
            out[a:b],
        ),
        len(codes),
    )
    return out + evidence.scale(theta)
