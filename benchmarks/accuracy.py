"""The paper's simulation (p = 25, d = 4, alpha_h = 0.1, alpha0 given) beside its published ptpqp errors, refine=None.

Root mean square error of theta, mean over seeds; the paper's values are those of its figure for ptpqp.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from mixmem import GDLM, rmse, simulate_gdlm

PUBLISHED = {
    (500, 3): 0.035827, (500, 5): 0.051872, (500, 10): 0.093486, (500, 20): 0.250223,
    (1000, 3): 0.023412, (1000, 5): 0.036506, (1000, 10): 0.068975, (1000, 20): 0.224058,
    (5000, 3): 0.010957, (5000, 5): 0.016074, (5000, 10): 0.031925, (5000, 20): 0.107308,
}  # fmt: skip


def run(quick: bool = False) -> Iterator[dict[str, float | int]]:
    """One row a cell (n, k) at delta = 0."""
    seeds = 3 if quick else 10
    GDLM(3, alpha0=0.3, random_state=0).fit(simulate_gdlm(300, 25, 3, random_state=0).codes)  # compile or load
    for (n, k), published in PUBLISHED.items():
        errors, seconds = [], []
        for seed in range(seeds):
            table = simulate_gdlm(n, 25, k, random_state=seed)
            began = time.perf_counter()
            model = GDLM(k, alpha0=0.1 * k, refine=None, random_state=seed).fit(table.encoded)
            seconds.append(time.perf_counter() - began)
            errors.append(rmse(table.theta, model.theta_.iloc[:, 3:]))
        mean = float(np.mean(errors))
        yield {
            "n": n,
            "k": k,
            "rmse": mean,
            "spread": float(np.std(errors)),
            "published": published,
            "ratio": mean / published,
            "seconds": float(np.median(seconds)),
        }
