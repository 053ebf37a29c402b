"""Matching second moments alone, by coordinate descent on the simplex (Zhao et al., MELD with pairs).

Pairs of variables do not tell components apart by themselves (theta may be turned): what identifies them here is that
every column of a variable lies on the simplex. The objective is nearly flat around equal columns, so a start there and
a loose rule for stopping end where they began.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixmem.moments.solvers.contract import Pairs
from mixmem.typing import Array

FIRST_STEP, SHRINKING = 0.1, 0.6
"""Newton's step in the weighted rounds, and what it is multiplied by after each."""
LEAST = 0.05
"""Floor of a fitted entry in its variance, as a share of the mean entry: no weight grows without bound."""


class PairModel:
    """Second moments (rows, rows), which of them are known, and the variables' numbers of levels.

    Components have equal weights, whose sum the moments give: a pair of variables has entries that sum to it.
    """

    def __init__(self, second: Array, known: Array, sizes: Sequence[int], k: int):
        self.second, self.known = second * known, known
        ends = np.cumsum(sizes)
        self.rows = [slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)]
        pairs = sum(bool(known[one.start, other.start]) for one in self.rows for other in self.rows)
        self.weight = float(self.second.sum()) / max(pairs, 1) / k

    def objective(self, theta: Array, weights: Array) -> float:
        """Return the weighted sum of squared differences over the known entries."""
        return float((weights * (self.second - self.known * (self.weight * theta @ theta.T)) ** 2).sum())

    def round(self, theta: Array, weights: Array, step: float) -> None:
        """Move every column of every variable by a step of Newton's towards its minimiser, on the simplex."""
        for rows in self.rows:
            fitted = self.weight * theta[rows] @ theta.T
            left = weights[rows] * (self.second[rows] - self.known[rows] * fitted)
            mass = weights[rows] * self.known[rows]
            for h in range(theta.shape[1]):
                curve = self.weight * (mass @ theta[:, h] ** 2)
                move = step * (left @ theta[:, h]) / np.maximum(curve, 1e-300)
                new = np.maximum(theta[rows, h] + move, 0.0)
                total = float(new.sum())
                new = new / total if total > 0.0 else np.full(len(new), 1.0 / len(new))
                left -= mass * (self.weight * np.outer(new - theta[rows, h], theta[:, h]))
                theta[rows, h] = new


def match_second_moments(
    model: PairModel, k: int, rng: np.random.Generator, *, concentration: float, max_iter: int, tol: float
) -> tuple[Array, list[float], bool]:
    """Return theta (rows, k), the objective after every round, and whether both stages ended by their rule.

    Columns start at draws from a symmetric Dirichlet distribution of that ``concentration``: large is near uniform. A
    stage ends when a round changes the objective by less than ``tol`` relatively. The second one weights every entry
    by the inverse of its fitted value, which is close to its variance times n.
    """
    sizes = [rows.stop - rows.start for rows in model.rows]
    theta = np.concatenate([rng.dirichlet(np.full(size, concentration), size=k).T for size in sizes])
    history, ended = _descend(model, theta, np.ones_like(model.second), max_iter, tol, 1.0, 1.0)
    fitted = model.weight * theta @ theta.T
    weights = 1.0 / np.maximum(fitted, LEAST * max(float(fitted.mean()), 1e-300))
    more, also = _descend(model, theta, weights / weights.mean(), max_iter, tol, FIRST_STEP, SHRINKING)
    return theta, history + more, ended and also


def _descend(
    model: PairModel, theta: Array, weights: Array, max_iter: int, tol: float, step: float, shrinking: float
) -> tuple[list[float], bool]:
    history = [model.objective(theta, weights)]
    for _ in range(max_iter):
        model.round(theta, weights, step)
        step *= shrinking
        history.append(model.objective(theta, weights))
        if abs(history[-2] - history[-1]) <= tol * history[-2]:
            return history, True
    return history, False


def pair_model(pairs: Pairs, sizes: Sequence[Sequence[int]], k: int) -> PairModel:
    """Return the second moments of a block's three modes as one model.

    ``sizes`` are the variables' numbers of levels, mode by mode. Pairs inside a mode are unknown, unless all three
    modes are the same variables: then all pairs of distinct ones are known.
    """
    ab, ac, bc = pairs
    if ab is ac and ac is bc:
        owner = np.repeat(np.arange(len(sizes[0])), sizes[0])
        return PairModel(ab, (owner[:, None] != owner[None, :]).astype(float), sizes[0], k)
    blank = [np.zeros((d, d)) for d in (*ab.shape, ac.shape[1])]
    second = np.block([[blank[0], ab, ac], [ab.T, blank[1], bc], [ac.T, bc.T, blank[2]]])
    mode = np.repeat(np.arange(3), [len(part) for part in blank])
    together = [size for mode_sizes in sizes for size in mode_sizes]
    return PairModel(second, (mode[:, None] != mode[None, :]).astype(float), together, k)
