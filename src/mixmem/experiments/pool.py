"""Independent pieces of work in parallel processes, each with one thread; interrupted cleanly."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")

ONE_THREAD = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


def cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def results(
    work: Callable[[Piece], Result], pieces: Sequence[Piece], jobs: int | None
) -> Iterator[tuple[Piece, Result]]:
    """Every piece with its result, as they are finished; begun in the order given, on all cores by default.

    One job runs here, without processes. ``work`` must be a function of a module, because processes are spawned: forked
    ones would inherit threads in an unknown state.
    """
    jobs = min(jobs or cores(), len(pieces))
    if jobs <= 1:
        for piece in pieces:
            yield piece, work(piece)
        return
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_prepare)
    try:
        with _environment(ONE_THREAD):  # read by the libraries when a process starts, which submitting makes it do
            futures = {pool.submit(work, piece): piece for piece in pieces}
        for future in as_completed(futures):
            yield futures[future], future.result()
        pool.shutdown()
    except BrokenProcessPool:
        raise RuntimeError(
            "a worker process died, most likely for lack of memory; try a smaller --jobs (what is finished is kept)"
        ) from None
    finally:
        # Nothing to do after a good end. Else those under way would be waited for, which may take minutes.
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()


def _prepare() -> None:
    """Leave interruptions to the parent, and end when it has ended without saying so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
