"""Slow forms of :mod:`mixmem.kernels.special`: SciPy's own functions."""

from __future__ import annotations

import numpy as np


def log_gamma(x):
    """Return log Gamma(x) of positive numbers, in the shape of x."""
    from scipy.special import gammaln

    return gammaln(np.asarray(x, dtype=np.float64))
