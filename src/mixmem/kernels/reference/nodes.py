"""Slow form of :mod:`mixmem.kernels.nodes`."""

from __future__ import annotations

import numpy as np


def mix_at_nodes(table, nodes, out):
    """Fill out (rows, m) with table (rows, k) times nodes (k, m)."""
    out[:] = table @ nodes


def node_sums(codes, starts, absent, at_nodes, weights, points, sums, squares, means):
    """Fill sums and squares (n,): logarithms of sums over nodes of weight * product over cells, and of its square; and
    means (n, q) of points (q, m) under what is summed."""
    for i, row in enumerate(codes):
        here = row != absent
        with np.errstate(divide="ignore"):
            logs = np.log(weights) + np.log(at_nodes[(starts + row)[here]]).sum(axis=0)
        sums[i] = np.logaddexp.reduce(logs)
        squares[i] = np.logaddexp.reduce(2.0 * logs)
        means[i] = points @ np.exp(logs - sums[i])
