"""Slow form of :mod:`mixmem.kernels.grams`."""

from __future__ import annotations


def gram_sums(theta, starts, sizes):
    """Return sum_j P_j and sum_j P_j * P_j with P_j = theta_j' theta_j, over the variables given."""
    parts = [theta[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    grams = [part.T @ part for part in parts]
    return sum(grams), sum(gram * gram for gram in grams)
