"""The memory of a block's third moments, known before anything is counted."""

from __future__ import annotations

import math

from mixmem.data.coding import Coding
from mixmem.engine.rows import n_stretches
from mixmem.moments.solvers import SOLVERS
from mixmem.typing import Modes

BLOCK_BYTES = 1_000_000_000
"""Memory within which anchors are chosen unless a limit is given; fixed, so that no result depends on a machine."""
COPIES = 5
"""Arrays of a block's size beside its sums: raw moments, corrected ones, scaled ones, and what is in passing."""


def block_shape(coding: Coding, modes: Modes) -> tuple[int, int, int]:
    """Return the shape of a block's sums: the soft levels of its modes, and "missing" where cells may be."""
    levels = coding.soft.sizes + (coding.soft.absent >= 0)
    u, v, w = (int(levels[mode].sum()) for mode in modes)
    return u, v, w


def kept_sums(coding: Coding, n_rows: int) -> int:
    """Return how many arrays of a block's size its sums are: the nodes of the tree over stretches, and its root."""
    nodes = max(1, n_stretches(n_rows, coding.n_variables)).bit_count()
    return nodes + (nodes > 1)


def block_bytes(coding: Coding, modes: Modes, n_rows: int, k: int, solver: str = "pqp", runs: int = 1) -> int:
    """Return the bytes that counting and factorizing a block of so many rows take at most, in so many runs at once.

    >>> import numpy as np
    >>> from mixmem import simulate_gdlm
    >>> modes = (np.array([0]), np.array([1]), np.array([2]))
    >>> block_bytes(simulate_gdlm(10, 3, 2, n_levels=100, random_state=0).coding, modes, 10, 2) // 10**6
    48
    """
    shape = block_shape(coding, modes)
    one = 8 * math.prod(shape)
    counting = 1 + max(1, n_stretches(n_rows, coding.n_variables)).bit_length()
    working = (runs if SOLVERS[solver].parallel else 1) * SOLVERS[solver].memory(shape, k)
    return max(counting * one, (kept_sums(coding, n_rows) + COPIES) * one + working)
