"""Is there anything to find: whether a table's variables hang together at all.

With one component the variables are independent, so every covariance of two of them is chance. Two figures are held
against that. The sum of all squared covariances (each variable's levels made uncorrelated and of variance one before)
has a known mean and variance, and sees what is spread over many pairs. The largest eigenvalue of all covariances
together follows the law of Tracy and Widom, and sees what points in one direction, as components do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.moments.anchors import spread_rows
from mixmem.moments.sums import FirstMoments
from mixmem.records import Record
from mixmem.typing import Array, Positions

QUICK, THOROUGH = (200_000_000, 60, 10_000), (20_000_000_000, 600, 200_000)
"""Multiplications, variables and rows of the first look, and of the second at tables that show nothing in the first."""
MOST_COLUMNS = 1_200
"""Directions of all variables together that are looked at."""
CHANCE, IDLE = 0.01, 0.1
"""How often independent variables may pass for dependent ones; and how likely chance must be for a variable to count as
idle."""
LAW_MEAN, LAW_SPREAD, LAW_MOVED = -1.2065, 1.268, 9.848
"""Mean and standard deviation of Tracy and Widom's first law, and how far to move it to be close to a Gamma
variable."""
RARE = 5.0
"""Rows below which a level has less say: chance makes much of a few."""


@dataclass(frozen=True)
class Structure(Record):
    """How likely chance alone gives variables that hang together so much, and how much of the table was looked at.

    ``idle`` are the variables that hang together with no other, if all were looked at.
    """

    p_value: float
    rows: int
    variables: int
    idle: list[str]

    @property
    def found(self) -> bool:
        """Whether the table shows more than one component."""
        return self.p_value < CHANCE


def structure_of(table: Encoded, first: FirstMoments) -> Structure:
    """Return whether the variables of a table, with its first moments, hang together; a part is looked at first.

    >>> import numpy as np
    >>> from mixmem import encode, simulate_gdlm
    >>> from mixmem.moments.sums import first_moments
    >>> noise = encode(np.random.default_rng(0).integers(0, 3, (500, 8)))
    >>> structure_of(noise, first_moments(noise)).found
    False
    >>> drawn = simulate_gdlm(500, 8, 2, random_state=0).encoded
    >>> structure_of(drawn, first_moments(drawn)).found
    True
    """
    found = _look(table, first, *QUICK)
    seen_all = (found.rows, found.variables) == (table.n_rows, table.n_variables)
    return found if found.found or seen_all else _look(table, first, *THOROUGH)


def _look(table: Encoded, first: FirstMoments, budget: int, most: int, most_rows: int) -> Structure:
    """Return the structure of as much of the table as the budget allows, spread over rows and variables."""
    variables = spread_rows(np.arange(table.n_variables), max(2, most))
    scores, width = [], 0
    for j in variables.tolist():
        scores.append(_scores(table, first, j))
        width += scores[-1].shape[1]
        if width > MOST_COLUMNS and len(scores) > 1:
            break
    variables = variables[: len(scores)]
    rows = spread_rows(np.arange(table.n_rows), min(most_rows, max(2, budget // max(width, 1) ** 2)))
    codes, absent = table.codes[rows], table.coding.soft.absent[variables]
    z = np.concatenate([score[codes[:, j]] for j, score in zip(variables, scores, strict=True)], axis=1)
    seen = (codes[:, variables] != absent).astype(np.float32)
    total = float(len(rows))
    if table.weights is not None:
        weights = table.weights[rows]
        total = float(weights.sum() if table.whole else weights.sum() ** 2 / (weights**2).sum())
        half = np.sqrt(weights / weights.mean())[:, None].astype(np.float32)
        z, seen = z * half, seen * half
    owner = np.repeat(np.arange(len(scores)), [score.shape[1] for score in scores])
    if len(scores) < 2 or not width or total < 3.0:
        return Structure(1.0, len(rows), len(variables), [])
    joint = (z.T @ z / len(z)).astype(float)
    each, together = _by_sums(joint, z, seen, owner, total)
    p_value = min(1.0, 1.25 * together, 5.0 * _by_largest(joint, width / len(scores), total))
    whole = len(variables) == table.n_variables
    idle = [table.schema.names[j] for j in variables[each > IDLE].tolist()] if whole else []
    return Structure(p_value, len(rows), len(variables), idle)


def _scores(table: Encoded, first: FirstMoments, j: int) -> Array:
    """Return what the cells of variable j say (cells, r): uncorrelated, of mean zero and variance one over the table.

    A missing cell says nothing, and the others more for it. A direction that few rows show says less.
    """
    soft = table.coding.soft
    rows, cells = (slice(offsets[j], offsets[j + 1]) for offsets in (soft.offsets, soft.cell_offsets))
    counts, seen = first.counts[cells], soft.present[cells]
    levels = np.eye(len(counts)) if soft.shares is None else soft.shares[cells, rows].toarray()
    known = max(float(counts[seen].sum()), 1.0)
    about = (levels - first.means[rows]) * seen[:, None]
    variances, directions = np.linalg.eigh((about * counts[:, None]).T @ about / known)
    kept = variances > 1e-9
    scale = np.sqrt(first.total / known / (variances[kept] + RARE / first.total))
    return np.asarray(about @ directions[:, kept] * scale, dtype=np.float32)


def _by_sums(joint: Array, z: Array, seen: Array, owner: Positions, total: float) -> tuple[Array, float]:
    """Return the chance of so large squared covariances, of each variable with all others (p,), and of all together.

    joint (r, r) of z (n, r), whose columns are those of variables ``owner`` (r,); ``seen`` (n, p) which are observed.
    Under independence a sum has a mean and a variance that follow from each variable alone, and is close to Gamma
    distributed.
    """
    member = np.zeros((len(owner), seen.shape[1]))
    member[np.arange(len(owner)), owner] = 1.0
    squares = member.T @ joint**2 @ member
    lengths = ((z**2) @ member.astype(np.float32)).astype(float)
    share = seen.mean(axis=0, dtype=float)
    both = (seen.T @ seen / len(z)).astype(float) / np.maximum(np.outer(share, share), 1e-12)
    np.fill_diagonal(squares, 0.0)
    np.fill_diagonal(both, 0.0)
    size, fourth = lengths.mean(axis=0), (lengths**2).mean(axis=0)
    spread = size**2 / np.maximum(member.sum(axis=0), 1.0)
    mean = np.outer(size, size) * both
    variance = 2.0 * np.outer(spread, spread) * both**2 + np.outer(fourth, fourth) * both / total
    each = _above_gamma((total - 1.0) * squares.sum(axis=1), mean.sum(axis=1), variance.sum(axis=1))
    # a pair stands twice in the sum, so that it varies twice as much as if it were two
    together = _above_gamma((total - 1.0) * squares.sum(), mean.sum(), 2.0 * variance.sum())
    return each, float(together)


def _by_largest(joint: Array, own: float, total: float) -> float:
    """Return the chance of so large a first eigenvalue of the covariances (r, r).

    A column has no covariance with the ``own`` columns of its variable.
    """
    largest = total * float(np.linalg.eigvalsh(joint)[-1])
    root, other = np.sqrt(total - 1.0), np.sqrt(max(len(joint) - own, 1.0))
    place = (largest - (root + other) ** 2) / ((root + other) * (1.0 / root + 1.0 / other) ** (1.0 / 3.0))
    # variances are one here and have no share in it, so that the place lies lower and varies less than by the law: by
    # this much, over eight shapes of independent columns
    place = LAW_MEAN + (place + 1.5) / 1.1 * LAW_SPREAD
    return float(_above_gamma(place + LAW_MOVED, LAW_MEAN + LAW_MOVED, LAW_SPREAD**2))


def _above_gamma(value: Array | float, mean: Array | float, variance: Array | float) -> Array:
    """Return the chance that Gamma variables of these means and variances are larger than these values."""
    from scipy.special import gammaincc

    scale = np.maximum(variance, 1e-300) / np.maximum(mean, 1e-300)
    return np.asarray(gammaincc(np.maximum(mean / scale, 1e-12), np.maximum(value, 0.0) / scale))
