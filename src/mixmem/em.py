"""Theta and memberships together at the maximum of the rows' likelihood, by accelerated EM.

The objective is sum_ij log sum_h theta_jch x_ih over theta and memberships x: the likelihood that ADMIXTURE and its
like report. A plain EM step never lowers it. Three steps are made into one by squared extrapolation (SQUAREM); where
that would lower the objective the plain step is taken, so the objective still never falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.kernels import ROW_BLOCK
from mixmem.kernels.em import em_pass
from mixmem.memberships import LEAST_PROBABILITY
from mixmem.moments import Array, waves
from mixmem.progress import Progress
from mixmem.schema import Schema

MOST_ROUNDS = 60


@dataclass(frozen=True)
class Maximum:
    """Theta (rows, k) and memberships (n, k) at the end, and the objective, a row's mean, before every round."""

    theta: Array
    memberships: Array
    history: tuple[float, ...]
    converged: bool
    reason: str


def maximise(
    codes: NDArray[np.unsignedinteger],
    schema: Schema,
    theta: Array,
    memberships: Array,
    *,
    progress: Progress,
    tol: float = 1e-6,
    max_rounds: int = MOST_ROUNDS,
) -> Maximum:
    """Run EM from theta (rows, k) and memberships (n, k), converged for that theta: from others EM goes astray.

    A round is two plain steps and an extrapolated one. It ends when a round gains less than ``tol`` a cell.
    """
    step = _Step(codes, schema)
    now = _Point(np.maximum(theta, LEAST_PROBABILITY), memberships)
    history: list[float] = []
    with progress.stage("em", max_rounds) as done:
        for _ in range(max_rounds):
            first, value = step(now)
            history.append(value)
            if len(history) > 1 and history[-1] - history[-2] <= tol * codes.shape[1]:
                reason = f"after {len(history) - 1} rounds the objective rises by no more than {tol:g} a cell"
                return Maximum(now.theta, now.memberships, tuple(history), True, reason)
            second, _ = step(first)
            far = _extrapolated(now, first, second, schema)
            beyond, value_far = step(far)
            now = beyond if value_far >= value else second
            done(1)
    return Maximum(now.theta, now.memberships, tuple(history), False, f"stopped after {max_rounds} rounds")


@dataclass(frozen=True)
class _Point:
    theta: Array
    memberships: Array


class _Step:
    """A plain EM step, with the objective (a row's mean) at where it started."""

    def __init__(self, codes: NDArray[np.unsignedinteger], schema: Schema):
        self.codes, self.schema = codes, schema

    def __call__(self, at: _Point) -> tuple[_Point, float]:
        x = np.empty_like(at.memberships)
        sums, value = np.zeros_like(at.theta), 0.0
        for first, count in waves(len(self.codes), sums.nbytes + ROW_BLOCK):
            partials, values = np.empty((count, *sums.shape)), np.empty(count)
            em_pass(self.codes, self.schema.offsets, at.theta, at.memberships, first, x, partials, values)
            for partial, part in zip(partials, values, strict=True):
                sums += partial
                value += part
        return _Point(_on_simplex(at.theta * sums, self.schema), _rows_on_simplex(x)), float(value) / len(self.codes)


LEAST = 1e-12
"""No entry falls below: a zero would stay one for ever, and a cell might become impossible."""


def _on_simplex(theta: Array, schema: Schema) -> Array:
    """Theta (rows, k) brought to the sum one for every variable."""
    inside = np.maximum(theta, LEAST)
    sums = np.add.reduceat(inside, schema.offsets[:-1], axis=0)
    return np.asarray(np.maximum(inside / np.repeat(sums, schema.n_levels, axis=0), LEAST))


def _rows_on_simplex(x: Array) -> Array:
    inside = np.maximum(x, LEAST)
    return np.asarray(inside / inside.sum(axis=1, keepdims=True))


def _extrapolated(start: _Point, first: _Point, second: _Point, schema: Schema) -> _Point:
    """SQUAREM's point: start - 2 a r + a^2 v with r the first change, v the change of changes, a = -|r| / |v|."""
    length, bend = 0.0, 0.0
    for part in ("theta", "memberships"):
        r, v = _changes(start, first, second, part)
        length, bend = length + float((r**2).sum()), bend + float((v**2).sum())
    a = -max(1.0, float(np.sqrt(length / max(bend, 1e-300))))
    theta, x = (
        getattr(start, part) - 2.0 * a * r + a**2 * v
        for part in ("theta", "memberships")
        for r, v in [_changes(start, first, second, part)]
    )
    # what would leave the simplex goes most of the way to its edge
    x = np.maximum(x, 1e-2 * second.memberships)
    return _Point(_on_simplex(np.maximum(theta, 1e-2 * second.theta), schema), _rows_on_simplex(x))


def _changes(start: _Point, first: _Point, second: _Point, part: str) -> tuple[Array, Array]:
    r = getattr(first, part) - getattr(start, part)
    return r, getattr(second, part) - getattr(first, part) - r
