"""Bringing an asymmetric block to a small symmetric tensor, and back (appendix B of the paper).

For three views with T = sum_h w_h a_h x b_h x c_h and pair moments P_ab, P_ac, P_bc of the same components, the map
P_cb P_ab^+ takes a_h to a multiple of c_h, and P_ca P_ba^+ takes b_h there. So the block becomes symmetric in the
third view, and is then compressed to k x k x k. A tensor that is symmetric already, with its M2 for all three pairs,
comes out projected on M2's leading space. Nothing here keeps signs: a general decomposition may be negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.errors import InputError
from mixmem.moments.solvers.contract import Factorization, Pairs, normalized, term_weights
from mixmem.typing import Array

LEADING, ALL = DIRECTIONS = ("leading", "all")
"""What a general decomposition works in: the k leading directions of the second moment, or all there are."""


@dataclass(frozen=True)
class Compressed:
    """A symmetric m x m x m tensor, the second moment in the same coordinates, and the way back to the third view.

    ``basis`` (d_3, m) is orthonormal: the third factor is ``basis`` times the small factor. m is k, or d_3 where
    nothing is projected.
    """

    tensor: Array
    second: Array
    basis: Array
    pairs: Pairs


NOTHING = 1e-10
"""Share of the largest singular value below which a direction holds rounding errors only."""


def compress(tensor: Array, pairs: Pairs, k: int, directions: str = LEADING) -> Compressed:
    """Symmetrize by the pair moments and project on the k leading directions of the second moment.

    With ``directions="all"`` nothing is projected: the tensor stays (d_3, d_3, d_3), noise in all its directions.
    """
    if directions not in DIRECTIONS:
        raise InputError(f"directions must be one of {', '.join(map(repr, DIRECTIONS))}; got {directions!r}")
    ab, ac, bc = pairs
    if min(tensor.shape) < k:
        raise InputError(
            f"this solver needs modes of at least k = {k} rows; the tensor has shape {tensor.shape}: use 'pqp'"
        )
    inverse = _truncated_inverse(ab, k if directions == LEADING else min(ab.shape))
    from_a, from_b = bc.T @ inverse, ac.T @ inverse.T
    second = from_a @ ab @ from_b.T
    second = (second + second.T) / 2.0
    values, vectors = np.linalg.eigh(second)
    basis = vectors[:, np.argsort(-np.abs(values))[:k]] if directions == LEADING else np.eye(len(second))
    small = np.einsum("abc,ai,bj,cl->ijl", tensor, from_a.T @ basis, from_b.T @ basis, basis, optimize=True)
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    small = sum(np.transpose(small, order) for order in orders) / 6.0
    return Compressed(np.asarray(small), basis.T @ second @ basis, basis, pairs)


def contracted_pairs(tensor: Array, rng: np.random.Generator) -> Pairs:
    """Pair matrices of the same components from the tensor itself, one mode summed out with random positive weights."""
    weights = [rng.uniform(0.5, 1.5, d) for d in tensor.shape]
    return (
        np.asarray(tensor @ weights[2]),
        np.einsum("abc,b->ac", tensor, weights[1]),
        np.einsum("abc,a->bc", tensor, weights[0]),
    )


def expand(
    tensor: Array, found: Array, compressed: Compressed, history: Array, converged: bool, reason: str
) -> Factorization:
    """Factors of the original tensor from the small symmetric factor (m, k), weights by least squares."""
    _, ac, bc = compressed.pairs
    c = compressed.basis @ found
    back = np.linalg.pinv(c).T
    factors, _ = normalized((ac @ back, bc @ back, c))
    weights, residual = term_weights(tensor, factors)
    return Factorization(factors, weights, np.append(history, residual), residual, converged, reason, len(history))


def _truncated_inverse(matrix: Array, k: int) -> Array:
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    k = min(k, max(1, int((values > values[0] * NOTHING).sum())))
    return np.asarray((right[:k].T / np.maximum(values[:k], 1e-300)) @ left[:, :k].T)
