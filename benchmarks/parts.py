"""Sums of four parts against a fit of the whole table: bits, error, CPU seconds and bytes.

The table of ``scale``'s kind is cut into four Parquet files at stretch borders. Sums are merged in all 24 orders. The
rounds without a sample, and rows added later, are held against sweeps over all rows.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.measure import cost_of, in_process
from benchmarks.scale import Case, draw, folder_of
from mixmem import GDLM, Moments, MomentsPlan, n_stretches, rmse, stretch_rows

CASE, QUICK = (500_000, 100, 5, 0.1), (240_000, 30, 3, 0.2)
NAMES = ("a", "b", "c", "d")
AIMS = {"same bits in all orders": "1", "RMSE, rounds without a sample / all rows": "<= 1.01"}


def _cut(case: Case, root: Path) -> dict[str, Path]:
    """Write the table as four files, cut at stretch borders."""
    frame = pl.read_parquet(str(folder_of(case, root) / "*.parquet"))
    step, stretches = stretch_rows(case[1]), n_stretches(case[0], case[1])
    cuts = [0, *(stretches * part // 7 * step for part in (1, 3, 6)), case[0]]
    paths = {name: folder_of(case, root) / "cut" / f"{name}.parquet" for name in NAMES}
    paths["a"].parent.mkdir(exist_ok=True)
    for (begin, end), path in zip(itertools.pairwise(cuts), paths.values(), strict=True):
        frame[begin:end].write_parquet(path, row_group_size=100_000)
    return paths


def _sum(sums: dict[str, Moments], order: tuple[str, ...]) -> Moments:
    total = sums[order[0]]
    for name in order[1:]:
        total = total + sums[name]
    return total


def _counted(plan: MomentsPlan, parts: dict[str, Path]) -> dict[str, Moments]:
    return {name: Moments.count(path, plan, name) for name, path in parts.items()}


def _merged_and_fitted(sums: dict[str, Moments], sample: Any) -> GDLM:
    return GDLM.from_moments(_sum(sums, tuple(sums)), sample)


def _rounds(
    plan: MomentsPlan | None, sample: Any, parts: dict[str, Path], folder: Path
) -> tuple[GDLM, dict[str, Moments], int, dict[str, float]]:
    """Count, merge and fit until no round is left: the model, the last sums by part, rounds and CPU seconds."""
    rounds, spent = 0, {"count": 0.0, "merge and fit": 0.0}
    while plan is not None:
        rounds += 1
        counting, sums = cost_of(partial(_counted, plan, parts))
        for name, each in sums.items():
            each.save(folder / name)
        stored = {name: Moments.load(folder / name) for name in sums}
        fitting, model = cost_of(partial(_merged_and_fitted, stored, sample))
        plan = model.next_plan_
        spent["count"] += counting.cpu
        spent["merge and fit"] += fitting.cpu
    return model, stored, rounds, spent


def measured(case: Case, root: Path) -> dict[str, float]:
    """Return the figures of a table."""
    _, _, k, alpha = case
    paths, settings = _cut(case, root), {"alpha0": k * alpha, "refine": None, "random_state": 0}
    truth = np.load(folder_of(case, root) / "truth.npz")["theta"]
    pattern = str(paths["a"].parent / "*.parquet")
    GDLM(k, passes="few", **settings).fit(pl.read_parquet(pattern, n_rows=5_000))  # load what was compiled
    streamed, few = cost_of(lambda: GDLM(k, passes="few", **settings).fit(pattern))
    every = GDLM(k, passes="all", **settings).fit(pl.read_parquet(pattern))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        planning, (plan, sample) = cost_of(lambda: GDLM(k, **settings).plan_moments(*paths.values(), names=NAMES))
        plan.save(folder / "plan")
        model, sums, rounds, spent = _rounds(plan, sample, paths, folder)
        same = all(
            np.array_equal(GDLM.from_moments(_sum(sums, order), sample)._theta, few._theta)
            for order in itertools.permutations(NAMES)
        )
        bytes_of_plan, bytes_of_sums = (folder / "plan").stat().st_size, (folder / "a").stat().st_size
        plan, _ = GDLM(k, **settings).plan_moments(*paths.values(), names=NAMES, keep_sample=False)
        apart, _, rounds_apart, spent_apart = _rounds(plan, None, paths, folder)
        some = {name: paths[name] for name in "abc"}
        plan, _ = GDLM(k, **settings).plan_moments(*some.values(), names=list(some), keep_sample=False)
        fewer, held, _, _ = _rounds(plan, None, some, folder)
        before = _sum(held, tuple(held))
        later = GDLM.from_moments(before + Moments.count(paths["d"], before.plan, "d", after=before))
    error = rmse(truth, every._theta)
    return {
        "same bits in all orders": float(same and np.array_equal(model.alpha_, few.alpha_)),
        "rounds with a sample": rounds,
        "CPU s, fit of the files": streamed.cpu, "CPU s, init": planning.cpu, "CPU s, count": spent["count"],
        "CPU s, merge and fit": spent["merge and fit"],
        "CPU, parts / files": (planning.cpu + sum(spent.values())) / streamed.cpu,
        "kB of a plan": bytes_of_plan / 1e3, "kB of a part's sums": bytes_of_sums / 1e3,
        "RMSE, few passes / all rows": rmse(truth, few._theta) / error,
        "rounds without a sample": rounds_apart, "CPU s, count without": spent_apart["count"],
        "CPU s, merge and fit without": spent_apart["merge and fit"],
        "RMSE, rounds without a sample / all rows": rmse(truth, apart._theta) / error,
        "distance to all rows / error": rmse(every._theta, apart._theta) / error,
        "RMSE, three parts of four / all rows": rmse(truth, fewer._theta) / error,
        "RMSE, the fourth added later / all rows": rmse(truth, later._theta) / error,
    }  # fmt: skip


def run(quick: bool = False) -> Iterator[dict[str, float | str]]:
    """One row per figure."""
    case = QUICK if quick else CASE
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(os.environ.get("MIXMEM_SCALE", temporary))
        in_process(draw, case, root)
        for name, value in in_process(measured, case, root).items():
            text = f"{case[0]:,} x {case[1]}, k = {case[2]}, alpha0 = {case[2] * case[3]:g}"
            yield {"case": text, "figure": name, "value": float(value), "aim": AIMS.get(name, "")}
