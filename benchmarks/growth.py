"""How the moment estimate's time grows: n, p and d doubled three times each, and k = 5 to 40.

From codes in memory, alpha0 given, refine=None, least of three. Sweeps end by a rule that looks at theta, so that their
number differs from table to table: the CPU time of one sweep is given too, and that of the other stages. Aim: at most
2.2 times the wall seconds a doubling; on a busy machine the ratio of CPU seconds is the one to believe.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.measure import CpuClock, best_of
from mixmem import GDLM, Simulation, simulate_gdlm
from mixmem.progress import showing

BASE = {"n_rows": 4000, "n_variables": 200, "n_levels": 4, "n_components": 5}
QUICK = {**BASE, "n_rows": 1000, "n_variables": 50}
FACTORS = (1, 2, 4, 8)


def fitted(table: Simulation) -> GDLM:
    """The moment estimate of a table drawn with alpha_h = 0.1."""
    with showing(CpuClock):
        return GDLM(len(table.alpha), alpha0=float(table.alpha.sum()), refine=None, random_state=0).fit(table.encoded)


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row a table; ratios are to the row before."""
    base = QUICK if quick else BASE
    fitted(simulate_gdlm(100, 9, 2, random_state=0))  # compile, or load what was compiled
    for name in base:
        before = None
        for factor in FACTORS[:2] if quick else FACTORS:
            design = {**base, name: base[name] * factor}
            cost, model = best_of(3, partial(fitted, simulate_gdlm(**design, random_state=0)))
            sweeps, stages = model.report_.start.sweeps.count, model.report_.seconds
            times = {"wall": cost.wall, "CPU": cost.cpu, "sweep": stages["sweeps"] / sweeps}
            yield {
                "doubled": name,
                **dict(zip("npdk", design.values(), strict=True)),
                "wall s": cost.wall,
                "CPU s": cost.cpu,
                "sweeps": sweeps,
                "sweep CPU s": times["sweep"],
                **{f"{clock} ratio": times[clock] / before[clock] if before else "" for clock in times},
                **{f"{stage} CPU s": stages[stage] for stage in ("moments", "anchor block", "one pass")},
            }
            before = times
