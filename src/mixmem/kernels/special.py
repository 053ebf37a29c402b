"""Special functions, elementwise: importing SciPy's takes longer than many a fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixmem.kernels._numba import kernel


@kernel
def _log_gamma(x, out):
    """Set out = log Gamma(x), both (m,)."""
    for i in range(x.shape[0]):
        out[i] = math.lgamma(x[i])


def log_gamma(x: ArrayLike) -> NDArray[Any]:
    """Return log Gamma(x) of positive numbers, in the shape of x.

    >>> log_gamma([1.0, 5.0])
    array([0.        , 3.17805383])
    """
    values = np.asarray(x, dtype=np.float64)
    out = np.empty(values.size)
    _log_gamma(np.ascontiguousarray(values).reshape(-1), out)
    return out.reshape(values.shape)
