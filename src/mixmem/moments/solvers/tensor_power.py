"""The tensor power method with whitening (Anandkumar et al.; appendix B of the paper)."""

from __future__ import annotations

import numpy as np

from mixmem.moments.solvers.contract import Factorization, Pairs
from mixmem.moments.solvers.symmetric import LEADING, NOTHING, compress, expand
from mixmem.typing import Array

ITERATIONS = 200


def tensor_power(
    tensor: Array,
    k: int,
    pairs: Pairs,
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
    directions: str = LEADING,
    n_starts: int = 20,
) -> Factorization:
    """Whiten by the second moment, find orthogonal components one by one, take them back.

    The whitened tensor is orthogonal if the moments are exact; from noisy ones, components come out with negative
    entries, and directions in which the second moment is not positive are lost to the whitening. With
    ``directions="all"`` the whitening keeps every other direction, and divides by second moments that are nothing but
    noise: with few rows, what is found are single rows of the table. ``n_starts`` are random starts per component.
    """
    compressed = compress(tensor, pairs, k, directions)
    values, vectors = np.linalg.eigh(compressed.second)
    least = max(float(values.max()), 1e-300) * NOTHING
    kept = slice(-max(k, int((values > least).sum())), None)  # eigenvalues rise
    values, vectors = np.maximum(values[kept], least), vectors[:, kept]
    whiten, color = vectors / np.sqrt(values), vectors * np.sqrt(values)
    left = np.einsum("ijl,ia,jb,lc->abc", compressed.tensor, whiten, whiten, whiten, optimize=True)
    found, history, steady = np.empty((len(values), k)), [], True
    for h in range(k):
        vector, value, ended = _component(left, rng, min(max_iter, ITERATIONS), tol, n_starts)
        found[:, h] = vector
        steady = steady and ended
        left = left - value * np.einsum("a,b,c->abc", vector, vector, vector)
        history.append(float((left**2).sum()))
    reason = f"{k} components by deflation, " + ("each steady" if steady else "some not steady when iterations ran out")
    return expand(tensor, color @ found, compressed, np.array(history), steady, reason)


def _component(
    tensor: Array, rng: np.random.Generator, max_iter: int, tol: float, n_starts: int
) -> tuple[Array, float, bool]:
    """The best of several random starts of u <- T(I, u, u) / norm, then iterated until steady."""
    m = tensor.shape[0]
    u = rng.standard_normal((n_starts, m))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    flat = tensor.reshape(m, m * m)

    def step(u: Array) -> Array:
        image = (u[:, :, None] * u[:, None, :]).reshape(len(u), -1) @ flat.T
        return image / np.maximum(np.linalg.norm(image, axis=1, keepdims=True), 1e-300)

    for _ in range(min(30, max_iter)):
        u = step(u)
    best = u[[int(np.argmax(np.einsum("abc,ra,rb,rc->r", tensor, u, u, u, optimize=True)))]]
    ended = False
    for _ in range(max_iter):
        new = step(best)
        ended = bool(np.abs(new - best).max() <= tol)
        best = new
        if ended:
            break
    vector = best[0]
    return vector, float(np.einsum("abc,a,b,c", tensor, vector, vector, vector)), ended
