"""Do sweeps end where they should? Twenty tables, alpha0 given: distance to where plain sweeps end, over the tolerance.

Plain sweeps go on from the estimate until theta changes by less than a hundredth of the tolerance per sweep. Then five
tables with one and two components more than were drawn: after how many sweeps they are given up, and what is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mixmem import first_moments, simulate_gdlm, simulate_mixed
from mixmem.moments.anchors import anchor_moments, make_plan
from mixmem.moments.estimate import MOST_SWEEPS, Settings, extended, from_anchors, share_tolerance, sweep_tolerance
from mixmem.moments.sweep import FullTensor, Swept, sweep
from mixmem.progress import Progress

MOST = 3_000
"""Plain sweeps at most."""
CATEGORIES = [  # rows, variables, components, levels, alpha0, seed
    (1_000, 25, 3, 4, 0.3, 1),
    (5_000, 25, 10, 4, 1.0, 2),
    (5_000, 25, 20, 4, 2.0, 3),
    (20_000, 25, 5, 2, 0.5, 4),
    (3_000, 30, 4, 10, 4.0, 5),
    (2_000, 100, 5, 3, 3.5, 6),
    (20_000, 100, 10, 3, 3.0, 7),
    (5_000, 100, 20, 4, 2.0, 8),
    (1_000, 200, 8, 2, 0.8, 9),
    (2_000, 1_000, 5, 3, 3.5, 10),
    (1_000, 1_000, 12, 4, 1.2, 11),
    (3_000, 1_000, 20, 2, 6.0, 12),
    (10_000, 60, 6, 5, 1.5, 13),
    (500, 50, 3, 4, 9.0, 14),
]
SURPLUS = [  # the same, fitted with one and with two components too many
    (2_000, 30, 4, 4, 1.0, 1),
    (20_000, 30, 4, 4, 1.0, 2),
    (5_000, 100, 3, 3, 3.5, 3),
    (2_000, 1_000, 5, 3, 3.5, 4),
    (1_000, 25, 3, 4, 0.3, 5),
]
MIXED = [(2_000, 3, 20), (5_000, 4, 21), (10_000, 3, 22)]  # rows, components, seed
WEIGHTED = [(2_000, 40, 3, 30), (5_000, 80, 6, 31), (1_000, 300, 4, 32)]  # rows, variables, components, seed


def tables() -> Iterator[tuple[str, object, int, float]]:
    """Return name, table, components and alpha0 of every table."""
    for n, p, k, d, alpha0, seed in CATEGORIES:
        drawn = simulate_gdlm(n, p, k, n_levels=d, alpha=alpha0 / k, random_state=seed)
        yield f"{n} x {p}, k = {k}, {d} levels, alpha0 = {alpha0}", drawn.encoded, k, alpha0
    for n, k, seed in MIXED:
        drawn = simulate_mixed(n, k, n_categorical=15, n_continuous=10, n_count=10, missing=0.2, random_state=seed)
        yield f"{n} rows, mixed, holes, k = {k}", drawn.encoded, k, float(drawn.alpha.sum())
    for n, p, k, seed in WEIGHTED:
        drawn = simulate_gdlm(n, p, k, alpha=0.3, random_state=seed)
        weights = np.random.default_rng(seed).gamma(2.0, size=n)
        yield f"{n} x {p}, k = {k}, weights", replace(drawn.encoded, weights=weights), k, 0.3 * k


def begun(table, k: int, alpha0: float) -> FullTensor:
    """Return the full tensor where sweeps begin."""
    settings, seed, first = Settings(k, "pqp", "procrustes", None, 10), np.random.SeedSequence(0), first_moments(table)
    plan = make_plan(table, k, rng=np.random.default_rng(0), first=first)
    block = anchor_moments(table, plan)
    factored = from_anchors(table, plan, first, block, alpha0, settings, seed=seed, progress=Progress())
    return extended(table, first, factored.theta, alpha0, Progress())


def limit(tensor: FullTensor, theta: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Return theta, the components' shares and the number of plain sweeps from theta until they end."""
    tensor.theta = theta.copy()
    tensor.place()
    made = 0
    while made < MOST:
        swept = sweep(tensor, n_sweeps=5, tol=0.0, early=False, rng=np.random.default_rng(1), progress=Progress())
        made += 5
        if swept.changes[-1] < tol / 100:
            break
    return swept.theta, swept.weights / swept.weights.sum(), made


def swept_of(table, k: int, alpha0: float) -> tuple[FullTensor, Swept, float, float]:
    """Return the tensor and the sweeps of a table as a fit makes them, and both tolerances."""
    tensor = begun(table, k, alpha0)
    tol, shares_tol = sweep_tolerance(k, table.n_effective), share_tolerance(k, alpha0, table.n_effective)
    swept = sweep(
        tensor, n_sweeps=MOST_SWEEPS, tol=tol, shares_tol=shares_tol, rng=np.random.default_rng(1), progress=Progress()
    )
    return tensor, swept, tol, shares_tol


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row per table."""
    for number, (name, table, k, alpha0) in enumerate(tables()):
        if quick and number % 5:
            continue
        tensor, swept, tol, shares_tol = swept_of(table, k, alpha0)
        theta, shares, plain = limit(tensor, swept.theta, tol)
        true = float(np.sqrt(((theta - swept.theta) ** 2).mean()))
        yield {
            "table": name,
            "sweeps": len(swept.changes),
            "settled": swept.converged,
            "over tolerance": true / tol,
            "said": swept.left / tol,
            "shares off": float(np.abs(swept.weights / swept.weights.sum() - shares).max()),
            "shares said": swept.shares_left,
            "a fifth of their error": shares_tol,
            "plain sweeps more": plain,
            "words": "",
        }
    for n, p, k, d, alpha0, seed in SURPLUS[:1] if quick else SURPLUS:
        table = simulate_gdlm(n, p, k, n_levels=d, alpha=alpha0 / k, random_state=seed).encoded
        for more in (1, 2):
            _, swept, tol, shares_tol = swept_of(table, k + more, alpha0)
            yield {
                "table": f"{n} x {p}, k = {k}, {more} too many",
                "sweeps": len(swept.changes),
                "settled": swept.converged,
                "over tolerance": np.nan,
                "said": swept.left / tol,
                "shares off": np.nan,
                "shares said": swept.shares_left,
                "a fifth of their error": shares_tol,
                "plain sweeps more": 0,
                "words": swept.reason,
            }
