"""What patterns of missing cells do to the moments and to sampling.

60 categories of 4 levels, n = 5000, k = 4, alpha_h = 0.3, alpha0 given, three tables. Cells are lost at random; in
blocks of five columns; from some rows far more than from others; by the row's memberships; by the value that is lost.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mixmem import GDLM, Simulation, align_components, encode, rmse, simulate_gdlm

ROWS, COLUMNS, COMPONENTS = 5000, 60, 4


def patterns(drawn: Simulation, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Which cells (n, p) are lost, by pattern."""
    shape = drawn.codes.shape
    by_component = rng.uniform(0.0, 0.5, size=(COMPONENTS, COLUMNS))
    by_level = rng.uniform(0.0, 0.5, size=(COLUMNS, 4))
    return {
        "none": np.zeros(shape, dtype=bool),
        "at random, 25 %": rng.random(shape) < 0.25,
        "5 columns at a time, 25 %": np.repeat(rng.random((ROWS, COLUMNS // 5)) < 0.25, 5, axis=1),
        "rows differ, 0 to 90 %": rng.random(shape) < rng.beta(1.0, 3.0, size=(ROWS, 1)),
        "by memberships, 0 to 50 %": rng.random(shape) < drawn.memberships @ by_component,
        "by the value, 0 to 50 %": rng.random(shape) < by_level[np.arange(COLUMNS), drawn.codes],
    }


def run(quick: bool = False) -> Iterator[dict[str, float | str]]:
    """One row a pattern: errors of theta and memberships without refinement and after sampling."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(1 if quick else 3):
        drawn = simulate_gdlm(ROWS, COLUMNS, COMPONENTS, alpha=0.3, random_state=seed)
        for name, lost in patterns(drawn, np.random.default_rng(seed + 100)).items():
            table = encode(drawn.frame.mask(lost), drawn.schema)
            errors = [lost.mean()]
            for refine in (None, "gibbs"):
                model = GDLM(COMPONENTS, alpha0=1.2, refine=refine, contamination=0, random_state=0).fit(table)
                theta = model.theta_.filter(like="component_").to_numpy()
                order = align_components(drawn.theta, theta)
                errors += [
                    rmse(drawn.theta, theta[:, order]),
                    rmse(drawn.memberships, model.transform(table)[:, order]),
                ]
            found.setdefault(name, []).append(tuple(errors))
    titles = ("lost", "theta, moments", "memberships, moments", "theta, gibbs", "memberships, gibbs")
    for name, errors in found.items():
        yield {"pattern": name, **dict(zip(titles, np.mean(errors, axis=0).tolist(), strict=True))}
