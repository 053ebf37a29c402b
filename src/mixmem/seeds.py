"""One seed at the door; everything random is spawned from it."""

from __future__ import annotations

import numpy as np


def seed_sequence(random_state: int | np.random.Generator | np.random.RandomState | None) -> np.random.SeedSequence:
    """One seed at the door; everything random is spawned from it."""
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63)))
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31 - 1)))
    return np.random.SeedSequence(random_state)
