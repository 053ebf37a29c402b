"""Solvers of the nonnegative tensor factorization, behind one contract."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixmem.engine.memory import available_memory
from mixmem.errors import InputError
from mixmem.moments.solvers.contract import Factorization, Factors, Pairs, Solver, rescaled
from mixmem.moments.solvers.hals import hals
from mixmem.moments.solvers.joint_diagonalization import nojd0, nojd1
from mixmem.moments.solvers.meld import meld
from mixmem.moments.solvers.nqp import NqpResult, solve_nqp
from mixmem.moments.solvers.symmetric import contracted_pairs
from mixmem.moments.solvers.tensor_power import tensor_power
from mixmem.moments.solvers.tensor_pqp import tensor_pqp
from mixmem.moments.solvers.wnmf import lee_seung, wnmf
from mixmem.typing import Array

__all__ = ["SOLVERS", "Factorization", "NqpResult", "Solver", "factorize", "random_start", "solve_nqp", "tensor_pqp"]


def _of_unfoldings(shape: tuple[int, ...], k: int) -> int:
    """Return the bytes of the data and their mask, unfolded along every mode, and of what is in passing."""
    return 8 * (8 * math.prod(shape) + max(shape) ** 2 * k)


SOLVERS = {
    solver.name: solver
    for solver in (
        Solver("pqp", descend=tensor_pqp, parallel=True),
        Solver("hals", descend=hals, parallel=True),
        Solver("wnmf", descend=wnmf, memory=_of_unfoldings),
        Solver("lee_seung", descend=lee_seung, memory=_of_unfoldings, needs_nonnegative_entries=True),
        Solver("tpm", decompose=tensor_power, needs_pairs=True, options=("directions", "n_starts")),
        Solver("nojd0", decompose=nojd0, options=("directions", "n_projections", "rule")),
        Solver("nojd1", decompose=nojd1, options=("directions", "n_projections", "rule")),
        Solver(
            "meld",
            decompose=meld,
            options=("order", "sizes", "concentration"),
            memory=lambda shape, k: 8 * (4 * math.prod(shape) + max(shape) ** 2 * k * k),
        ),
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
    pairs: Pairs | None = None,
    max_iter: int = 1000,
    tol: float = 1e-8,
    inner: int | None = None,
    random_state: int | np.random.Generator | None = None,
    options: Mapping[str, Any] | None = None,
) -> Factorization:
    """Write a third-order tensor as a sum of k rank-one terms (equation 8), nonnegative ones unless said otherwise.

    Parameters
    ----------
    tensor : (d_1, d_2, d_3) array
        Tensor with entries of any sign.
    k : int
        Number of terms.
    solver : str
        "pqp", "hals", "wnmf" and "lee_seung" descend from random starts and keep the best; "meld" weights entries by
        their estimated variance; the factors of all these are nonnegative. "tpm", "nojd0" and "nojd1" are general
        decompositions, which may be negative.
    n_restarts : int
        Random starts of a solver that descends.
    starts : list of three arrays each, or None
        Starts (d_1, k), (d_2, k), (d_3, k) in place of random ones.
    pairs : three arrays or None
        Second moments between the modes, (d_1, d_2), (d_1, d_3), (d_2, d_3), for "tpm", which needs them, "nojd0" and
        "nojd1".
    max_iter : int
        Rounds at most.
    tol : float
        Relative fall of the residual that ends the rounds.
    inner : int or None
        Update steps per mode and round; None lets "pqp" go towards each mode's minimiser, and the others take one.
    random_state : None, int or numpy random generator
        Source of the random starts.
    options : dict or None
        Options of one solver, by name. "tpm": ``directions`` ("leading": the whitening keeps k directions of the second
        moment; "all") and ``n_starts`` per component. "nojd0" and "nojd1": ``directions``, ``n_projections`` and
        ``rule`` ("ffdiag" or "qrj1d"). "meld": ``order`` of the moments that are matched (3, or 2 for ``pairs``), and
        for pairs ``sizes`` (levels of each variable, mode by mode) and the ``concentration`` of its start.

    Returns
    -------
    Factorization
        Factors with columns that sum to one; the weights hold the scale.

    Raises
    ------
    InputError
        If the tensor is not finite or not of third order, or the solver cannot take it; the message says what it needs.

    Examples
    --------
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
    chosen = solver_for(solver, array, k=k)
    wanted = dict(options or {})
    unknown = [name for name in wanted if name not in chosen.options]
    if unknown:
        has = f"it has {', '.join(chosen.options)}" if chosen.options else "it has none"
        raise InputError(f"solver {solver!r} has no option {unknown[0]!r}; {has}")
    scale = float(np.abs(array).max()) or 1.0
    rng = np.random.default_rng(random_state)
    if chosen.descend is None:
        return rescaled(decompose(chosen, array / scale, k, pairs, rng, max_iter=max_iter, tol=tol, **wanted), scale)
    begin = list(starts) if starts is not None else [random_start(array.shape, k, rng) for _ in range(n_restarts)]
    results = chosen.descend(array[None] / scale, [0] * len(begin), begin, max_iter=max_iter, tol=tol, inner=inner)
    return rescaled(min(results, key=lambda result: result.residual), scale)


def decompose(
    solver: Solver,
    tensor: Array,
    k: int,
    pairs: Pairs | None,
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
    **options: Any,
) -> Factorization:
    """Run an algebraic solver, with pair matrices made from the tensor where none are given and it can do without."""
    if pairs is None:
        if solver.needs_pairs:
            raise InputError(
                f"solver {solver.name!r} needs second moments for its whitening; give pairs=(M_12, M_13, M_23), with "
                f"shapes {tensor.shape[:2]}, {tensor.shape[::2]} and {tensor.shape[1:]}"
            )
        pairs = contracted_pairs(tensor, rng)
    wanted = (tensor.shape[:2], tensor.shape[::2], tensor.shape[1:])
    if tuple(pair.shape for pair in pairs) != wanted:
        raise InputError(f"pairs must have the shapes {wanted}; got {tuple(pair.shape for pair in pairs)}")
    assert solver.decompose is not None
    return solver.decompose(tensor, k, pairs, rng, max_iter=max_iter, tol=tol, **options)


def solver_for(name: str, *tensors: Array, k: int) -> Solver:
    """The solver of that name, if it can take these tensors; a refusal says what it needs."""
    if name not in SOLVERS:
        raise InputError(f"unknown solver {name!r}; expected one of {', '.join(map(repr, SOLVERS))}")
    solver = SOLVERS[name]
    negative = sum(int((tensor < 0.0).sum()) for tensor in tensors)
    if solver.needs_nonnegative_entries and negative:
        size = sum(tensor.size for tensor in tensors)
        raise InputError(
            f"solver {name!r} needs a tensor without negative entries, and {negative} of {size} are negative; "
            "use solver='pqp', which allows them, or 'wnmf', which leaves them out"
        )
    needed, free = max(solver.memory(tensor.shape, k) for tensor in tensors), available_memory()
    if needed > free:
        raise InputError(
            f"solver {name!r} needs {needed:,} bytes of memory for a tensor of shape {tensors[0].shape} and k = {k}, "
            f"and {free:,} are free; use solver='pqp', or fewer variables"
        )
    return solver
