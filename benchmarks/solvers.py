"""Solvers side by side on one block of the paper's simulation: hals with TensorLy's, pqp with the printed algorithm.

One process, one thread, the same start. "objective" is the squared residual reached; for pqp, the time to reach the
objective that one PQP step a mode (the algorithm as printed) has after 3,000 rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from mixmem import factorize, simulate_gdlm, third_moments
from mixmem.engine.local import threads
from mixmem.moments.solvers import random_start


def block(n: int, k: int, seed: int) -> np.ndarray:
    """The corrected 36 x 32 x 32 block of a simulated table of 25 variables, scaled to largest entry one."""
    table = simulate_gdlm(n, 25, k, random_state=seed)
    modes = (np.arange(9), np.arange(9, 17), np.arange(17, 25))
    tensor = third_moments(table.encoded, [modes])[0].corrected(0.1 * k)
    return tensor / np.abs(tensor).max()


def timed(run: Callable[[], object], repeats: int = 3) -> tuple[float, object]:
    """The shortest of several times, and what the last run returned."""
    best, result = np.inf, None
    for _ in range(repeats):
        began = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - began)
    return best, result


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """Rows (comparison, k): ours and the other's objective and seconds."""
    with threads(1):
        factorize(block(500, 3, 0), 3, solver="hals", max_iter=5, random_state=0)
        for k in (5, 10) if quick else (5, 10, 20):
            tensor = block(5000, k, 0)
            start = random_start(tensor.shape, k, np.random.default_rng(k))
            yield from _beside_tensorly(tensor, k, start)
            yield _inner_steps(tensor, k, start, rounds=1000 if quick else 3000)


def _beside_tensorly(tensor: np.ndarray, k: int, start: tuple) -> Iterator[dict[str, float | int | str]]:
    try:
        from tensorly.cp_tensor import CPTensor, cp_to_tensor
        from tensorly.decomposition import non_negative_parafac_hals
    except ImportError:
        print('skipped: hals beside TensorLy needs it; pip install ".[bench]"')
        return
    first = CPTensor((np.ones(k), [factor.copy() for factor in start]))

    def theirs(rounds: int) -> CPTensor:
        begin = CPTensor((np.ones(k), [factor.copy() for factor in start]))
        return non_negative_parafac_hals(tensor, k, n_iter_max=rounds, init=begin, tol=1e-10)

    assert first.rank == k
    their_seconds, found = timed(lambda: theirs(1000), repeats=1)
    objective = float(((tensor - cp_to_tensor(found)) ** 2).sum())
    seconds, ours = timed(lambda: factorize(tensor, k, solver="hals", starts=[start], max_iter=20_000, tol=1e-10))
    yield {
        "comparison": "hals / TensorLy",
        "k": k,
        "objective": ours.residual,
        "other's": objective,
        "relative": ours.residual / objective - 1.0,
        "seconds": seconds,
        "other's s": their_seconds,
        "ratio": their_seconds / seconds,
    }


def _inner_steps(tensor: np.ndarray, k: int, start: tuple, rounds: int) -> dict[str, float | int | str]:
    """Time of the printed algorithm against the default's time to the same objective or below."""
    slow_seconds, slow = timed(
        lambda: factorize(tensor, k, starts=[start], inner=1, max_iter=rounds, tol=0.0), repeats=1
    )
    history = factorize(tensor, k, starts=[start], max_iter=rounds, tol=0.0).history[2::3]
    reached = np.flatnonzero(history <= slow.residual)
    needed = int(reached[0]) + 1 if len(reached) else rounds
    seconds, fast = timed(lambda: factorize(tensor, k, starts=[start], max_iter=needed, tol=0.0))
    return {
        "comparison": "pqp / as printed",
        "k": k,
        "objective": fast.residual,
        "other's": slow.residual,
        "relative": fast.residual / slow.residual - 1.0,
        "seconds": seconds,
        "other's s": slow_seconds,
        "ratio": slow_seconds / seconds,
    }
