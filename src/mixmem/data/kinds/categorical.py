"""Categories: one row of theta per level, its probability in every component.

To the moments a level is a soft level of its own. Of a column with more than :data:`MOST_SOFT` levels only the most
frequent ones are; the others are pooled in one. Rare levels say little each, and third moments of thousands of levels
fit no memory. What the moments find of the pool is spread over its levels by how common they are, from where sweeps go
on over all levels: they have no third moments to keep. Refinement works on the levels themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mixmem.data.kinds.base import MOST_SOFT, AsCategories, Column, LevelKind
from mixmem.data.level_text import VALUE_TYPES
from mixmem.typing import Array, Positions
from mixmem.words import one_line, short


def drawn_levels(theta: Array, memberships: Array, rng: np.random.Generator) -> Positions:
    """Draw a level (n,) for every row from theta (levels, k) mixed by memberships (n, k)."""
    edges = np.cumsum(memberships @ theta.T, axis=1)[:, :-1]
    return np.asarray(np.sum(rng.random((len(memberships), 1)) > edges, axis=1))


def pooled(frequencies: Array) -> Positions:
    """Return the soft level (levels,) of every level, given how common levels are: the pool comes last.

    >>> import numpy as np
    >>> pooled(np.arange(1.0, 131.0))[:5]
    array([127, 127, 127,   0,   1])
    """
    own = MOST_SOFT - 1
    where = np.full(len(frequencies), own, dtype=np.int64)
    where[np.sort(np.argsort(-frequencies, kind="stable")[:own])] = np.arange(own)
    return where


def _sums(where: Positions, theta: Array) -> Array:
    """Return the sums of theta's rows (levels, k) by soft level."""
    return np.stack([np.bincount(where, column) for column in theta.T], axis=1)


class Categorical(LevelKind):
    """Categories. A level is known by its canonical text."""

    words = "categories"
    nouns = ("category", "categories")
    cells = "levels"
    plain = True
    pools = True
    contaminable = True

    def n_codes(self, column: Column) -> int:
        return len(column.levels)

    def held(self, column: Column) -> list[Any]:
        convert = VALUE_TYPES[column.value_type]
        return [convert(level) for level in column.levels]

    def draws(self, column: Column) -> Positions:
        return np.arange(len(column.levels))[:, None]

    def n_soft(self, column: Column) -> int:
        return MOST_SOFT if len(column.frequencies) else len(column.levels)

    def soften(self, column: Column) -> tuple[Positions, Array]:
        where = pooled(column.frequencies)[:, None] if len(column.frequencies) else self.draws(column)
        return where, np.ones((len(column.levels), 1))

    def parameters(self, column: Column, soft: Array, counts: Array) -> Array:
        if not len(column.frequencies):
            return soft
        where = pooled(column.frequencies)
        common = np.maximum(column.frequencies, 1e-300)  # a level that no row holds is all but impossible
        return np.asarray(soft[where] * (common / np.bincount(where, common)[where])[:, None])

    def soft_theta(self, column: Column, theta: Array, likely: Array, counts: Array, alpha: Array) -> Array:
        return theta if not len(column.frequencies) else _sums(pooled(column.frequencies), theta)

    def as_categories(self, column: Column, theta: Array, counts: Array) -> AsCategories:
        if not len(column.frequencies):
            return super().as_categories(column, theta, counts)
        where = pooled(column.frequencies)
        names = [column.levels[at] for at in np.flatnonzero(where < MOST_SOFT - 1)]
        rare = f"{len(column.levels) - len(names):,} rare levels"
        return AsCategories(where[:, None], (*names, rare), _sums(where, theta))

    def most_likely(self, column: Column, theta: Array, memberships: Array) -> list[Any]:
        return list(np.array(self.held(column), dtype=object)[(memberships @ theta.T).argmax(axis=1)])

    def sample(self, column: Column, theta: Array, memberships: Array, rng: np.random.Generator) -> Array | Positions:
        return drawn_levels(theta, memberships, rng)

    def describe(self, column: Column, counts: Array) -> str:
        texts = [one_line(level) for level in column.levels]
        top = int(counts.argmax())
        frequent = f"{short(texts[top], 24)} ({counts[top] / max(counts.sum(), 1.0):.0%})"
        return f"{len(texts)} levels, most often {frequent}: {short(', '.join(texts[:12]), 36)}"
