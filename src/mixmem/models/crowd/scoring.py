"""How good labels are where the truth is known: errors, and whether probabilities mean what they say."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

BINS = 10


def error_rate(posterior: ArrayLike, known: ArrayLike) -> float:
    """Share of tasks of known class whose most probable class is another one; posterior (n, K), known (n,) or -1.

    >>> error_rate([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]], [0, 0, -1])
    0.5
    """
    sure, found = _scored(posterior, known)
    return float((found.argmax(axis=1) != sure).mean())


def calibration_error(posterior: ArrayLike, known: ArrayLike) -> float:
    """Expected calibration error: how far the probability of the label is from how often it is right.

    Tasks are put into ten bins by the probability of their label; the mean absolute difference, weighted by tasks.

    >>> round(calibration_error([[0.95, 0.05], [0.95, 0.05]], [0, 1]), 6)
    0.45
    """
    sure, found = _scored(posterior, known)
    stated, right = found.max(axis=1), (found.argmax(axis=1) == sure).astype(float)
    place = np.minimum((stated * BINS).astype(int), BINS - 1)
    gaps = np.bincount(place, weights=stated - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(sure))


def _scored(posterior: ArrayLike, known: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    truth, found = np.asarray(known), np.asarray(posterior, dtype=float)
    return truth[truth >= 0], found[truth >= 0]
