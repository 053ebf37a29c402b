"""Tables drawn from a generalized Dirichlet latent variable model (paper, section 6.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded, decode, decoded, encode
from mixmem.data.kinds.categorical import drawn_levels
from mixmem.data.schema import Schema, Variable, mixed_schema
from mixmem.errors import InputError
from mixmem.moments.sums import FirstMoments
from mixmem.typing import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Simulation:
    """Hold a drawn table and its truth; ``frame`` is the table as a data frame.

    Attributes
    ----------
    codes : (n, p) array of unsigned integers
        Coded table.
    coding : Coding
        What the codes mean.
    theta : (rows, k) array
        Parameters of every variable in every component.
    alpha : (k,) array
        Concentrations of the Dirichlet distribution of memberships.
    memberships : (n, k) array
        Memberships of every row.
    noise : float
        Share of cells replaced by uniform draws (delta).
    """

    codes: NDArray[np.unsignedinteger]
    coding: Coding
    theta: Array
    alpha: Array
    memberships: Array
    noise: float

    @property
    def schema(self) -> Schema:
        """Return the variables."""
        return self.coding.schema

    @property
    def encoded(self) -> Encoded:
        """Return the table ready to fit, with every level in its schema: a rare one may not have been drawn."""
        return Encoded.of(self.codes, self.coding)

    @property
    def frame(self) -> pd.DataFrame:
        """Return the table with named columns and levels."""
        return decode(self.codes, self.coding)


def draw_codes(
    coding: Coding, theta: Array, memberships: Array, noise: float, rng: np.random.Generator
) -> NDArray[np.unsignedinteger]:
    """Draw a category for every row and variable, from theta (rows, k) mixed by memberships (n, k), with noise."""
    n, schema = memberships.shape[0], coding.schema
    codes = np.empty((n, schema.n_variables), dtype=coding.codes_dtype)
    for j in range(schema.n_variables):
        codes[:, j] = drawn_levels(theta[schema.rows(j)], memberships, rng)
        if noise > 0.0:
            hit = np.flatnonzero(rng.random(n) < noise)
            codes[hit, j] = rng.integers(0, schema.sizes[j], len(hit))
    return codes


def draw_table(schema: Schema, theta: Array, alpha: Array, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows of a model with these parameters, as a data frame."""
    return draw_values(schema, theta, rng.dirichlet(alpha, size=n_rows), rng)


def draw_values(schema: Schema, theta: Array, memberships: Array, rng: np.random.Generator) -> pd.DataFrame:
    """Draw a value for every row and variable, of any kind, from theta (rows, k) mixed by memberships (n, k)."""
    import pandas as pd

    columns = {}
    for j, column in enumerate(Coding.of(schema).columns):
        drawn = column.own_kind.sample(column, theta[schema.rows(j)], memberships, rng)
        columns[column.name] = drawn if column.is_number else decoded(drawn, column)
    return pd.DataFrame(columns)


def drawn_rows(first: FirstMoments, theta: Array, alpha: Array, n_rows: int, rng: np.random.Generator) -> Encoded:
    """Return rows of a model with these parameters, coded as a table with these first moments is; cells are missing at
    random, as often as there."""
    coding, schema = first.coding, first.coding.schema
    memberships = rng.dirichlet(alpha, size=n_rows)
    codes = np.empty((n_rows, coding.n_variables), dtype=coding.codes_dtype)
    for j, column in enumerate(coding.columns):
        drawn = column.own_kind.sample(column, theta[schema.rows(j)], memberships, rng)
        codes[:, j] = np.searchsorted(column.edges, drawn) if column.is_number else drawn
        if column.missing:
            codes[rng.random(n_rows) >= first.observed[j], j] = column.n_codes
    return Encoded.of(codes, coding)


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

    Parameters
    ----------
    n_rows, n_variables, n_components : int
        Numbers n of rows, p of variables and k of components.
    n_levels : int
        Levels of every variable.
    alpha : float or (k,) array
        Concentrations of the Dirichlet distribution of memberships; one number stands for every component.
    noise : float
        Share of cells (delta) replaced by draws from the uniform distribution over the variable's levels.
    random_state : None, int or numpy random generator
        Source of the draws.

    Returns
    -------
    Simulation

    Raises
    ------
    InputError
        If a number is too small, alpha is not positive, or noise is not a share.

    Examples
    --------
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
    coding = Coding.of(Schema(tuple(Variable(f"x{j}", levels, "int") for j in range(n_variables))))
    theta = rng.dirichlet(np.full(n_levels, 0.5), size=(n_variables, n_components)).transpose(0, 2, 1)
    theta = theta.reshape(n_variables * n_levels, n_components)
    memberships = rng.dirichlet(concentrations, size=n_rows)
    codes = draw_codes(coding, theta, memberships, noise, rng)
    return Simulation(codes, coding.pooling(codes), theta, concentrations, memberships, noise)


def simulate_mixed(
    n_rows: int,
    n_components: int = 4,
    *,
    n_categorical: int = 20,
    n_count: int = 20,
    n_continuous: int = 20,
    n_levels: int = 4,
    alpha: float | ArrayLike = 0.3,
    missing: float = 0.0,
    random_state: int | np.random.Generator | None = None,
) -> Simulation:
    """Draw a table of categories, counts and continuous numbers, of which a share ``missing`` is lost at random.

    Theta of categories as in :func:`simulate_gdlm`; means of counts from Gamma(2, 2), of continuous numbers from
    Normal(0, 2), with variances from 0.5 to 2.

    Parameters
    ----------
    n_rows, n_components : int
        Numbers n of rows and k of components.
    n_categorical, n_count, n_continuous : int
        Variables of each kind.
    n_levels : int
        Levels of every categorical variable.
    alpha : float or (k,) array
        Concentrations of the Dirichlet distribution of memberships; one number stands for every component.
    missing : float
        Share of cells that are lost, below 1.
    random_state : None, int or numpy random generator
        Source of the draws.

    Returns
    -------
    Simulation

    Raises
    ------
    InputError
        If a number is too small or missing is not a share below 1.

    Examples
    --------
    >>> table = simulate_mixed(100, 3, n_categorical=2, n_count=1, n_continuous=1, missing=0.2, random_state=0)
    >>> table.frame.dtypes.astype(str).tolist(), table.theta.shape
    (['float64', 'float64', 'float64', 'float64'], (12, 3))
    """
    if min(n_rows, n_components, n_categorical + n_count + n_continuous) < 1 or not 0.0 <= missing < 1.0:
        raise InputError(
            "a simulation needs at least one row, one component and one variable, and a share missing below 1; got "
            f"{n_rows}, {n_components}, {n_categorical + n_count + n_continuous} and {missing}"
        )
    rng = np.random.default_rng(random_state)
    k, levels = n_components, tuple(str(level) for level in range(n_levels))
    schema = mixed_schema(n_categorical, n_count, n_continuous, levels)
    probabilities = rng.dirichlet(np.full(n_levels, 0.5), size=(n_categorical, k)).transpose(0, 2, 1).reshape(-1, k)
    rates = np.repeat(rng.gamma(2.0, 2.0, size=(n_count, k)), 2, axis=0)  # Poisson's variance is its mean
    normal = np.stack([rng.normal(0.0, 2.0, size=(n_continuous, k)), rng.uniform(0.5, 2.0, size=(n_continuous, k))], 1)
    theta = np.concatenate([probabilities, rates, normal.reshape(-1, k)])
    concentrations = np.broadcast_to(np.asarray(alpha, dtype=float), (k,)).copy()
    memberships = rng.dirichlet(concentrations, size=n_rows)
    frame = draw_values(schema, theta, memberships, rng)
    if missing > 0.0:
        frame = frame.mask(rng.random(frame.shape) < missing)
    table = encode(frame, schema, gather=True)
    return Simulation(table.codes, table.coding, theta, concentrations, memberships, 0.0)
