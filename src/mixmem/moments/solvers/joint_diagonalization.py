"""Simultaneous diagonalization of random projections (Kuleshov, Chaganty and Liang): nojd0 and nojd1."""

from __future__ import annotations

import numpy as np

from mixmem.moments.solvers.contract import Factorization, Pairs
from mixmem.moments.solvers.symmetric import compress, expand
from mixmem.typing import Array

PROJECTIONS = 10
"""Random projections per component; noise averages out over them."""


def nojd0(tensor: Array, k: int, pairs: Pairs, rng: np.random.Generator, *, max_iter: int, tol: float) -> Factorization:
    """Diagonalize T(I, I, v) for random v jointly: each is C diag(w * C'v) C'."""
    return _nojd(tensor, k, pairs, rng, max_iter, tol, again=False)


def nojd1(tensor: Array, k: int, pairs: Pairs, rng: np.random.Generator, *, max_iter: int, tol: float) -> Factorization:
    """As nojd0, and once more along the inverse of the first estimate, where each projection holds one component."""
    return _nojd(tensor, k, pairs, rng, max_iter, tol, again=True)


def _nojd(
    tensor: Array, k: int, pairs: Pairs, rng: np.random.Generator, max_iter: int, tol: float, again: bool
) -> Factorization:
    compressed = compress(tensor, pairs, k)
    directions = rng.standard_normal((PROJECTIONS * k, k))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    matrices = np.einsum("ijl,rl->rij", compressed.tensor, directions)
    inverse, history, ended = diagonalize_jointly(matrices, max_iter=max_iter, tol=tol)
    if again:
        directions = inverse / np.linalg.norm(inverse, axis=1, keepdims=True)
        matrices = np.einsum("ijl,rl->rij", compressed.tensor, directions)
        inverse, more, ended = diagonalize_jointly(matrices, start=inverse, max_iter=max_iter, tol=tol)
        history = np.append(history, more)
    reason = "the diagonalizer came to rest" if ended else f"stopped at max_iter={max_iter} rounds"
    return expand(tensor, np.asarray(np.linalg.pinv(inverse)), compressed, history, ended, reason)


def diagonalize_jointly(
    matrices: Array, *, start: Array | None = None, max_iter: int = 500, tol: float = 1e-12
) -> tuple[Array, Array, bool]:
    """V (k, k) that makes every V M V' as diagonal as it can, not necessarily orthogonal.

    ``matrices`` (m, k, k) symmetric. Multiplicative first-order updates V <- (I + W) V with every pair's W in closed
    form (Ziehe et al., FFDIAG). Also returns the off-diagonal share after every round, and whether W vanished. Without
    a start, the eigenvectors of one pencil of two combinations are taken, which are exact if V exists.
    """
    v = _pencil(matrices) if start is None else start.copy()
    best, best_share = v, np.inf
    history: list[float] = []
    for _ in range(max_iter):
        v = v / np.linalg.norm(v, axis=1, keepdims=True)
        current = v @ matrices @ v.T
        diagonal = np.einsum("rii->ri", current)
        share = float(((current**2).sum() - (diagonal**2).sum()) / max((current**2).sum(), 1e-300))
        history.append(share)
        if share < best_share:
            best, best_share = v, share
        z = diagonal.T @ diagonal
        y = np.einsum("rj,rij->ij", diagonal, current)
        own = np.diag(z)
        determinant = np.outer(own, own) - z**2
        safe = np.where(np.abs(determinant) > 1e-14 * np.outer(own, own) + 1e-300, determinant, np.inf)
        w = (z * y.T - own[:, None] * y) / safe
        np.fill_diagonal(w, 0.0)
        size = float(np.linalg.norm(w))
        if size <= tol:
            return best, np.array(history), True
        if size > 0.5:
            w *= 0.5 / size
        v = v + w @ v
    return best, np.array(history), False


def _pencil(matrices: Array) -> Array:
    """Rows that diagonalize two fixed combinations of the matrices; the identity where those are complex."""
    m, k = matrices.shape[0], matrices.shape[1]
    mix = np.cos(np.outer([1.0, 2.0], np.arange(m)) + np.array([[0.3], [1.1]]))
    first, second = np.einsum("cr,rij->cij", mix, matrices)
    try:
        values, vectors = np.linalg.eig(first @ np.linalg.pinv(second))
    except np.linalg.LinAlgError:
        return np.eye(k)
    if np.abs(values.imag).max() > 1e-8 * np.abs(values).max() or np.linalg.cond(vectors.real) > 1e10:
        return np.eye(k)
    return np.asarray(np.linalg.inv(vectors.real))
