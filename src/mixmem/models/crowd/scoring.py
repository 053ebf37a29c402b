"""How good labels are where the truth is known: errors, and whether probabilities mean what they say."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

BINS = 10
LEAST = 1e-6
"""A true class is counted as at least this probable: one task must not decide the log-loss."""


def error_rate(posterior: ArrayLike, known: ArrayLike) -> float:
    """Share of tasks of known class whose most probable class is another one; posterior (n, K), known (n,) or -1.

    A task whose most probable classes are m equal ones, the true one among them, counts as 1 - 1/m of an error.

    >>> error_rate([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]], [0, 0, -1])
    0.5
    >>> error_rate([[0.5, 0.5]], [0])
    0.5
    """
    sure, found = _scored(posterior, known)
    return float((1.0 - _right(found, sure)).mean())


def log_loss(posterior: ArrayLike, known: ArrayLike) -> float:
    """Mean of minus the log probability of the true class; one below 1e-6 counts as 1e-6.

    >>> round(log_loss([[0.5, 0.5]], [0]), 3)
    0.693
    """
    sure, found = _scored(posterior, known)
    padded = np.column_stack([found, np.zeros(len(found))])  # a class that no worker ever gave
    return float(-np.log(np.maximum(padded[np.arange(len(sure)), sure], LEAST)).mean())


def expected_error(posterior: ArrayLike) -> float:
    """Share of tasks whose most probable class is expected to be wrong, by the probabilities themselves.

    >>> round(expected_error([[0.9, 0.1], [0.4, 0.6]]), 3)
    0.25
    """
    return float(1.0 - np.asarray(posterior, dtype=float).max(axis=1).mean())


def calibration_error(posterior: ArrayLike, known: ArrayLike) -> float:
    """Expected calibration error: how far the probability of the label is from how often it is right.

    Tasks are put into ten bins by the probability of their label; the mean absolute difference, weighted by tasks.

    >>> round(calibration_error([[0.95, 0.05], [0.95, 0.05]], [0, 1]), 6)
    0.45
    """
    sure, found = _scored(posterior, known)
    stated, right = found.max(axis=1), _right(found, sure)
    place = np.minimum((stated * BINS).astype(int), BINS - 1)
    gaps = np.bincount(place, weights=stated - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(sure))


def _scored(posterior: ArrayLike, known: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    truth, found = np.asarray(known), np.asarray(posterior, dtype=float)
    return truth[truth >= 0], found[truth >= 0]


def _right(found: np.ndarray, sure: np.ndarray) -> np.ndarray:
    """How far the label of every task is right, (n,): ties are shared."""
    leading = found >= found.max(axis=1, keepdims=True) - 1e-12
    hit = np.column_stack([leading, np.zeros(len(found), dtype=bool)])[np.arange(len(sure)), sure]
    return np.asarray(hit / leading.sum(axis=1))
