"""Genotypes: one row of theta per allele, its frequency in every component."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixmem.data.kinds.base import Column, Described, LevelKind
from mixmem.data.kinds.categorical import drawn_levels
from mixmem.errors import InputError
from mixmem.typing import Array, Positions
from mixmem.words import one_line, short


class Dosage(LevelKind):
    """Genotypes of ``ploidy`` copies, each drawn on its own.

    Code g of two alleles is the number of copies of the second; the code of a pair a <= b of more alleles is
    b (b + 1) / 2 + a.
    """

    words = "numbers of copies (0, 1, 2 in a diploid)"
    nouns = ("genotype", "genotypes")
    cells = "copies"
    level_word = "alleles"
    whole = True

    def check(self, column: Described) -> None:
        super().check(column)
        if len(column.levels) != 2 and column.ploidy != 2:
            raise InputError(
                f"variable {column.name!r} has {len(column.levels)} alleles in {column.ploidy} copies; expected two "
                "alleles, or two copies"
            )

    def n_codes(self, column: Column) -> int:
        d = len(column.levels)
        return column.ploidy + 1 if d == 2 else d * (d + 1) // 2

    def n_draws(self, column: Column) -> int:
        return column.ploidy

    def draws(self, column: Column) -> Positions:
        """Return the allele of every copy by code: (codes, ploidy).

        >>> from mixmem.data.coding import ColumnCoding
        >>> from mixmem.data.schema import Variable
        >>> Dosage().draws(ColumnCoding(Variable("snp", ("A", "G"), kind="dosage"))).tolist()
        [[0, 0], [0, 1], [1, 1]]
        """
        if len(column.levels) == 2:
            held = np.arange(column.ploidy + 1)[:, None]
            return np.asarray(np.arange(column.ploidy)[::-1] < held, dtype=np.int64)
        pairs = [(a, b) for b in range(len(column.levels)) for a in range(b + 1)]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def soften(self, column: Column) -> tuple[Positions, Array]:
        copies = self.draws(column)
        return copies, np.full(copies.shape, 1.0 / column.ploidy)

    def held(self, column: Column) -> list[Any]:
        """Return the number of copies of the second of two alleles, or both of more: "A/G"."""
        copies = self.draws(column)
        if len(column.levels) == 2:
            return list(copies.sum(axis=1).tolist())
        return ["/".join(column.levels[a] for a in alleles) for alleles in copies]

    def diploid_locus(self, column: Described) -> bool:
        return len(column.levels) == 2 and column.ploidy == 2

    def most_likely(self, column: Column, theta: Array, memberships: Array) -> list[Any]:
        copies = self.draws(column)
        chances = np.prod((memberships @ theta.T)[:, copies], axis=2) * [_orders(alleles) for alleles in copies]
        return list(np.array(self.held(column), dtype=object)[chances.argmax(axis=1)])

    def sample(self, column: Column, theta: Array, memberships: Array, rng: np.random.Generator) -> Array | Positions:
        drawn = np.stack([drawn_levels(theta, memberships, rng) for _ in range(column.ploidy)], axis=1)
        of_code = {tuple(alleles): code for code, alleles in enumerate(self.draws(column).tolist())}
        return np.array([of_code[tuple(sorted(row))] for row in drawn.tolist()])

    def describe(self, column: Column, counts: Array) -> str:
        copies = self.draws(column)
        held = np.bincount(copies.ravel(), np.repeat(counts, copies.shape[1]), minlength=len(column.levels))
        shares = held / (max(counts.sum(), 1.0) * copies.shape[1])
        order = range(len(shares)) if len(shares) == 2 else np.argsort(-shares, kind="stable").tolist()
        return short(", ".join(f"{one_line(column.levels[a])} {shares[a]:.2f}" for a in order), 56)


def _orders(alleles: Positions) -> float:
    """Return in how many orders the copies can hold these alleles."""
    return math.factorial(len(alleles)) / math.prod(math.factorial(count) for count in np.bincount(alleles))
