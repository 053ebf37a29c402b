"""Matching the columns of two factorizations (paper, sections 4.2 and 5.1).

Both matchers always return a permutation. The theorems' sufficient conditions are evaluated and returned as data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixmem.errors import InputError
from mixmem.moments.components import best_assignment
from mixmem.records import Record
from mixmem.typing import Array, MatchingName


@dataclass(frozen=True)
class Guarantee(Record):
    """Hold a theorem's sufficient condition for a consistent permutation, evaluated at the permutation found.

    The theorem speaks of the permutation that is true: if the condition is met there, matching finds it. Nobody
    knows the true one; where the condition is met at the permutation found, no other permutation meets it. That the
    columns really belong together so is then likely, and not proved: a column may be nearer to another's place.

    Attributes
    ----------
    theorem : str
        Name of the theorem.
    holds : bool
        Whether its condition is met at the permutation found.
    margin : float
        How far the condition is from failing, in the units of its inequality, positive where it holds (for theorem 6
        the smaller margin of its two, the first divided by sigma_k).
    """

    theorem: str
    holds: bool
    margin: float


@dataclass(frozen=True)
class Matching:
    """Hold a permutation of columns, how it was found, and whether the theorems' conditions are met there.

    Attributes
    ----------
    permutation : (k,) array of integers
        Column s of the reference is column ``permutation[s]`` of the other matrix.
    method : str
        "procrustes" or "angle".
    assigned : bool
        Whether the paper's argmax repeated a column and an assignment problem settled it.
    angle, procrustes : Guarantee
        Conditions of theorem 5 and of theorem 6.
    """

    permutation: NDArray[np.int64]
    method: str
    assigned: bool
    angle: Guarantee
    procrustes: Guarantee

    @property
    def permuted(self) -> bool:
        """Return whether the columns stand in another order."""
        return bool((self.permutation != np.arange(len(self.permutation))).any())

    @property
    def guaranteed(self) -> bool:
        """Return whether the method's condition is met at the permutation found (see :class:`Guarantee`)."""
        return self.procrustes.holds if self.method == "procrustes" else self.angle.holds


def match_columns(reference: ArrayLike, other: ArrayLike, method: str = "procrustes") -> Matching:
    """Find the permutation that brings the columns of ``other`` into the order of ``reference``.

    The conditions of theorems 5 and 6 are evaluated at the permutation found, on columns of unit length, with the
    reference in the place of the truth.

    Parameters
    ----------
    reference, other : (d, k) arrays
        Two estimates of the same theta, with one column per component.
    method : str
        "procrustes" takes the argmax of each column of the orthogonal Procrustes polar factor (equation 7), "angle" the
        smallest angle (equation 4).

    Returns
    -------
    Matching

    Raises
    ------
    InputError
        If the two are not matrices of one shape, or the method is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> match_columns(np.eye(3), np.eye(3)[:, [2, 0, 1]]).permutation
    array([1, 2, 0])
    """
    affinity = column_affinity(reference, other, method)
    theta, theta_other = _unit_columns(reference), _unit_columns(other)
    permutation = affinity.argmax(axis=0)
    assigned = len(set(permutation.tolist())) < len(permutation)
    if assigned:
        permutation = best_assignment(-affinity.T)
    aligned = theta_other[:, permutation]
    return Matching(
        permutation.astype(np.int64),
        method,
        assigned,
        angle_guarantee(theta, aligned),
        procrustes_guarantee(theta, aligned),
    )


METHODS = get_args(MatchingName)


def column_affinity(reference: ArrayLike, other: ArrayLike, method: str) -> Array:
    """Return how well column t of ``other`` goes with column s of ``reference``, as entry (t, s) of a (k, k) matrix.

    Cosines of angles, or their polar factor, the orthogonal Procrustes solution (equations 4 and 6).
    """
    if method not in METHODS:
        raise InputError(f"matching must be one of {', '.join(map(repr, METHODS))}; got {method!r}")
    theta, theta_other = _unit_columns(reference), _unit_columns(other)
    if theta.shape != theta_other.shape:
        raise InputError(f"matching needs two matrices of one shape; got {theta.shape} and {theta_other.shape}")
    cosines = theta_other.T @ theta
    if method == "angle":
        return np.asarray(cosines)
    left, _, right = np.linalg.svd(cosines)
    return np.asarray(left @ right)


def angle_guarantee(theta: Array, aligned: Array) -> Guarantee:
    """Theorem 5: every column's relative error is below 1 - cos of a quarter of the smallest angle between columns."""
    if theta.shape[1] == 1:
        return Guarantee("theorem 5 (smallest angle)", True, float("inf"))
    cosines = (theta.T @ theta) / np.outer(np.linalg.norm(theta, axis=0), np.linalg.norm(theta, axis=0))
    largest = float(np.clip(cosines[~np.eye(len(cosines), dtype=bool)].max(), -1.0, 1.0))
    bound = 1.0 - np.sqrt(0.5 + np.sqrt((1.0 + largest) / 8.0))
    error = float((np.linalg.norm(theta - aligned, axis=0) / np.linalg.norm(theta, axis=0)).max())
    return Guarantee("theorem 5 (smallest angle)", bool(error < bound), float(bound - error))


def procrustes_guarantee(theta: Array, aligned: Array) -> Guarantee:
    """Theorem 6: the error matrix is small against the two smallest singular values of theta'theta."""
    name = "theorem 6 (orthogonal Procrustes)"
    if theta.shape[1] == 1:
        return Guarantee(name, True, float("inf"))
    gram = np.linalg.svd(theta.T @ theta, compute_uv=False)
    error = np.linalg.svd(theta.T @ (aligned - theta), compute_uv=False)
    first = (gram[-1] - error[0]) / max(gram[-1], 1e-300)
    rho, nu = error[0] + error[1], gram[-1] + gram[-2]
    if rho >= nu:
        return Guarantee(name, False, float(min(first, (nu - rho) / max(nu, 1e-300))))
    left = 0.0 if rho <= 0.0 else -error[0] / rho * np.log1p(-rho / nu)
    second = (2.0 - np.sqrt(2.0)) / 4.0 - left
    return Guarantee(name, bool(first > 0.0 and second > 0.0), float(min(first, second)))


def _unit_columns(matrix: ArrayLike) -> Array:
    array = np.asarray(matrix, dtype=float)
    if array.ndim != 2:
        raise InputError(f"matching needs matrices; got shape {array.shape}")
    norms = np.linalg.norm(array, axis=0)
    return np.asarray(array / np.where(norms > 0.0, norms, 1.0))
