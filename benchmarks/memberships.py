"""Memberships as posterior means beside those of the mode: ten tables of 16 to 1,000 variables, three draws each.

Theta is that of a fit without refinement, alpha0 given; the rows are others than those it was fitted to. ``truth`` is
the mean with the true theta and alpha, which no estimate can be expected to pass.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import best_of
from mixmem import GDLM, align_components, encode, fit_rows, rmse, simulate_gdlm

TABLES = [
    (16, 2, 3, 0.3), (25, 4, 5, 0.1), (25, 4, 10, 0.1), (40, 3, 4, 0.5), (60, 4, 8, 0.2), (100, 4, 5, 0.7),
    (150, 2, 6, 0.3), (300, 4, 5, 0.3), (500, 3, 10, 0.1), (1_000, 4, 8, 0.1),
]  # fmt: skip
"""Variables, levels, components and alpha of each."""
ROWS, NEW, DRAWS = 4_000, 2_000, 3


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row per table: root mean square errors, means over draws, and CPU microseconds per row."""
    for p, d, k, alpha in TABLES[: 3 if quick else None]:
        found = []
        for seed in range(1 if quick else DRAWS):
            drawn = simulate_gdlm(ROWS + NEW, p, k, n_levels=d, alpha=alpha, random_state=seed)
            old, new = drawn.codes[:ROWS], encode(drawn.codes[ROWS:], coding=drawn.coding)
            model = GDLM(k, alpha0=k * alpha, refine=None, random_state=seed).fit(encode(old, coding=drawn.coding))
            order = align_components(drawn.theta, model._theta)
            theta, weights = model._theta[:, order], model.alpha_[order]
            line = []
            for way in ("mean", "mode"):
                cost, rows = best_of(2, lambda t=theta, a=weights, w=way, x=new: fit_rows(x, t, a, memberships=w))
                line += [rmse(drawn.memberships[ROWS:], rows.memberships), 1e6 * cost.cpu / NEW]
            known = fit_rows(new, drawn.theta, np.full(k, alpha), memberships="mean").memberships
            found.append([*line, rmse(drawn.memberships[ROWS:], known)])
        mean, mean_cost, mode, mode_cost, known = np.mean(found, axis=0).tolist()
        yield {
            "table": f"p = {p}, d = {d}, k = {k}, {alpha}", "mean": mean, "mode": mode, "ratio": mean / mode,
            "truth": known, "mean, us": mean_cost, "mode, us": mode_cost,
        }  # fmt: skip
