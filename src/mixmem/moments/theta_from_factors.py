"""From factors to parameters: theta on the simplex, alpha from the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.moments.solvers.contract import Factorization
from mixmem.moments.sums import FirstMoments
from mixmem.moments.third_moments import BlockMoments
from mixmem.typing import Array

LEAST_SHARE = 1e-4
"""Share of alpha0 below which no alpha falls: a component the moments give no weight keeps a positive one."""


@dataclass(frozen=True)
class Concentration:
    """Alpha (k,), which sums to ``alpha0``, and how far the moments' own alpha was from that sum, relatively."""

    alpha: Array
    alpha0: float
    discrepancy: float


def simplex_rows(x: Array, sizes: NDArray[np.int64], means: Array) -> tuple[Array, Array]:
    """Divide each variable's rows by their column sums: theta (rows, k) and the sums (variables, k).

    ``x`` (rows, k) nonnegative, ``sizes`` levels per variable in row order, ``means`` (rows,). Where a column of a
    variable is zero nothing is known of it but the variable's mean, which it gets.
    """
    starts = np.cumsum(sizes) - sizes
    sums = np.add.reduceat(x, starts, axis=0)
    spread = np.repeat(sums, sizes, axis=0)
    tiny = 1e-10 * max(float(sums.max(initial=0.0)), 1e-300)
    theta = np.where(spread > tiny, x / np.where(spread > tiny, spread, 1.0), means[:, None])
    return theta, sums


def block_theta(found: Factorization, block: BlockMoments, means: Array) -> tuple[tuple[Array, Array, Array], Array]:
    """Theta of a block's variables, mode by mode, and the components' weights w_h (k,).

    A mode's column sums to one over all its variables, and would sum to one over each of them if theta stood there, so
    the product of the three column scales is the factorization's weight over the numbers of variables. Negative
    entries, which general decompositions give, are rounded to zero.
    """
    parts = [
        simplex_rows(np.maximum(factor, 0.0), block.coding.soft.sizes[mode], means[where])[0]
        for factor, mode, where in zip(found.factors, block.modes, block.rows, strict=True)
    ]
    weights = found.weights / np.prod([len(mode) for mode in block.modes])
    return (parts[0], parts[1], parts[2]), weights


def theta_of(soft: Array, first: FirstMoments) -> Array:
    """Return theta (rows, k) from that of the moments, the components' shares of soft levels (soft levels, k)."""
    coding = first.coding
    if coding.soft.plain:
        return soft
    theta, offsets = np.empty((coding.schema.n_rows, soft.shape[1])), coding.soft.offsets
    for j, column in enumerate(coding.columns):
        own = soft[offsets[j] : offsets[j + 1]]
        theta[coding.schema.rows(j)] = column.own_kind.parameters(column, own, first.of(j))
    return theta


def concentration(weights: Array, alpha0: float) -> Concentration:
    """alpha_h = w_h alpha0 (alpha0 + 1) (alpha0 + 2) / 2 (equation 3), brought to the sum alpha0."""
    raw = np.maximum(weights, 0.0) * alpha0 * (alpha0 + 1.0) * (alpha0 + 2.0) / 2.0
    total = float(raw.sum())
    shares = raw / total if total > 0.0 else np.full(len(raw), 1.0 / len(raw))
    shares = np.maximum(shares, LEAST_SHARE)
    return Concentration(alpha0 * shares / shares.sum(), alpha0, total / alpha0 - 1.0)
