"""Goodness of fit: how often two levels occur together in the table, against how often the model says they do.

The model's covariance of two distinct variables is

    Cov(b_j, b_s) = sum_h w_h theta_jh theta_sh' - mu_j mu_s' / (alpha0 + 1)

with w_h = alpha_h / (alpha0 (alpha0 + 1)) and mu_j = sum_h alpha_h theta_jh / alpha0. The fitted share of two levels is
that covariance plus the product of their own shares in the table: a level that is merely more frequent than fitted
would otherwise show in all its pairs. The levels' own shares are compared by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixmem.data.coding import Coding, ColumnCoding
from mixmem.data.encode import Encoded
from mixmem.data.kinds.base import AsCategories
from mixmem.data.schema import Schema, Variable
from mixmem.data.soft_levels import starts_of
from mixmem.engine.local import in_threads
from mixmem.errors import InputError
from mixmem.moments.sums import FirstMoments, first_moments, mode_rows
from mixmem.typing import Array

if TYPE_CHECKING:
    import pandas as pd

TILE, TILE_ROWS = 20, 1_280
"""Variables compared with each other in one product of matrices, and rows of theta that these have at most, about: some
fifteen arrays of that size squared are in use at once."""
LEAST_COUNT = 5.0
"""Standard errors are not taken below that of this expected count: a few rows more in a rare pair are no misfit."""
CHANCE = 0.01
"""Probability, by the chi-square distribution, that a table which follows the model has any pair beyond chance."""
MANY = 0.1
"""Share of pairs beyond chance from which components are missing rather than a few variables alike."""
MOST_PAIRS = 1000
"""Pairs kept in the result."""
CHUNK_BYTES = 32_000_000
"""Memory for one-hot rows; the counts are exact, so the bits do not depend on it."""

Members = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]
"""Named columns of one length: a table without pandas, which takes half a second to import."""


@dataclass(frozen=True)
class Goodness:
    """Hold observed against fitted shares of pairs of levels, worst first.

    A z is (observed - fitted) / standard error. ``variables`` and ``pairs`` are the columns below as pandas frames.

    Attributes
    ----------
    misfit : float
        Root mean square z over everything compared: about 1 where the model holds, less (0.6 to 0.9) if theta was
        learned from the same rows.
    variable_columns : dict of arrays
        One row per variable: misfit over all its partners; the partner with which it fits worst and their levels with
        the largest z; ``share_misfit``, the root mean square z of its own level shares.
    pair_columns : dict of arrays
        The worst pairs (at most 1,000), with a chi-square-like statistic on so many ``degrees`` of freedom.
    n_pairs : int
        Pairs of variables that were compared.
    n_beyond_chance : int
        Pairs that differ from the model more than the worst pair of a table that follows it.
    n_partners : int
        Every variable was compared with at least so many others.
    """

    misfit: float
    variable_columns: Columns
    pair_columns: Columns
    n_pairs: int
    n_beyond_chance: int
    n_partners: int

    @cached_property
    def variables(self) -> pd.DataFrame:
        """One row per variable, worst first."""
        import pandas as pd

        return pd.DataFrame(self.variable_columns)

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """One row per pair of variables, worst first."""
        import pandas as pd

        return pd.DataFrame(self.pair_columns)

    @property
    def summary(self) -> str:
        """Say in words what the comparison found."""
        others = len(self.variable_columns["variable"]) - 1
        size = f"misfit {self.misfit:.2f}; up to about 1 is chance"
        if self.n_partners < others:
            size += f"; each variable was compared with {self.n_partners} of {others} others"
        if not self.n_beyond_chance:
            return f"No pair of variables departs from what the components explain by more than chance ({size})."
        worst = {name: values[0] for name, values in self.pair_columns.items()}
        many = self.n_beyond_chance > MANY * self.n_pairs
        return (
            f"The components do not explain how {self.n_beyond_chance:,} of {self.n_pairs:,} pairs of variables go "
            f"together ({size}). The worst pair is {worst['variable']!r} and {worst['partner']!r}: "
            f"{worst['level']!r} with {worst['partner_level']!r} in {worst['observed']:.1%} of the rows, where "
            f"{worst['fitted']:.1%} are fitted."
            + " So many pairs are not for chance: look with choose-k whether the rows show more components, or whether "
            "variables belong together in another way." * many
        )


def goodness_of_fit(
    table: Encoded, theta: Array, alpha: Array, *, max_partners: int = 200, first: FirstMoments | None = None
) -> Goodness:
    """Compare how often two levels occur together with what a model says.

    Up to ``max_partners`` + 1 variables, all pairs are compared. In wider tables each variable is compared with those
    near it and with an even spread of the others, about ``max_partners`` in all: the cost grows with n p, not with p^2.

    Parameters
    ----------
    table : Encoded
        Codes (n, p).
    theta : array (rows, k)
        Theta, noise included.
    alpha : array (k,)
        Concentration of the components.
    max_partners : int
        Variables that each is compared with, about.
    first : FirstMoments or None
        The table's first moments, if they are known already.

    Returns
    -------
    Goodness

    Examples
    --------
    >>> from mixmem import goodness_of_fit, simulate_gdlm
    >>> drawn = simulate_gdlm(1000, 6, 2, random_state=0)
    >>> found = goodness_of_fit(drawn.encoded, drawn.theta, drawn.alpha)
    >>> 0.8 < found.misfit < 1.2, found.n_pairs, found.n_beyond_chance
    (True, 15, 0)
    """
    from scipy.special import chdtri

    theta, alpha = np.asarray(theta, dtype=float), np.asarray(alpha, dtype=float)
    _check(table, theta, alpha, max_partners)
    view, theta = as_categories(table, theta, first)
    if first is None or view is not table:
        first = first_moments(view)
    means, schema = first.means, view.schema
    tile = max(1, min(TILE, TILE_ROWS // int(schema.sizes.max())))
    tiles = list(tile_pairs(schema.n_variables, max_partners, tile))
    parts = in_threads(lambda t: _compare(view, theta, alpha, means, *tiles[t]), len(tiles))
    found = _scored({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, schema)
    n_pairs = len(found["variable"])
    beyond = found["chi_square"] > chdtri(found["degrees"], CHANCE / n_pairs)  # the chi-square exceeded so rarely
    shares = _share_misfit(schema, means, theta @ alpha / alpha.sum(), first.observed * view.n_rows)
    columns = ["variable", "partner", "misfit", "chi_square", "degrees", *WORST]
    return Goodness(
        misfit=float(_rms(found["squares"].sum(), found["weight"].sum())),
        variable_columns=_by_variable(found, schema, shares),
        pair_columns=_named({name: found[name][:MOST_PAIRS] for name in columns}, schema),
        n_pairs=n_pairs,
        n_beyond_chance=int(beyond.sum()),
        n_partners=int(np.bincount(np.concatenate([found["variable"], found["partner"]])).min()),
    )


def as_categories(table: Encoded, theta: Array, first: FirstMoments | None = None) -> tuple[Encoded, Array]:
    """Return the table and theta with every variable as categories: numbers by their quarters, genotypes by one of the
    copies, drawn at random."""
    if table.schema.has("plain").all() and not table.coding.pooled:
        return table, theta
    first = first_moments(table) if first is None else first
    rng = np.random.default_rng(0)
    codes, columns, parts = [], [], []
    for j, column in enumerate(table.coding.columns):
        found = column.own_kind.as_categories(column, theta[table.schema.rows(j)], first.of(j))
        width = found.of_code.shape[1]
        lookup = np.concatenate([found.of_code, np.full((1, width), len(found.levels))])
        codes.append(lookup[table.codes[:, j], rng.integers(width, size=table.n_rows)])
        columns.append(ColumnCoding(Variable(column.name, _told_apart(column, found)), missing=column.missing))
        parts.append(found.theta)
    coding = Coding(tuple(columns))
    view = Encoded(np.stack(codes, axis=1).astype(coding.codes_dtype), coding, table.row_ids)
    return view, np.concatenate(parts)


def _told_apart(column: ColumnCoding, found: AsCategories) -> tuple[str, ...]:
    """Return the levels' texts; of numbers that agree in the digits shown, the first and last value of every level."""
    if not column.is_number or len(set(found.levels)) == len(found.levels):
        return found.levels
    level = found.of_code[:, 0]
    return tuple(_span(column.values[level == each].tolist()) for each in range(len(found.levels)))


def _span(values: list[float]) -> str:
    """Return the first and the last of some values in order, in all their digits.

    >>> _span([20240101.0, 20240102.0]), _span([0.1])
    ('20240101 to 20240102', '0.1')
    """
    first, last = (repr(float(values[end])).removesuffix(".0") for end in (0, -1))
    return first if first == last else f"{first} to {last}"


WORST = ["level", "partner_level", "observed", "fitted", "z"]
"""What is told of the worst pair of levels."""


def tile_pairs(n_variables: int, max_partners: int, tile: int = TILE) -> Iterator[tuple[Members, Members]]:
    """Groups of consecutive variables to compare: each with itself, the next, and others spread round the table.

    Every pair of variables occurs at most once, and all occur if ``max_partners`` allows.

    >>> [(left.tolist(), right.tolist()) for left, right in tile_pairs(3, 200)]
    [([0, 1, 2], [0, 1, 2])]
    """
    tiles = np.array_split(np.arange(n_variables, dtype=np.int64), -(-n_variables // tile))
    furthest = len(tiles) // 2
    steps = furthest if n_variables - 1 <= max_partners else min(furthest, max(1, (max_partners // tile - 1) // 2))
    offsets = [0, *np.linspace(1, furthest, steps).round().astype(int).tolist()]
    for a, b in sorted({tuple(sorted((t, (t + o) % len(tiles)))) for t in range(len(tiles)) for o in offsets}):
        yield tiles[a], tiles[b]


def _compare(table: Encoded, theta: Array, alpha: Array, means: Array, left: Members, right: Members) -> Columns:
    """One row for every pair of a variable of ``left`` with a later one of ``right``.

    ``squares`` and ``weight`` are sums over the pairs of levels of z^2 and of what the model expects of it; the other
    columns tell of the levels with the largest z.
    """
    schema = table.schema
    rows, columns = mode_rows(table.coding, left), mode_rows(table.coding, right)
    counts = pair_counts(table, left, right)
    n = _both_observed(table, left, right)
    observed = counts / n
    starts = _starts(schema, left), _starts(schema, right)
    mean_j, mean_s = means[rows][:, None], means[columns][None, :]
    if isinstance(n, np.ndarray):  # the covariance is about the means of the rows it is taken over
        mean_j = np.repeat(np.add.reduceat(counts, starts[1], axis=1), schema.sizes[right], axis=1) / n
        mean_s = np.repeat(np.add.reduceat(counts, starts[0], axis=0), schema.sizes[left], axis=0) / n
    fitted, variance = _fitted(theta[rows], theta[columns], alpha, mean_j, mean_s)
    z, weight = _standardized(observed - fitted, variance, n)
    pairs = np.nonzero(left[:, None] < right)
    a, b = (cell[pairs] for cell in _largest(z, *starts))
    return {
        "variable": left[pairs[0]],
        "partner": right[pairs[1]],
        "squares": _block_sums(z**2, *starts)[pairs],
        "weight": _block_sums(weight, *starts)[pairs],
        "level": rows[a],
        "partner_level": columns[b],
        "observed": observed[a, b],
        "fitted": fitted[a, b],
        "z": z[a, b],
    }


def pair_counts(table: Encoded, left: Members, right: Members) -> Array:
    """Return the rows in which each pair of levels occurs: (rows of left, rows of right), whole numbers."""
    sizes = table.schema.sizes
    total = np.zeros((int(sizes[left].sum()), int(sizes[right].sum())))
    chunk = max(1, CHUNK_BYTES // (4 * sum(total.shape)))
    for begin in range(0, table.n_rows, chunk):
        part = table.codes[begin : begin + chunk]
        total += _onehot(part, table.coding, left).T @ _onehot(part, table.coding, right)
    return total


def _both_observed(table: Encoded, left: Members, right: Members) -> Array | int:
    """Return the rows in which both variables of each pair of levels are observed, shaped as pair_counts; at least
    one."""
    codes, absent, sizes = table.codes, table.coding.soft.absent, table.schema.sizes
    if (absent < 0).all():
        return len(codes)
    seen = [(codes[:, members] != absent[members]).astype(np.float32) for members in (left, right)]
    pairs = np.maximum((seen[0].T @ seen[1]).astype(float), 1.0)
    return np.repeat(np.repeat(pairs, sizes[left], axis=0), sizes[right], axis=1)


def _onehot(codes: NDArray[np.unsignedinteger], coding: Coding, members: Members) -> NDArray[np.float32]:
    """Return b_ij of the members side by side (n, their rows); 32 bits hold counts up to 16 million exactly."""
    variable = np.repeat(members, coding.schema.sizes[members])
    level = (mode_rows(coding, members) - coding.schema.offsets[variable]).astype(codes.dtype)
    return (codes[:, variable] == level).astype(np.float32)


def _fitted(theta_j: Array, theta_s: Array, alpha: Array, mean_j: Array, mean_s: Array) -> tuple[Array, Array]:
    """Fitted shares of pairs of levels (a, b), and n times the variance of the observed ones about them.

    The shares of the levels, ``mean_j`` (a, 1 or b) and ``mean_s`` (1 or a, b), are the table's. The variance is that
    of (b_j - mean_j)(b_s - mean_s), which the observed covariance averages over rows.
    """
    alpha0 = alpha.sum()
    mu_j, mu_s = theta_j @ alpha / alpha0, theta_s @ alpha / alpha0
    covariance = (theta_j * (alpha / (alpha0 * (alpha0 + 1.0)))) @ theta_s.T - np.outer(mu_j, mu_s) / (alpha0 + 1.0)
    fitted = np.maximum(mean_j * mean_s + covariance, 0.0)
    slope_j, slope_s = 1.0 - 2.0 * mean_j, 1.0 - 2.0 * mean_s  # (b - mean)^2 = slope b + mean^2, as b is 0 or 1
    squares = (slope_j * slope_s) * fitted + (mean_j * (1.0 - mean_j)) * mean_s**2 + mean_j**2 * (slope_s * mean_s)
    return fitted, squares - covariance**2


def _standardized(difference: Array, variance: Array, n_rows: Array | int) -> tuple[Array, Array]:
    """z of differences of shares whose variance is ``variance`` / n, and the z^2 that the model expects: 1, or less for
    a share so small that its standard error was raised."""
    least = LEAST_COUNT / n_rows
    return difference / np.sqrt(np.maximum(variance, least) / n_rows), np.clip(variance / least, 0.0, 1.0)


def _starts(schema: Schema, members: Members) -> Members:
    """Where each member's levels begin among those of all members."""
    return starts_of(schema.sizes[members])


def _block_sums(values: Array, first: Members, second: Members) -> Array:
    """Sums over the levels of every pair of variables: (variables of left, variables of right)."""
    return np.asarray(np.add.reduceat(np.add.reduceat(values, first, axis=0), second, axis=1))


def _largest(z: Array, first: Members, second: Members) -> tuple[Members, Members]:
    """Row and column of z at which each pair of variables has its largest |z|: two arrays (left, right).

    Where sizes are equal to six digits, as all four are of two binary variables, a positive z comes first, then the
    first in order: the answer does not hang on rounding.
    """
    rank = 2 * np.round(np.abs(z) * 1e6).astype(np.int64) + (z > 0.0)
    best = np.maximum.reduceat(np.maximum.reduceat(rank, first, axis=0), second, axis=1)
    sizes = [np.diff(np.append(starts, length)) for starts, length in zip((first, second), z.shape, strict=True)]
    place = np.where(
        rank == np.repeat(np.repeat(best, sizes[0], axis=0), sizes[1], axis=1),
        np.arange(z.size).reshape(z.shape),
        z.size,
    )
    cell = np.minimum.reduceat(np.minimum.reduceat(place, first, axis=0), second, axis=1)
    return cell // z.shape[1], cell % z.shape[1]


def _taken(columns: Columns, rows: NDArray[np.int64]) -> Columns:
    """Return some rows of a table, in their order."""
    return {name: values[rows] for name, values in columns.items()}


def _falling(values: Array) -> NDArray[np.int64]:
    """Return the order of values from the largest, equal ones as they stand."""
    return np.argsort(-values, kind="stable")


def _scored(found: Columns, schema: Schema) -> Columns:
    """The pairs with misfit and chi-square, worst first: by its excess over its mean, in its standard deviations."""
    free = np.maximum(schema.sizes - 1, 1)
    degrees = free[found["variable"]] * free[found["partner"]]
    misfit = np.sqrt(found["squares"] / (schema.sizes[found["variable"]] * schema.sizes[found["partner"]]))
    excess = (misfit**2 - 1.0) * np.sqrt(degrees / 2.0)
    scored = found | {"misfit": misfit, "chi_square": misfit**2 * degrees, "degrees": degrees, "excess": excess}
    return _taken(scored, _falling(excess))


def _by_variable(found: Columns, schema: Schema, share_misfit: Array) -> Columns:
    """The table of variables, worst first, from the scored pairs."""
    other_way = {"variable": "partner", "partner": "variable", "level": "partner_level", "partner_level": "level"}
    both = {name: np.concatenate([values, found[other_way.get(name, name)]]) for name, values in found.items()}
    both = _taken(both, _falling(both["excess"]))
    sums = [np.bincount(both["variable"], both[part], schema.n_variables) for part in ("squares", "weight")]
    worst = _taken(both, np.unique(both["variable"], return_index=True)[1])  # the first row of every variable
    table = {"variable": worst["variable"], "misfit": _rms(*sums), "worst_partner": worst["partner"]}
    table |= {name: worst[name] for name in WORST} | {"share_misfit": share_misfit}
    return _named(_taken(table, _falling(table["misfit"])), schema)


def _share_misfit(schema: Schema, observed: Array, fitted: Array, n_rows: Array) -> Array:
    """Root mean square z of the level shares of each variable (p,), observed in so many rows (p,)."""
    rows = np.maximum(np.repeat(n_rows, schema.sizes), 1.0)
    z, _ = _standardized(observed - fitted, fitted * (1.0 - fitted), rows)
    return np.asarray(np.sqrt(np.add.reduceat(z**2, schema.offsets[:-1]) / schema.sizes))


def _rms(squares: ArrayLike, weight: ArrayLike) -> Array:
    """Root mean square z from sums of z^2 and of what is expected of it.

    A z of 1 is put to them, so that a variable of rare levels, of which nothing can be said, has about 1.
    """
    return np.sqrt((np.asarray(squares, dtype=float) + 1.0) / (np.asarray(weight, dtype=float) + 1.0))


def _named(table: Columns, schema: Schema) -> Columns:
    """The table with names in place of variable numbers, and level texts in place of theta rows."""
    names = np.array(schema.names, dtype=object)
    levels = np.array([level for _, level, _ in schema.labels], dtype=object)
    labels = dict.fromkeys(("variable", "partner", "worst_partner"), names)
    labels |= dict.fromkeys(("level", "partner_level"), levels)
    return {name: labels[name][values] if name in labels else values for name, values in table.items()}


def _check(table: Encoded, theta: Array, alpha: Array, max_partners: int) -> None:
    codes, schema = table.codes, table.schema
    if codes.ndim != 2 or codes.shape[1] != schema.n_variables or not len(codes):
        raise InputError(
            f"codes have shape {codes.shape}; expected rows of {schema.n_variables} variables, at least one"
        )
    if schema.n_variables < 2:
        raise InputError("goodness of fit compares pairs of variables; the table has one variable only")
    if alpha.ndim != 1 or theta.shape != (schema.n_rows, len(alpha)):
        raise InputError(
            f"theta has shape {theta.shape} and alpha {alpha.shape}; this table needs ({schema.n_rows}, k) and (k,)"
        )
    if max_partners < 1:
        raise InputError(f"max_partners must be at least 1; got {max_partners!r}")
