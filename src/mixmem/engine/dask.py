"""Chunks on the workers of a Dask cluster: the only file that knows Dask.

What is computed of a chunk is a task. Its codes come from a task, too, whose result is kept while workers have room for
all of them; else every pass reads the chunk anew, or takes the partitions of a Dask collection that hold it. Sums are
added on the workers by a binary tree, and one total comes back, of the same size for any number of rows. What tasks
share (theta, the coding) is the result of a task, not a scattered value: a scheduler can have a lost worker's tasks
done again, codes that it kept included, but not what was sent to it. Every task runs its kernels in one thread, so bits
do not depend on workers.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mixmem import __version__
from mixmem.engine.chunks import KEPT_PART, Partitions, Work, needs_of
from mixmem.engine.local import threads
from mixmem.errors import InputError

TRIES = 5
"""How often a task is done again after its worker was lost."""
SECONDS = 10
"""How long a scheduler may take to answer."""


class Dask:
    """The workers of a cluster, by a client of it."""

    local = False

    def __init__(self, client: Any):
        if getattr(client, "status", "running") in ("closed", "closing"):
            raise InputError("the client of Dask is closed; make a new one: fit(X, engine=distributed.Client(...))")
        self.client = client
        found = set(client.run(_version).values())
        if not found:
            raise InputError(
                f"the scheduler {client.scheduler_info()['address']} has no workers; start some with `dask worker`"
            )
        if found != {__version__}:
            raise InputError(
                f"workers have mixmem {', '.join(sorted(found))}, but this is {__version__}; install the same version "
                "everywhere"
            )

    def total(self, name: str, work: Work, count: int, done: Callable[[int], None]) -> Any:
        """Return the sum of work(0), …, work(count - 1), added on the workers."""
        from distributed import as_completed

        token = uuid.uuid4().hex
        parts = self._parts(name, work, count, token)
        nodes, level = parts, 0
        while len(nodes) > 1:
            level += 1
            pairs = [nodes[at : at + 2] for at in range(0, len(nodes), 2)]
            nodes = [
                pair[0] if len(pair) == 1 else self._submit(f"add {name}", f"{level}-{at}-{token}", _added, *pair)
                for at, pair in enumerate(pairs)
            ]
        root = self._submit(f"add {name}", f"all-{token}", _closed, nodes[0])
        del nodes
        for future in as_completed(parts):
            _result(future)
            done(1)
        del parts
        return _result(root)

    def each(self, name: str, work: Work, count: int, done: Callable[[int], None]) -> Iterator[Any]:
        """Yield work(0), …, work(count - 1) in order, a few of them under way at a time."""
        token = uuid.uuid4().hex
        shared = self._shared(name, work, token)
        ahead = 2 * max(1, sum(self.client.nthreads().values()))
        waiting: deque[Any] = deque()
        for number in range(count + ahead):
            if number < count:
                waiting.append(self._part(name, work, shared, number, token))
            if number >= ahead and waiting:
                found = _result(waiting.popleft())
                done(1)
                yield found
        while waiting:
            yield _result(waiting.popleft())
            done(1)

    def keep(self, name: str, work: Work, count: int, size: int) -> list[Any] | None:
        """Return tasks for work(0), …, work(count - 1), whose results stay on the workers as long as these are held."""
        limits = self.client.run(_memory_limit).values()
        if all(limits) and size > sum(limits) // KEPT_PART:
            return None
        return self._parts(name, work, count, uuid.uuid4().hex)

    def partitions(self, X: Any) -> Partitions | None:
        """Return the partitions of a Dask data frame or array; None for anything else."""
        if not hasattr(X, "to_delayed") or not hasattr(X, "__dask_graph__"):
            return None
        if getattr(X, "ndim", 2) != 2:
            raise InputError(f"the table has {X.ndim} dimensions; expected rows x variables")
        delayed = X.rechunk({1: -1}).to_delayed().ravel().tolist() if hasattr(X, "rechunk") else X.to_delayed()
        futures = self.client.compute(delayed)
        lengths = self.client.gather(self.client.map(len, futures, pure=False))
        return Partitions(futures, lengths, self._ask)

    def _ask(self, function: Callable[..., Any], part: Any, *arguments: Any) -> Any:
        return _result(self.client.submit(function, part, *arguments, pure=False, retries=TRIES))

    def _parts(self, name: str, work: Work, count: int, token: str) -> list[Any]:
        shared = self._shared(name, work, token)
        return [self._part(name, work, shared, number, token) for number in range(count)]

    def _shared(self, name: str, work: Work, token: str) -> Any:
        return self._submit(f"plan {name}", token, _same, work)

    def _part(self, name: str, work: Work, shared: Any, number: int, token: str) -> Any:
        return self._submit(name, f"{number}-{token}", _run, shared, number, __version__, *needs_of(work, number))

    def _submit(self, name: str, end: str, function: Callable[..., Any], *arguments: Any) -> Any:
        key = f"{name.replace(' ', '_')}-{end}"
        return self.client.submit(function, *arguments, key=key, retries=TRIES)


def engine_of(client: Any) -> Dask:
    """Return the engine of a client of distributed; anything else is refused."""
    if not all(hasattr(client, name) for name in ("submit", "scheduler_info", "nthreads")):
        raise InputError(
            f"engine is a {type(client).__name__}; expected None or a client of Dask: "
            "fit(X, engine=distributed.Client())"
        )
    return Dask(client)


def connected(address: str) -> Any:
    """Return a client of the scheduler at an address."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError('--scheduler needs Dask; install it with pip install "mixmem[dask]"') from None
    try:
        return Client(address, timeout=SECONDS)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address} ({' '.join(str(error).split())[:100]}); start one with "
            "`dask scheduler`, and give the address that it prints, such as tcp://10.0.0.1:8786"
        ) from error


# --- What runs on workers


@dataclass(frozen=True)
class Refused:
    """What a task gives in place of its result where its input is refused: one that fails would be done again."""

    message: str


def _same(work: Work) -> Work:
    return work


def _run(work: Work, number: int, version: str, *parts: Any) -> Any:
    if version != __version__:
        return Refused(f"a worker has mixmem {__version__}, but the fit runs on {version}; install the same version")
    if (refused := _refused(parts)) is not None:
        return refused
    try:
        with threads(1):
            return work(number, *parts)
    except InputError as error:
        return Refused(str(error))


def _added(left: Any, right: Any) -> Any:
    return _refused((left, right)) or left + right


def _closed(total: Any) -> Any:
    return _refused((total,)) or total.closed


def _refused(parts: Sequence[Any]) -> Refused | None:
    return next((part for part in parts if isinstance(part, Refused)), None)


def _version() -> str:
    return __version__


def _memory_limit(dask_worker: Any) -> int:
    """Return the bytes that a worker may take; 0 if it has no limit."""
    return dask_worker.memory_manager.memory_limit or 0


def _result(future: Any) -> Any:
    """Return what a task gave; what it refused, and a task that ends one worker after another, is refused in words."""
    from distributed.scheduler import KilledWorker

    try:
        found = future.result()
    except KilledWorker as error:
        raise InputError(
            f"the task {future.key} was given up after its worker was lost {TRIES} times; give workers more memory, or "
            "let the table have smaller pieces with a lower --memory-limit"
        ) from error
    if isinstance(found, Refused):
        raise InputError(found.message)
    return found
