"""The likelihood of rows with their memberships integrated out.

Rows are summed over nodes that are common to all (:mod:`mixmem.likelihood.nodes`): exactly where components are few,
else over scattered points, enough of which must explain the row. Other rows, and long ones, are integrated by
importance sampling around their own mode. Rows that are equal are computed once.
"""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.engine.rows import map_rows
from mixmem.kernels.importance import importance_sums
from mixmem.kernels.long_rows import LEAST_CELLS
from mixmem.kernels.nodes import mix_at_nodes, node_sums
from mixmem.likelihood.nodes import Nodes, nodes_for
from mixmem.likelihood.table import LikelihoodTable
from mixmem.typing import Array

LIKELIHOOD_ROWS = 1_000
"""Rows whose mean likelihood is taken where fits are compared."""
EXPLAINING = 50.0
"""Scattered nodes that must explain a row, by the effective number of their likelihoods."""
EXPLAINING_MEAN = 10.0
"""The same where means of memberships are wanted: they ask for less than logarithms do."""
LOOKED_AT, MOST_EQUAL = 2_048, 0.01
"""Rows of a table that tell whether some are equal, and the share from which on sorting them out pays."""
LEAST_ALPHA = 1e-8
"""A component of less has no say."""
MOST_DRAWS, LEAST_DRAWS, DRAWN_CELLS = 100, 10, 100_000
"""Draws per component of a row's importance sampling: so many cells' worth. Their number is fixed beforehand, since
stopping by the error found makes the answer too low; long rows need fewer."""


@overload
def row_likelihood(
    table: Encoded | LikelihoodTable, theta: Array, alpha: Array, *, return_std: Literal[False] = ..., rough: bool = ...
) -> Array: ...
@overload
def row_likelihood(
    table: Encoded | LikelihoodTable, theta: Array, alpha: Array, *, return_std: Literal[True], rough: bool = ...
) -> tuple[Array, Array]: ...
def row_likelihood(
    table: Encoded | LikelihoodTable, theta: Array, alpha: Array, *, return_std: bool = False, rough: bool = False
) -> Array | tuple[Array, Array]:
    """Return log p(row | theta, alpha) of every row (n,), memberships integrated out.

    The same for the same arguments; equal rows get equal values, in any company.

    Parameters
    ----------
    table : Encoded or LikelihoodTable
        Codes (n, p); laid out already where several thetas are tried on the same rows.
    theta : array (rows, k)
        Theta, noise included.
    alpha : array (k,)
        Concentration of the components.
    return_std : bool
        Return (values, errors): the errors (n,) are the standard errors of the computation, zero where it is exact.
    rough : bool
        Spend about a fifth of the work: enough to rank models by the mean of hundreds of rows.

    Examples
    --------
    >>> from mixmem import row_likelihood, simulate_gdlm
    >>> drawn = simulate_gdlm(10, 6, 2, random_state=0)
    >>> values, errors = row_likelihood(drawn.encoded, drawn.theta, drawn.alpha, return_std=True)
    >>> values.shape, float(errors.max())
    ((10,), 0.0)
    """
    cells = table if isinstance(table, LikelihoodTable) else LikelihoodTable(table)
    likely = cells.likelihoods(theta)
    codes, place = _distinct(cells.codes)
    found, errors = _integrated(cells, codes, likely, cells.marks(theta), np.maximum(alpha, LEAST_ALPHA), rough)
    values = np.where(cells.lengths > 0, found[place] + cells.scale(theta), 0.0)  # nothing is as likely as nothing
    return (values, errors[place]) if return_std else values


def _distinct(codes: NDArray[np.unsignedinteger]) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
    """Return the distinct rows of codes (n, q), and where each row stands among them (n,); all if few are equal."""
    n, whole = len(codes), np.ascontiguousarray(codes)
    keys = whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel()
    if n > 2 * LOOKED_AT:  # sorting takes as long as half of the nodes; equal rows may lie together
        half = np.arange(LOOKED_AT // 2)
        some = np.union1d(n // 2 + half, half * n // len(half))
        if len(np.unique(keys[some])) > (1.0 - MOST_EQUAL) * len(some):
            return whole, np.arange(n)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return whole[first], place.reshape(-1)


def _integrated(
    cells: LikelihoodTable,
    codes: NDArray[np.unsignedinteger],
    likely: Array,
    marks: NDArray[np.uint64],
    alpha: Array,
    rough: bool,
) -> tuple[Array, Array]:
    """Return likelihoods of rows of codes (n, q), of numbers relative to their most likely component, and errors."""
    n = len(codes)
    values, errors, doubtful = np.empty(n), np.empty(n), np.ones(n, dtype=bool)
    if (nodes := nodes_for(alpha, codes.shape[1], rough=rough)) is not None:
        values, errors, explaining, _ = _by_nodes(cells, codes, likely, nodes)
        values += 0.5 * errors**2  # the logarithm of a mean is too low by half its variance
        doubtful = (explaining < (EXPLAINING / 5.0 if rough else EXPLAINING)) & (not nodes.exact)
    if doubtful.any():
        values[doubtful], errors[doubtful] = _by_sampling(cells, codes[doubtful], likely, marks, alpha, rough)
    return values, errors


def _by_nodes(
    cells: LikelihoodTable, codes: NDArray[np.unsignedinteger], likely: Array, nodes: Nodes, *, means: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Return the rows' likelihoods, their errors, the effective number of nodes that explain them, each (n,), and the
    means of the memberships (n, k), if they are wanted: all in single precision then."""
    n, batches = len(codes), list(nodes.batches())
    width = len(nodes.points) if means else 0
    sums, squares, centers = (
        np.empty((len(batches), n)),
        np.empty((len(batches), n)),
        np.empty((len(batches), n, width)),
    )
    for b, (points, weights) in enumerate(batches):
        at_nodes = np.empty((len(likely), len(weights)))
        mix_at_nodes(likely, points, at_nodes)
        if means:  # shares of one need no more
            at_nodes = at_nodes.astype(np.float32)

        def add(
            rows: slice, b: int = b, table: Array = at_nodes, points: Array = points[:width], weights: Array = weights
        ) -> None:
            node_sums(
                codes[rows], cells.starts, cells.absent, table, weights, points, sums[b, rows], squares[b, rows],
                centers[b, rows],
            )  # fmt: skip

        map_rows(add, n)
    values = np.logaddexp.reduce(sums, axis=0)
    explaining = np.exp(2.0 * values - np.logaddexp.reduce(squares, axis=0))
    shares = np.exp(sums - values)  # of batches of equal weight: 1 / batches each, but for their errors
    center = (shares[:, :, None] * centers).sum(axis=0)
    if nodes.exact:
        return values, np.zeros(n), explaining, center
    spread = ((shares - shares.mean(axis=0)) ** 2).sum(axis=0)
    return values, np.sqrt(spread * len(batches) / max(len(batches) - 1, 1)), explaining, center


def mean_memberships(cells: LikelihoodTable, theta: Array, alpha: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the posterior means of rows' memberships (n, k), and of which rows they are known (n,).

    Exact nodes serve any rows, scattered ones those that are too short for a Gaussian likelihood, where enough of them
    explain a row.
    """
    alpha, (n, length) = np.maximum(alpha, LEAST_ALPHA), cells.codes.shape
    nodes = nodes_for(alpha, length, rough=True)
    if nodes is None or (not nodes.exact and length >= LEAST_CELLS):
        return np.empty((n, len(alpha))), np.zeros(n, dtype=bool)
    codes, place = _distinct(cells.codes)  # sorted rows: not for long ones, of which no two are equal
    _, _, explaining, means = _by_nodes(cells, codes, cells.likelihoods(theta), nodes, means=True)
    known = np.full(len(codes), nodes.exact) | (explaining >= EXPLAINING_MEAN)
    return (means / means.sum(axis=1, keepdims=True))[place], known[place]


def _by_sampling(
    cells: LikelihoodTable,
    codes: NDArray[np.unsignedinteger],
    likely: Array,
    marks: NDArray[np.uint64],
    alpha: Array,
    rough: bool,
) -> tuple[Array, Array]:
    """Return the rows' likelihoods and their errors, each (n,)."""
    values, variances = np.empty(len(codes)), np.empty(len(codes))
    draws = len(alpha) * int(np.clip(DRAWN_CELLS // codes.shape[1], LEAST_DRAWS, MOST_DRAWS) // (5 if rough else 1))

    def sample(rows: slice) -> None:
        importance_sums(
            codes[rows], cells.starts, cells.absent, likely, marks, alpha, draws, values[rows], variances[rows]
        )

    map_rows(sample, len(codes))
    return values, np.sqrt(np.maximum(variances, 0.0))
