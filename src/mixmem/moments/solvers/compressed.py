"""Nonnegative factorization of a large block, each mode against the two others compressed.

A mode's update needs the tensor contracted with the other two factors alone. These lie in the spans of the block's
second moments, of k directions each: with bases V and W of the other two modes the tensor is (rows of the mode, k, k)
once and for all, and a round costs a fraction of what it does in the whole block, with the noise outside the spans
taken off. The mode itself keeps all its rows, and so its sign: that is what tells components apart that the noise of a
core of k x k x k would mix up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from mixmem.engine.local import in_threads
from mixmem.kernels.nqp import descend_rows
from mixmem.moments.solvers.contract import Factorization, Factors, Pairs, normalized
from mixmem.moments.solvers.tensor_pqp import CYCLES
from mixmem.typing import Array

TRIALS = ((6, 4), (12, 2), (30, 1))
"""Rounds from the starts that are left, and how many are kept after them."""
OTHERS = ((1, 2), (0, 2), (0, 1))


def compressed_pqp(
    tensor: Array, pairs: Pairs, k: int, starts: Sequence[Factors], *, max_iter: int, tol: float
) -> Factorization:
    """Factorize a tensor (d_1, d_2, d_3) from the best of several starts.

    ``pairs`` are the second moments between the modes. All starts are followed for some rounds, the better ones for
    more, and the best one until a round changes the squared residual by less than ``tol`` relatively.
    """
    bases = _bases(pairs, k)
    seen = [_seen(tensor, m, bases) for m in range(3)]
    runs = [_Run(seen, bases, start) for start in starts]
    for rounds, kept in TRIALS:
        in_threads(partial(_go, runs, rounds, tol), len(runs))
        runs = sorted(runs, key=lambda run: run.history[-1])[:kept]
    best = runs[0]
    best.go(max_iter, tol)
    a, b, c = best.factors
    factors, weights = normalized((a, b, c))
    done = len(best.history)
    reason = (
        f"a round changed the residual by less than {tol:g} relatively, after {done} rounds of the compressed block"
        if best.settled
        else f"stopped at max_iter={max_iter} rounds"
    )
    return Factorization(factors, weights, np.array(best.history), best.history[-1], best.settled, reason, done)


class _Run:
    """Factors on their way from one start, and the squared residual of every round."""

    def __init__(self, seen: list[Array], bases: list[Array], start: Factors):
        self.seen, self.bases = seen, bases
        self.factors = [np.ascontiguousarray(factor) for factor in start]
        self.norm = float((seen[2] ** 2).sum())
        self.history: list[float] = []
        self.settled = False

    def go(self, rounds: int, tol: float) -> None:
        """Make rounds over the three modes until they end."""
        k = self.factors[0].shape[1]
        for _ in range(rounds):
            if self.settled:
                return
            for m, (i, j) in enumerate(OTHERS):
                one, two = self.bases[i].T @ self.factors[i], self.bases[j].T @ self.factors[j]
                z = -self.seen[m] @ (one[:, None, :] * two[None, :, :]).reshape(-1, k)
                q = (one.T @ one) * (two.T @ two)
                x = self.factors[m]
                descend_rows(q, z, x, CYCLES)
                if m < 2:
                    x /= np.maximum(x.sum(axis=0), 1e-300)
            residual = self.norm + float(((x @ q + 2.0 * z) * x).sum())
            self.settled = bool(self.history) and abs(self.history[-1] - residual) <= tol * self.history[-1]
            self.history.append(residual)


def _go(runs: list[_Run], rounds: int, tol: float, r: int) -> None:
    runs[r].go(rounds, tol)


def _bases(pairs: Pairs, k: int) -> list[Array]:
    """Return the k directions of every mode (d_m, k) that its second moments with the other two show."""
    uv, uw, vw = pairs
    beside = (np.hstack([uv, uw]), np.hstack([uv.T, vw]), np.hstack([uw.T, vw.T]))
    return [np.ascontiguousarray(np.linalg.svd(moments, full_matrices=False)[0][:, :k]) for moments in beside]


def _seen(tensor: Array, m: int, bases: list[Array]) -> Array:
    """Return a tensor with all modes but one seen through their bases, unfolded along that one (d_m, k^2)."""
    i, j = OTHERS[m]
    turned = np.moveaxis(tensor, m, 0)
    half = turned @ bases[j]  # (d_m, d_i, k)
    return np.ascontiguousarray(np.swapaxes(half, 1, 2) @ bases[i]).swapaxes(1, 2).reshape(len(turned), -1)
