"""Generalized method of moments for the GDLM (Zhao et al., MELD): identity weights first, then estimated optimal ones.

The moments of distinct variables are matched by nonnegative factors in least squares, and then again with every entry
weighted by the inverse of its estimated sampling variance. An entry of the third moment is the mean of a product of
indicators, whose variance is close to its expectation over n: the first stage's fitted entries give the weights. With
``order=2`` the second moments are matched instead, which is what the authors' program does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixmem.errors import InputError
from mixmem.moments.solvers.contract import Factorization, Pairs, normalized, term_weights
from mixmem.moments.solvers.second_moments import match_second_moments, pair_model
from mixmem.moments.solvers.tensor_pqp import CYCLES, alternate
from mixmem.typing import Array

RESTARTS = 5
LEAST = 0.05
"""Floor of an entry in the variance, as a share of the mean entry: no weight grows without bound."""


def meld(
    tensor: Array,
    k: int,
    pairs: Pairs,
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
    order: int = 3,
    sizes: Sequence[Sequence[int]] | None = None,
    concentration: float = 100.0,
) -> Factorization:
    """Two-stage weighted least squares with nonnegative factors.

    ``order=3`` matches the tensor, from random starts, and does not use ``pairs``. ``order=2`` matches the pairs, each
    variable's columns on the simplex, from one start of that Dirichlet ``concentration``: ``sizes`` are the variables'
    numbers of levels, mode by mode (None: a mode is one variable).
    """
    if order == 2:
        return _of_pairs(tensor, k, pairs, rng, max_iter, tol, sizes, concentration)
    if order != 3:
        raise InputError(f"order must be 2 or 3, the moments that meld matches; got {order!r}")
    starts = []
    for child in rng.spawn(RESTARTS):
        a, b, c = (child.random((d, k)) for d in tensor.shape)
        starts.append((a, b, c))
    runs = alternate(tensor[None], [0] * RESTARTS, starts, max_iter=max_iter, tol=tol, rule=-CYCLES)
    first = min(runs, key=lambda run: run.residual)
    fitted = first.tensor
    weights = 1.0 / np.maximum(fitted, LEAST * max(float(fitted.mean()), 1e-300))
    weights /= weights.mean()
    return _weighted(tensor, weights, first, max_iter, tol)


def _of_pairs(
    tensor: Array,
    k: int,
    pairs: Pairs,
    rng: np.random.Generator,
    max_iter: int,
    tol: float,
    sizes: Sequence[Sequence[int]] | None,
    concentration: float,
) -> Factorization:
    """Match second moments; the weights of the tensor's terms are those that fit it best."""
    sizes = [[d] for d in tensor.shape] if sizes is None else sizes
    if [sum(mode) for mode in sizes] != list(tensor.shape):
        raise InputError(f"sizes must sum to the tensor's shape {tensor.shape}, mode by mode; got {sizes!r}")
    model = pair_model(pairs, sizes, k)
    theta, history, ended = match_second_moments(
        model, k, rng, concentration=concentration, max_iter=max_iter, tol=tol
    )  # fmt: skip
    cuts = np.cumsum(tensor.shape)
    a, b, c = (theta,) * 3 if len(theta) == tensor.shape[0] else np.split(theta, cuts[:2])
    factors, _ = normalized((a, b, c))
    weights, residual = term_weights(tensor, factors)
    reason = f"the objective changed by less than {tol:g} relatively" if ended else f"stopped at max_iter={max_iter}"
    return Factorization(factors, weights, np.array([*history, residual]), residual, ended, reason, len(history))


def _weighted(tensor: Array, weights: Array, start: Factorization, max_iter: int, tol: float) -> Factorization:
    """Alternate over the modes; each row has its own weighted normal equations, solved by coordinate cycles."""
    factors = [start.factors[0], start.factors[1], start.factors[2] * start.weights]
    history: list[float] = []
    converged = False
    while not converged and len(history) < max_iter:
        for m in range(3):
            left, right = (factors[other] for other in range(3) if other != m)
            design = (left[:, None, :] * right[None, :, :]).reshape(-1, left.shape[1])
            mass = np.moveaxis(weights, m, 0).reshape(tensor.shape[m], -1)
            target = (mass * np.moveaxis(tensor, m, 0).reshape(tensor.shape[m], -1)) @ design
            products = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
            grams = (mass @ products).reshape(-1, design.shape[1], design.shape[1])
            factors[m] = _cycle(grams, target, factors[m])
        model = np.einsum("ah,bh,ch->abc", *factors, optimize=True)
        history.append(float((weights * (tensor - model) ** 2).sum()))
        converged = len(history) > 1 and history[-2] - history[-1] <= tol * history[-1]
    reason = (
        f"weighted residual fell by less than {tol:g} relatively" if converged else f"stopped at max_iter={max_iter}"
    )
    parts, scale = normalized((factors[0], factors[1], factors[2]))
    return Factorization(parts, scale, np.array(history), history[-1], converged, reason, len(history))


def _cycle(grams: Array, target: Array, x: Array, cycles: int = 5) -> Array:
    """Coordinate cycles on many programs at once: grams (m, k, k), target (m, k), x (m, k) nonnegative."""
    x = x.copy()
    for _ in range(cycles):
        for h in range(x.shape[1]):
            gradient = np.einsum("mg,mg->m", grams[:, h], x) - target[:, h]
            curve = np.maximum(grams[:, h, h], 1e-300)
            x[:, h] = np.maximum(0.0, x[:, h] - gradient / curve)
    return x
