"""The sweeps' slow mode, in closed form: theta (I + E) with a small matrix E (k, k).

Sweeps correct single entries of theta at once, and what all variables err in together slowly: the others' theta, which
a step takes for granted, errs alike. Let the others stand at theta (I + E). With P = theta' theta, W = diag(w) the
weights and * entrywise, the step's program has, to first order in E,

    Z = theta W [P * P + 2 P * (P E)],   Q = P * P + 2 P * (E' P + P E),

so that X = Z Q^-1 = theta (I + Y) W with Y = -2 W [P * (E' P)] (P * P)^-1 W^-1. Columns sum to one per variable, so
E becomes L E = Y - diag(1' Y), and the weights become w (1 + 1' Y). Where x >= 0 binds, a row of theta moves in its
positive entries only, and (P * P)^-1 is the inverse on those; L is then the mean over the rows.

A sweep takes the groups of variables one after another; for a mode of L of eigenvalue near one its change is the
fraction 2 (1 - l) of what is left, and L (I + L) / 4 (I - L)^-1 takes the change of a sweep to what is left after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.typing import Array

MOST_ROWS, LEAST_ROWS = 4_000, 400
"""Rows of theta, evenly spread, that L is averaged over, up to ten components; fewer with more."""
DENSE = 12
"""Components up to which L is formed (k^2, k^2); above, equations are solved by applying it."""
LEAST_WEIGHT = 1e-3
"""Share of the largest weight that every weight counts as at least: L divides by them."""
SHRINK, MOST_TIMES = 1.002, 19.0
"""For the move alone: what keeps it finite where a mode hardly falls, and how much longer than the change it may be."""


@dataclass(frozen=True)
class Left:
    """Where a sweep's slow mode will lead: the move of theta (rows, k) to make now, how far theta (root mean square)
    and the components' shares of the weights (the largest) are from their limit, the factors the weights have to change
    by, and how far each component's theta is (k,)."""

    move: Array
    theta: float
    shares: float
    factors: Array
    by_component: Array


class SlowMode:
    """L at theta (rows, k) and weights (k,)."""

    def __init__(self, theta: Array, weights: Array):
        self.k = theta.shape[1]
        self.gram = theta.T @ theta
        self.weights = np.maximum(weights, LEAST_WEIGHT * weights.max())
        most = max(LEAST_ROWS, min(MOST_ROWS, 100 * MOST_ROWS // self.k**2))
        self.rows = theta if len(theta) <= most else theta[np.arange(most) * len(theta) // most]
        supports, place = _supports(self.rows)
        self.inverses = _inverses(self.gram * self.gram, supports)[place]
        self.projection = _solve(self.rows.T @ self.rows, self.rows.T)

    def unscaled(self, e: Array) -> Array:
        """Return Y (k, k) of E (k, k)."""
        crossed = (self.rows * self.weights) @ (self.gram * (e.T @ self.gram))
        moved = (crossed[:, None, :] @ self.inverses)[:, 0]
        return np.asarray(-2.0 * (self.projection @ moved) / self.weights)

    def apply(self, e: Array) -> Array:
        """Return L E (k, k)."""
        y = self.unscaled(e)
        return np.asarray(y - np.diag(y.sum(axis=0)))

    def matrix(self) -> Array:
        """Return L as a matrix (k^2, k^2) on E row after row."""
        k, gram = self.k, self.gram
        # Y_ab = -2 sum_cd T_abcd (gram_cd sum_e E_ec gram_ed) / w_b
        # T_abcd = sum_r projection_ar rows_rc w_c inverse_r,db
        shares = self.projection.T[:, :, None] * (self.rows * self.weights)[:, None, :]
        t = shares.reshape(-1, k * k).T @ self.inverses.reshape(-1, k * k)
        t = t.reshape(k, k, k, k).transpose(0, 3, 1, 2)  # a, b, c, d
        y = -2.0 * np.einsum("abcd,cd,ed->abec", t, gram, gram, optimize=True) / self.weights[None, :, None, None]
        whole = y.reshape(k * k, k * k)
        diagonal = np.arange(k) * (k + 1)
        whole[diagonal] -= y.sum(axis=0).reshape(k, k * k)
        return np.asarray(whole)

    def left(self, theta: Array, change: Array) -> Left:
        """Return what is left after a sweep that changed theta (rows, k) by so much."""
        e = _solve(self.gram, theta.T @ change)
        halfway = self.apply(e)
        halfway = (halfway + self.apply(halfway)) / 4.0
        nearer, whole = self._solved(halfway)
        length, longest = self._length(nearer), MOST_TIMES * self._length(e)
        if length > longest:
            nearer = nearer * (longest / length)
        move = np.where(theta > 0.0, theta @ nearer, 0.0)
        if whole is None:
            return Left(move, np.inf, np.inf, np.ones(self.k), _rms(change))
        far = np.where(theta > 0.0, theta @ whole, 0.0)
        factors = 1.0 + self.unscaled(whole).sum(axis=0)
        ahead = self.weights * factors
        away = self.weights / self.weights.sum() - ahead / ahead.sum()
        # what is no slow mode falls fast: at most as much again is left
        by_component = np.hypot(_rms(far), _rms(change - theta @ e))
        return Left(
            move, float(_rms(by_component)), float(np.abs(away).max()), np.clip(factors, 0.5, 2.0), by_component
        )

    def _length(self, e: Array) -> float:
        return float(np.sqrt(max(np.einsum("ij,ik,kj->", e, self.gram, e), 0.0)))

    def _solved(self, right: Array) -> tuple[Array, Array | None]:
        """Return (1.002 I - L)^-1 and (I - L)^-1 times a matrix (k, k); None for the latter if a mode does not fall."""
        if self.k > DENSE:
            found = self._applied(right)
            return found, found
        whole, identity = self.matrix(), np.eye(self.k**2)
        nearer = np.asarray(np.linalg.solve(SHRINK * identity - whole, right.ravel())).reshape(right.shape)
        if np.linalg.slogdet(identity - whole)[0] <= 0.0:  # an eigenvalue of L has passed one
            return nearer, None
        return nearer, np.asarray(np.linalg.solve(identity - whole, right.ravel())).reshape(right.shape)

    def _applied(self, right: Array) -> Array:
        """Return (I - L)^-1 times a matrix (k, k), nearly, without forming L."""
        from scipy.sparse.linalg import LinearOperator, gmres  # a fifth of a second to import, and for many components

        size = self.k**2

        def less(e: Array) -> Array:
            return np.asarray(e - self.apply(e.reshape(right.shape)).ravel())

        found, _ = gmres(LinearOperator((size, size), matvec=less), right.ravel(), rtol=0.02, restart=25, maxiter=1)
        return np.asarray(found.reshape(right.shape))


def _supports(rows: Array) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return the distinct sets of positive entries of rows (sets, k), and which each row (rows, k) has (rows,)."""
    positive = rows > 0.0
    packed = np.packbits(positive, axis=1)
    _, first, place = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    return positive[first], place.reshape(-1)


def _inverses(gram: Array, supports: NDArray[np.bool_]) -> Array:
    """Return the inverses of a matrix (k, k) on sets of rows and columns (sets, k), zero elsewhere (sets, k, k)."""
    both = supports[:, :, None] & supports[:, None, :]
    return np.where(both, np.linalg.inv(np.where(both, gram, 0.0) + _ridge(gram)), 0.0)


def _ridge(gram: Array) -> Array:
    """Return what is added to a gram (k, k), without which components that coincide have no inverse."""
    return 1e-10 * (float(np.diag(gram).max()) or 1.0) * np.eye(len(gram))


def _solve(gram: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(gram + _ridge(gram), right))


def _rms(x: Array) -> Array:
    """Return the root mean square of columns (k,), or of a vector."""
    return np.asarray(np.sqrt((x**2).mean(axis=0)))
