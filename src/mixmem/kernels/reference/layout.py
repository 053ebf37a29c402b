"""Slow form of :mod:`mixmem.kernels.layout`."""

from __future__ import annotations


def turn(columns, rows):
    """Fill rows with the transpose of columns."""
    rows[:] = columns.T
