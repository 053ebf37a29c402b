"""What every solver takes, declares and returns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mixmem.typing import Array

Factors = tuple[Array, Array, Array]
Pairs = tuple[Array, Array, Array]
"""Second moments between the modes of a block: (d_1, d_2), (d_1, d_3), (d_2, d_3)."""


@dataclass(frozen=True)
class Factorization:
    """Hold a third-order tensor as sum_h weights_h A_h x B_h x C_h.

    Attributes
    ----------
    factors : (d_1, k), (d_2, k) and (d_3, k) arrays
        A, B and C, with columns that sum to one.
    weights : (k,) array
        Scale of each term.
    history : array
        Squared residual after every mode's update.
    residual : float
        The last of them.
    converged : bool
        Whether the solver ended because nothing changed any more.
    reason : str
        Why it ended, in words.
    n_sweeps : int
        Rounds over the three modes.
    """

    factors: Factors
    weights: Array
    history: Array
    residual: float
    converged: bool
    reason: str
    n_sweeps: int

    @property
    def tensor(self) -> Array:
        """Return the tensor that these factors make (d_1, d_2, d_3)."""
        return np.asarray(np.einsum("ah,bh,ch,h->abc", *self.factors, self.weights))


def normalized(factors: Factors) -> tuple[Factors, Array]:
    """Factors with columns that sum to one, and the product of what was taken off: (factors, weights).

    A column that sums to nearly nothing because its signs cancel, as a general decomposition may give, is scaled to
    absolute values that sum to one instead.
    """
    weights = np.ones(factors[0].shape[1])
    out = []
    for factor in factors:
        sums, sizes = factor.sum(axis=0), np.abs(factor).sum(axis=0)
        scale = np.where(np.abs(sums) > 1e-9 * sizes, sums, sizes)
        out.append(factor / np.where(scale != 0.0, scale, 1.0))
        weights = weights * scale
    return (out[0], out[1], out[2]), weights


def term_weights(tensor: Array, factors: Factors) -> tuple[Array, float]:
    """Return the weights (k,) with which the factors' terms come nearest to a tensor, and the squared residual."""
    a, b, c = factors
    gram = (a.T @ a) * (b.T @ b) * (c.T @ c)
    right = np.einsum("abc,ah,bh,ch->h", tensor, a, b, c, optimize=True)
    weights = np.linalg.lstsq(gram, right, rcond=None)[0]
    residual = float(((tensor - np.einsum("ah,bh,ch,h->abc", a, b, c, weights, optimize=True)) ** 2).sum())
    return weights, residual


@dataclass(frozen=True)
class Effort:
    """How blocks are factorized: the solver's name, rounds at most, relative fall of the residual that ends them, and
    update steps per mode and round (None: the solver's own choice)."""

    solver: str = "pqp"
    max_iter: int = 300
    tol: float = 1e-6
    inner: int | None = None


Descend = Callable[..., list[Factorization]]
Decompose = Callable[..., Factorization]


@dataclass(frozen=True)
class Solver:
    """A solver's declaration: what it needs is data, and is checked before anything is computed.

    One that descends has ``descend(tensors, which, starts, max_iter=, tol=, inner=)``, which factorizes
    ``tensors[which[r]]`` from ``starts[r]`` for every r; tensors (blocks, d_1, d_2, d_3) may be zero-padded beyond the
    rows of a start. One that takes a tensor alone has ``decompose(tensor, k, pairs, rng, max_iter=, tol=)``; its
    factors may be negative. ``needs_pairs``: second moments between the modes must be given; without the need they are
    made from the tensor where they are not. ``memory(shape, k)``: bytes that a run takes
    beside the tensor; ``parallel``: several runs go on at the same time; ``options``: names of further keyword
    arguments of ``decompose``.
    """

    name: str
    descend: Descend | None = None
    decompose: Decompose | None = None
    needs_nonnegative_entries: bool = False
    needs_pairs: bool = False
    parallel: bool = False
    options: tuple[str, ...] = ()
    memory: Callable[[tuple[int, ...], int], int] = lambda shape, k: 16 * math.prod(shape[:2]) * k


def rescaled(result: Factorization, scale: float) -> Factorization:
    """The same factorization of ``scale`` times the tensor."""
    return replace(
        result,
        weights=result.weights * scale,
        history=result.history * scale**2,
        residual=result.residual * scale**2,
    )
