"""Categories: one row of theta per level, its probability in every component."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixmem.data.kinds.base import Column, LevelKind
from mixmem.data.level_text import VALUE_TYPES
from mixmem.typing import Array, Positions
from mixmem.words import one_line, short


def drawn_levels(theta: Array, memberships: Array, rng: np.random.Generator) -> Positions:
    """Draw a level (n,) for every row from theta (levels, k) mixed by memberships (n, k)."""
    edges = np.cumsum(memberships @ theta.T, axis=1)[:, :-1]
    return np.asarray(np.sum(rng.random((len(memberships), 1)) > edges, axis=1))


class Categorical(LevelKind):
    """Categories. A level is known by its canonical text."""

    words = "categories"
    nouns = ("category", "categories")
    cells = "levels"
    plain = True
    contaminable = True

    def n_codes(self, column: Column) -> int:
        return len(column.levels)

    def held(self, column: Column) -> list[Any]:
        convert = VALUE_TYPES[column.value_type]
        return [convert(level) for level in column.levels]

    def draws(self, column: Column) -> Positions:
        return np.arange(len(column.levels))[:, None]

    def soften(self, column: Column) -> tuple[Positions, Array]:
        return self.draws(column), np.ones((len(column.levels), 1))

    def most_likely(self, column: Column, theta: Array, memberships: Array) -> list[Any]:
        return list(np.array(self.held(column), dtype=object)[(memberships @ theta.T).argmax(axis=1)])

    def sample(self, column: Column, theta: Array, memberships: Array, rng: np.random.Generator) -> Array | Positions:
        return drawn_levels(theta, memberships, rng)

    def describe(self, column: Column, counts: Array) -> str:
        texts = [one_line(level) for level in column.levels]
        top = int(counts.argmax())
        frequent = f"{short(texts[top], 24)} ({counts[top] / max(counts.sum(), 1.0):.0%})"
        return f"{len(texts)} levels, most often {frequent}: {short(', '.join(texts[:12]), 36)}"
