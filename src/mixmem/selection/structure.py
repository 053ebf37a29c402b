"""Is there anything to find: whether a table's variables hang together at all.

With one component the variables are independent, so every covariance of two of them is chance. Two figures are held
against that. The sum of all squared covariances (each variable's levels made uncorrelated and of variance one before)
has a known mean and variance, and sees what is spread over many pairs. The largest eigenvalue of all covariances
together follows the law of Tracy and Widom, and sees what points in one direction, as components do. Where these two
leave a small table in doubt, its columns are shuffled: the cubes of the covariances' positive eigenvalues see a few
directions sharper than either (components make no others), and shuffled tables say how large their sum comes out by
chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.moments.anchors import spread_rows
from mixmem.moments.sums import FirstMoments, first_moments
from mixmem.records import Record
from mixmem.selection.copies import copied_variables
from mixmem.typing import Array, Positions

QUICK, THOROUGH = (200_000_000, 60, 10_000), (20_000_000_000, 600, 200_000)
"""Multiplications, variables and rows of the first look, and of the second at tables that show nothing in the first."""
MOST_COLUMNS = 1_200
"""Directions of all variables together that are looked at."""
CHANCE, IDLE = 0.015, 0.1
"""How often independent variables may pass for dependent ones; and how likely chance must be for a variable to count as
idle."""
LAW_MEAN, LAW_SPREAD, LAW_MOVED = -1.2065, 1.268, 9.848
"""Mean and standard deviation of Tracy and Widom's first law, and how far to move it to be close to a Gamma
variable."""
DOUBTFUL = (1e-5, 0.5)
"""Chances between which a table is shuffled."""
SHUFFLES, SURE, ENOUGH_LARGER, SHUFFLED_WORK, EIGENVALUES = 999, 299, 20, 15_000_000_000, 4
"""Times that columns are shuffled at most, and if no sum is larger; how many larger sums end it; up to how many
multiplications it is done; and those of eigenvalues, by the cube of their number."""
UNEVEN = 1.5
"""How much more than by chance rows may vary in their number of cells for the law of the largest eigenvalue to hold."""
RARE = 5.0
"""Rows below which a level has less say: chance makes much of a few."""


@dataclass(frozen=True)
class Structure(Record):
    """How likely chance alone gives variables that hang together so much, and how much of the table was looked at.

    ``idle`` are the variables that hang together with no other, if all were looked at; ``copies`` groups of variables
    that say the same as the first or follow from it (:mod:`mixmem.selection.copies`), of which only that was looked at,
    and ``together`` says how each does.
    """

    p_value: float
    rows: int
    variables: int
    idle: list[str]
    copies: tuple[list[str], ...] = ()
    together: tuple[str, ...] = ()

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
    copied = sum(len(group) - 1 for group in found.copies)
    seen_all = (found.rows, found.variables + copied) == (table.n_rows, table.n_variables)
    return found if found.found or seen_all else _look(table, first, *THOROUGH)


def _look(table: Encoded, first: FirstMoments, budget: int, most: int, most_rows: int) -> Structure:
    """Return the structure of as much of the table as the budget allows, spread over rows and variables."""
    variables = spread_rows(np.arange(table.n_variables), max(2, most))
    whole = len(variables) == table.n_variables
    copies, ways = copied_variables(table, variables)
    variables = np.setdiff1d(variables, table.schema.index([name for group in copies for name in group[1:]]))
    variables = _telling(table, variables)
    widths = table.coding.soft.sizes[variables] - 1
    narrow = np.argsort(widths, kind="stable")  # a column of thousands of levels does not take the place of all others
    taken = np.sort(narrow[: max(2, int((np.cumsum(widths[narrow]) <= MOST_COLUMNS).sum()))])
    whole, variables = whole and len(taken) == len(variables), variables[taken]
    width = int(widths[taken].sum())
    rows = spread_rows(np.arange(table.n_rows), min(most_rows, max(2, budget // max(width, 1) ** 2)))
    if len(rows) < table.n_rows:  # scores are of variance one over the rows that are looked at
        first = first_moments(table.take(rows))
    scores = [_scores(table, first, j) for j in variables.tolist()]
    width = sum(score.shape[1] for score in scores)
    codes, absent = table.codes[rows], table.coding.soft.absent[variables]
    drawn = np.concatenate([score[codes[:, j]] for j, score in zip(variables, scores, strict=True)], axis=1)
    z, seen = drawn, (codes[:, variables] != absent).astype(np.float32)
    weights = np.ones(len(rows)) if table.weights is None else table.weights[rows]
    total = float(weights.sum() if table.whole else weights.sum() ** 2 / (weights**2).sum())
    if table.weights is not None:
        half = np.sqrt(weights / weights.mean())[:, None].astype(np.float32)
        z, seen = z * half, seen * half
    owner = np.repeat(np.arange(len(scores)), [score.shape[1] for score in scores])
    if len(scores) < 2 or not width or total < 3.0:
        return Structure(1.0, len(rows), len(variables), [], copies, ways)
    joint = (z.T @ z / len(z)).astype(float)
    alone, together = _by_sums(joint, z, seen, owner, total)
    # rows of uneven weight or length raise the largest eigenvalue by chance alone, and no law says how far
    p_value = together
    if (table.weights is None or table.whole) and _even_lengths(codes[:, variables] != absent):
        p_value = min(1.0, 1.25 * together, 5.0 * _by_largest(joint, width / len(scores), total))
    each = weights.astype(np.int64) if table.whole else np.ones(len(rows), dtype=np.int64)
    small = len(rows) == table.n_rows and SHUFFLES * (each.sum() + EIGENVALUES * width) * width**2 <= SHUFFLED_WORK
    if whole and small and DOUBTFUL[0] < p_value < DOUBTFUL[1]:
        as_drawn = np.repeat(np.arange(len(rows)), each)
        p_value = _by_shuffles(drawn[as_drawn], seen[as_drawn] > 0.0, owner, (weights / each)[as_drawn])
    idle = [table.schema.names[j] for j in variables[alone].tolist()] if whole else []
    return Structure(p_value, len(rows), len(variables), idle, copies, ways)


def _telling(table: Encoded, variables: Positions) -> Positions:
    """Return the variables whose levels have rows enough to tell anything, all if they are fewer than three.

    Where rows have uneven weights, a column of a thousand levels would drown all others in chance.
    """
    telling = variables[table.coding.soft.sizes[variables] * RARE <= table.n_effective]
    return telling if len(telling) > 2 else variables


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


def _even_lengths(seen: NDArray[np.bool_]) -> bool:
    """Whether rows miss cells (n, p) as if each were lost by itself: they differ little in how many they have."""
    share = seen.mean(axis=0)
    chance = float((share * (1.0 - share)).sum())
    return float(seen.sum(axis=1).var()) <= UNEVEN * chance + 1e-4 * float(share.sum()) ** 2


def _by_sums(joint: Array, z: Array, seen: Array, owner: Positions, total: float) -> tuple[NDArray[np.bool_], float]:
    """Return which variables have no covariance with others (p,), and the chance of so large ones of all together.

    A variable has none if it shows no more than chance, and far less than is usual among those that show more: where
    rows are few, much that is related does not show it.

    joint (r, r) of z (n, r), whose columns are those of variables ``owner`` (r,); ``seen`` (n, p) are roots of weights,
    zero where a cell is missing. Under independence a sum has a mean and a variance that follow from each variable
    alone, and is close to Gamma distributed.
    """
    member = np.zeros((len(owner), seen.shape[1]))
    member[np.arange(len(owner)), owner] = 1.0
    squares = member.T @ joint**2 @ member
    lengths = ((z**2) @ member.astype(np.float32)).astype(float)
    share = (seen**2).mean(axis=0, dtype=float)
    both = (seen.T @ seen / len(z)).astype(float) / np.maximum(np.outer(share, share), 1e-12)
    np.fill_diagonal(squares, 0.0)
    np.fill_diagonal(both, 0.0)
    size, fourth = lengths.mean(axis=0), (lengths**2).mean(axis=0)
    own = size**2 / np.maximum(member.sum(axis=0), 1.0)
    mean = np.outer(size, size) * both
    variance = 2.0 * np.outer(own, own) * both**2 + np.outer(fourth, fourth) * both / total
    excess, spread = (total - 1.0) * squares.sum(axis=1) - mean.sum(axis=1), variance.sum(axis=1)
    chance = _above_gamma(excess + mean.sum(axis=1), mean.sum(axis=1), spread)
    usual = float(np.median(excess[chance <= IDLE])) if (chance <= IDLE).any() else 0.0
    alone = (chance > IDLE) & (usual - excess > 2.0 * np.sqrt(spread + 4.0 * usual))
    # a pair stands twice in the sum, so that it varies twice as much as if it were two
    together = _above_gamma((total - 1.0) * squares.sum(), mean.sum(), 2.0 * variance.sum())
    return alone, float(together)


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


def _by_shuffles(z: Array, seen: NDArray[np.bool_], owner: Positions, weights: Array) -> float:
    """Return how often shuffled columns have a larger sum of cubes of the covariances' positive eigenvalues.

    Every variable is shuffled among its observed cells, so that which are missing stays as it is, and so do the rows'
    weights (n,).
    """
    rng = np.random.default_rng(SHUFFLES)
    other = owner[:, None] != owner
    columns = [np.flatnonzero(owner == j) for j in range(seen.shape[1])]
    rows = [np.flatnonzero(seen[:, j]) for j in range(seen.shape[1])]
    share = (weights / weights.sum()).astype(np.float32)
    known = (share @ seen)[owner]
    own, larger = _cubes(z, other, share), 0
    for done in range(1, SHUFFLES + 1):
        shuffled = z.copy()
        for at, held in zip(columns, rows, strict=True):
            shuffled[held[:, None], at] = z[rng.permutation(held)[:, None], at]
        if share.min() < share.max():
            shuffled -= (share @ shuffled / known) * seen[:, owner]
        larger += _cubes(shuffled, other, share) >= own
        if larger == ENOUGH_LARGER or (done == SURE and not larger):
            break
    return (1.0 + larger) / (1.0 + done)


def _cubes(z: Array, other: NDArray[np.bool_], share: Array) -> float:
    """Return the sum of the cubes of the positive eigenvalues of z's covariances, z (n, r), of rows with shares (n,).

    Only those between ``other`` (r, r) variables count.
    """
    eigenvalues = np.linalg.eigvalsh((z.T @ (z * share[:, None])).astype(float) * other)
    return float((np.maximum(eigenvalues, 0.0) ** 3).sum())


def _above_gamma(value: Array | float, mean: Array | float, variance: Array | float) -> Array:
    """Return the chance that Gamma variables of these means and variances are larger than these values."""
    from scipy.special import gammaincc

    scale = np.maximum(variance, 1e-300) / np.maximum(mean, 1e-300)
    return np.asarray(gammaincc(np.maximum(mean / scale, 1e-12), np.maximum(value, 0.0) / scale))
