"""Crowd labels: errors, calibration and time beside crowd-kit on five sets, and time and memory on large tables.

Single thread. crowd-kit runs 50 rounds with its stopping rule off (tol = -inf) in the same process; its rows are left
out where it is not installed (pip install crowd-kit).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.crowd_sets import DATA
from benchmarks.measure import cost_of, in_process, memory
from mixmem.crowd import DawidSkene, calibration_error, error_rate
from mixmem.engine.local import threads
from mixmem.experiments.crowd import SETS, read_set

ROUNDS = 50
LARGE: dict[str, tuple[int, dict[str, Any]]] = {
    "1e6 labels, ds": (1_000_000, {"model": "ds", "n_iter": 20, "tol": -1.0}),
    "1e7 labels, default": (10_000_000, {}),
}


def run(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """A row a set and method: error and calibration error in %, CPU seconds, times faster, peak memory."""
    for name in SETS:
        yield from _set(name)
    for name, (n_labels, parameters) in LARGE.items():
        if not (quick and n_labels > 1_000_000):
            yield in_process(_large, name, n_labels, parameters)


def _set(name: str) -> Iterator[dict[str, Any]]:
    labels, known = read_set(DATA, name)
    frame = pd.DataFrame({
        "task": labels.tasks[labels.task_of],
        "worker": labels.worker_ids[labels.workers],
        "label": labels.classes[labels.labels],
    })  # fmt: skip
    ours = {
        f"ds, {ROUNDS} rounds": DawidSkene(ROUNDS, -1.0, model="ds", smoothing=1e-6, n_jobs=1),
        "default": DawidSkene(n_jobs=1),
    }
    with threads(1):
        theirs = _crowd_kit(frame, labels.classes, known, name)
        if theirs:
            yield theirs
        for method, model in ours.items():
            seconds = _cpu_seconds(lambda model=model: model.fit(frame), repeats=3)
            yield _row(name, method, model.probas_.to_numpy(), known, seconds, theirs)


def _crowd_kit(frame: pd.DataFrame, classes: np.ndarray, known: np.ndarray, name: str) -> dict[str, Any] | None:
    try:
        from crowdkit.aggregation import DawidSkene as Theirs
    except ImportError:
        return None
    model = Theirs(ROUNDS, tol=-np.inf)
    seconds = _cpu_seconds(lambda: model.fit(frame), repeats=1)
    posterior = model.probas_.sort_index().reindex(columns=classes).to_numpy()
    return _row(name, f"crowd-kit, {ROUNDS} rounds", posterior, known, seconds, None)


def _row(
    name: str, method: str, posterior: np.ndarray, known: np.ndarray, seconds: float, theirs: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "data": name,
        "method": method,
        "error": 100.0 * error_rate(posterior, known),
        "calibration": 100.0 * calibration_error(posterior, known),
        "seconds": seconds,
        "faster": theirs["seconds"] / seconds if theirs else float("nan"),
        "peak_mb": float("nan"),
    }


def _cpu_seconds(call: Callable[[], Any], repeats: int) -> float:
    """CPU seconds of the fastest of several runs, after one that compiles."""
    call()
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return min(taken)


def _large(name: str, n_labels: int, parameters: dict[str, Any]) -> dict[str, Any]:
    """A drawn table: 5 classes, 5 labels a task, a worker for every thousand labels; memory is the whole process's."""
    small, _ = draw(1_000)
    DawidSkene(**parameters).fit(small)
    table, truth = draw(n_labels)
    model = DawidSkene(**parameters)
    cost, _ = cost_of(lambda: model.fit(table))
    wrong = 100.0 * float((model.labels_.to_numpy() != truth).mean())
    gap = 100.0 * calibration_error(model.probas_.to_numpy(), truth)
    return {
        "data": name,
        "method": f"{len(model.loss_history_)} rounds",
        "error": wrong,
        "calibration": gap,
        "seconds": cost.wall,
        "faster": float("nan"),
        "peak_mb": memory("VmHWM") / 1e6,
    }


def draw(n_labels: int, k: int = 5, votes: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of task, worker and label, (m, 3), and the classes of the tasks."""
    rng = np.random.default_rng(seed)
    n_tasks, n_workers = n_labels // votes, max(20, n_labels // 1000)
    truth = rng.integers(k, size=n_tasks, dtype=np.int32)
    accuracy = np.where(rng.random(n_workers) < 0.15, 1 / k, rng.beta(6, 3, size=n_workers))
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), votes)
    worker = rng.integers(n_workers, size=n_tasks * votes, dtype=np.int32)
    wrong = (truth[task] + rng.integers(1, k, size=len(task), dtype=np.int32)) % k
    label = np.where(rng.random(len(task)) < accuracy[worker], truth[task], wrong)
    return np.column_stack([task, worker, label]), truth
