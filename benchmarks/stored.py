"""Bits of eight fits, stored or compared: a change of layout, passes or sums must not change an answer.

``python -m benchmarks.stored FILE.npz`` writes theta and memberships of every fit into a file that is not there yet,
and compares with it if it is: the largest absolute difference of each array, and whether the bits are equal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from mixmem import GDLM, simulate_gdlm, simulate_mixed
from mixmem.crowd import DawidSkene

Arrays = dict[str, np.ndarray]


def _of(model: GDLM, table) -> Arrays:
    return {"theta": model.theta_.iloc[:, 3:].to_numpy(), "alpha": model.alpha_, "memberships": model.transform(table)}


def categories() -> Arrays:
    """Everything estimated, refined by sampling: what a user gets."""
    table = simulate_gdlm(3000, 30, 4, random_state=1).frame
    return _of(GDLM(4, random_state=0).fit(table), table)


def wide() -> Arrays:
    """Moments alone, on rows so long that a stretch holds two row blocks."""
    table = simulate_gdlm(4000, 12_000, 3, random_state=2).codes
    return _of(GDLM(3, alpha0=0.3, refine=None, random_state=0).fit(table), table)


def likelihood() -> Arrays:
    """Maximum likelihood of categories."""
    table = simulate_gdlm(2000, 60, 3, alpha=0.3, random_state=3).frame
    return _of(GDLM(3, alpha0=0.9, refine="em", random_state=0).fit(table), table)


def mixed() -> Arrays:
    """Categories, counts and continuous numbers with missing cells."""
    drawn = simulate_mixed(1500, 3, n_categorical=8, n_count=6, n_continuous=6, missing=0.15, random_state=4).frame
    kinds = {name: "count" for name in drawn if name.startswith("count")}
    return _of(GDLM(3, variables=kinds, random_state=0).fit(drawn), drawn)


def genotypes() -> Arrays:
    """Diploid loci with missing genotypes, by maximum likelihood."""
    rng = np.random.default_rng(5)
    frequencies = rng.dirichlet([0.3, 0.3, 0.3], 300) @ rng.beta(0.5, 0.5, (3, 800))
    copies = rng.binomial(2, frequencies).astype(float)
    copies[rng.random(copies.shape) < 0.03] = np.nan
    table = pd.DataFrame(copies, columns=[f"rs{j}" for j in range(800)])
    table = table.loc[:, table.nunique() > 1]
    return _of(GDLM(3, variables=dict.fromkeys(table.columns, "dosage"), random_state=0).fit(table), table)


def weights() -> Arrays:
    """Rows of fractional weight, numbers among the columns."""
    drawn = simulate_mixed(40_000, 3, n_categorical=6, n_count=3, n_continuous=3, missing=0.05, random_state=6).frame
    kinds = {name: "count" for name in drawn if name.startswith("count")}
    each = np.random.default_rng(0).uniform(0.2, 3.0, len(drawn))
    return _of(GDLM(3, alpha0=0.9, variables=kinds, random_state=0).fit(drawn, sample_weight=each), drawn)


def partitions() -> Arrays:
    """The paper's way: 100 partitions, matched."""
    table = simulate_gdlm(1000, 1000, 4, random_state=7).codes
    return _of(GDLM(4, alpha0=0.4, n_partitions=100, sweeps=0, refine=None, random_state=0).fit(table), table)


def crowd() -> Arrays:
    """Labels of a crowd, by the default model."""
    rng = np.random.default_rng(8)
    truth, skill = rng.integers(0, 3, 600), rng.beta(4, 1.5, 30)
    rows = [
        (f"t{t}", f"w{w}", truth[t] if rng.random() < skill[w] else rng.integers(0, 3))
        for t in range(600)
        for w in rng.choice(30, 4, replace=False)
    ]
    model = DawidSkene().fit(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    return {"probabilities": model.probas_.to_numpy(), "reliability": model.workers_["reliability"].to_numpy()}


FITS: dict[str, Callable[[], Arrays]] = {
    fit.__name__: fit for fit in (categories, wide, likelihood, mixed, genotypes, weights, partitions, crowd)
}


def compared(path: Path) -> Iterator[dict[str, float | str]]:
    """One row per array of every fit; the file is written if it is not there."""
    found = {f"{name}.{part}": values for name, fit in FITS.items() for part, values in fit().items()}
    if not path.exists():
        np.savez(path, **found)
    with np.load(path) as stored:
        for name, values in found.items():
            before = stored[name]
            yield {
                "array": name,
                "largest": float(np.abs(before - values).max()),
                "same bits": str(np.array_equal(before, values)),
            }


if __name__ == "__main__":
    for row in compared(Path(sys.argv[1])):
        print("  ".join(f"{value:>12.3g}" if isinstance(value, float) else f"{value:<28}" for value in row.values()))
