"""Solvers of the nonnegative tensor factorization, behind one contract."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mixmem.errors import InputError
from mixmem.moments import Array
from mixmem.solvers.contract import Factorization, Factors, Solver, rescaled
from mixmem.solvers.nqp import NqpResult, solve_nqp
from mixmem.solvers.tensor_pqp import tensor_pqp
from mixmem.solvers.wnmf import lee_seung, wnmf

__all__ = ["SOLVERS", "Factorization", "NqpResult", "Solver", "factorize", "random_start", "solve_nqp", "tensor_pqp"]


SOLVERS = {
    solver.name: solver
    for solver in (
        Solver("pqp", tensor_pqp),
        Solver("wnmf", wnmf),
        Solver("lee_seung", lee_seung, needs_nonnegative_entries=True),
    )
}


def random_start(shape: Sequence[int], k: int, rng: np.random.Generator) -> Factors:
    """Random nonnegative factors, as algorithm 1 starts."""
    a, b, c = (rng.random((d, k)) for d in shape)
    return a, b, c


def factorize(
    tensor: ArrayLike,
    k: int,
    *,
    solver: str = "pqp",
    n_restarts: int = 1,
    starts: Sequence[Factors] | None = None,
    max_iter: int = 1000,
    tol: float = 1e-8,
    inner: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Factorization:
    """Write a third-order tensor as a sum of k nonnegative rank-one terms (equation 8), the best of several starts.

    ``tensor`` (d_1, d_2, d_3) of any sign; ``starts`` overrides the random ones. ``inner`` update steps are taken per
    mode and round; None lets "pqp" go to each mode's minimiser and the others take one. The result's factors have
    columns that sum to one, the weights hold the scale.

    >>> import numpy as np
    >>> found = factorize(np.einsum("a,b,c->abc", [1.0, 3.0], [1.0, 1.0], [0.0, 2.0]), 1, random_state=0)
    >>> found.factors[0].ravel().round(6), found.weights.round(6)
    (array([0.25, 0.75]), array([16.]))
    """
    array = np.asarray(tensor, dtype=float)
    if array.ndim != 3 or min(array.shape, default=0) == 0:
        raise InputError(f"factorize needs a non-empty third-order array; got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError("factorize needs finite numbers; the tensor holds NaN or inf")
    if k < 1:
        raise InputError(f"k must be at least 1; got {k}")
    chosen = solver_for(solver, array)
    scale = float(np.abs(array).max()) or 1.0
    rng = np.random.default_rng(random_state)
    begin = list(starts) if starts is not None else [random_start(array.shape, k, rng) for _ in range(n_restarts)]
    results = chosen.solve(array[None] / scale, [0] * len(begin), begin, max_iter=max_iter, tol=tol, inner=inner)
    return rescaled(min(results, key=lambda result: result.residual), scale)


def solver_for(name: str, tensor: Array) -> Solver:
    """The solver of that name, if it can take this tensor; a refusal says what it needs."""
    if name not in SOLVERS:
        raise InputError(f"unknown solver {name!r}; expected one of {', '.join(map(repr, SOLVERS))}")
    solver = SOLVERS[name]
    negative = int((tensor < 0.0).sum())
    if solver.needs_nonnegative_entries and negative:
        raise InputError(
            f"solver {name!r} needs a tensor without negative entries, and {negative} of {tensor.size} are negative; "
            "use solver='pqp', which allows them, or 'wnmf', which leaves them out"
        )
    return solver
