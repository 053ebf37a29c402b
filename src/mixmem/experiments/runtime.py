"""The paper's runtime study: 1,000 rows and variables, by number of partitions, on one core and on all.

On one core CPU seconds count, which do not depend on what else the machine does; on all cores seconds by the clock.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mixmem.experiments.pool import cores
from mixmem.models.gdlm import GDLM
from mixmem.moments.components import rmse
from mixmem.plots import runtime_figure, save
from mixmem.progress import current
from mixmem.results.simulate import simulate_gdlm
from mixmem.storage.atomic import write_atomically

PAPER_SECONDS = {4: 210.0, 8: 240.0, 12: 300.0}
"""3.5, 4 and 5 minutes for 100 partitions on one core of an i7-4702HQ."""
PAPER_PARTITIONS = 100
PARTITIONS, QUICK_PARTITIONS = (30, 40, 50, 100, 200), (30, 100, 200)
COMPONENTS, QUICK_COMPONENTS = (4, 8, 12), (4, 12)
REPEATS, QUICK_REPEATS = 3, 1


@dataclass(frozen=True)
class Case:
    """One way to fit: ``partitions`` None is the default way. ``size`` is the number of rows and of variables."""

    k: int
    partitions: int | None
    cores: int
    repeats: int
    seed: int
    size: int = 1000


def run_runtime(out: Path, *, quick: bool = False, jobs: int | None = None, seed: int = 0) -> pl.DataFrame:
    """Measure every case in a process of its own and write results.csv and runtime.png and .svg."""
    out.mkdir(parents=True, exist_ok=True)
    cases = cases_of(quick=quick, most=jobs or cores(), seed=seed)
    rows = []
    with current().stage(f"{len(cases)} measurements", len(cases)) as step:
        for case in cases:
            rows.append(row_of(case, in_fresh_process(case)))
            step(1)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    with write_atomically(out / "results.csv") as temporary:
        frame.with_columns(pl.col(pl.Float64).round_sig_figs(4)).write_csv(temporary)
    save(runtime_figure(rows), out / "runtime")
    return frame


def cases_of(*, quick: bool, most: int, seed: int) -> list[Case]:
    """All cases: the partitioned ways and the default one, on one core and on all (once, where they are the same)."""
    repeats = QUICK_REPEATS if quick else REPEATS
    partitions: Sequence[int | None] = (*(QUICK_PARTITIONS if quick else PARTITIONS), None)
    return [
        Case(k, number, count, repeats, seed)
        for k in (QUICK_COMPONENTS if quick else COMPONENTS)
        for number in partitions
        for count in sorted({1, most})
    ]


def row_of(case: Case, measured: dict[str, float]) -> dict[str, Any]:
    """A row of results.csv. The paper gives its time for 100 partitions; the default way stands beside the same."""
    beside = case.partitions in (None, PAPER_PARTITIONS)
    paper = PAPER_SECONDS[case.k]
    return {
        "k": case.k,
        "way": "default" if case.partitions is None else "partitioned",
        "partitions": case.partitions,
        "cores": case.cores,
        **measured,
        "paper_seconds": paper if beside else None,
        "times_faster": paper / measured["cpu_seconds" if case.cores == 1 else "seconds"] if beside else None,
    }


def in_fresh_process(case: Case) -> dict[str, float]:
    """Measure a case where nothing else has used memory yet."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(measure, case).result()
        except BrokenProcessPool:
            raise RuntimeError(f"the process that measured {case} died, most likely for lack of memory") from None


def measure(case: Case) -> dict[str, float]:
    """Median CPU and wall seconds, mean error, and this process's peak of memory in MB before and with the fits."""
    options: dict[str, Any] = {"refine": None, "n_jobs": case.cores}
    if case.partitions is not None:
        options |= {"n_partitions": case.partitions, "sweeps": 0}
    # Kernels are compiled or loaded before anything counts; 60 variables leave some to put into partitions.
    small = simulate_gdlm(100, 60, 3, random_state=0)
    GDLM(3, alpha0=0.3, random_state=0, **(options | ({"n_partitions": 5} if case.partitions else {}))).fit(
        small.encoded
    )
    base = peak_megabytes()
    seconds, cpu_seconds, errors = [], [], []
    for repeat in range(case.repeats):
        seed = int(np.random.SeedSequence([case.seed, case.k, repeat]).generate_state(1)[0])
        table = simulate_gdlm(case.size, case.size, case.k, alpha=0.1, random_state=seed)
        began, cpu_began = time.perf_counter(), time.process_time()
        model = GDLM(case.k, alpha0=0.1 * case.k, random_state=repeat, **options).fit(table.encoded)
        seconds.append(time.perf_counter() - began)
        cpu_seconds.append(time.process_time() - cpu_began)
        errors.append(rmse(table.theta, model.theta_.iloc[:, 3:]))
    return {
        "cpu_seconds": float(np.median(cpu_seconds)),
        "seconds": float(np.median(seconds)),
        "rmse": float(np.mean(errors)),
        "peak_mb": peak_megabytes(),
        "base_mb": base,
    }


def peak_megabytes() -> float:
    """The most memory this process has held."""
    try:
        # ru_maxrss of a started process begins at its parent's peak on Linux; this one does not.
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        import resource
        import sys

        unit = 1024**2 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
