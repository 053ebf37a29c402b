"""Whether a fit tells noise from components: tables of independent columns, and tables that the model draws.

100 tables each. Noise: categories of several shapes, rare levels, numbers, mixed kinds, cells missing at random and in
blocks. Components: 200 to 3,000 rows of 8 to 40 variables, k = 2 to 6, alpha_h = 0.1 to 1, up to 20 % noise; taken if
the truth beats one component on new rows by three standard errors of 100,000 of them. "gain" is the truth's mean
log-likelihood of a new row above that of one component.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mixmem import Encoded, Simulation, encode, row_likelihood, simulate_gdlm
from mixmem.engine.local import threads
from mixmem.moments.sums import first_moments
from mixmem.selection.structure import Structure, structure_of
from mixmem.typing import Array

NEW_ROWS, ALL_ROWS = 4_000, 100_000


def noise(seed: int) -> tuple[str, Encoded]:
    """Independent columns of one of eight makes."""
    rng = np.random.default_rng([seed, 3])
    n, p = int(rng.choice([200, 500, 1000, 3000])), int(rng.choice([6, 12, 25, 60]))
    make = ("uniform", "binary", "rare levels", "holes", "blocks of holes", "numbers", "heavy tails", "mixed")[seed % 8]
    if make == "uniform":
        return make, encode(rng.integers(0, int(rng.integers(3, 7)), (n, p)))
    if make == "binary":
        return make, encode((rng.random((n, p)) < rng.uniform(0.1, 0.9, p)).astype(int))
    if make == "rare levels":
        shares = 0.01 + 0.94 * rng.dirichlet(np.full(6, 0.3), size=p)
        return make, encode(np.column_stack([rng.choice(6, n, p=share) for share in shares]))
    if make in ("holes", "blocks of holes"):
        lost = rng.random((n, p)) < 0.25 if make == "holes" else np.repeat(rng.random((n, p // 3)) < 0.25, 3, axis=1)
        lost = np.pad(lost, ((0, 0), (0, p - lost.shape[1])))
        return make, encode(pd.DataFrame(rng.integers(0, 4, (n, p))).astype("category").mask(lost))
    if make == "numbers":
        return make, encode(pd.DataFrame(rng.standard_normal((n, p))))
    if make == "heavy tails":
        return make, encode(pd.DataFrame(rng.standard_t(2.0, (n, p))))
    columns = {f"c{j}": rng.integers(0, 3, n).astype(str) for j in range(p)}
    columns |= {f"n{j}": rng.poisson(3.0, n) for j in range(3)} | {f"x{j}": rng.exponential(size=n) for j in range(3)}
    return make, encode(pd.DataFrame(columns))


@dataclass(frozen=True)
class Drawn:
    """A table of ``n_rows`` that the model draws, with further rows, the share of noise, and the gain of the truth."""

    make: str
    whole: Simulation
    n_rows: int
    noise: float
    gain: float

    @property
    def table(self) -> Encoded:
        """The table that is looked at."""
        return self.whole.encoded.take(np.arange(self.n_rows))


def cells_of(whole: Simulation, share: float) -> tuple[Array, Array]:
    """What cells show, a share of noise included: theta with all components (rows, k), and with one (rows, 1)."""
    noisy = (1.0 - share) * whole.theta + share / whole.schema.sizes[0]
    return noisy, (noisy @ whole.alpha / whole.alpha.sum())[:, None]


def gains_of(table: Encoded, whole: Simulation, share: float) -> Array:
    """How much likelier the truth makes each row than one component does (n,)."""
    noisy, alone = cells_of(whole, share)
    return row_likelihood(table, noisy, whole.alpha) - row_likelihood(table, alone, np.ones(1))


def drawn(seed: int) -> Drawn | None:
    """Return a table that the model draws, with the gain of the truth; None if that does not beat one component."""
    rng = np.random.default_rng([seed, 4])
    n, p = int(rng.choice([200, 500, 1000, 3000])), int(rng.choice([8, 12, 20, 40]))
    k, d = int(rng.integers(2, 7)), int(rng.integers(2, 5))
    strength, share = float(rng.choice([0.1, 0.3, 1.0])), float(rng.choice([0.0, 0.2]))
    whole = simulate_gdlm(n + NEW_ROWS, p, k, n_levels=d, alpha=strength, noise=share, random_state=seed)
    gains = gains_of(whole.encoded.take(np.arange(n, n + NEW_ROWS)), whole, share)
    if gains.mean() < 3.0 * gains.std() / np.sqrt(ALL_ROWS):
        return None
    make = f"{n} x {p}, k = {k}, d = {d}, alpha {strength}, noise {share}"
    return Drawn(make, whole, n, share, float(gains.mean()))


def all_drawn(tables: int) -> Iterator[tuple[int, Drawn, Structure]]:
    """The first tables that are drawn, with their seed and what is found in them."""
    found, seed = 0, 0
    while found < tables:
        if (one := drawn(seed)) is not None:
            found += 1
            yield seed, one, structure_of(one.table, first_moments(one.table))
        seed += 1


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row for noise, one for components, and one per table of components that is called noise."""
    tables = 16 if quick else 100
    with threads(None):
        made = [noise(seed) for seed in range(tables)]
        warned = [(make, not structure_of(table, first_moments(table)).found) for make, table in made]
        missed = ", ".join(make for make, told in warned if not told)
        yield {"tables": f"{tables} of noise", "called noise": sum(told for _, told in warned), "what": missed}
        told = [
            f"{one.make} (gain {one.gain:.4f}, p {look.p_value:.2f})"
            for _, one, look in all_drawn(tables)
            if not look.found
        ]
        yield {"tables": f"{tables} of components", "called noise": len(told), "what": "; ".join(told)}
