"""Tables drawn from a generalized Dirichlet latent variable model (paper, section 6.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixmem.encoding import Encoded, decode
from mixmem.errors import InputError
from mixmem.moments import Array
from mixmem.schema import Schema, Variable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Simulation:
    """A drawn table and its truth.

    ``codes`` (n, p), ``theta`` (sum of levels, k), ``alpha`` (k,), ``memberships`` (n, k), ``noise`` the share of cells
    replaced by uniform draws. ``frame`` is the table as a data frame.
    """

    codes: NDArray[np.unsignedinteger]
    schema: Schema
    theta: Array
    alpha: Array
    memberships: Array
    noise: float

    @property
    def encoded(self) -> Encoded:
        """The table ready to fit, with every level in its schema: a rare one may not have been drawn."""
        return Encoded(self.codes, self.schema, np.arange(len(self.codes)))

    @property
    def frame(self) -> pd.DataFrame:
        """The table with named columns and levels."""
        return decode(self.codes, self.schema)


def draw_codes(
    schema: Schema, theta: Array, memberships: Array, noise: float, rng: np.random.Generator
) -> NDArray[np.unsignedinteger]:
    """One level for every row and variable from theta (rows, k) mixed by memberships (n, k), with uniform noise."""
    n = memberships.shape[0]
    codes = np.empty((n, schema.n_variables), dtype=schema.codes_dtype)
    for j in range(schema.n_variables):
        levels = memberships @ theta[schema.offsets[j] : schema.offsets[j + 1]].T
        edges = np.cumsum(levels, axis=1)[:, :-1]
        codes[:, j] = np.sum(rng.random((n, 1)) > edges, axis=1)
        if noise > 0.0:
            hit = np.flatnonzero(rng.random(n) < noise)
            codes[hit, j] = rng.integers(0, schema.n_levels[j], len(hit))
    return codes


def draw_table(schema: Schema, theta: Array, alpha: Array, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of a model with these parameters, as a data frame."""
    return decode(draw_codes(schema, theta, rng.dirichlet(alpha, size=n_rows), 0.0, rng), schema)


def simulate_gdlm(
    n_rows: int,
    n_variables: int = 25,
    n_components: int = 5,
    *,
    n_levels: int = 4,
    alpha: float | ArrayLike = 0.1,
    noise: float = 0.0,
    random_state: int | np.random.Generator | None = None,
) -> Simulation:
    """Draw a table by the paper's design: theta columns from Dirichlet(0.5), memberships from Dirichlet(alpha).

    ``alpha`` is one number for every component or (k,); ``noise`` (delta) is the share of cells replaced by draws from
    the uniform distribution over the variable's levels.

    >>> table = simulate_gdlm(100, 6, 3, random_state=0)
    >>> table.codes.shape, table.theta.shape, table.memberships.shape
    ((100, 6), (24, 3), (100, 3))
    """
    if n_rows < 1 or n_variables < 1 or n_components < 1 or n_levels < 2:
        raise InputError(
            "a simulation needs at least one row, one variable, one component and two levels; got "
            f"{n_rows}, {n_variables}, {n_components} and {n_levels}"
        )
    if not 0.0 <= noise <= 1.0:
        raise InputError(f"noise is a share of the cells, from 0 to 1; got {noise}")
    concentrations = np.broadcast_to(np.asarray(alpha, dtype=float), (n_components,)).copy()
    if not (concentrations > 0.0).all():
        raise InputError(f"alpha must be positive; got {alpha!r}")
    rng = np.random.default_rng(random_state)
    levels = tuple(str(level) for level in range(n_levels))
    schema = Schema(tuple(Variable(f"x{j}", levels, "int") for j in range(n_variables)))
    theta = rng.dirichlet(np.full(n_levels, 0.5), size=(n_variables, n_components)).transpose(0, 2, 1)
    theta = theta.reshape(n_variables * n_levels, n_components)
    memberships = rng.dirichlet(concentrations, size=n_rows)
    codes = draw_codes(schema, theta, memberships, noise, rng)
    return Simulation(codes, schema, theta, concentrations, memberships, noise)
