"""What any test could see of the tables of `structure` that are called noise: two tests that know more than any can.

"truth": the chance, among independent columns with the true shares of levels, of so large a likelihood ratio of the
true theta. No test knows theta. "Bayes": the rank of the table's Bayes factor (k, alpha, noise and the law that theta
was drawn from known; by thermodynamic integration over alpha0) among those of its own columns shuffled; on average over
such tables no test finds more. Rank 1 of 50 is a chance of 2 % or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.structure import Drawn, all_drawn, cells_of, gains_of
from mixmem.engine.local import threads
from mixmem.kernels._numba import kernel
from mixmem.typing import Array

SHUFFLES, TABLES, NULL_ROWS = 49, 4_000, 100_000
"""Shuffled tables; tables of independent columns, and the rows that they are drawn from."""
FLAT, POINTS, WARM_UP, SWEEPS = 30.0, 12, 50, 250
"""alpha_h at which rows are as good as alike, alphas between it and the true one, sweeps at each."""
ETA = 0.5
"""Theta's Dirichlet, as tables are drawn."""


@kernel
def _slope(codes, d, k, alpha, share, theta, x, gains, total_gains, rng):  # type: ignore[no-untyped-def]
    """Return the mean derivative by log alpha_h of the log-density of components drawn for cells, over sweeps.

    codes (n, p) of d levels, theta (p, d, k) and memberships x (n, k), both drawn anew by every sweep; gains (p + 1,)
    are digamma(alpha + m) - digamma(alpha), total_gains those of k alpha.
    """
    n, p = codes.shape
    total = 0.0
    for sweep in range(WARM_UP + SWEEPS):
        counts = np.full((p, d, k), ETA)
        for i in range(n):
            own = np.zeros(k, np.int64)
            for j in range(p):
                y = codes[i, j]
                mass = x[i] @ theta[j, y]
                left = rng.random() * ((1.0 - share) * mass + share / d)
                if left < (1.0 - share) * mass:
                    left /= 1.0 - share
                    h = 0
                    while h < k - 1 and left >= x[i, h] * theta[j, y, h]:
                        left -= x[i, h] * theta[j, y, h]
                        h += 1
                    own[h] += 1
                    counts[j, y, h] += 1.0
            for h in range(k):
                x[i, h] = rng.gamma(alpha + own[h], 1.0) + 1e-300
            x[i] /= x[i].sum()
            if sweep >= WARM_UP:
                total += gains[own].sum() - k * total_gains[own.sum()]
        for j in range(p):
            for h in range(k):
                for y in range(d):
                    theta[j, y, h] = rng.gamma(counts[j, y, h], 1.0) + 1e-300
                theta[j, :, h] /= theta[j, :, h].sum()
    return alpha * total / SWEEPS


def log_bayes_factor(codes: Array, one: Drawn, seed: int) -> float:
    """Return the logarithm of the Bayes factor of the components that were drawn against independent columns."""
    from scipy.special import digamma

    rng = np.random.default_rng(seed)
    (n, p), k, d = codes.shape, len(one.whole.alpha), int(one.whole.schema.sizes[0])
    theta = np.ascontiguousarray(rng.dirichlet(np.full(d, ETA), (p, k)).transpose(0, 2, 1))
    x = rng.dirichlet(np.full(k, FLAT), n)
    path = np.geomspace(FLAT, one.whole.alpha[0], POINTS)
    slopes = []
    for alpha in path:
        gains, total_gains = (digamma(a + np.arange(p + 1)) - digamma(a) for a in (alpha, k * alpha))
        slopes.append(_slope(codes, d, k, alpha, one.noise, theta, x, gains, total_gains, rng))
    return float(np.trapezoid(slopes, np.log(path)))


def chance_of_the_truth(one: Drawn, rng: np.random.Generator) -> float:
    """Return how often independent columns reach the table's likelihood ratio of the true theta."""
    table, d = one.table, int(one.whole.schema.sizes[0])
    shares = cells_of(one.whole, one.noise)[1].reshape(-1, d)
    columns = [rng.choice(d, NULL_ROWS, p=share / share.sum()) for share in shares]
    independent = replace(table, codes=np.column_stack(columns).astype(table.codes.dtype), row_ids=None)
    own, by_chance = (gains_of(each, one.whole, one.noise) for each in (table, independent))
    sums = by_chance[rng.integers(0, NULL_ROWS, (TABLES, len(own)))].sum(axis=1)
    return float((1 + (sums >= own.sum()).sum()) / (1 + TABLES))


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row per table that the model draws and that is called noise."""
    with threads(None):
        for seed, one, look in all_drawn(30 if quick else 100):
            if look.found:
                continue
            rng, codes = np.random.default_rng(seed), np.ascontiguousarray(one.table.codes.astype(np.int64))
            own = log_bayes_factor(codes, one, 1)
            shuffled = (np.column_stack([rng.permutation(column) for column in codes.T]) for _ in range(SHUFFLES))
            others = [log_bayes_factor(each, one, 2 + at) for at, each in enumerate(shuffled)]
            yield {
                "table": one.make,
                "gain": one.gain,
                "p": look.p_value,
                "truth": chance_of_the_truth(one, rng),
                "Bayes": f"{1 + sum(other >= own for other in others)} of {1 + SHUFFLES}",
            }
