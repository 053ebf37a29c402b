"""Nonnegative factorization by parallel quadratic programming: algorithm 1 of the paper, TensorPQP."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixmem.engine.local import in_threads
from mixmem.kernels.blocks import factorize_one
from mixmem.moments.solvers.contract import Factorization, Factors, normalized
from mixmem.typing import Array

EPSILON = 1e-10
"""What is added to Phi's bound, which theorem 4 wants exceeded (algorithm 1)."""


CYCLES = 5
"""Cycles over a row's entries per update: the other modes move next, so going all the way costs more than it gains."""


def tensor_pqp(
    tensors: Array, which: Sequence[int], starts: Sequence[Factors], *, max_iter: int, tol: float, inner: int | None
) -> list[Factorization]:
    """Factorize ``tensors[which[r]]`` from ``starts[r]`` for every r, in parallel.

    ``tensors`` (blocks, d_1, d_2, d_3), zero-padded to one shape; a start may have fewer rows than the padded shape.
    While a mode's Q and Z stay fixed, ``inner`` PQP steps are taken; ``inner=1`` is the algorithm as printed. None goes
    towards the minimiser those steps converge to by :data:`CYCLES` cycles of coordinate descent, which reach the
    printed algorithm's residual a hundred times sooner. Ends when a round over the three modes lowers the squared
    residual by less than ``tol`` relatively.
    """
    return alternate(tensors, which, starts, max_iter=max_iter, tol=tol, rule=inner or -CYCLES)


def alternate(
    tensors: Array, which: Sequence[int], starts: Sequence[Factors], *, max_iter: int, tol: float, rule: int
) -> list[Factorization]:
    """Alternating updates of the three modes from every start; ``rule`` says how a mode is updated.

    A positive number of PQP steps, or a negative number of cycles of coordinate descent towards each row's minimiser.
    """
    if rule == 0:
        raise ValueError("rule must be a number of steps or, below zero, of cycles; 0 would update nothing")
    runs, k = len(starts), starts[0][0].shape[1]
    factors = [np.zeros((runs, d, k)) for d in tensors.shape[1:]]
    for r, start in enumerate(starts):
        for m in range(3):
            factors[m][r, : start[m].shape[0]] = start[m]
    history = np.empty((runs, 3 * max_iter))
    flat = np.ascontiguousarray(tensors)

    def run(r: int) -> tuple[int, bool]:
        a, b, c = (factor[r] for factor in factors)
        return factorize_one(flat[which[r]], a, b, c, max_iter, rule, EPSILON, tol, history[r])

    ended = in_threads(run, runs)
    results = []
    for r, (start, (done, converged)) in enumerate(zip(starts, ended, strict=True)):
        parts, weights = normalized(
            (
                factors[0][r, : start[0].shape[0]],
                factors[1][r, : start[1].shape[0]],
                factors[2][r, : start[2].shape[0]],
            )
        )
        path = history[r, : 3 * done].copy()
        reason = (
            f"a round lowered the residual by less than {tol:g} relatively, after {done} rounds"
            if converged
            else f"stopped at max_iter={max_iter} rounds"
        )
        results.append(Factorization(parts, weights, path, float(path[-1]), bool(converged), reason, int(done)))
    return results
