"""Whether choose_k finds the true k, one component in noise, and a k that comes back where no small k fits.

"true": n = 2000, p = 50, d = 4, alpha_h = 0.2, alpha0 unknown. "noise": independent columns of several shapes. "local":
20 variables of 4 levels, k = 3 or 4, n = 1,000 to 10,000, in which up to eight pairs of variables copy each other in 20
to 40 % of the rows. Shown are tables in which the recommendation is the k that was drawn (1 for noise), and in which
the weakest component of what is recommended agrees by 0.9 or more over halves of the rows that were not used to choose.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from mixmem import Encoded, choose_k, encode, first_moments, simulate_gdlm
from mixmem.progress import Progress
from mixmem.selection.compare_k import compare

TRUE_K = (3, 5, 8)
NOISE = ((1000, 12, 3), (500, 20, 4), (2000, 8, 2), (300, 30, 3))
AGREES = 0.9


def noise(seed: int) -> tuple[Encoded, int]:
    """Independent uniform columns."""
    n, p, d = NOISE[seed % len(NOISE)]
    return encode(np.random.default_rng([seed, 1]).integers(0, d, (n, p))), 1


def local(seed: int) -> tuple[Encoded, int]:
    """Components, and pairs of variables that hang together beside them."""
    rng = np.random.default_rng([seed, 2])
    n, k = (1_000, 3_000, 10_000)[seed % 3], 3 + seed % 2
    codes = simulate_gdlm(n, 20, k, alpha=0.3, random_state=seed + 500).codes.copy()
    for pair in range(int(rng.integers(3, 9))):
        copied = rng.random(n) < rng.uniform(0.2, 0.4)
        codes[copied, 2 * pair + 1] = codes[copied, 2 * pair]
    return encode(codes), k


def true(k: int, seed: int) -> tuple[Encoded, int]:
    """Tables that the model draws."""
    return simulate_gdlm(2000, 50, k, alpha=0.2, random_state=seed).encoded, k


def on_other_halves(table: Encoded, k: int, alpha0: float, seed: int) -> float:
    """Return how far the weakest of k components agrees over halves that were not used to choose."""
    part = table.take(np.random.default_rng([seed, 3]).permutation(table.n_rows)[:5_000])
    found = compare(
        part, first_moments(part), [1, k], alpha0, free_alpha0=False, memory_limit=None, n_splits=2,
        progress=Progress(), splits=1_000 + seed,
    )  # fmt: skip
    return float(found.stability[-1, 1])


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row per kind of table."""
    tables = 3 if quick else 20
    choose_k(simulate_gdlm(100, 9, 3, random_state=0).encoded, (2, 3), random_state=0)  # compile or load
    kinds = {f"true, k = {k}": partial(true, k) for k in TRUE_K} | {"noise": noise, "local": local}
    for name, draw in kinds.items():
        right = spectrum = again = 0
        seconds, weakest = [], []
        for seed in range(tables):
            table, k = draw(seed)
            began = time.perf_counter()
            choice = choose_k(table, random_state=seed)
            seconds.append(time.perf_counter() - began)
            right += choice.k == k
            spectrum += choice.spectrum_k == k
            if choice.k > 1:
                weakest.append(on_other_halves(table, choice.k, choice.alpha0, seed))
            again += choice.k == 1 or weakest[-1] >= AGREES
        yield {
            "tables": f"{tables} {name}",
            "as drawn": right,
            "spectrum": spectrum,
            "comes back": again,
            "weakest": min(weakest, default=1.0),
            "seconds": float(np.median(seconds)),
            "longest": max(seconds),
        }
