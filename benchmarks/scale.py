"""More rows than memory: few passes against sweeps over all rows, streamed against in memory, peak memory of files.

Ratios within one run, beside their aims. Tables are drawn once, as Parquet files of 500,000 rows, into the folder that
MIXMEM_SCALE names (default: a temporary one), and kept there. Every part runs in a process of its own.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.measure import cost_of, cost_of_command, in_process
from mixmem import GDLM, Encoded, first_moments, rmse, simulate_gdlm, simulate_mixed
from mixmem.engine.local import threads
from mixmem.moments.sweep import FullTensor, split_in_groups
from mixmem.results.simulate import draw_codes

FILE_ROWS, WIDE, DIFFERENT = 500_000, 500, 3
"""Rows of a file; of the widest tables so many files are drawn, and repeated."""
ACCURACY = [(2_000_000, 100, 5, 0.1), (500_000, 100, 10, 0.3), (20_000_000, 100, 5, 0.1)]
QUICK = [(300_000, 50, 5, 0.1)]
LARGE, QUICK_LARGE = (20_000_000, 500, 5, 0.1), (600_000, 100, 5, 0.1)
ROUNDS = 5
"""Times that streamed and in memory are run in turn; medians count, since page faults of a frame vary by half."""
AIMS = {
    "RMSE, few / all": 1.01, "CPU, few / all": 0.5, "pass / sweep": 0.8, "CPU, streamed / in memory": 1.0,
    "peak GB": 1.0, "CPU, fit / scan": 8.0,
}  # fmt: skip

Case = tuple[int, int, int, float]


def folder_of(case: Case, root: Path) -> Path:
    return root / "-".join(map(str, case))


def draw(case: Case, root: Path) -> None:
    """Draw a table by the paper's design into files, with the truth beside them; nothing if it is there."""
    n, p, k, alpha = case
    folder = folder_of(case, root)
    if (folder / "truth.npz").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    design = simulate_gdlm(2, p, k, alpha=alpha, random_state=0)
    for number, begin in enumerate(range(0, n, FILE_ROWS)):
        path = folder / f"part-{number:04}.parquet"
        if p >= WIDE and number >= DIFFERENT:  # errors are not looked at there, and drawing takes longer than fitting
            shutil.copy(folder / f"part-{number % DIFFERENT:04}.parquet", path)
            continue
        if path.exists():
            continue
        rng = np.random.default_rng([1, number])
        memberships = rng.dirichlet(design.alpha, size=min(FILE_ROWS, n - begin))
        codes = draw_codes(design.coding, design.theta, memberships, 0.0, rng).astype(np.int8)
        frame = pl.DataFrame(codes, schema=[f"x{j}" for j in range(p)])
        frame.write_parquet(path, row_group_size=100_000)
    np.savez(folder / "truth.npz", theta=design.theta, alpha=design.alpha)


def _codes(case: Case, root: Path) -> Encoded:
    design = simulate_gdlm(2, case[1], case[2], alpha=case[3], random_state=0)
    files = sorted(folder_of(case, root).glob("*.parquet"))
    codes = np.empty((case[0], case[1]), np.uint8)
    for number, file in enumerate(files):
        part = pl.read_parquet(file).to_numpy()
        codes[number * FILE_ROWS : number * FILE_ROWS + len(part)] = part
    return Encoded.of(codes, design.coding)


def _model(case: Case, passes: str) -> GDLM:
    return GDLM(case[2], alpha0=case[2] * case[3], refine=None, random_state=0, passes=passes)


def fit_in_memory(case: Case, root: Path, passes: str) -> dict[str, float]:
    """Fit codes in memory: CPU and wall seconds, error of theta."""
    table = _codes(case, root)
    _model(case, passes).fit(table.take(slice(0, 5_000)))  # compile, or load what was compiled
    model = _model(case, passes)
    cost, _ = cost_of(lambda: model.fit(table))
    truth = np.load(folder_of(case, root) / "truth.npz")["theta"]
    moved = getattr(model.report_.start, "correction", None)
    return {
        "CPU s": cost.cpu, "wall s": cost.wall, "theta": rmse(truth, model._theta),
        "corrections": 0.0 if moved is None else float(len(moved.moved)), "checksum": float(model._theta.sum()),
    }  # fmt: skip


def fit_mixed(n: int, passes: str) -> dict[str, float]:
    """Fit categories, counts and continuous numbers with missing cells and weights: CPU seconds, error of theta's
    levels."""
    drawn = simulate_mixed(n, 3, n_categorical=30, n_count=10, n_continuous=10, missing=0.1, random_state=0)
    table = replace(drawn.encoded, weights=np.random.default_rng(1).uniform(0.5, 2.0, n))
    model = GDLM(3, alpha0=0.9, refine=None, random_state=0, passes=passes)
    model.fit(table.take(slice(0, 5_000)))
    cost, _ = cost_of(lambda: model.fit(table))
    levels = slice(0, 30 * 4)
    return {"CPU s": cost.cpu, "wall s": cost.wall, "theta": rmse(drawn.theta[levels], model._theta[levels])}


def fit_files(case: Case, root: Path, how: str) -> dict[str, float]:
    """Fit the files: from memory once they are read (a frame), streamed (their pattern), or streamed with a limit
    that lets no codes be kept in memory (limited): CPU, memory."""
    pattern = str(folder_of(case, root) / "*.parquet")
    X = pl.read_parquet(pattern) if how == "frame" else pattern
    _model(case, "few").fit(pl.read_parquet(pattern, n_rows=5_000))
    model = _model(case, "few").set_params(memory_limit="500MB" if how == "limited" else None)
    cost, _ = cost_of(lambda: model.fit(X))
    return {"CPU s": cost.cpu, "wall s": cost.wall, "peak GB": cost.peak / 1e9, "checksum": float(model._theta.sum())}


def pass_and_sweep(case: Case, root: Path) -> dict[str, float]:
    """CPU seconds of one pass without state, and of one sweep with it."""
    table = _codes(case, root).take(slice(0, 500_000))
    with threads(1):
        first = first_moments(table)
        theta = np.load(folder_of(case, root) / "truth.npz")["theta"]
        tensor = FullTensor(table, first, theta, case[2] * case[3])
        groups = split_in_groups(tensor.soft, np.random.default_rng(0))
        work = tensor.pass_over(groups)
        work.sums(table.take(slice(0, 1000)))
        tensor.step(groups[0])
        began = time.process_time()
        work.sums(table)
        middle = time.process_time()
        for group in groups:
            tensor.step(group)
    return {"pass CPU s": middle - began, "sweep CPU s": time.process_time() - middle}


def scan(case: Case, root: Path) -> float:
    """CPU seconds of reading all files, nothing kept."""
    began = time.process_time()
    for file in sorted(folder_of(case, root).glob("*.parquet")):
        frame = pl.scan_parquet(file)
        for begin in range(0, FILE_ROWS, 65_536):
            frame.slice(begin, 65_536).collect().to_numpy()
    return time.process_time() - began


def command(case: Case, root: Path, *options: str) -> dict[str, float]:
    """``mixmem fit`` of the files with a limit of a gigabyte."""
    with tempfile.TemporaryDirectory(dir=root) as out:
        line = ["fit", str(folder_of(case, root) / "*.parquet"), "-k", str(case[2]), "--alpha0", str(case[2] * case[3])]
        line += ["--memory-limit", "500MB", "--passes", "few", "--quiet", "--out", f"{out}/fit", *options]
        cost = cost_of_command([sys.executable, "-m", "mixmem", *line])
    return {"peak GB": cost.peak / 1e9, "CPU s": cost.cpu, "wall s": cost.wall}


def _rows(case: Case, figures: dict[str, float]) -> Iterator[dict[str, float | str]]:
    for name, value in figures.items():
        aim = AIMS.get(name)
        met = "" if aim is None else "yes" if value <= aim else "no"
        yield {
            "case": f"{case[0]:,} x {case[1]}, k = {case[2]}, alpha0 = {case[2] * case[3]:g}", "figure": name,
            "value": float(value), "aim": "" if aim is None else f"<= {aim:g}", "met": met,
        }  # fmt: skip


def run(quick: bool = False) -> Iterator[dict[str, float | str]]:
    """One row per figure."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(os.environ.get("MIXMEM_SCALE", temporary))
        cases = QUICK if quick else [case for case in ACCURACY if case[0] <= _most_rows()]
        for number, case in enumerate(cases):
            in_process(draw, case, root)
            if number == 0:
                found = in_process(pass_and_sweep, case, root)
                yield from _rows(case, found | {"pass / sweep": found["pass CPU s"] / found["sweep CPU s"]})
                yield from _streamed(case, root)
            yield from _few_against_all(case, partial(fit_in_memory, case, root))
        mixed = (200_000 if quick else 2_000_000, 50, 3, 0.3)
        yield from _few_against_all(mixed, partial(fit_mixed, mixed[0]))
        large = QUICK_LARGE if quick else (min(LARGE[0], _most_rows()), *LARGE[1:])
        in_process(draw, large, root)
        plain = in_process(scan, large, root)
        theta = in_process(fit_files, large, root, "limited")
        found = in_process(command, large, root)
        yield from _rows(large, {"scan CPU s": plain, "theta alone, CPU s": theta["CPU s"]})
        yield from _rows(
            large, {"CPU, fit / scan": theta["CPU s"] / plain, "with memberships / scan": found["CPU s"] / plain}
        )
        yield from _rows(large, found)


def _most_rows() -> int:
    """Rows of the largest tables that are drawn: less than the full size where MIXMEM_SCALE_ROWS says so."""
    return int(os.environ.get("MIXMEM_SCALE_ROWS", LARGE[0]))


def _few_against_all(case: Case, fit: Callable[[str], dict[str, float]]) -> Iterator[dict[str, float | str]]:
    few, every = (in_process(fit, passes) for passes in ("few", "all"))
    yield from _rows(case, {f"few, {name}": value for name, value in few.items()})
    yield from _rows(case, {f"all, {name}": value for name, value in every.items()})
    yield from _rows(
        case, {"RMSE, few / all": few["theta"] / every["theta"], "CPU, few / all": few["CPU s"] / every["CPU s"]}
    )


def _streamed(case: Case, root: Path) -> Iterator[dict[str, float | str]]:
    runs = [[in_process(fit_files, case, root, how) for how in ("frame", "streamed")] for _ in range(ROUNDS)]
    held, read = (_medians(own) for own in zip(*runs, strict=True))
    yield from _rows(case, {f"streamed, {name}": value for name, value in read.items()})
    yield from _rows(case, {f"in memory, {name}": value for name, value in held.items()})
    yield from _rows(case, {"CPU, streamed / in memory": read["CPU s"] / held["CPU s"]})


def _medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.median([run[name] for run in runs])) for name in runs[0]}
