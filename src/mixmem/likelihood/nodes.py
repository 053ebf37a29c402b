"""Points of the simplex, with weights, over which what hangs on a row's memberships is summed.

Break the stick: x_1 = b_1, x_2 = (1 - b_1) b_2, and so on, with independent b_h ~ Beta(alpha_h, alpha_{h+1} + ...).
The likelihood of a row of q draws is a polynomial of degree q at most in every b_h, so that Gauss' rule with more than
q / 2 nodes per stick is exact. Where that asks for too many nodes, points of a scrambled Halton sequence are sent
through the quantiles of the Beta distributions instead; they come in batches, whose differences tell the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mixmem.typing import Array

MOST_EXACT = 4_096
"""Nodes up to which the exact rule is taken."""
MOST_ROUGH, LEAST_PER_STICK, NEARLY = 800, 5, 8
"""Nodes of a rule that need not be exact, what it takes per stick at least, and draws that a node per stick serves."""
SCATTERED, SCATTERED_MANY, MANY_COMPONENTS = 4_096, 16_384, 12
"""Nodes of the Halton sequence, more of them above so many components."""
LONG_ROW = 150
"""Draws above which scattered nodes do not serve: too few would explain a row."""
BATCH = 1_024
"""Nodes whose likelihoods are held at a time."""


@dataclass(frozen=True)
class Nodes:
    """Memberships ``points`` (k, m) and their ``weights`` (m,), which sum to one; ``exact`` for rows of any content."""

    points: Array
    weights: Array
    exact: bool

    def batches(self) -> Iterator[tuple[Array, Array]]:
        """Yield points (k, at most BATCH) and their weights, contiguous in memory."""
        for first in range(0, len(self.weights), BATCH):
            some = slice(first, first + BATCH)
            yield np.ascontiguousarray(self.points[:, some]), self.weights[some]


def nodes_for(alpha: Array, n_draws: int, *, rough: bool = False) -> Nodes | None:
    """Return the nodes for rows of ``n_draws`` draws under Dirichlet(alpha), alpha (k,); None if rows are too long.

    ``rough`` takes a fifth of the nodes; the exact rule is then nearly so.

    >>> nodes = nodes_for(np.array([0.5, 0.5]), 4)
    >>> nodes.exact, nodes.points.shape
    (True, (2, 3))
    """
    sticks = len(alpha) - 1
    rest = np.cumsum(alpha[::-1])[::-1][1:]
    per_stick = n_draws // 2 + 1
    if rough and sticks:
        fewer = int(MOST_ROUGH ** (1.0 / sticks))
        if fewer >= LEAST_PER_STICK and n_draws <= NEARLY * fewer:
            per_stick = min(per_stick, fewer)
    if per_stick**sticks <= MOST_EXACT:
        rules = [gauss_beta(per_stick, first, others) for first, others in zip(alpha, rest, strict=False)]
        weights = np.ones(1)
        for rule in rules:
            weights = np.outer(weights, rule[1]).ravel()
        breaks = np.array(np.meshgrid(*(rule[0] for rule in rules), indexing="ij")).reshape(sticks, len(weights))
        return Nodes(_broken(breaks), weights, True)
    if n_draws > LONG_ROW:
        return None
    from scipy.special import betaincinv

    count = (SCATTERED_MANY if len(alpha) > MANY_COMPONENTS else SCATTERED) // (4 if rough else 1)
    cube = _halton(sticks, count)
    return Nodes(_broken(betaincinv(alpha[:-1, None], rest[:, None], cube)), np.full(count, 1.0 / count), False)


def gauss_beta(count: int, a: float, b: float) -> tuple[Array, Array]:
    """Return nodes in (0, 1) and weights of Gauss' rule for Beta(a, b): exact for polynomials below degree 2 count.

    Nodes are the eigenvalues of the Jacobi matrix (Golub and Welsch). Weights are taken from the orthonormal
    polynomials at the nodes rather than from the eigenvectors: the small ones, which decide where rows are unlike the
    prior, are then right too.

    >>> nodes, weights = gauss_beta(2, 1.0, 1.0)
    >>> round(float(weights @ nodes**3), 12)
    0.25
    """
    n = np.arange(1, count)
    left, right = a - 1.0, b - 1.0
    total = 2.0 * n + left + right
    middle = np.empty(count)
    middle[0] = (left - right) / (left + right + 2.0)
    middle[1:] = (left - right) * (left + right) / (total * (total + 2.0))
    side = np.empty(max(count - 1, 0))
    if count > 1:
        side[0] = 4.0 * a * b / ((a + b) ** 2 * (a + b + 1.0))
        n, total = n[1:], total[1:]
        side[1:] = 4.0 * n * (n + left) * (n + right) * (n + left + right) / (total**2 * (total + 1.0) * (total - 1.0))
    side = np.sqrt(side)
    nodes = np.linalg.eigvalsh(np.diag(middle) + np.diag(side, 1) + np.diag(side, -1))
    squares, before, here = np.ones(count), np.zeros(count), np.ones(count)
    for i in range(count - 1):
        before, here = here, ((nodes - middle[i]) * here - (side[i - 1] * before if i else 0.0)) / side[i]
        squares += here**2
    weights = 1.0 / squares
    return np.clip((nodes + 1.0) / 2.0, 0.0, 1.0), weights / weights.sum()


def _broken(breaks: Array) -> Array:
    """Memberships (k, m) from where the stick is broken (k - 1, m)."""
    rest = np.concatenate([np.ones((1, breaks.shape[1])), np.cumprod(1.0 - breaks, axis=0)])
    rest[:-1] *= breaks
    return rest


def _halton(dimensions: int, count: int) -> Array:
    """Points of the unit cube (dimensions, count): a Halton sequence whose digits are permuted, the same every time."""
    rng = np.random.default_rng(0)
    out = np.zeros((dimensions, count))
    for values, base in zip(out, _primes(dimensions), strict=True):
        left, place = np.arange(count), 1.0
        while place > 1e-9:
            place /= base
            values += rng.permutation(base)[left % base] * place
            left //= base
        values += 0.5 * place  # the middle of what the digits leave open
    return out


def _primes(count: int) -> list[int]:
    """The first prime numbers."""
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return found
