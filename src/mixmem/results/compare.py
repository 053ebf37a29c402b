"""Groups of rows compared by their mean memberships, and memberships regressed on covariates, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc, expit, logit, ndtr, ndtri

from mixmem.data.encode import Encoded
from mixmem.data.infer_kinds import MOST_INTEGERS
from mixmem.data.table import is_missing
from mixmem.errors import InputError
from mixmem.results.covariates import Design, MeanMemberships, mean_memberships_given
from mixmem.typing import Array
from mixmem.words import listing

if TYPE_CHECKING:
    import pandas as pd

FEW_ROWS = 20
"""Rows below which a group's standard errors are not to be relied on."""
MOST_GROUPS = 40


@dataclass(frozen=True)
class Comparison:
    """Hold the mean memberships of groups of rows.

    Attributes
    ----------
    by : str
        What the groups go by.
    means : DataFrame
        group, rows, component, mean, standard_error, lower, upper, naive (the average of estimated memberships).
    differences : DataFrame
        group, other, component, difference (group less other), standard_error, lower, upper, p_value.
    statistic, degrees, p_value : float, int, float
        Wald's test that all groups have the same mean memberships.
    left_out : int
        Rows of no group.
    notes : tuple of str
        What may be wrong with it.
    """

    by: str
    means: pd.DataFrame
    differences: pd.DataFrame
    statistic: float
    degrees: int
    p_value: float
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Say in a sentence whether groups differ, and where most."""
        if self.p_value >= 0.05:
            return f"the groups by {self.by} do not differ more than chance gives ({_p(self.p_value)})"
        surest = (self.differences["difference"].abs() / self.differences["standard_error"].clip(lower=1e-300)).idxmax()
        most = self.differences.loc[surest]
        way = "more" if most["difference"] > 0 else "less"
        return (
            f"the groups by {self.by} differ ({_p(self.p_value)}), most surely in component {most['component']}: "
            f"{most['group']} has {abs(most['difference']):.2f} {way} of it than {most['other']} "
            f"({most['lower']:.2f} to {most['upper']:.2f})"
        )


@dataclass(frozen=True)
class Regression:
    """Hold the effects of covariates on mean memberships.

    Attributes
    ----------
    effects : DataFrame
        covariate, change (one standard deviation of a number, or a level against the first), component, effect (how
        much the mean membership of all rows would change), standard_error, lower, upper, p_value, naive (the same from
        estimated memberships by least squares).
    rows, left_out : int
        Rows that took part, and those with a covariate missing.
    converged : bool
    """

    effects: pd.DataFrame
    rows: int
    left_out: int
    converged: bool


@dataclass(frozen=True)
class Sampled:
    """How the rows were sampled: weights, clusters and strata (n,), each None if there are none."""

    weights: Array | None = None
    clusters: Any = None
    strata: Any = None

    def design(self, covariates: Array, kept: np.ndarray) -> Design:
        """Return the design of the rows kept (n,), covariates (rows kept, q)."""
        weights = np.ones(len(kept)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        own = [None if part is None else np.asarray(part)[kept] for part in (self.clusters, self.strata)]
        return Design(np.ascontiguousarray(covariates), weights[kept], *own)


def compare_groups(
    table: Encoded, theta: Array, alpha0: float, memberships: Array, groups: Sequence[Any], by: str, level: float,
    sampled: Sampled,
) -> Comparison:  # fmt: skip
    """Compare the rows' groups (n,) by mean memberships; theta (rows, k), noise included, memberships (n, k).

    No group's mean is held to be surer than if memberships were known, which scatter by ``alpha0``.
    """
    import pandas as pd

    names, codes = _groups(groups, by)
    kept = codes >= 0
    hot = np.eye(len(names))
    design = sampled.design(hot[codes[kept]], kept)
    found = mean_memberships_given(table.take(kept), theta, design)
    k, wide = theta.shape[1], ndtri(0.5 + level / 2.0)
    one = np.ones(1)
    means, differences, unsure = [], [], np.empty((len(names), k))
    for at, name in enumerate(names):
        mean, covariance = found.covariance_of(hot[[at]], one)
        own = design.covariates[:, at] > 0
        weights = design.weights[own]
        naive = np.average(memberships[kept][own], axis=0, weights=weights)
        least = _least_variance(mean, float(weights.sum() ** 2 / (weights**2).sum()), alpha0)
        unsure[at] = np.maximum(least - np.diag(covariance), 0.0)
        errors = np.sqrt(np.diag(covariance) + unsure[at])
        for h in range(k):
            low, high = _within(mean[h], errors[h], wide)
            means.append((name, int(own.sum()), h + 1, mean[h], errors[h], low, high, naive[h]))
    for one_at, other in combinations(range(len(names)), 2):
        effect, covariance = found.effect(hot[[other]], one, hot[[one_at]])
        for h, line in enumerate(_lines(effect, covariance + np.diag(unsure[one_at] + unsure[other]), wide)):
            differences.append((names[one_at], names[other], h + 1, *line))
    statistic, degrees = _wald(found, hot, unsure)
    few = [name for at, name in enumerate(names) if (design.covariates[:, at] > 0).sum() < FEW_ROWS]
    notes = [f"fewer than {FEW_ROWS} rows, so standard errors are rough: {listing(few)}"] * bool(few)
    if not found.converged:
        notes.append("the search for mean memberships did not settle: read the means as rough")
    return Comparison(
        by,
        pd.DataFrame(means, columns=["group", "rows", "component", "mean", *INTERVAL, "naive"]),
        pd.DataFrame(differences, columns=["group", "other", "component", "difference", *INTERVAL, "p_value"]),
        statistic, degrees, float(chdtrc(degrees, statistic)), int((~kept).sum()), tuple(notes),
    )  # fmt: skip


INTERVAL = ["standard_error", "lower", "upper"]


def regress(
    table: Encoded, theta: Array, memberships: Array, covariates: Mapping[str, Sequence[Any]], level: float,
    sampled: Sampled,
) -> Regression:  # fmt: skip
    """Regress memberships on covariates by name (n,); theta (rows, k), noise included, memberships (n, k)."""
    import pandas as pd

    columns = [_Covariate.of(name, values) for name, values in covariates.items()]
    kept = np.logical_and.reduce([column.known for column in columns])
    if kept.sum() < FEW_ROWS:
        raise InputError(f"only {int(kept.sum())} rows have all covariates; expected at least {FEW_ROWS}")
    columns = [replace(column, columns=column.columns[kept]) for column in columns]
    blocks = [np.ones((int(kept.sum()), 1)), *(column.centred for column in columns)]
    matrix = np.hstack(blocks)
    design = sampled.design(matrix, kept)
    found = mean_memberships_given(table.take(kept), theta, design)
    half = np.sqrt(design.weights)[:, None]
    slopes = np.linalg.lstsq(half * matrix, half * memberships[kept], rcond=None)[0]
    wide, lines, start = ndtri(0.5 + level / 2.0), [], 1
    for column in columns:
        for change, before, after in column.changes():
            one, other = matrix.copy(), matrix.copy()
            one[:, start : start + column.width], other[:, start : start + column.width] = before, after
            effect, covariance = found.effect(one, design.weights, other)
            naive = np.average((other - one) @ slopes, axis=0, weights=design.weights)
            for h, line in enumerate(_lines(effect, covariance, wide)):
                lines.append((column.name, change, h + 1, *line, naive[h]))
        start += column.width
    names = ["covariate", "change", "component", "effect", *INTERVAL, "p_value", "naive"]
    return Regression(pd.DataFrame(lines, columns=names), int(kept.sum()), int((~kept).sum()), found.converged)


@dataclass(frozen=True)
class _Covariate:
    """A covariate as columns (n, width): a number, or its levels but the first; NaN where missing."""

    name: str
    columns: Array
    levels: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, values: Sequence[Any]) -> _Covariate:
        present = [value for value in values if not is_missing(value)]
        if not present:
            raise InputError(f"covariate {name!r} has nothing in it; leave it out")
        if all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in present):
            numbers = np.array([np.nan if is_missing(value) else float(value) for value in values])
            if np.ptp(numbers[~np.isnan(numbers)]) == 0.0:
                raise InputError(f"covariate {name!r} is constant; leave it out")
            return cls(name, numbers[:, None])
        names, codes = _groups(values, name)
        columns = np.eye(len(names))[codes][:, 1:]
        columns[codes < 0] = np.nan
        return cls(name, columns, names)

    @property
    def width(self) -> int:
        return self.columns.shape[1]

    @property
    def known(self) -> np.ndarray:
        return np.asarray(~np.isnan(self.columns).any(axis=1))

    @property
    def centred(self) -> Array:
        """(n, width): a number in standard deviations from its mean, levels as they are."""
        if self.levels:
            return self.columns
        return np.asarray((self.columns - self.columns.mean()) / self.columns.std())

    def changes(self) -> list[tuple[str, Array, Array]]:
        """What is changed, in words, and the columns before and after."""
        if not self.levels:
            return [(f"+{self.columns.std():.4g}", self.centred, self.centred + 1.0)]
        none = np.zeros(self.width)
        own = np.eye(self.width)
        return [(f"{level} (not {self.levels[0]})", none, own[at]) for at, level in enumerate(self.levels[1:])]


def _groups(values: Sequence[Any], by: str) -> tuple[tuple[str, ...], np.ndarray]:
    """The names of groups in order, and each row's (n,), -1 where missing."""
    held = [None if is_missing(value) else value for value in values]
    distinct: set[Any] = {value for value in held if value is not None}
    numbers = all(isinstance(value, (int, float, np.number)) for value in distinct)
    if numbers and len(distinct) > MOST_INTEGERS:
        raise InputError(
            f"{by!r} holds {len(distinct)} distinct numbers; expected groups: cut it into classes, or regress on it"
        )
    if not 2 <= len(distinct) <= MOST_GROUPS:
        raise InputError(f"{by!r} has {len(distinct)} group(s); expected 2 to {MOST_GROUPS}")
    order = sorted(distinct) if numbers else sorted(distinct, key=str)
    position: dict[Any, int] = {value: at for at, value in enumerate(order)}
    names = tuple(str(int(value)) if numbers and float(value).is_integer() else str(value) for value in order)
    return names, np.array([-1 if value is None else position[value] for value in held], dtype=np.int64)


def _lines(effect: Array, covariance: Array, wide: float) -> list[tuple[float, float, float, float, float]]:
    """Effects (k,) each with its standard error, interval and p-value."""
    errors = np.sqrt(np.diag(covariance))
    z = np.abs(effect) / np.maximum(errors, 1e-300)
    both = zip(effect, errors, effect - wide * errors, effect + wide * errors, 2.0 * ndtr(-z), strict=True)
    return [(float(a), float(b), float(c), float(d), float(e)) for a, b, c, d, e in both]


def _within(mean: float, error: float, wide: float) -> tuple[float, float]:
    """An interval of a share, symmetric in its logit so that it stays between 0 and 1; cut off there near them."""
    if min(mean, 1.0 - mean) <= error:
        return max(0.0, mean - wide * error), min(1.0, mean + wide * error)
    spread = wide * error / (mean * (1.0 - mean))
    return float(expit(logit(mean) - spread)), float(expit(logit(mean) + spread))


def _least_variance(mean: Array, rows: float, alpha0: float) -> Array:
    """Return the variance of a group's mean (k,) that so many rows of known memberships would leave.

    A mean at 0 or 1 says no more than one row would have said that is still to come.
    """
    inside = (mean * rows + 0.5) / (rows + 1.0)
    return np.asarray(inside * (1.0 - inside) / ((rows + 1.0) * (1.0 + alpha0)))


def _wald(found: MeanMemberships, hot: Array, unsure: Array) -> tuple[float, int]:
    """Wald's statistic of equal means in all groups, and its degrees of freedom; ``unsure`` (groups, k) is added to the
    variances of means."""
    by_group = [found.effect(hot[[0]], np.ones(1), hot[[at]])[0][1:] for at in range(1, len(hot))]
    slopes = np.vstack([found.slopes(hot[[at]])[1:] - found.slopes(hot[[0]])[1:] for at in range(1, len(hot))])
    first, *others = unsure[:, 1:]
    shared = np.kron(np.ones((len(others), len(others))), np.diag(first)) + np.diag(np.concatenate(others))
    apart, covariance = np.concatenate(by_group), slopes @ found.covariance @ slopes.T + shared
    statistic = float(apart @ np.linalg.pinv(covariance, rcond=1e-10, hermitian=True) @ apart)
    return statistic, int(np.linalg.matrix_rank(covariance, tol=1e-10 * np.trace(covariance), hermitian=True))


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
