"""Large tables: a million rows in memory; the authors' 10,000 x 10,000 on one and two threads, and as a whole command.

Seconds, CPU seconds, memory and errors beside their aims, a figure a line. Every part runs in a process of its own. The
demonstration needs the public data sets (see ``authors``); its table is drawn once and written as a CSV of 200 MB. The
authors' C++ program took 1,760 CPU seconds for it (theta 0.0311, memberships 0.0170), and 69 for 2,000 x 1,000 of it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

from benchmarks import authors
from benchmarks.measure import Cost, best_of, cost_of, cost_of_command, in_process, memory
from mixmem import GDLM, Encoded, align_components, rmse, simulate_gdlm

MILLION, FEWER = 1_000_000, 100_000
DEMONSTRATION, CUT = (10_000, 10_000), (2000, 1000)
GIGABYTE = 1e9
AIMS = {
    (MILLION, 100): {"wall s": 20.0, "memory / table": 2.5},
    DEMONSTRATION: {"wall s": 10.0, "CPU s": 18.0, "peak GB": 1.0, "theta": 0.0206, "memberships": 0.0140},
    CUT: {"wall s": 2.0, "theta": 0.047, "memberships": 0.042},
}
"""At most."""
AT_LEAST = {"fit speed-up": 1.7, "memberships speed-up": 1.7, "same bits": 1.0}
"""On two threads, of the demonstration; a small table has less to share."""

Figures = dict[str, float]


def draw_million(path: Path, n_rows: int) -> None:
    """100 variables of four levels, k = 5, alpha_h = 0.1."""
    np.save(path, simulate_gdlm(n_rows, 100, 5, random_state=0).codes)


def fit_million(path: Path) -> Figures:
    """Cost of the moment estimate from memory. The libraries are not counted, the table is."""
    small = simulate_gdlm(100, 100, 5, random_state=0)
    GDLM(5, alpha0=0.5, refine=None, random_state=0).fit(small.encoded)  # compile, or load what was compiled
    before = memory("VmRSS")
    codes = np.load(path)
    model = GDLM(5, alpha0=0.5, refine=None, random_state=0)
    cost, _ = cost_of(lambda: model.fit(Encoded.of(codes, small.coding)))
    return {
        "wall s": cost.wall,
        "CPU s": cost.cpu,
        "libraries MB": before / 1e6,
        "table MB": codes.nbytes / 1e6,
        "memory / table": (memory("VmHWM") - before) / codes.nbytes,
        "sweeps": model.report_.start.sweeps.count,
        **{f"{stage} s": seconds for stage, seconds in model.report_.seconds.items()},
    }


def draw_demonstration(folder: Path, n_rows: int, n_variables: int) -> None:
    """The authors' table as codes and as CSV, and its truth."""
    codes, theta, memberships = authors.draw(n_rows, n_variables, seed=0)
    np.savez(folder / "truth.npz", theta=theta, memberships=memberships)
    np.save(folder / "codes.npy", codes)
    pl.DataFrame(codes, schema=[f"x{j}" for j in range(n_variables)]).write_csv(folder / "table.csv")


def fit_threads(path: Path, repeats: int) -> Figures:
    """Fit and memberships on one thread and on two: seconds, their ratio, and whether the bits agree."""
    codes = np.load(path)
    figures: Figures = {}
    found, shortest = [], {}
    for n_jobs in (1, 2):
        model = GDLM(5, alpha0=3.5, refine=None, random_state=0, n_jobs=n_jobs)
        model.fit(codes[:100, :100])  # compile, or load what was compiled
        fit, _ = best_of(repeats, lambda model=model: model.fit(codes))
        rows, memberships = best_of(repeats, lambda model=model: model.transform(codes))
        found.append((model.theta_.iloc[:, 3:].to_numpy(), memberships))
        shortest[n_jobs] = (fit, rows)
        for name, cost in (("fit", fit), ("memberships", rows)):
            figures |= {f"{name} s, {n_jobs} threads": cost.wall, f"{name} CPU s, {n_jobs} threads": cost.cpu}
    for name, one, two in zip(("fit", "memberships"), shortest[1], shortest[2], strict=True):
        figures[f"{name} speed-up"] = one.wall / two.wall
    figures["same bits"] = float(all(np.array_equal(one, two) for one, two in zip(*found, strict=True)))
    return figures


def fit_command(folder: Path) -> Cost:
    """``mixmem fit`` from CSV to files."""
    return cost_of_command(
        [
            sys.executable, "-m", "mixmem", "fit", str(folder / "table.csv"), "-k", "5", "--alpha0", "3.5",
            "--refine", "none", "--seed", "0", "--quiet", "--out", str(folder / "out"),
        ]
    )  # fmt: skip


def command_figures(folder: Path) -> Figures:
    """Errors of the command's files against the truth with its noise, and its own clock of the stages."""
    with np.load(folder / "truth.npz") as arrays:
        truth, memberships = arrays["theta"], arrays["memberships"]
    theta, rows = (pd.read_csv(folder / "out" / name) for name in ("theta.csv", "memberships.csv"))
    at = 3 * theta["variable"].str[1:].astype(int) + theta["level"].astype(int)  # a level may not have been drawn
    found = theta.filter(like="component_").to_numpy()
    order = align_components(truth[at], found)
    left = rows.filter(like="component_").to_numpy()[:, order] - memberships
    stages = json.loads((folder / "out" / "fit.json").read_text())["seconds"]
    return {
        "theta": rmse(truth[at], found),
        "memberships": float(np.sqrt((left**2).mean())),
        **{f"{stage} s": seconds for stage, seconds in stages.items()},
    }


def _rows(case: str, figures: Figures, aims: Figures, at_least: bool = False) -> Iterator[dict[str, float | str]]:
    for name, value in figures.items():
        aim = aims.get(name)
        met = "" if aim is None else "yes" if (value >= aim if at_least else value <= aim) else "no"
        sign = "" if aim is None else f"{'>=' if at_least else '<='} {aim:g}"
        yield {"case": case, "figure": name, "value": value, "aim": sign, "met": met}


def run(quick: bool = False) -> Iterator[dict[str, float | str]]:
    """One row a figure."""
    yield from _rows("machine", {"load before": os.getloadavg()[0], "cores": float(os.cpu_count() or 1)}, {})
    with tempfile.TemporaryDirectory() as folder:
        path, n_rows = Path(folder) / "codes.npy", FEWER if quick else MILLION
        in_process(draw_million, path, n_rows)
        yield from _rows(f"{n_rows} x 100", in_process(fit_million, path), AIMS.get((n_rows, 100), {}))
    if not authors.DATA.is_dir():
        print(f"skipped: no {authors.DATA}; set MIXMEM_DATA to the folder of the public data sets")
        return
    for shape in (CUT,) if quick else (CUT, DEMONSTRATION):
        yield from _demonstration(shape, repeats=1 if quick else 3)


def _demonstration(shape: tuple[int, int], repeats: int) -> Iterator[dict[str, float | str]]:
    case = f"{shape[0]} x {shape[1]}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_process(draw_demonstration, folder, *shape)
        aims = AT_LEAST if shape == DEMONSTRATION else {}
        yield from _rows(case, in_process(fit_threads, folder / "codes.npy", repeats), aims, at_least=True)
        cost = in_process(fit_command, folder)  # a small process to start it from: see cost_of_command
        figures = {"wall s": cost.wall, "CPU s": cost.cpu, "peak GB": cost.peak / GIGABYTE}
        figures |= in_process(command_figures, folder)
        yield from _rows(f"{case}, command", figures, AIMS[shape])
