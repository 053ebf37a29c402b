"""Slow form of :mod:`mixmem.kernels.layout`."""

from __future__ import annotations


def turn(columns, rows):
    """Fill rows with the transpose of columns."""
    rows[:] = columns.T


def turn_bytes(columns, rows):
    """Fill rows with the transpose of columns."""
    turn(columns, rows)
