"""Partitions that start at random, as in the paper, beside those that start at the anchors' solution.

1,000 rows and variables of 4 levels, alpha0 = 0.1 k, 100 partitions, one thread, CPU seconds. "other order": blocks
whose components came out in another order than the anchors'; "condition met": theorem 6's, at the order found; "right":
the order is that in which the partition's own variables are nearest to the truth. Means of three tables.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from mixmem import GDLM, align_components, first_moments, make_plan, rmse, simulate_gdlm
from mixmem.moments.sums import mode_rows
from mixmem.seeds import seed_sequence

SIZE, PARTITIONS, TABLES = 1000, 100, 3


def share_right(table, theta: np.ndarray, k: int, seed: int) -> float:
    """Share of partitions whose variables are nearest to the truth in the order of the anchors."""
    first = first_moments(table.encoded)
    rng = np.random.default_rng(seed_sequence(seed))
    plan = make_plan(table.encoded, k, n_partitions=PARTITIONS, rng=rng, first=first)
    anchors = mode_rows(plan.coding, np.concatenate(plan.anchors))
    order = align_components(table.theta[anchors], theta[anchors])
    right = 0
    for part in plan.partitions:
        rows = mode_rows(plan.coding, np.concatenate(part))
        right += bool((align_components(table.theta[rows], theta[rows]) == order).all())
    return right / len(plan.partitions)


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row per k and start."""
    warm = simulate_gdlm(100, 60, 3, random_state=0).encoded
    GDLM(3, alpha0=0.3, n_partitions=5, sweeps=0, refine=None, random_state=0, n_jobs=1).fit(warm)
    for k in (4, 8, 12):
        for start in ("random", "anchors"):
            found = []
            for seed in range(1 if quick else TABLES):
                drawn = int(np.random.SeedSequence([0, k, seed]).generate_state(1)[0])
                table = simulate_gdlm(SIZE, SIZE, k, alpha=0.1, random_state=drawn)
                began = time.process_time()
                model = GDLM(
                    k, alpha0=0.1 * k, n_partitions=PARTITIONS, sweeps=0, refine=None, block_start=start,
                    random_state=seed, n_jobs=1,
                ).fit(table.encoded)  # fmt: skip
                seconds = time.process_time() - began
                theta, matching = model.theta_.iloc[:, 3:].to_numpy(), model.report_.start.matching
                found.append((
                    matching.permuted / matching.blocks, matching.guaranteed / matching.blocks,
                    matching.assigned / matching.blocks, share_right(table, theta, k, seed),
                    rmse(table.theta, theta), seconds,
                ))  # fmt: skip
            names = ("other order", "condition met", "assigned", "right", "rmse", "cpu s")
            yield {"k": k, "start": start} | dict(zip(names, np.mean(found, axis=0).tolist(), strict=True))
