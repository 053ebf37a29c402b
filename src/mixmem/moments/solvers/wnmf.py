"""Multiplicative updates that treat negative entries as missing (WNMF), and Lee-Seung's, which cannot have any.

Both are PQP with particular choices (theorem 3); they are here to be compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mixmem.moments.solvers.contract import Factorization, Factors, normalized
from mixmem.typing import Array

EPSILON = 1e-10


def wnmf(
    tensors: Array, which: Sequence[int], starts: Sequence[Factors], *, max_iter: int, tol: float, inner: int | None
) -> list[Factorization]:
    """Minimise the residual over the nonnegative entries only (equation 12), with epsilon above and below."""
    return [
        _multiplicative(part, (part >= 0.0).astype(float), EPSILON, start, max_iter, tol, inner or 1)
        for part, start in _parts(tensors, which, starts)
    ]


def lee_seung(
    tensors: Array, which: Sequence[int], starts: Sequence[Factors], *, max_iter: int, tol: float, inner: int | None
) -> list[Factorization]:
    """Lee-Seung's updates (equation 11) of tensors without negative entries."""
    return [
        _multiplicative(part, np.ones_like(part), 0.0, start, max_iter, tol, inner or 1)
        for part, start in _parts(tensors, which, starts)
    ]


def _parts(tensors: Array, which: Sequence[int], starts: Sequence[Factors]) -> Iterator[tuple[Array, Factors]]:
    """Each run's tensor without its padding, and its start."""
    for block, start in zip(which, starts, strict=True):
        d_1, d_2, d_3 = (factor.shape[0] for factor in start)
        yield tensors[block, :d_1, :d_2, :d_3], start


def _multiplicative(
    tensor: Array, mask: Array, epsilon: float, start: Factors, max_iter: int, tol: float, inner: int
) -> Factorization:
    factors = [factor.copy() for factor in start]
    # per mode: the unfolding of data and mask (d_m, rest), with the other two modes in their order
    unfolded = [np.moveaxis(mask * tensor, m, 0).reshape(tensor.shape[m], -1) for m in range(3)]
    masks = [np.moveaxis(mask, m, 0).reshape(tensor.shape[m], -1) for m in range(3)]
    history: list[float] = []
    previous, norm = np.inf, float((unfolded[0] ** 2).sum())
    for sweep in range(max_iter):
        for m in range(3):
            left, right = (factors[other] for other in range(3) if other != m)
            design = (left[:, None, :] * right[None, :, :]).reshape(-1, left.shape[1])
            above = unfolded[m] @ design + epsilon
            for _ in range(inner):
                below = (masks[m] * (factors[m] @ design.T)) @ design + epsilon
                factors[m] = factors[m] * np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)
            history.append(float(((unfolded[m] - masks[m] * (factors[m] @ design.T)) ** 2).sum()))
        if previous - history[-1] <= tol * max(history[-1], tol * norm):
            return _result(factors, history, True, f"a round lowered the residual by less than {tol:g}", sweep + 1)
        previous = history[-1]
    return _result(factors, history, False, f"stopped at max_iter={max_iter} rounds", max_iter)


def _result(factors: list[Array], history: list[float], converged: bool, reason: str, sweeps: int) -> Factorization:
    parts, weights = normalized((factors[0], factors[1], factors[2]))
    return Factorization(parts, weights, np.array(history), history[-1], converged, reason, sweeps)
