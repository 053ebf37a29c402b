"""Standard errors and intervals: by the jackknife for the moment estimate, from the posterior after sampling.

The moment estimate's sums over rows are taken again without one group of rows after the other, and sweeps lead from the
full estimate to where those sums would put it: a few sweeps each, no new start. How much the twenty estimates differ
gives every standard error. An entry of theta that stands at zero in all of them has noise that cannot be seen; it gets
that of its component's other small entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.data.schema import Schema
from mixmem.engine.rows import map_rows
from mixmem.kernels.gibbs import membership_posterior
from mixmem.likelihood.table import LikelihoodTable
from mixmem.moments.sums import first_moments
from mixmem.moments.sweep import FullTensor, sweep
from mixmem.moments.theta_from_factors import concentration, theta_of
from mixmem.progress import Progress
from mixmem.refinement.gibbs import CHAINS, Posterior
from mixmem.refinement.maximum_likelihood import numbers_refitted
from mixmem.typing import Array

GROUPS, MOST_SWEEPS, SMALL = 20, 30, 0.05
"""Groups of rows left out in turn, sweeps each, and what counts as a small entry of theta."""
WARM_SWEEPS, KEPT_SWEEPS = 30, 300
"""Of the sampler of a row's memberships."""
MOST_DRAWS = 400
"""Draws of alpha and the contamination that a model keeps."""


@dataclass(frozen=True)
class Uncertainty:
    """Standard errors of theta (rows, k) and alpha (k,).

    From the posterior there are also its draws of alpha (draws, k) and of the contamination (draws,); from the
    jackknife there are none, but ``degrees`` of freedom.
    """

    theta: Array
    alpha: Array
    degrees: float = np.inf
    alpha_draws: Array | None = None
    delta_draws: Array | None = None

    def ordered(self, order: NDArray[np.int64]) -> Uncertainty:
        """The same with components in another order."""
        draws = None if self.alpha_draws is None else self.alpha_draws[:, order]
        return replace(self, theta=self.theta[:, order], alpha=self.alpha[order], alpha_draws=draws)

    def arrays(self) -> dict[str, Array]:
        """As named arrays, for a model's file."""
        named = {"theta_error": self.theta, "alpha_error": self.alpha, "degrees": np.array([self.degrees])}
        if self.alpha_draws is not None and self.delta_draws is not None:
            named |= {"alpha_draws": self.alpha_draws, "delta_draws": self.delta_draws}
        return named

    @classmethod
    def from_arrays(cls, named: Mapping[str, Array]) -> Uncertainty | None:
        """What :meth:`arrays` gave; None where a file has none."""
        if "theta_error" not in named:
            return None
        return cls(
            named["theta_error"],
            named["alpha_error"],
            float(named["degrees"][0]),
            named.get("alpha_draws"),
            named.get("delta_draws"),
        )

    def columns(self, schema: Schema, theta: Array, alpha: Array, level: float) -> dict[str, NDArray[Any]]:
        """Estimates, standard errors and intervals by columns: parameter, variable, level, component, …, lower, upper.

        Cells of texts and components that say nothing are NaN.
        """
        if self.alpha_draws is None or self.delta_draws is None:
            bounds = _inside(schema, *symmetric_interval(theta, self.theta, self.degrees, level))
            low, high = symmetric_interval(alpha, self.alpha, self.degrees, level)
            rest: list[tuple[Any, ...]] = [
                ("alpha", h + 1, alpha[h], self.alpha[h], max(low[h], 0.0), high[h]) for h in range(len(alpha))
            ]
        else:
            low, high = symmetric_interval(theta, self.theta, np.inf, level)
            levels = probabilities(schema)
            low[levels], high[levels] = beta_interval(theta[levels], self.theta[levels] ** 2, level)
            bounds = _inside(schema, low, high)
            names: list[tuple[str, float, float]] = [("alpha", h + 1, np.inf) for h in range(len(alpha))]
            names += [("alpha0", np.nan, np.inf), ("contamination", np.nan, 1.0)]
            draws = [*self.alpha_draws.T, self.alpha_draws.sum(axis=1), self.delta_draws]
            rest = [
                (name, h, drawn.mean(), *of_draws(drawn, level, most))
                for (name, h, most), drawn in zip(names, draws, strict=True)
            ]
        of_rest = ("parameter", "component", "estimate", "standard_error", "lower", "upper")
        named = dict(zip(of_rest, zip(*rest, strict=True), strict=True))
        nothing = np.full(len(rest), np.nan, dtype=object)
        return {
            name: np.concatenate([values, np.array(named[name], dtype=values.dtype) if name in named else nothing])
            for name, values in _theta_columns(schema, theta, self.theta, bounds).items()
        }


def from_posterior(posterior: Posterior) -> Uncertainty:
    """Posterior standard deviations and draws; at most some hundreds of draws are kept."""
    every = max(1, len(posterior.delta_draws) // MOST_DRAWS)
    return Uncertainty(
        posterior.theta_error,
        posterior.alpha_draws.std(axis=0),
        alpha_draws=posterior.alpha_draws[::every],
        delta_draws=posterior.delta_draws[::every],
    )


def effective_draws(draws: Array) -> float:
    """Return how many independent draws know as much as these (m,), chain after chain, each of which goes slowly.

    Halves of chains are held against each other, and correlations summed over lags as long as they are positive in
    pairs (Geyer); draws that are all the same count as they are.

    >>> effective_draws(np.repeat(np.arange(8.0), 50)) < 5
    True
    """
    halves = 2 * CHAINS
    size = len(draws) // halves
    parts = draws[: halves * size].reshape(halves, size)
    within, between = parts.var(axis=1).mean(), parts.mean(axis=1).var(ddof=1)
    variance = within + between
    if variance <= 0.0 or size < 4:
        return float(len(draws))
    centred = parts - parts.mean(axis=1, keepdims=True)
    products = np.mean([np.correlate(part, part, "full")[size - 1 :] for part in centred], axis=0) / size
    correlations = 1.0 - (within - products) / variance
    pairs = correlations[1 : size - size % 2 - 1].reshape(-1, 2).sum(axis=1)
    gone = np.flatnonzero(pairs <= 0.0)
    summed = pairs[: gone[0] if len(gone) else len(pairs)].sum()
    return float(max(len(draws) / (1.0 + 2.0 * summed), 1.0))


def of_draws(draws: Array, level: float, most: float) -> tuple[float, float, float]:
    """Return standard error and interval of a number between 0 and ``most``, from draws (m,) of its posterior.

    Few effective draws know the posterior's middle and its spread badly: the interval is as much wider as that of a
    normal law's next draw after so many others.
    """
    from scipy.special import ndtri, stdtrit

    low, middle, high = np.quantile(draws, (0.5 - 0.5 * level, 0.5, 0.5 + 0.5 * level))
    count = max(effective_draws(draws), 2.0)
    error = np.sqrt((1.0 + 1.0 / count) / (1.0 - 1.0 / count))
    wider = float(error * stdtrit(max(count - 1.0, 2.0), 0.5 + 0.5 * level) / ndtri(0.5 + 0.5 * level))
    return (
        float(draws.std() * error),
        float(max(middle - wider * (middle - low), 0.0)),
        float(min(middle + wider * (high - middle), most)),
    )


def jackknife(
    table: Encoded,
    theta: Array,
    alpha: Array,
    *,
    tol: float,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> Uncertainty:
    """Return standard errors of a moment estimate, theta (rows, k) and alpha (k,): what leaving out rows changes."""
    table = table.unpooled
    n, k, schema, alpha0 = table.n_rows, len(alpha), table.schema, float(alpha.sum())
    start = soft_theta(table, theta, alpha)
    groups = min(GROUPS, n)
    thetas, alphas = np.empty((groups, *theta.shape)), np.empty((groups, k))
    with progress.stage("standard errors", groups) as step:
        for group in range(groups):
            part = table.take(np.arange(n) % groups != group)
            first = first_moments(part)
            if k == 1:
                soft, alphas[group] = first.means[:, None], alpha0
            else:
                order = np.random.default_rng([*seed.generate_state(4), 1])
                tensor = FullTensor(part, first, start, alpha0)
                swept = sweep(tensor, n_sweeps=MOST_SWEEPS, tol=tol, rng=order, progress=Progress())
                soft, alphas[group] = swept.theta, concentration(swept.weights, alpha0).alpha
            thetas[group] = numbers_refitted(part, theta_of(soft, first), alphas[group], progress=Progress())
            step(1)
    scale = np.sqrt(groups - 1)
    levels = probabilities(schema)
    return Uncertainty(_seen(scale * thetas.std(axis=0), theta, levels), scale * alphas.std(axis=0), groups - 1)


def soft_theta(table: Encoded, theta: Array, alpha: Array) -> Array:
    """Return the moments' theta (soft levels, k) that goes with theta (rows, k): of numbers, the mean over the table's
    values, each weighted by how likely it makes the component."""
    coding, offsets = table.coding, table.coding.soft.offsets
    if coding.soft.plain:
        return theta
    first, cells = first_moments(table), LikelihoodTable(table.take(slice(0, 0)))
    likely = cells.likelihoods(theta)
    soft = np.empty((int(offsets[-1]), theta.shape[1]))
    for j, column in enumerate(coding.columns):
        own = likely[cells.offsets[j] :][: cells.codes_of[j]]
        soft[offsets[j] : offsets[j + 1]] = column.own_kind.soft_theta(
            column, theta[coding.schema.rows(j)], own, first.of(j), alpha
        )
    return soft


def probabilities(schema: Schema) -> NDArray[np.bool_]:
    """Which rows of theta are probabilities (rows,)."""
    return np.array([statistic == "probability" for _, _, statistic in schema.labels], dtype=bool)


def _seen(error: Array, theta: Array, levels: NDArray[np.bool_]) -> Array:
    """Errors (rows, k), those of small probabilities no less than is usual for small ones of their component."""
    out = error.copy()
    for h in range(theta.shape[1]):
        small = levels & (theta[:, h] < SMALL)
        inside = small & (theta[:, h] > 0.0)
        usual = float(np.median(error[inside, h])) if inside.any() else 0.0
        out[small, h] = np.maximum(error[small, h], usual)
    return out


def symmetric_interval(estimate: Array, error: Array, degrees: float, level: float) -> tuple[Array, Array]:
    """Estimate less and plus Student's quantile times its error."""
    from scipy.special import stdtrit

    reach = stdtrit(degrees, 0.5 + 0.5 * level) * error
    return estimate - reach, estimate + reach


def _inside(schema: Schema, low: Array, high: Array) -> tuple[Array, Array]:
    """Return interval ends (rows, k) where they may be: probabilities from 0 to 1, variances and rates from 0."""
    least, most = schema.bounds
    return np.clip(low, least, most), np.clip(high, least, most)


def beta_interval(mean: Array, variance: Array, level: float) -> tuple[Array, Array]:
    """Quantiles of the Beta distribution with this mean and variance; of the mean itself where there is no variance.

    >>> low, high = beta_interval(0.5, 1 / 12, 0.9)
    >>> round(float(low), 3), round(float(high), 3)
    (0.05, 0.95)
    """
    from scipy.special import betaincinv

    most = mean * (1.0 - mean)
    size = np.maximum(most / np.maximum(variance, 1e-12 * np.maximum(most, 1e-300)) - 1.0, 1e-9)
    a, b = np.maximum(mean * size, 1e-9), np.maximum((1.0 - mean) * size, 1e-9)
    tail = 0.5 * (1.0 - level)
    known = (variance <= 0.0) | (most <= 0.0)
    low, high = (np.where(known, mean, betaincinv(a, b, at)) for at in (tail, 1.0 - tail))
    return low, high


def membership_intervals(
    table: Encoded, theta: Array, alpha: Array, level: float, *, progress: Progress
) -> tuple[Array, Array, Array]:
    """Return posterior mean and standard deviation (n, k) of rows' memberships and their interval's ends (2, n, k).

    theta (rows, k) and alpha (k,) are taken as known.
    """
    n, k = table.n_rows, theta.shape[1]
    mean, error, bounds = np.empty((n, k)), np.empty((n, k)), np.empty((n, 2, k))
    cells = LikelihoodTable(table)
    likely, marks = cells.likelihoods(theta), cells.marks(theta)
    tails = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])

    def sample(rows: slice) -> None:
        membership_posterior(
            cells.codes[rows], cells.starts, cells.absent, likely, marks, alpha, WARM_SWEEPS,
            KEPT_SWEEPS, tails, mean[rows], error[rows], bounds[rows],
        )  # fmt: skip

    with progress.stage("membership intervals", n) as step:
        map_rows(sample, n, step)
    return mean, error, np.moveaxis(bounds, 1, 0)


def _theta_columns(schema: Schema, theta: Array, error: Array, bounds: tuple[Array, Array]) -> dict[str, NDArray[Any]]:
    """Theta's part of the table of intervals: one row for every variable, level and component."""
    k = theta.shape[1]
    variables, levels, statistics = (np.array(labels, dtype=object) for labels in zip(*schema.labels, strict=True))
    return {
        "parameter": np.full(theta.size, "theta", dtype=object),
        "variable": np.repeat(variables, k),
        "level": np.repeat(levels, k),
        "statistic": np.repeat(statistics, k),
        "component": np.tile(np.arange(1, k + 1), len(theta)).astype(object),
        "estimate": theta.ravel(),
        "standard_error": error.ravel(),
        "lower": bounds[0].ravel(),
        "upper": bounds[1].ravel(),
    }
