"""Errors against a known truth, after matching components."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixmem.errors import InputError


def align_components(truth: ArrayLike, estimate: ArrayLike) -> NDArray[np.int64]:
    """Order of columns with least squared error: ``estimate[:, order]`` goes with ``truth``; both (m, k).

    >>> import numpy as np
    >>> align_components(np.eye(3), np.eye(3)[:, [1, 2, 0]])
    array([2, 0, 1])
    """
    a, b = np.asarray(truth, dtype=float), np.asarray(estimate, dtype=float)
    if a.shape != b.shape or a.ndim != 2:
        raise InputError(f"expected two matrices of one shape; got {a.shape} and {b.shape}")
    cost = ((a[:, :, None] - b[:, None, :]) ** 2).sum(axis=0)
    return best_assignment(cost)


def best_assignment(cost: NDArray[np.float64]) -> NDArray[np.int64]:
    """The column for every row (k,) that makes the sum of costs (k, k) least, each column once.

    >>> import numpy as np
    >>> best_assignment(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([1, 0])
    """
    from scipy.optimize import linear_sum_assignment  # a third of a second to import, and seldom needed

    return np.asarray(linear_sum_assignment(cost)[1], dtype=np.int64)


def rmse(truth: ArrayLike, estimate: ArrayLike) -> float:
    """Root mean square error of matrices (m, k) after the best matching of their columns, as in the paper's figure.

    >>> import numpy as np
    >>> rmse(np.eye(2), np.eye(2)[:, ::-1])
    0.0
    """
    a, b = np.asarray(truth, dtype=float), np.asarray(estimate, dtype=float)
    order = align_components(a, b)
    return float(np.sqrt(((a - b[:, order]) ** 2).mean()))
