"""A Dask cluster on this machine: same bits, lost workers, bytes to the client, and what its overhead is.

Workers have one thread each. A worker is killed as soon as a stage has finished its first chunk. Tables are those of
``scale``, in the folder that MIXMEM_SCALE names. Wall seconds mean little on a machine that does other work.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale import Case, draw, folder_of
from mixmem import GDLM
from mixmem.engine import dask as engine
from mixmem.progress import Progress, showing

CASE, QUICK = (2_000_000, 100, 5, 0.1), (300_000, 50, 5, 0.1)
STAGES = ("counting all rows", "pass over all rows")
CHUNK = 65_536


def fit(case: Case, root: Path, client: Any = None, rows: int | None = None) -> tuple[GDLM, float]:
    """Fit the files of a case, or their first rows; the model and its wall seconds."""
    import polars as pl

    pattern = str(folder_of(case, root) / "*.parquet")
    model = GDLM(case[2], alpha0=case[2] * case[3], refine=None, random_state=0, passes="few", n_jobs=1)
    model._chunk_rows = CHUNK
    began = time.perf_counter()
    model.fit(pattern if rows is None else pl.scan_parquet(pattern).head(rows), engine=client)
    return model, time.perf_counter() - began


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
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


def bytes_to_client(case: Case, root: Path, client: Any, rows: int) -> int:
    """Bytes of all totals that come back in a fit of the first rows."""
    sizes, original = [], engine.Dask.total

    def total(self: Any, *arguments: Any) -> Any:
        found = original(self, *arguments)
        sizes.append(_size(found))
        return found

    engine.Dask.total = total  # type: ignore[method-assign]
    try:
        fit(case, root, client, rows)
    finally:
        engine.Dask.total = original  # type: ignore[method-assign]
    return max(sizes[:2])


def run(quick: bool = False) -> Iterator[dict[str, float | str]]:
    """One row per figure."""
    case = QUICK if quick else CASE
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(os.environ.get("MIXMEM_SCALE", temporary))
        draw(case, root)
        whole, seconds = fit(case, root)
        yield {"figure": "this process, one thread, wall s", "value": seconds}
        for workers in (1, 2, 4):
            with cluster(workers) as client:
                fit(case, root, client, 70_000)  # workers compile, or load what was compiled
                model, seconds = fit(case, root, client)
                yield {"figure": f"{workers} worker(s), wall s", "value": seconds}
                yield {"figure": f"{workers} worker(s), same bits", "value": float(_same(whole, model))}
                if workers == 1:
                    for rows in (case[0] // 4, case[0]):
                        size = bytes_to_client(case, root, client, rows)
                        yield {"figure": f"largest total to the client of {rows:,} rows, bytes", "value": float(size)}
            for stage in STAGES if workers != 2 else ():
                with cluster(workers) as client, showing(killing(client, stage)):
                    model, _ = fit(case, root, client)
                name = f"one of {workers} killed in {stage!r}, same bits"
                yield {"figure": name, "value": float(_same(whole, model))}


def _size(found: Any) -> int:
    from distributed.protocol import serialize

    return sum(memoryview(frame).nbytes for frame in serialize(found)[1])


def _same(one: GDLM, two: GDLM) -> bool:
    return np.array_equal(one._theta, two._theta) and np.array_equal(one.alpha_, two.alpha_)


if __name__ == "__main__":
    for row in run():
        print(row, flush=True)
