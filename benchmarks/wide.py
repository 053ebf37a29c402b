"""p = 1000, n = 1000, d = 4, alpha_h = 0.1, alpha0 given: by default, and by 100 partitions that start at the anchors.

Beside the paper's minutes on one core of a laptop, and beside the error of nonnegative least squares with the true
memberships known, which bounds what any method can reach here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from scipy.optimize import nnls

from mixmem import GDLM, rmse, simulate_gdlm

PAPER_SECONDS = {4: 210, 8: 240, 12: 300}
STATED_LIMIT = {4: 0.0249, 8: 0.0417, 12: 0.0558}
"""Reference errors of a fit that knows the memberships, on the draws they were first measured on."""
WAYS = {"default": {}, "100 partitions": {"n_partitions": 100, "sweeps": 0, "block_start": "anchors"}}


def known_memberships(table) -> float:
    """Error of theta by nonnegative least squares on the true memberships, scaled to the simplex."""
    theta = np.empty_like(table.theta)
    for j in range(table.schema.n_variables):
        rows = slice(4 * j, 4 * j + 4)
        theta[rows] = [nnls(table.memberships, (table.codes[:, j] == c).astype(float))[0] for c in range(4)]
        theta[rows] /= theta[rows].sum(axis=0)
    return rmse(table.theta, theta)


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row a way and k: the median of the seeds' times, the mean of their errors."""
    seeds = 2 if quick else 5
    warm = simulate_gdlm(300, 100, 3, random_state=0)
    for options in WAYS.values():
        GDLM(3, alpha0=0.3, random_state=0, **options).fit(warm.codes)
    for k, paper in PAPER_SECONDS.items():
        tables = [simulate_gdlm(1000, 1000, k, random_state=seed) for seed in range(seeds)]
        limit = float(np.mean([known_memberships(table) for table in tables]))
        for way, options in WAYS.items():
            errors, seconds = [], []
            for seed, table in enumerate(tables):
                began = time.perf_counter()
                model = GDLM(k, alpha0=0.1 * k, refine=None, random_state=seed, **options).fit(table.encoded)
                seconds.append(time.perf_counter() - began)
                errors.append(rmse(table.theta, model.theta_.iloc[:, 3:]))
            mean, middle = float(np.mean(errors)), float(np.median(seconds))
            yield {
                "k": k,
                "way": way,
                "rmse": mean,
                "stated limit": STATED_LIMIT[k],
                "ratio": mean / STATED_LIMIT[k],
                "limit here": limit,
                "ratio here": mean / limit,
                "seconds": middle,
                "paper s": paper,
                "times faster": paper / middle,
            }
