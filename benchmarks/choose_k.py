"""Whether choose_k finds the true k: n = 2000, p = 50, d = 4, alpha_h = 0.2, k = 2 to 12 tried, alpha0 unknown.

Tables out of ``tables`` in which the recommendation was right, beside what other rules would have said: the best
held-out likelihood, the spectrum alone, the k whose least stable component is the most stable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from mixmem import choose_k, simulate_gdlm

TRUE_K = (3, 5, 8)


def run(quick: bool = False) -> Iterator[dict[str, float | int]]:
    """One row a true k."""
    tables = 3 if quick else 20
    choose_k(simulate_gdlm(100, 9, 3, random_state=0).encoded, (2, 3), random_state=0)  # compile or load
    for k in TRUE_K:
        found, seconds = [], []
        for seed in range(tables):
            table = simulate_gdlm(2000, 50, k, alpha=0.2, random_state=seed)
            began = time.perf_counter()
            choice = choose_k(table.encoded, random_state=seed)
            seconds.append(time.perf_counter() - began)
            of_rule = choice.table.set_index("k")[["held_out", "stability_worst"]].idxmax()
            found.append((choice.k, of_rule["held_out"], choice.spectrum_k, of_rule["stability_worst"]))
        right, best, spectrum, stable = (np.array(found) == k).sum(axis=0).tolist()
        yield {
            "k": k,
            "tables": tables,
            "right": right,
            "best held out": best,
            "spectrum": spectrum,
            "most stable": stable,
            "seconds": float(np.median(seconds)),
            "longest": max(seconds),
        }
