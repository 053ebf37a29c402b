"""How well tilted levels fit the cells that components hold: variables whose levels have an order."""

from __future__ import annotations

import math

import numpy as np

from mixmem.kernels._numba import kernel


@kernel
def ordered_fit(counts, a, b, scores, starts, strength, waiting, out):
    """Set out to log p(counts | shapes), theta integrated out, of the variables and components that are waiting.

    counts (rows, k); shapes are strength times what a (rows, 1), b (degrees, variables, k) and scores (degrees, rows)
    say levels are like, on the simplex of each variable, whose rows begin at starts (variables,); waiting and out
    (variables, k). What the strength alone decides is left out.
    """
    n_rows, k = counts.shape
    n_variables = starts.shape[0]
    likely = np.empty(n_rows)
    for v in range(n_variables):
        begin, end = starts[v], starts[v + 1] if v + 1 < n_variables else n_rows
        for h in range(k):
            if not waiting[v, h]:
                continue
            top = -np.inf
            for r in range(begin, end):
                tilt = scores[0, r] * b[0, v, h]
                for d in range(1, b.shape[0]):
                    tilt += scores[d, r] * b[d, v, h]
                likely[r] = a[r, 0] + tilt
                top = max(top, likely[r])
            total = 0.0
            for r in range(begin, end):
                likely[r] = max(math.exp(likely[r] - top), 1e-30)
                total += likely[r]
            fit = 0.0
            for r in range(begin, end):
                shape = strength * (likely[r] / total)
                fit += math.lgamma(counts[r, h] + shape) - math.lgamma(shape)
            out[v, h] = fit
