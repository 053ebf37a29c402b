"""Simultaneous diagonalization of random projections (Kuleshov, Chaganty and Liang): nojd0 and nojd1."""

from __future__ import annotations

from functools import partial

import numpy as np

from mixmem.errors import InputError
from mixmem.kernels.joint import diagonalizing_sweep
from mixmem.moments.solvers.contract import Factorization, Pairs
from mixmem.moments.solvers.symmetric import LEADING, NOTHING, Compressed, compress, expand
from mixmem.typing import Array

PROJECTIONS = 10
"""Random projections per component; noise averages out over them."""
MOST_SWEEPS, BALANCE_EVERY, CHANGE = 200, 3, 1e-4
"""Sweeps of QRJ1D at most, sweeps between two balancings of its rows, and the change per row that ends it."""


def nojd(
    tensor: Array,
    k: int,
    pairs: Pairs,
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
    again: bool,
    directions: str = LEADING,
    n_projections: int | None = None,
    rule: str = "ffdiag",
) -> Factorization:
    """Diagonalize T(I, I, v) for random v jointly: each is C diag(w * C'v) C'; k of the columns of C are kept.

    ``again``: once more along the first estimate, where each projection holds one component. ``directions``: the k
    leading ones of the second moment, or all, out of which k are picked by their eigenvalues; ``n_projections`` random
    ones (None: ten per component); ``rule``: "ffdiag", or "qrj1d" with its own rule for stopping.
    """
    compressed = compress(tensor, pairs, k, directions)
    if rule not in RULES:
        raise InputError(f"rule must be one of {', '.join(map(repr, RULES))}; got {rule!r}")
    diagonalize = partial(RULES[rule], max_iter=max_iter, tol=tol)
    along = rng.standard_normal((n_projections or PROJECTIONS * k, len(compressed.second)))
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    matrices = np.einsum("ijl,rl->rij", compressed.tensor, along)
    inverse, history, ended = diagonalize(matrices)
    if again:
        # The plug-in projections: rows of the inverse hold one component each; without projection, C has noise too.
        along = inverse if directions == LEADING else np.linalg.inv(inverse).T
        along = along / np.linalg.norm(along, axis=1, keepdims=True)
        matrices = np.einsum("ijl,rl->rij", compressed.tensor, along)
        start = inverse if rule == "ffdiag" else None
        inverse, more, ended = diagonalize(matrices, start=start)
        history = np.append(history, more)
    found = _largest(inverse, matrices, along, k, again, compressed)
    reason = "the diagonalizer came to rest" if ended else "stopped when its rounds ran out"
    return expand(tensor, found, compressed, history, ended, reason)


nojd0 = partial(nojd, again=False)
nojd1 = partial(nojd, again=True)


def _largest(inverse: Array, matrices: Array, along: Array, k: int, again: bool, compressed: Compressed) -> Array:
    """Return the k columns (m, k) of the inverse diagonalizer that have the largest eigenvalues.

    The eigenvalue of a column in a projection is its diagonal entry over the column's share of the direction; after
    plug-in projections the entries themselves are summed.
    """
    if len(compressed.second) == k:
        return np.asarray(np.linalg.pinv(inverse))
    columns = np.linalg.inv(inverse)
    lengths = np.linalg.norm(columns, axis=0)
    columns = columns / lengths
    entries = np.einsum("ai,rij,aj->ra", inverse, matrices, inverse, optimize=True) * lengths**2
    sizes = np.abs(entries) if again else np.abs(entries / (along @ columns))
    return np.asarray(columns[:, np.argsort(-sizes.mean(axis=0), kind="stable")[:k]])


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
        share = _beside(current)
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


def diagonalize_by_sweeps(
    matrices: Array, *, start: Array | None = None, max_iter: int = MOST_SWEEPS, tol: float = 0.0
) -> tuple[Array, Array, bool]:
    """V (n, n) as of :func:`diagonalize_jointly`, by sweeps of rotations and triangular steps (Afsari, QRJ1D).

    Every third sweep the rows are brought to one size. Ends when a sweep's own matrix differs from the identity by no
    more than 1e-4 n in any entry, or after 200 sweeps; ``tol`` is not used.
    """
    n = matrices.shape[1]
    v = np.eye(n) if start is None else start.copy()
    x = np.ascontiguousarray(np.moveaxis(v @ matrices @ v.T, 0, 2))
    history: list[float] = []
    for sweep in range(1, min(max_iter, MOST_SWEEPS) + 1):
        change = diagonalizing_sweep(x, v)
        if sweep % BALANCE_EVERY == 0:
            sums = np.abs(x).sum(axis=(1, 2)) / len(matrices)
            scale = 1.0 / np.where(sums > NOTHING * sums.max(), sums, 1.0)
            x *= scale[:, None, None] * scale[None, :, None]
            v *= scale[:, None]
        history.append(_beside(np.moveaxis(x, 2, 0)))
        if change <= CHANGE * n:
            return v, np.array(history), True
    return v, np.array(history), False


RULES = {"ffdiag": diagonalize_jointly, "qrj1d": diagonalize_by_sweeps}


def _beside(matrices: Array) -> float:
    """Return the share of the squares that stands beside the diagonals; matrices (m, n, n)."""
    whole = float((matrices**2).sum())
    return (whole - float((np.einsum("rii->ri", matrices) ** 2).sum())) / max(whole, 1e-300)


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
