"""Hierarchical alternating least squares for nonnegative CP (Cichocki; Kim, He and Park).

Each column of a mode is set to its nonnegative minimiser with the others fixed, one column after the other: one cycle
of coordinate descent on the same row problems that PQP solves, so tensors with negative entries are no difficulty.
"""

from __future__ import annotations

from collections.abc import Sequence

from mixmem.moments.solvers.contract import Factorization, Factors
from mixmem.moments.solvers.tensor_pqp import alternate
from mixmem.typing import Array


def hals(
    tensors: Array, which: Sequence[int], starts: Sequence[Factors], *, max_iter: int, tol: float, inner: int | None
) -> list[Factorization]:
    """Factorize ``tensors[which[r]]`` from ``starts[r]``; ``inner`` cycles over the columns per mode (None: one)."""
    return alternate(tensors, which, starts, max_iter=max_iter, tol=tol, rule=-(inner or 1))
