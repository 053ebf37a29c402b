"""Slice sampling of one number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def draw_slice(
    log_density: Callable[[float], float],
    start: float,
    width: float,
    bounds: tuple[float, float],
    rng: np.random.Generator,
) -> float:
    """A draw from a density of one variable that leaves it invariant: slice sampling by stepping out and shrinking."""
    level = log_density(start) - rng.exponential()
    low = start - width * rng.random()
    high = low + width
    while low > bounds[0] and log_density(low) > level:
        low -= width
    while high < bounds[1] and log_density(high) > level:
        high += width
    low, high = max(low, bounds[0]), min(high, bounds[1])
    while True:
        at = low + (high - low) * rng.random()
        if log_density(at) > level or high - low < 1e-12:
            return at
        low, high = (at, high) if at < start else (low, at)
