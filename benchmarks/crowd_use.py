"""What buyers do with crowd labels: gold that must not harm, further labels bought by advice or at random."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.crowd_sets import CrowdSet, public_sets
from mixmem.crowd import DawidSkene, error_rate
from mixmem.models.crowd.fits import Settings, fit_labels

GOLD = (0.05, 0.1, 0.2)
SEEDS, QUICK_SEEDS = 5, 2
BUDGET_SETS = ("Birds", "RTE", "Dogs", "Web", "sentiment1k", "face", "weather_amt")
"""Sets with enough labels per task that half of them can be hidden and bought again."""
STEPS = 5
"""Times that the hidden labels are bought, a twentieth of all labels each time."""


def run(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Rows of gold: error on the other tasks with gold less that without; rows of a budget: errors after buying."""
    seeds = QUICK_SEEDS if quick else SEEDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in public_sets():
            for share in GOLD:
                found = [_gold(each, share, seed) for seed in range(seeds)]
                yield _row(each.name, f"gold {share:.0%}", np.mean(found), max(found))
        for each in public_sets():
            if each.name in BUDGET_SETS:
                runs = [[_bought(each, by_advice, seed) for by_advice in (True, False)] for seed in range(seeds)]
                yield _row(each.name, "advice, random", *np.mean(runs, axis=0))


def _row(data: str, what: str, first: float, second: float) -> dict[str, Any]:
    return {"data": data, "what": what, "mean_or_advice": float(first), "most_or_random": float(second)}


def _gold(each: CrowdSet, share: float, seed: int) -> float:
    """Error in percent on the tasks without gold, with gold less without it."""
    rng = np.random.default_rng(seed)
    have = np.flatnonzero((each.known >= 0) & (each.known < each.labels.n_classes))
    drawn = rng.choice(have, max(1, int(share * len(have))), replace=False)
    gold, rest = np.full(each.labels.n_tasks, -1, dtype=np.int32), each.known.copy()
    gold[drawn], rest[drawn] = each.known[drawn], -1
    fits = [fit_labels(each.labels, known, Settings(), rng).posterior for known in (gold, np.full_like(gold, -1))]
    return 100.0 * (error_rate(fits[0], rest) - error_rate(fits[1], rest))


def _bought(each: CrowdSet, by_advice: bool, seed: int) -> float:
    """Error in percent after half of the labels are hidden and a quarter of all is bought back."""
    rng = np.random.default_rng(seed)
    shown = rng.random(each.labels.n_labels) < 0.5
    step = each.labels.n_labels // 20
    model = DawidSkene()
    for _ in range(STEPS):
        labels = each.labels.take(shown)
        hidden = np.flatnonzero(~shown)
        if not by_advice:
            shown[rng.choice(hidden, min(step, len(hidden)), replace=False)] = True
            continue
        wanted = model.fit(labels).advise(step * 4)  # more than is bought: some tasks have nothing left to sell
        place = {task: i for i, task in enumerate(each.labels.tasks.tolist())}
        number = np.zeros(each.labels.n_tasks, dtype=int)
        order = [place[task] for task in wanted.index.tolist()]
        number[order] = wanted["labels"].to_numpy()
        rank = np.full(each.labels.n_tasks, len(order))
        rank[order] = np.arange(len(order))
        hidden = rng.permutation(hidden)
        tasks = each.labels.task_of[hidden]
        turn = np.zeros(len(hidden), dtype=int)
        seen: dict[int, int] = {}
        for c, task in enumerate(tasks.tolist()):
            turn[c] = seen.get(task, 0)
            seen[task] = turn[c] + 1
        priority = np.where(turn < number[tasks], rank[tasks], len(order) + turn)
        shown[hidden[np.argsort(priority, kind="stable")[:step]]] = True
    posterior = model.fit(each.labels.take(shown)).probas_.to_numpy()
    return 100.0 * error_rate(posterior, each.known)
