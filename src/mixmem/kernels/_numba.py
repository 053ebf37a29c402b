"""The one door to numba: decorators, the row block, and the number of threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

# Threads that wait are to sleep: spinning, as is the default, took most of the processor's time on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numba
from numba import njit, prange
from threadpoolctl import threadpool_limits

ROW_BLOCK = 512
"""Rows summed together before anything is added across blocks; part of the result's last bits, so it is fixed."""

kernel: Any = njit(cache=True, nogil=True)
parallel_kernel: Any = njit(cache=True, parallel=True)
vector_kernel: Any = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
"""A sum in its innermost loop is taken in vector lanes: in an order fixed when it is compiled, not by the threads."""

Result = TypeVar("Result")

__all__ = [
    "ROW_BLOCK",
    "in_parts",
    "in_threads",
    "kernel",
    "kernel_threads",
    "max_threads",
    "parallel_kernel",
    "prange",
    "threads",
    "threads_for",
    "vector_kernel",
]


def in_threads(run: Callable[[int], Result], count: int) -> list[Result]:
    """run(0), …, run(count - 1), on as many threads as numba has now; ``run`` is to spend its time in a kernel."""
    workers = min(int(numba.get_num_threads()), count)
    if workers <= 1:
        return [run(r) for r in range(count)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(run, range(count)))


def in_parts(run: Callable[[int, int], Any], count: int) -> None:
    """run(first, last) for parts of range(count) that cover it, one a thread; a kernel compiles in half the time so."""
    parts = max(1, min(int(numba.get_num_threads()), count))
    in_threads(lambda r: run(count * r // parts, count * (r + 1) // parts), parts)


def max_threads() -> int:
    """Number of threads numba may use in this process."""
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


@contextmanager
def threads(n_jobs: int | None) -> Iterator[int]:
    """Run the block with ``n_jobs`` threads (``None`` or a negative number: all of them).

    BLAS is held to one thread: its matrices are small here, and the rounding of a threaded product depends on the
    number of threads.
    """
    with kernel_threads(n_jobs) as wanted, threadpool_limits(limits=1):
        yield wanted


@contextmanager
def kernel_threads(n_jobs: int | None) -> Iterator[int]:
    """The same for a block that calls no BLAS: finding its libraries takes ten milliseconds."""
    most = max_threads()
    wanted = most if n_jobs is None or n_jobs < 0 else max(1, min(int(n_jobs), most))
    before = numba.get_num_threads()
    numba.set_num_threads(wanted)
    try:
        yield wanted
    finally:
        numba.set_num_threads(before)


_GRAIN = 1_000_000  # additions a thread must have to do, about half a millisecond, before starting it pays


@contextmanager
def threads_for(work: int) -> Iterator[None]:
    """Run the block with no more threads than ``work`` additions can feed.

    A short parallel region costs little on an idle machine and a hundred times its work on a busy one, where every
    thread waits for one that is not running.
    """
    before = numba.get_num_threads()
    numba.set_num_threads(max(1, min(before, work // _GRAIN)))
    try:
        yield
    finally:
        numba.set_num_threads(before)
