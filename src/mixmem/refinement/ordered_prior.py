"""The prior of theta where levels have an order: components lean to one end, or to the middle, by degrees.

A component's probabilities of an ordered variable are Dirichlet about m, with log m_c = a_c + b_1 P_1(c) + b_2 P_2(c)
+ b_3 P_3(c) up to a constant: a is how common levels are with any component, b tilts that along the order, and P_r are
polynomials of degree r over the levels. This is an adjacent-category logit: neighbours are tied, and few numbers say
where a component stands. How much levels differ (the variance of a), how far components lean (that of b_r, one for each
degree), and how closely theta keeps to m (the strength of the Dirichlet) are drawn with all else, one of each for the
table. Where the order says nothing, strength and tilts are small, and levels are as free as categories are.

Given the cells that components hold, theta is integrated out, so that a and b are drawn from a Dirichlet-multinomial,
by elliptical slice sampling, all variables and components side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixmem.data.soft_levels import starts_of
from mixmem.kernels.ordered import ordered_fit
from mixmem.kernels.special import log_gamma
from mixmem.likelihood.table import LikelihoodTable
from mixmem.refinement.slice_sampling import draw_slice
from mixmem.typing import Array, Positions

DEGREES = 3
"""Degrees of the polynomials: where a component leans, how narrow it is, how lopsided."""
FIRST_STRENGTH = 5.0
STRENGTH = (np.log(5.0), 1.5)
"""Mean and standard deviation of the strength's logarithm, before anything is seen."""
LOG_STRENGTH = (np.log(0.05), np.log(1e5))
VARIANCE = (1.0, 0.5)
"""Shape and rate of the Gamma distribution of an inverse variance."""
EVERY = 5
"""Sweeps after which strength and spreads are drawn."""
MOST_SHRINKING = 60
"""Steps in which a slice shrinks to where it began, at most; those that found nothing stay."""


def polynomials(size: int) -> Array:
    """Return orthogonal polynomials over the levels (degrees, size), of mean 0 and mean square 1; 0 beyond size - 1.

    >>> polynomials(2).round(2)[0].tolist()
    [-1.0, 1.0]
    """
    powers = np.vander(np.linspace(-1.0, 1.0, size), min(DEGREES + 1, size), increasing=True)
    found = np.linalg.qr(powers)[0].T[1:] * np.sqrt(size)
    found *= np.where(found[:, -1:] < 0.0, -1.0, 1.0)
    return np.concatenate([found, np.zeros((DEGREES - len(found), size))])


class OrderedPrior:
    """The prior of ordered variables in one chain: ``a`` (rows, 1), ``b`` (degrees, variables, k), their ``spreads``
    (1 + degrees,) and ``strength``."""

    def __init__(self, cells: LikelihoodTable, k: int):
        ordered = self.which = cells.schema.has("ordered")[cells.level_variables]
        """Which variables with levels have an order (variables,)."""
        self.rows = np.flatnonzero(np.repeat(ordered, cells.level_sizes))
        """Which rows of levels they are (rows,)."""
        self.sizes = cells.level_sizes[ordered]
        self.starts = starts_of(self.sizes)
        self.owner: Positions = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self.scores = np.concatenate([np.zeros((DEGREES, 0)), *map(polynomials, self.sizes.tolist())], axis=1)
        held = [np.log(cells.code_counts(int(j)) + 0.5) for j in cells.level_variables[ordered]]
        self.a = np.concatenate([np.zeros(0), *(logs - logs.mean() for logs in held)])[:, None]
        self.b = np.zeros((DEGREES, len(self.sizes), k))
        self.spreads, self.strength, self.n_done = np.ones(1 + DEGREES), FIRST_STRENGTH, 0

    def middles(self, a: Array, b: Array) -> Array:
        """Return what theta is about (rows, k)."""
        logs = a + (self.scores[:, :, None] * b[:, self.owner]).sum(axis=0)
        logs -= np.maximum.reduceat(logs, self.starts, axis=0)[self.owner]
        likely = np.maximum(np.exp(logs), 1e-30)
        return np.asarray(likely / np.add.reduceat(likely, self.starts, axis=0)[self.owner])

    @property
    def shapes(self) -> Array:
        """Return the shapes of the Dirichlet (rows, k)."""
        return self.strength * self.middles(self.a, self.b)

    def _fit(self, counts: Array, shapes: Array) -> Array:
        """Return log p(counts (rows, k) | shapes) of every variable and component, theta integrated out, up to what
        the strength alone decides."""
        return np.asarray(np.add.reduceat(log_gamma(counts + shapes) - log_gamma(shapes), self.starts, axis=0))

    def _tilted(self, counts: Array, a: Array, b: Array, waiting: NDArray[np.bool_]) -> Array:
        """Return the same of the shapes that a and b make, where it is waited for (variables, k)."""
        out = np.zeros(waiting.shape)
        ordered_fit(counts, a, b, self.scores, self.starts, self.strength, waiting, out)
        return out

    def draw(self, counts: Array, rng: np.random.Generator) -> None:
        """Draw everything once, given the cells that components hold (rows, k)."""
        self._draw_tilts(counts, rng)
        self._draw_levels(counts, rng)
        self.n_done += 1
        if self.n_done % EVERY:
            return
        parts = [self.a, *self.b]
        squares = np.array([VARIANCE[1] + 0.5 * float((part**2).sum()) for part in parts])
        self.spreads = np.sqrt(squares / rng.gamma([VARIANCE[0] + 0.5 * part.size for part in parts]))
        middles, totals = self.middles(self.a, self.b), np.add.reduceat(counts, self.starts, axis=0)

        def log_density(at: float) -> float:
            strength = float(np.exp(at))
            each = self._fit(counts, strength * middles).sum() + totals.size * log_gamma(strength)
            prior = -0.5 * ((at - STRENGTH[0]) / STRENGTH[1]) ** 2
            return float(each - log_gamma(totals + strength).sum() + prior)

        self.strength = float(np.exp(draw_slice(log_density, np.log(self.strength), 0.5, LOG_STRENGTH, rng)))

    def _draw_tilts(self, counts: Array, rng: np.random.Generator) -> None:
        """Draw b, each variable and component by itself."""
        other = self.spreads[1:, None, None] * rng.standard_normal(self.b.shape)

        def fit(b: Array, waiting: NDArray[np.bool_]) -> Array:
            return self._tilted(counts, self.a, b, waiting)

        self.b = elliptical_slice(self.b, other, fit, lambda angles: angles, self.b.shape[1:], rng)

    def _draw_levels(self, counts: Array, rng: np.random.Generator) -> None:
        """Draw a, each variable by itself."""
        k = counts.shape[1]
        other = self.spreads[0] * rng.standard_normal(self.a.shape)

        def fit(a: Array, waiting: NDArray[np.bool_]) -> Array:
            return np.asarray(self._tilted(counts, a, self.b, np.repeat(waiting[:, None], k, axis=1)).sum(axis=1))

        self.a = elliptical_slice(self.a, other, fit, lambda each: each[self.owner, None], self.sizes.shape, rng)


def elliptical_slice(
    here: Array,
    other: Array,
    fit: Callable[[Array, NDArray[np.bool_]], Array],
    spread_out: Callable[[Any], Any],
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> Array:
    """Draw Gaussian vectors, in the ``shape``, given how well they fit, each by itself, from where they stand.

    ``other`` is a draw from their prior, ``fit`` gives the log-likelihood of the vectors that are waited for, and
    ``spread_out`` takes what is known of every vector to the shape of their entries.
    """
    drawn, waiting = here.copy(), np.ones(shape, dtype=bool)
    height = fit(here, waiting) - rng.exponential(size=shape)
    angles = rng.uniform(0.0, 2.0 * np.pi, size=shape)
    low, high = angles - 2.0 * np.pi, angles
    for _ in range(MOST_SHRINKING):
        turned = here * spread_out(np.cos(angles)) + other * spread_out(np.sin(angles))
        found = waiting & (fit(turned, waiting) > height)
        np.copyto(drawn, turned, where=spread_out(found))
        waiting = waiting & ~found
        if not waiting.any():
            break
        low, high = np.where(angles < 0.0, angles, low), np.where(angles >= 0.0, angles, high)
        angles = low + (high - low) * rng.random(shape)
    return drawn
