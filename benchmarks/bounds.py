"""What bounds each stage: the machine's speed in and out of memory, and every stage's time a cell beside it.

One core, CPU seconds. The machine is measured first: reading from memory, adding in the first-level cache, a matrix
product. A stage's least time a cell is the largest of its bytes from memory, its bytes in the first-level cache and its
flops, each over the machine's speed. docs/performance.md says how they are counted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measure import CpuClock, best_of
from mixmem import GDLM, Simulation, encode, simulate_gdlm, third_moments
from mixmem.engine.local import threads
from mixmem.kernels._numba import kernel
from mixmem.progress import showing

K = 5
ANCHORS = 12
"""Variables in a mode of the block whose moments are timed."""


@kernel
def add_in_cache(left, right, rounds):
    """left += right, over and over; both (length,)."""
    for _ in range(rounds):
        for i in range(left.shape[0]):
            left[i] += right[i]


@dataclass(frozen=True)
class Machine:
    """Speeds of one core in 1e9 a second: bytes read from memory, loaded and stored in the nearest cache, and flops."""

    memory: float
    cache: float
    flops: float


def measure_machine() -> Machine:
    """The three speeds: a sum over 512 MB, additions over 16 kB, a product of matrices."""
    values, square = np.ones(64_000_000, np.uint64), np.ones((1000, 1000))
    left, right, rounds = np.ones(1024), np.ones(1024), 100_000
    add_in_cache(left, right, 1)
    reading, _ = best_of(5, values.sum)
    adding, _ = best_of(5, lambda: add_in_cache(left, right, rounds))
    computing, _ = best_of(5, lambda: square @ square)
    return Machine(
        values.nbytes / reading.cpu / 1e9,
        3 * left.nbytes * rounds / adding.cpu / 1e9,
        2 * len(square) ** 3 / computing.cpu / 1e9,
    )


@dataclass(frozen=True)
class Stage:
    """Least bytes from memory, bytes in the first-level cache and flops that a cell needs, and seconds a cell took."""

    name: str
    memory: float
    cache: float
    flops: float
    seconds: float

    def row(self, machine: Machine) -> dict[str, float | str]:
        """The bound that is the largest, and how far the stage is from it."""
        bounds = {
            "memory": self.memory / machine.memory,
            "cache": self.cache / machine.cache,
            "flops": self.flops / machine.flops,
        }
        name, least = max(bounds.items(), key=lambda item: item[1])
        return {
            "stage": self.name,
            "memory B": self.memory,
            "cache B": self.cache,
            "flops": self.flops,
            "bound": name,
            "least ns": least,
            "ns": 1e9 * self.seconds,
            "times": 1e9 * self.seconds / least,
        }


def moment_stage(table: Simulation) -> Stage:
    """Counting a block's triples of levels."""
    modes = tuple(np.arange(3 * ANCHORS).reshape(3, ANCHORS))
    cost, _ = best_of(3, lambda: third_moments(table.encoded, [modes]))
    triples = ANCHORS**3
    return Stage("moments, a triple", 3 * ANCHORS / triples, 16, 1, cost.cpu / (len(table.codes) * triples))


def sweep_stage(table: Simulation) -> Stage:
    """A sweep: own features off (2k numbers), sums by level (k, read and written), new features on (2k)."""
    report = fitted(table, None).report_
    return Stage("sweep", 3, 8 * 6 * K, 5 * K, report.seconds["sweeps"] / report.start.sweeps.count / table.codes.size)


def row_stage(table: Simulation) -> Stage:
    """Newton's method for the memberships, an evaluation of the derivatives at a time."""
    model = fitted(table, None)
    cost, rows = best_of(3, lambda: model.fit_rows(table.encoded))
    evaluations = float(np.mean(rows.n_steps + 1))
    flops = 2 * K + 2 * K + K * (K + 1) + 2  # mixture; shares and gradient; half the Hessian; inverse and product
    return Stage("memberships, a step", 1, 8 * K, flops, cost.cpu / (evaluations * table.codes.size))


def refine_stages(table: Simulation) -> Iterator[Stage]:
    """A pass of EM; a sweep of the sampler."""
    em = fitted(table, "em").report_
    passes = 3 * em.refine.em.rounds + 1
    yield Stage("EM, a pass", 1, 8 * 3 * K, 6 * K + 2, em.seconds["em"] / (passes * table.codes.size))
    gibbs = fitted(table, "gibbs").report_
    chains = gibbs.refine.gibbs
    cells = chains.chains * (chains.warm_up + chains.sweeps) * table.codes.size
    yield Stage("Gibbs, a sweep", 3, 8 * K + 8, 3 * K, gibbs.seconds["gibbs"] / cells)


def reading_stage(table: Simulation) -> Stage:
    """A CSV file of one-digit cells to codes: two bytes in, one out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        table.frame.to_csv(path, index=False)
        cost, _ = best_of(3, lambda: encode(path))
    return Stage("reading CSV", 3, 3, 0, cost.cpu / table.codes.size)


def fitted(table: Simulation, refine: str | None) -> GDLM:
    """Fit with the true alpha0, after a small fit that compiles or loads what was compiled."""
    model = GDLM(K, alpha0=float(table.alpha.sum()), refine=refine, contamination=0.0, random_state=0, n_jobs=1)
    model.fit(table.encoded.take(slice(100)))
    return model.fit(table.encoded)


def run(quick: bool = False) -> Iterator[dict[str, float | str]]:
    """The machine's speeds in a line, then a row a stage."""
    wide = simulate_gdlm(2000 if quick else 10_000, 500, K, random_state=0)
    narrow = simulate_gdlm(1000 if quick else 10_000, 50, K, random_state=0)
    with threads(1), showing(CpuClock):
        machine = measure_machine()
        print(f"GB/s from memory {machine.memory:.1f}, in cache {machine.cache:.0f}; GFlop/s {machine.flops:.1f}")
        stages = [reading_stage(wide), moment_stage(narrow), sweep_stage(wide), row_stage(wide), *refine_stages(narrow)]
    for stage in stages:
        yield stage.row(machine)
