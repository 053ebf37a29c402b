"""Share of 95 % intervals that hold the truth: theta by the moments and by sampling, and memberships of new rows.

n = 2000, p = 30, d = 4, k = 4, alpha_h = 0.1, 50 tables; aim: 92 to 98 %. New rows: 500 a table, drawn from the truth.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mixmem import GDLM, Encoded, Simulation, align_components, simulate_gdlm
from mixmem.results.simulate import draw_codes


def covered(table: pd.DataFrame, truth: np.ndarray) -> float:
    """Share of intervals that hold truth (m, k), in the table's order."""
    low, high = (table[name].to_numpy().reshape(truth.shape) for name in ("lower", "upper"))
    return float(((truth >= low) & (truth <= high)).mean())


def shares(model: GDLM, table: Simulation, seed: int) -> tuple[float, float]:
    """Coverage of theta, and of the memberships of new rows."""
    order = np.argsort(align_components(table.theta, model.theta_.iloc[:, 3:].to_numpy()))
    intervals = model.intervals(level=0.95)
    theta = covered(intervals[intervals.parameter == "theta"], table.theta[:, order])
    rng = np.random.default_rng(seed)
    memberships = rng.dirichlet(table.alpha, 500)
    codes = draw_codes(table.coding, table.theta, memberships, table.noise, rng)
    new = Encoded.of(codes, table.coding)
    return theta, covered(model.membership_intervals(new, level=0.95), memberships[:, order])


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row a way of estimating."""
    ways = {
        "moments, alpha0 given": {"refine": None, "alpha0": 0.4},
        "moments": {"refine": None},
        "gibbs, alpha0 given": {"refine": "gibbs", "alpha0": 0.4},
        "gibbs": {"refine": "gibbs"},
    }
    for noise in (0.0, 0.05):
        for name, settings in ways.items():
            if noise and settings["refine"] is None:
                continue  # without sampling theta keeps the noise's bias, which no standard error tells of
            found = []
            for seed in range(5 if quick else 50):
                table = simulate_gdlm(2000, 30, 4, noise=noise, random_state=seed)
                found.append(shares(GDLM(4, random_state=seed, **settings).fit(table.encoded), table, seed + 1000))
            theta, memberships = np.mean(found, axis=0)
            yield {"way": name, "noise": noise, "tables": len(found), "theta": theta, "memberships": memberships}
