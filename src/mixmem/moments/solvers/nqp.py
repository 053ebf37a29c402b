"""Parallel quadratic programming (paper, section 4.6 and theorem 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mixmem.typing import Array


@dataclass(frozen=True)
class NqpResult:
    """Hold the minimiser of a nonnegative quadratic program and how it was reached.

    Attributes
    ----------
    x : (k,) array
        Minimiser.
    history : array
        Objective after every update, the start first.
    converged : bool
        Whether the updates ended because x changed no more.
    reason : str
        Why they ended, in words.
    """

    x: Array
    history: Array
    converged: bool
    reason: str


def pqp_gamma(q: ArrayLike) -> Array:
    """The least gamma of theorem 7, (-Q)_+ 1: zero where Q has no negative entry; q (k, k) -> (k,)."""
    return np.asarray(np.maximum(-np.asarray(q, dtype=float), 0.0).sum(axis=1))


def pqp_phi(q: ArrayLike, z: ArrayLike, epsilon: float = 1e-10) -> Array:
    """The phi of theorem 7: epsilon above 1/2 (sqrt(z'Q^-1 z / lambda_min(Q)) diag(Q) - |z|)_+; q (k, k), z (k,)."""
    q, z = np.asarray(q, dtype=float), np.asarray(z, dtype=float)
    values, vectors = np.linalg.eigh(q)
    quadratic = float(((vectors.T @ z) ** 2 / values).sum())
    bound = np.sqrt(quadratic / values[0])
    return np.asarray(0.5 * np.maximum(bound * np.diag(q) - np.abs(z), 0.0) + epsilon)


def solve_nqp(
    q: ArrayLike,
    z: ArrayLike,
    *,
    start: ArrayLike | None = None,
    gamma: ArrayLike | None = None,
    phi: ArrayLike | None = None,
    max_iter: int = 100_000,
    tol: float = 1e-10,
) -> NqpResult:
    """Minimise 1/2 x'Qx + z'x over x >= 0 by the multiplicative PQP update (equation 15 of the paper).

    Parameters
    ----------
    q : (k, k) array
        Q, symmetric and positive definite.
    z : (k,) array
        Linear term.
    start : (k,) array or None
        Where to begin, positive; None for ones.
    gamma, phi : (k,) array, float or None
        Parameters of the update. None takes values that satisfy theorem 7 (monotone decrease, linear convergence).
    max_iter : int
        Updates at most.
    tol : float
        The updates end when one changes x by at most this, relative to its largest entry.

    Returns
    -------
    NqpResult

    Raises
    ------
    ValueError
        If q is not symmetric and positive definite, the start is not positive, or gamma or phi break theorem 7.

    Examples
    --------
    >>> import numpy as np
    >>> solve_nqp([[2.0, 0.0], [0.0, 2.0]], [-2.0, 2.0]).x.round(6)
    array([1., 0.])
    """
    q, z = np.asarray(q, dtype=float), np.asarray(z, dtype=float)
    k = z.shape[0]
    if q.shape != (k, k) or not np.allclose(q, q.T):
        raise ValueError(f"q must be a symmetric {k} x {k} matrix to go with z of length {k}; got shape {q.shape}")
    smallest = float(np.linalg.eigvalsh(q)[0])
    if not smallest > 0.0:
        raise ValueError(f"q must be positive definite; its smallest eigenvalue is {smallest:.3g}")
    least_gamma = pqp_gamma(q)
    gamma = least_gamma if gamma is None else np.broadcast_to(np.asarray(gamma, dtype=float), (k,))
    if (gamma < least_gamma).any():
        raise ValueError(f"gamma must be at least (-Q)_+ 1 = {least_gamma} (theorem 7); got {gamma}")
    bound = pqp_phi(q, z, epsilon=0.0)
    phi = pqp_phi(q, z) if phi is None else np.broadcast_to(np.asarray(phi, dtype=float), (k,))
    if (phi <= bound).any():
        raise ValueError(f"phi must exceed the bound of theorem 7, {bound}; got {phi}")
    x = np.ones(k) if start is None else np.array(start, dtype=float)
    if x.shape != (k,) or (x <= 0).any():
        raise ValueError(f"start must hold {k} positive numbers: a multiplicative update cannot leave zero; got {x}")
    plus, minus = np.maximum(q, 0.0) + np.diag(gamma), np.maximum(-q, 0.0) + np.diag(gamma)
    z_plus, z_minus = np.maximum(z, 0.0) + phi, np.maximum(-z, 0.0) + phi
    history = [0.5 * x @ q @ x + z @ x]
    for _ in range(max_iter):
        new = x * (minus @ x + z_minus) / (plus @ x + z_plus)
        change = float(np.abs(new - x).max())
        x = new
        history.append(0.5 * x @ q @ x + z @ x)
        if change <= tol * max(float(x.max()), 1e-300):
            return NqpResult(x, np.array(history), True, f"change at most {tol:g} after {len(history) - 1} updates")
    return NqpResult(x, np.array(history), False, f"stopped at max_iter={max_iter}; last change {change:.3g}")
