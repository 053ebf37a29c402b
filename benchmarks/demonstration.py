"""The authors' demonstration whole, 10,000 x 10,000, and its corner of 2,000 x 1,000: errors beside each draw's limits.

alpha0 = 3.5 given, without refinement, with rounds of EM, and by default. The limit of theta is nonnegative least
squares with the true memberships, that of memberships the mode with the true theta. Needs the ground truth of
``gdlm_demo`` (see ``authors``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.authors import DATA, draw
from mixmem import GDLM, align_components, fit_rows, rmse
from mixmem.kernels.nqp import exact_rows


def known_memberships(codes: np.ndarray, memberships: np.ndarray) -> np.ndarray:
    """Theta (3 p, k) by nonnegative least squares with the memberships known, on the simplex per variable."""
    n, p = codes.shape
    z = np.concatenate([[memberships[codes[:, j] == c].sum(axis=0) for c in range(3)] for j in range(p)]) / n
    x = np.full_like(z, 0.3)
    exact_rows(memberships.T @ memberships / n, -z, x, 500, 1e-9)
    return (x.reshape(p, 3, -1) / x.reshape(p, 3, -1).sum(axis=1, keepdims=True)).reshape(3 * p, -1)


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row per shape, draw and refinement."""
    if not DATA.is_dir():
        print(f"skipped: no {DATA}; set MIXMEM_DATA to the folder of the public data sets")
        return
    for n, p in ((2_000, 1_000),) if quick else ((2_000, 1_000), (10_000, 10_000)):
        for seed, refine in product(range(5), (None, "integrated", "auto")):
            table, noisy, memberships = draw(n, p, seed)
            began = time.process_time()
            model = GDLM(5, alpha0=3.5, refine=refine, random_state=seed).fit(table)
            found = model.transform(table)
            seconds = time.process_time() - began
            theta = model.theta_.iloc[:, 3:].to_numpy()
            order = align_components(noisy, theta)
            error = rmse(noisy, theta)
            rows = float(np.sqrt(((found[:, order] - memberships) ** 2).mean()))
            codes = table if isinstance(table, np.ndarray) else table.codes
            limit = rmse(noisy, known_memberships(codes, memberships))
            encoded = model._training.table
            best = fit_rows(encoded, noisy, np.full(5, 0.7), memberships="mode").memberships
            row_limit = float(np.sqrt(((best - memberships) ** 2).mean()))
            yield {
                "table": f"{n} x {p}", "draw": seed, "refine": str(refine), "theta": error, "limit": limit,
                "ratio": error / limit, "memberships": rows, "their limit": row_limit, "their ratio": rows / row_limit,
                "sweeps": model.report_.start.sweeps.count, "said": model.report_.start.sweeps.theta_left,
                "CPU s": seconds,
            }  # fmt: skip
