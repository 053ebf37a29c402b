"""The paper's 48 cells after refinement: alpha0 given, alpha0 unknown, and the sampler started at the truth.

RMSE of theta against the clean truth, mean over the tables of a cell, beside the best of the six published methods. The
limit is the same sampler, contamination and all, started at the truth with alpha0 known. Half an hour on two cores.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from mixmem import GDLM, Simulation, rmse
from mixmem.engine.local import threads
from mixmem.experiments.cells import CELLS, QUICK, Cell, draw, published
from mixmem.likelihood.contamination import noisy_theta
from mixmem.progress import Progress
from mixmem.refinement.gibbs import Unknowns, sample_posterior

TABLES = 5


def best_published(cell: Cell) -> float:
    """The least error of any method in the paper's figure."""
    return min(value for (at, _), value in published().items() if at == cell)


def limit(table: Simulation, seed: int) -> float:
    """Error of the posterior mean from chains started at the truth."""
    start = noisy_theta(table.theta, table.noise, table.schema)
    with threads(None):
        found = sample_posterior(
            table.encoded, start, table.alpha, Unknowns(alpha0=False, contamination=True),
            seed=np.random.SeedSequence(seed), progress=Progress(),
        )  # fmt: skip
    return rmse(table.theta, found.theta)


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row a cell."""
    for cell in QUICK if quick else CELLS:
        errors, deltas, seconds = [], [], []
        for attempt in range(2 if quick else TABLES):
            table, seed = draw(cell, attempt, 0)
            began = time.perf_counter()
            given = GDLM(cell.k, alpha0=float(table.alpha.sum()), refine="gibbs", random_state=seed).fit(table.encoded)
            seconds.append(time.perf_counter() - began)
            auto = GDLM(cell.k, refine="gibbs", random_state=seed).fit(table.encoded)
            thetas = [model.theta_.iloc[:, 3:].to_numpy() for model in (given, auto)]
            errors.append([*[rmse(table.theta, theta) for theta in thetas], limit(table, seed)])
            deltas.append(given.contamination_)
        refined, auto_error, least = np.mean(errors, axis=0)
        best = best_published(cell)
        yield {
            "n": cell.n,
            "delta": cell.delta,
            "k": cell.k,
            "published": best,
            "refined": refined,
            "to published": refined / best,
            "limit": least,
            "to limit": refined / least,
            "alpha0 auto": auto_error,
            "to given": auto_error / refined,
            "delta found": float(np.mean(deltas)),
            "s": float(np.mean(seconds)),
        }
