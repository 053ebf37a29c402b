"""A Dask cluster on this machine: same bits, lost workers, bytes to the client, overhead, and two workers over one.

Workers have one thread each. A worker is killed as soon as a stage has finished its first chunk. Tables are those of
``scale``, in the folder that MIXMEM_SCALE names. CPU seconds of the cluster are the client's and the workers'. Wall
seconds mean little on a machine that does other work: they stand beside those of two plain processes that only count,
over one of them, which is the most that two workers could gain at that moment, and beside the CPU seconds of the client
and the busiest worker, which are about what the wall would show if each had a core to itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale import FILE_ROWS, Case, draw, folder_of
from mixmem import GDLM
from mixmem.engine import dask as engine
from mixmem.progress import Progress, showing

CASE, QUICK = (2_000_000, 100, 5, 0.1), (300_000, 50, 5, 0.1)
LARGE, QUICK_LARGE = (20_000_000, 500, 5, 0.1), (600_000, 50, 5, 0.1)
"""What speed is measured on: a fit of a minute or more."""
STAGES = ("sample", "counting all rows", "pass over all rows")
ALL, FIRST = "*", "part-0000"
SMALL_CHUNK, CHUNK = 65_536, 262_144
"""Rows per task where workers are killed, and where speed is measured: 0.3 s and more."""


def fit(case: Case, root: Path, client: Any = None, files: str = ALL, chunk: int = SMALL_CHUNK) -> tuple[GDLM, float]:
    """Fit the files of a case, or some of them, here in one thread, or with a client that uses its threads as any does;
    the model and its wall seconds."""
    pattern = str(folder_of(case, root) / f"{files}.parquet")
    n_jobs = 1 if client is None else None
    model = GDLM(case[2], alpha0=case[2] * case[3], refine=None, random_state=0, passes="few", n_jobs=n_jobs)
    model._chunk_rows = chunk
    began = time.perf_counter()
    model.fit(pattern, engine=client)
    return model, time.perf_counter() - began


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """Workers of one thread each; without being told, polars would read in as many as there are cores."""
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ.POLARS_MAX_THREADS": 1}),
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as found,
        Client(found) as client,
    ):
        yield client


def killing(client: Any, stage: str) -> type[Progress]:
    """A progress that kills a worker at the first step of a stage."""
    left = [1]

    class Killing(Progress):
        @contextmanager
        def shown(self, name: str, total: int | None) -> Iterator[Callable[[int], None]]:
            def step(_: int) -> None:
                if name == stage and left:
                    left.pop()
                    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

            yield step

    return Killing


def bytes_to_client(case: Case, root: Path, client: Any, files: str) -> int:
    """Bytes of the largest total that comes back in a fit of some files."""
    sizes, original = [], engine.Dask.total

    def total(self: Any, *arguments: Any) -> Any:
        found = original(self, *arguments)
        sizes.append(_size(found))
        return found

    engine.Dask.total = total  # type: ignore[method-assign]
    try:
        fit(case, root, client, files)
    finally:
        engine.Dask.total = original  # type: ignore[method-assign]
    return max(sizes[:2])


def run(quick: bool = False) -> Iterator[dict[str, float | str]]:
    """One row per figure."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(os.environ.get("MIXMEM_SCALE", temporary))
        case = QUICK if quick else CASE
        draw(case, root)
        yield from _same_bits(case, root)
        large = QUICK_LARGE if quick else LARGE
        draw(large, root)
        yield from _speed(large, root)


def _same_bits(case: Case, root: Path) -> Iterator[dict[str, float | str]]:
    whole, _ = fit(case, root)
    for workers in (1, 2, 4):
        with cluster(workers) as client:
            model, _ = fit(case, root, client)
            yield {"figure": f"{workers} worker(s), same bits", "value": float(_same(whole, model))}
            if workers == 1:
                for files, rows in ((FIRST, min(case[0], FILE_ROWS)), (ALL, case[0])):
                    size = bytes_to_client(case, root, client, files)
                    yield {"figure": f"largest total to the client of {rows:,} rows, bytes", "value": float(size)}
        for stage in STAGES if workers != 2 else ():
            with cluster(workers) as client, showing(killing(client, stage)):
                model, _ = fit(case, root, client)
            name = f"one of {workers} killed in {stage!r}, same bits"
            yield {"figure": name, "value": float(_same(whole, model))}


def _speed(case: Case, root: Path) -> Iterator[dict[str, float | str]]:
    """CPU of a cluster of one worker over this process's, and the wall time of one worker over that of two."""
    began = time.process_time()
    whole, _ = fit(case, root, chunk=CHUNK)
    here = time.process_time() - began
    yield {"figure": "this process, one thread, CPU s", "value": here}
    walls, busiest = [], []
    for workers in (1, 2):
        with cluster(workers) as client:
            fit(case, root, client, FIRST)  # workers compile, or load what was compiled
            began, before = time.process_time(), client.run(time.process_time)
            model, wall = fit(case, root, client, chunk=CHUNK)
            cpu = time.process_time() - began
            each = [now - before[worker] for worker, now in client.run(time.process_time).items()]
            there = sum(each)
            walls.append(wall)
            busiest.append(cpu + max(each))
            yield {"figure": f"{workers} worker(s), wall s", "value": wall}
            yield {"figure": f"{workers} worker(s), CPU s of the client", "value": cpu}
            yield {"figure": f"{workers} worker(s), CPU s of the workers", "value": there}
            yield {"figure": f"{workers} worker(s), CPU over this process's", "value": (cpu + there) / here}
            yield {"figure": f"{workers} worker(s), same bits", "value": float(_same(whole, model))}
            for stage, value in _stages(model, wall).items():
                yield {"figure": f"{workers} worker(s), wall s of {stage!r}", "value": value}
    yield {"figure": "one worker over two, wall", "value": walls[0] / walls[1]}
    yield {"figure": "one worker over two, CPU s of client and busiest worker", "value": busiest[0] / busiest[1]}
    yield {"figure": "two plain processes over one, wall", "value": _machine()}


def _stages(model: GDLM, wall: float) -> dict[str, float]:
    """Wall seconds by stage; the rest is what no stage names."""
    stages = model.report_.seconds
    return stages | {"the rest": wall - sum(stages.values())}


def _machine() -> float:
    """How many times as much two processes get done as one, by the wall, at this moment."""
    walls = []
    for count in (1, 2):
        others = [multiprocessing.get_context("spawn").Process(target=_busy) for _ in range(count)]
        began = time.perf_counter()
        for other in others:
            other.start()
        for other in others:
            other.join()
        walls.append(time.perf_counter() - began)
    return 2.0 * walls[0] / walls[1]


def _busy() -> None:
    total = 0
    for number in range(60_000_000):
        total += number


def _size(found: Any) -> int:
    from distributed.protocol import serialize

    return sum(memoryview(frame).nbytes for frame in serialize(found)[1])


def _same(one: GDLM, two: GDLM) -> bool:
    return np.array_equal(one._theta, two._theta) and np.array_equal(one.alpha_, two.alpha_)


if __name__ == "__main__":
    for row in run():
        print(row, flush=True)
