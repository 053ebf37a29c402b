"""Is there noise? Twenty tables without any and twenty with 5 %, of 500 to 20,000 rows, fitted by default.

``holds`` says whether the 95 % interval holds the truth.
"""

from __future__ import annotations

from collections.abc import Iterator

from mixmem import GDLM, simulate_gdlm

ROWS, VARIABLES, COMPONENTS = (500, 1_000, 2_000, 5_000, 20_000), (25, 40, 60, 100), (2, 3, 4, 6)
LEVELS, ALPHAS = (3, 4, 5), (0.1, 0.3, 0.5)


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row per table."""
    for noise in (0.0, 0.05):
        for seed in range(100, 104 if quick else 120):
            n, p, d = ROWS[seed % 5], VARIABLES[seed % 4], LEVELS[seed % 3]
            k = COMPONENTS[seed % 4 if seed % 3 else 0]
            table = simulate_gdlm(n, p, k, n_levels=d, alpha=ALPHAS[seed % 3], noise=noise, random_state=seed)
            model = GDLM(k, random_state=seed).fit(table.encoded)
            interval = model.intervals()
            low, high = interval[interval.parameter == "contamination"][["lower", "upper"]].to_numpy()[0]
            yield {
                "noise": noise, "table": f"{n} x {p}, k = {k}, {d} levels", "found": model.contamination_,
                "low": float(low), "high": float(high), "holds": int(low <= noise <= high),
            }  # fmt: skip
