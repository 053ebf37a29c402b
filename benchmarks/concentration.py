"""alpha0 unknown: its estimate with rows hardly, fairly and strongly mixed, and alpha unequal.

p = 100, n = 5000, d = 4, k = 5, alpha in the proportions 5 : 4 : 3 : 2 : 1; alpha0 = 0.3, 1, 3.5; 20 tables each. Aim:
median relative error below 15 %.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from mixmem import GDLM, simulate_gdlm


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row an alpha0 and way of estimating it."""
    for alpha0 in (0.3, 1.0, 3.5):
        alpha = alpha0 * np.arange(5, 0, -1) / 15
        for refine in (None, "gibbs"):
            found, seconds = [], []
            for seed in range(3 if quick else 20):
                table = simulate_gdlm(5000, 100, 5, alpha=alpha, random_state=seed)
                began = time.perf_counter()
                found.append(GDLM(5, refine=refine, random_state=seed).fit(table.encoded).alpha0_)
                seconds.append(time.perf_counter() - began)
            errors = np.abs(np.array(found) / alpha0 - 1.0)
            yield {
                "alpha0": alpha0,
                "refine": str(refine),
                "median found": float(np.median(found)),
                "median error": float(np.median(errors)),
                "worst error": float(errors.max()),
                "s": float(np.mean(seconds)),
            }
