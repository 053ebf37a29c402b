"""Threads of this process: how many a block of code may use, and who runs what.

The number of threads belongs to the code that runs, not to the process: fits in several threads at once each keep
their own. BLAS knows one number for the process, so it is held at one as long as any fit runs, and given back after the
last.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import threadpoolctl
from threadpoolctl import threadpool_limits

Result = TypeVar("Result")

_GRAIN = 1_000_000  # additions a thread must have to do, about half a millisecond, before starting it pays
_THREADS: ContextVar[int | None] = ContextVar("threads", default=None)
# Threads that were started since the outermost block of `threads` began, by their number; none outside of such blocks.
_STARTED: ContextVar[dict[int, ThreadPoolExecutor] | None] = ContextVar("started", default=None)


def max_threads() -> int:
    """Return the number of threads that this process may use: its cores, or what NUMBA_NUM_THREADS says."""
    if (asked := os.environ.get("NUMBA_NUM_THREADS", "")).isdigit():
        return max(1, int(asked))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def current_threads() -> int:
    """Return the number of threads that the code running now may use."""
    return _THREADS.get() or max_threads()


def in_threads(run: Callable[[int], Result], count: int) -> list[Result]:
    """Return run(0), …, run(count - 1), computed on as many threads as there are; ``run`` is to be a kernel's work."""
    workers = min(current_threads(), count)
    if workers <= 1:
        return [run(r) for r in range(count)]

    def alone(r: int) -> Result:
        _THREADS.set(1)  # a worker starts no further threads
        return run(r)

    with _pool(workers) as pool:
        return list(pool.map(alone, range(count)))


@contextmanager
def _pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that go on to the next call, or end with this one where no block of `threads` keeps them."""
    started = _STARTED.get()
    if started is None:
        with ThreadPoolExecutor(workers) as pool:
            yield pool
        return
    if workers not in started:
        started[workers] = ThreadPoolExecutor(workers)
    yield started[workers]


def in_parts(run: Callable[[int, int], Any], count: int) -> None:
    """Call run(first, last) for parts of range(count) that cover it, one per thread."""
    parts = max(1, min(current_threads(), count))
    if parts == 1:
        run(0, count)
        return
    in_threads(lambda r: run(count * r // parts, count * (r + 1) // parts), parts)


def n_tasks() -> int:
    """Return how many tasks may run at once where the caller has set up joblib (``joblib.parallel_config``), else 1."""
    joblib = sys.modules.get("joblib")
    if joblib is None:
        return 1
    backend, n_jobs = joblib.parallel.get_active_backend()
    usual = joblib.parallel.BACKENDS[joblib.parallel.DEFAULT_BACKEND]
    if n_jobs is None and type(backend) is usual:
        return 1
    return max(1, int(backend.effective_n_jobs(-1 if n_jobs is None else n_jobs)))


def in_tasks(run: Callable[..., Result], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Result]:
    """Yield run(*tasks[0]), run(*tasks[1]), …: by joblib where the caller has set it up, one after another where not.

    A task is to be large, as a fit is: it may go to another process or machine, where it has one thread.
    """
    if min(n_tasks(), len(tasks)) <= 1:
        yield from (run(*task) for task in tasks)
        return
    joblib: Any = sys.modules["joblib"]
    yield from joblib.Parallel(n_jobs=n_tasks())(joblib.delayed(_in_one_thread)(run, *task) for task in tasks)


def _in_one_thread(run: Callable[..., Result], *arguments: Any) -> Result:
    with threads(1):
        return run(*arguments)


@contextmanager
def threads(n_jobs: int | None) -> Iterator[int]:
    """Run the block with ``n_jobs`` threads (``None`` or a negative number: all of them), and BLAS with one.

    BLAS is held to one thread because its matrices are small here, and the rounding of a threaded product depends on
    the number of threads.
    """
    with kernel_threads(n_jobs) as wanted, _BLAS.held():
        yield wanted


@contextmanager
def kernel_threads(n_jobs: int | None) -> Iterator[int]:
    """Run a block that calls no BLAS with ``n_jobs`` threads: finding BLAS' libraries takes ten milliseconds."""
    most = max_threads()
    wanted = most if n_jobs is None or n_jobs < 0 else max(1, min(int(n_jobs), most))
    with _limited(wanted), _kept_threads():
        yield wanted


@contextmanager
def threads_for(work: int) -> Iterator[None]:
    """Run the block with no more threads than ``work`` additions can feed.

    A short parallel region costs little on an idle machine and a hundred times its work on a busy one, where every
    thread waits for one that is not running.
    """
    with _limited(max(1, min(current_threads(), work // _GRAIN))):
        yield


@contextmanager
def _kept_threads() -> Iterator[None]:
    """Let the block's threads live until it ends: a fit asks for them thousands of times, and starting takes long."""
    if _STARTED.get() is not None:
        yield
        return
    started: dict[int, ThreadPoolExecutor] = {}
    token = _STARTED.set(started)
    try:
        yield
    finally:
        _STARTED.reset(token)
        for pool in started.values():
            pool.shutdown()


@contextmanager
def _limited(count: int) -> Iterator[None]:
    token = _THREADS.set(count)
    try:
        yield
    finally:
        _THREADS.reset(token)


class _Blas:
    """BLAS at one thread while at least one block holds it there."""

    def __init__(self) -> None:
        self.lock, self.holders = threading.Lock(), 0
        self.limits: Any = None

    @contextmanager
    def held(self) -> Iterator[None]:
        with self.lock:
            self.holders += 1
            if self.holders == 1:
                self._take_control()
                self.limits = threadpool_limits(limits=1)
        try:
            yield
        finally:
            with self.lock:
                self.holders -= 1
                if self.holders == 0:
                    self._take_control()
                    self.limits.restore_original_limits()

    def _take_control(self) -> None:
        """Let this thread set BLAS' threads: newer threadpoolctl listens to the first thread that did, and no other."""
        clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


_BLAS = _Blas()
