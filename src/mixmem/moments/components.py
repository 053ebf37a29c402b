"""Two thetas, one order: matching components of two estimates, also where their tables differ, and errors after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixmem.data.schema import Schema
from mixmem.errors import InputError
from mixmem.typing import Array
from mixmem.words import listing


def align_components(truth: ArrayLike, estimate: ArrayLike) -> NDArray[np.int64]:
    """Return the order of columns with least squared error: ``estimate[:, order]`` goes with ``truth``.

    Parameters
    ----------
    truth, estimate : (m, k) arrays
        Two matrices with one column per component, such as two thetas or two tables of memberships.

    Returns
    -------
    (k,) array of integers
        Column of ``estimate`` for each column of ``truth``.

    Raises
    ------
    InputError
        If the two are not matrices of one shape.

    Examples
    --------
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
    cheapest = np.asarray(cost).argmin(axis=1)
    if len(set(cheapest.tolist())) == len(cheapest):
        return np.asarray(cheapest, dtype=np.int64)
    from scipy.optimize import linear_sum_assignment  # a third of a second to import, and seldom needed

    return np.asarray(linear_sum_assignment(cost)[1], dtype=np.int64)


def rmse(truth: ArrayLike, estimate: ArrayLike) -> float:
    """Return the root mean square error after the best matching of columns, as in the paper's figure.

    Parameters
    ----------
    truth, estimate : (m, k) arrays
        Two matrices with one column per component; see :func:`align_components`.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> rmse(np.eye(2), np.eye(2)[:, ::-1])
    0.0
    """
    a, b = np.asarray(truth, dtype=float), np.asarray(estimate, dtype=float)
    order = align_components(a, b)
    return float(np.sqrt(((a - b[:, order]) ** 2).mean()))


@dataclass(frozen=True)
class Alignment:
    """Hold the order of one model's components that goes with another's.

    Attributes
    ----------
    order : (k,) array of integers
        Component h of the reference goes with component ``order[h]`` of the other model.
    distances : (k,) array
        Root mean square differences of the two columns of theta.
    n_rows : int
        Rows of theta (a level of a variable) that both models have, over which the differences are taken.
    """

    order: NDArray[np.int64]
    distances: Array
    n_rows: int


def common_rows(reference: Schema, other: Schema) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the theta rows of the levels that two tables share, by the names of variables and levels.

    Parameters
    ----------
    reference, other : Schema
        Variables of the two tables.

    Returns
    -------
    two arrays of integers of one length
        Rows of the one theta and, in the same order, of the other.

    Raises
    ------
    InputError
        If the tables share no level of any variable.

    Examples
    --------
    >>> from mixmem import Schema, Variable
    >>> first = Schema((Variable("owns", ("no", "yes")), Variable("size", ("L", "M", "S"))))
    >>> second = Schema((Variable("size", ("M", "S", "XL")), Variable("age", ("old", "young"))))
    >>> common_rows(first, second)
    (array([3, 4]), array([0, 1]))
    """
    places = {key: row for row, key in enumerate(_keys(other))}
    pairs = [(row, places[key]) for row, key in enumerate(_keys(reference)) if key in places]
    if not pairs:
        raise InputError(
            "the two tables have no level of any variable in common, so nothing tells which components correspond: "
            f"the one has variables {listing(reference.names)}, the other {listing(other.names)}"
        )
    rows, rows_other = np.array(pairs, dtype=np.int64).T
    return rows, rows_other


def alignment(reference: Schema, reference_theta: Array, other: Schema, other_theta: Array) -> Alignment:
    """Find the order of another model's components that brings its theta nearest the reference's on common rows.

    Parameters
    ----------
    reference : Schema
        Variables of the model whose order is kept.
    reference_theta : (rows, k) array
        Its theta.
    other : Schema
        Variables of the other model, some of them shared with the reference.
    other_theta : (other rows, k) array
        Its theta.

    Returns
    -------
    Alignment
        ``other_theta[:, order]`` has the reference's order.

    Raises
    ------
    InputError
        If the numbers of components differ, or the tables share no level of any variable.

    Examples
    --------
    >>> from mixmem import simulate_gdlm
    >>> drawn = simulate_gdlm(10, 6, 3, random_state=0)
    >>> alignment(drawn.schema, drawn.theta, drawn.schema, drawn.theta[:, [1, 2, 0]]).order
    array([2, 0, 1])
    """
    k, k_other = reference_theta.shape[1], other_theta.shape[1]
    if k != k_other:
        raise InputError(
            f"components are aligned one to one; the reference has {k}, the other model {k_other}: "
            "fit both with the same n_components"
        )
    rows, rows_other = common_rows(reference, other)
    units = _units(reference, reference_theta)[rows]
    theta, theta_other = reference_theta[rows] / units, other_theta[rows_other] / units
    order = align_components(theta, theta_other)
    return Alignment(order, np.sqrt(((theta - theta_other[:, order]) ** 2).mean(axis=0)), len(rows))


def _units(schema: Schema, theta: Array) -> Array:
    """Return what differences of each row of theta are measured in (rows, 1): of numbers, by their variance."""
    out = np.ones((schema.n_rows, 1))
    for j in np.flatnonzero(schema.has("number")).tolist():
        kind = schema.variables[j].own_kind
        own = schema.statistics(j)
        variance = max(float(kind.moments(theta[own])[1].mean()), 1e-300)  # type: ignore[attr-defined]
        out[own, 0] = kind.units(np.array([variance]))[:, 0]
    return out


def _keys(schema: Schema) -> list[tuple[str, str, str]]:
    """Variable, level and statistic of every theta row."""
    return schema.labels
