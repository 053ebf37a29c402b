"""Mixed tables: categories, counts and continuous numbers together, complete and with cells lost at random.

20 columns of each kind, n = 5000, k = 4, alpha_h = 0.3; the same tables complete and with 20 % of the cells lost. With
a share pi of the cells seen, a parameter learned from known components has 1 / sqrt(pi) times the error; aim: at most
1.25 times that. Continuous columns times 1,000: the largest change of a membership (aim 1e-6). Then 200,000 rows of 50
columns with 10 % lost, from a CSV file to the files of a fit: seconds and memory.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import cost_of, cost_of_command
from mixmem import GDLM, Simulation, align_components, rmse, simulate_mixed

ROWS, COMPONENTS, LOST = 5000, 4, 0.2
LARGE_ROWS = 200_000
KINDS = ("probability", "rate", "mean", "variance")
Row = dict[str, float | str]


def errors_of(drawn: Simulation, refine: str | None) -> tuple[dict[str, float], float]:
    """Root mean square errors of each kind of parameter and of memberships, and the fit's CPU seconds."""
    model = GDLM(COMPONENTS, alpha0=COMPONENTS * 0.3, refine=refine, random_state=0)
    cost, _ = cost_of(lambda: model.fit(drawn.encoded))
    found = model.transform(drawn.encoded)
    order = align_components(drawn.memberships, found)
    left = model.theta_.filter(like="component_").to_numpy()[:, order] - drawn.theta
    names = {("count", "mean"): "rate", ("count", "variance"): ""}  # a count's variance is its rate's
    kinds = np.array([names.get((v[:5], statistic), statistic) for v, _, statistic in model.schema_.labels])
    errors = {kind: float(np.sqrt((left[kinds == kind] ** 2).mean())) for kind in KINDS}
    return errors | {"memberships": rmse(drawn.memberships, found[:, order])}, cost.cpu


def scaled_change(refine: str | None) -> float:
    """Largest change of a membership when continuous columns are multiplied by a thousand."""
    frame = simulate_mixed(ROWS, COMPONENTS, missing=LOST, random_state=0).frame
    real = [name for name in frame.columns if name.startswith("real")]
    large = frame.assign(**{name: frame[name] * 1000.0 for name in real})
    kinds = {name: "count" for name in frame.columns if name.startswith("count")}
    found = [
        GDLM(COMPONENTS, alpha0=COMPONENTS * 0.3, variables=kinds, refine=refine, random_state=0).fit_transform(table)
        for table in (frame, large)
    ]
    return float(np.abs(found[0] - found[1]).max())


def large_fit(refine: str, n_rows: int) -> Row:
    """``mixmem fit`` of a large mixed CSV file."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = simulate_mixed(
            n_rows, COMPONENTS, n_categorical=20, n_count=15, n_continuous=15, missing=0.1, random_state=0
        )
        path = Path(folder) / "table.csv"
        drawn.frame.to_csv(path, index=False)
        size = path.stat().st_size
        del drawn
        cost = cost_of_command(
            [
                sys.executable, "-m", "mixmem", "fit", str(path), "-k", str(COMPONENTS), "--refine", refine, "--quiet",
                "--out", str(Path(folder) / "out"),
            ]
        )  # fmt: skip
    return {
        "case": f"{n_rows:,} x 50 from {size / 1e6:.0f} MB of CSV, refine {refine}",
        "wall s": cost.wall,
        "CPU s": cost.cpu,
        "peak GB": cost.peak / 1e9,
    }


def run(quick: bool = False) -> Iterator[Row]:
    """One row a way and kind of parameter, then single figures."""
    blank = dict.fromkeys(("complete", "lost", "ratio", "aim", "wall s", "CPU s", "peak GB"), "")
    for refine in (None, "gibbs"):
        complete, lost = [], []
        for seed in range(1 if quick else 5):
            complete.append(errors_of(simulate_mixed(ROWS, COMPONENTS, random_state=seed), refine))
            lost.append(errors_of(simulate_mixed(ROWS, COMPONENTS, missing=LOST, random_state=seed), refine))
        for kind in (*KINDS, "memberships"):
            whole, part = (float(np.mean([errors[kind] for errors, _ in runs])) for runs in (complete, lost))
            ratio = part / (whole / np.sqrt(1.0 - LOST))
            yield blank | {
                "case": f"{kind}, refine {refine}",
                "complete": whole,
                "lost": part,
                "ratio": ratio,
                "aim": "<= 1.25" if kind != "memberships" else "",
                "CPU s": float(np.mean([seconds for _, seconds in lost])),
            }
        yield blank | {"case": f"times 1,000, refine {refine}", "ratio": scaled_change(refine), "aim": "<= 1e-6"}
    for refine in ("none",) if quick else ("none", "auto"):
        yield blank | large_fit(refine, LARGE_ROWS // 10 if quick else LARGE_ROWS)
