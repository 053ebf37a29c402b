"""The design of the paper's simulation (section 6.1): its cells, their tables, and the published errors."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from mixmem.engine.local import threads
from mixmem.moments.third_moments import third_moments
from mixmem.results.simulate import Simulation, simulate_gdlm

VARIABLES, LEVELS, ALPHA = 25, 4, 0.1


@dataclass(frozen=True, order=True)
class Cell:
    """One point of the design: n rows, a share delta of the cells replaced by uniform draws, k components."""

    n: int
    delta: float
    k: int

    @property
    def cost(self) -> float:
        """Roughly the seconds of all cheap methods on a table, as measured: for the order and the estimate only."""
        return 1.0 + self.n / 2500 + 7.0 * (self.k / 20) ** 2


CELLS = tuple(
    Cell(n, delta, k) for n in (100, 500, 1000, 5000) for delta in (0.0, 0.05, 0.1) for k in (3, 5, 10, 20)
)  # fmt: skip
# Rows enough for the methods to differ by more than noise, with and without contamination; k = 20 takes too long.
QUICK = tuple(Cell(n, delta, k) for n in (1000, 5000) for delta in (0.0, 0.1) for k in (3, 5, 10))


def draw(cell: Cell, attempt: int, seed: int, variables: int = VARIABLES) -> tuple[Simulation, int]:
    """The table of a try and the seed for its methods; they depend on the arguments alone, not on what ran before.

    >>> draw(Cell(100, 0.0, 3), 0, seed=0)[0].codes.shape
    (100, 25)
    """
    entropy = np.random.SeedSequence([seed, cell.n, cell.k, round(1000 * cell.delta), attempt])
    for_table, for_methods = entropy.spawn(2)
    table = simulate_gdlm(
        cell.n, variables, cell.k,
        n_levels=LEVELS, alpha=ALPHA, noise=cell.delta, random_state=np.random.default_rng(for_table),
    )  # fmt: skip
    return table, int(for_methods.generate_state(1)[0])


def negative_share(table: Simulation) -> float:
    """Share of negative entries in the corrected third moments of three groups of distinct variables."""
    first, second, third = np.array_split(np.arange(table.schema.n_variables), 3)
    with threads(1):
        block = third_moments(table.encoded, [(first, second, third)])[0]
    return float((block.corrected(float(table.alpha.sum())) < 0.0).mean())


@cache
def published() -> dict[tuple[Cell, str], float]:
    """Errors of the paper's figure by cell and method.

    >>> published()[Cell(5000, 0.0, 20), "ptpqp"]
    0.107308
    """
    return _errors_in("published.csv")


@cache
def of_authors_programs() -> dict[tuple[Cell, str], float]:
    """Errors of the authors' own programs on tables of this design, one table per cell, where they were run.

    >>> of_authors_programs()[Cell(1000, 0.0, 5), "meld"]
    0.2078
    """
    return _errors_in("authors_programs.csv")


def _errors_in(name: str) -> dict[tuple[Cell, str], float]:
    text = files("mixmem.experiments").joinpath(name).read_text(encoding="utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        cell = Cell(int(row.pop("n")), float(row.pop("delta")), int(row.pop("k")))
        found.update({(cell, method): float(value) for method, value in row.items() if value})
    return found
