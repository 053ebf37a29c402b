"""Where the likelihood of genotypes is climbed from: least squares in the space of their leading directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.engine.local import in_threads
from mixmem.engine.rows import Arrays, Blocks, sum_over
from mixmem.kernels import ROW_BLOCK
from mixmem.moments.components import align_components
from mixmem.moments.estimate import Account, Start
from mixmem.moments.theta_from_factors import concentration
from mixmem.refinement.admixture import Genotypes, genotypes_of
from mixmem.refinement.ascent import Point
from mixmem.typing import Array

MOST_PRODUCTS = 4000
"""Rows up to which the products of all pairs are computed."""
MOST_ROUNDS, SMALL_CHANGE = 100, 1e-4
"""Rounds of least squares at most, and the root mean square change of memberships at which they end."""

TRIED, CLIMBED, APART = 6, 3, 0.03
"""Random beginnings of least squares, how many of their ends are climbed from at most, and the root mean square
difference of memberships from which on two ends are apart."""


@dataclass(frozen=True)
class GenotypeAccount(Account):
    """What the start from genotypes says of itself: ``directions`` that were looked at, ``rounds`` of least squares."""

    way: str = "genotypes"
    directions: int = 0
    rounds: int = 0


def genotype_starts(table: Encoded, k: int, alpha0: float, seed: np.random.SeedSequence) -> tuple[Start, ...]:
    """Return where the likelihood of genotypes is climbed from, in place of the moment estimate.

    It is one start, or several where least squares end apart from each other: the likelihood then has maxima of its own
    near each of them.
    """
    genotypes, rng = genotypes_of(table), np.random.default_rng([*seed.generate_state(4), 5])
    span = _Span.of(genotypes, k, rng)
    ends = [span.least_squares(rng) for _ in range(TRIED if k > 2 else 1)]
    kept: list[tuple[Point, GenotypeAccount]] = []
    for end in ends:
        if len(kept) < CLIMBED and all(apart(end[0].memberships, one.memberships) > APART for one, _ in kept):
            kept.append(end)
    return tuple(_as_start(table, alpha0, *end) for end in kept)


def _as_start(table: Encoded, alpha0: float, point: Point, account: GenotypeAccount) -> Start:
    shares = np.average(point.memberships, axis=0, weights=table.weights)
    return Start(point.theta, concentration(shares, alpha0).alpha, account, point.memberships)


def apart(one: Array, other: Array) -> float:
    """Return the root mean square difference of two sets of memberships (n, k), components matched."""
    return float(np.sqrt(((one - other[:, align_components(one, other)]) ** 2).mean()))


def admixture_start(genotypes: Genotypes, k: int, rng: np.random.Generator) -> tuple[Point, GenotypeAccount]:
    """Return theta (rows, k) and memberships (n, k) to start from: least squares in the space of leading directions."""
    return _Span.of(genotypes, k, rng).least_squares(rng)


@dataclass(frozen=True)
class _Span:
    """The genotypes' leading k - 1 directions about the loci's means, which are what memberships can explain: loadings
    and means ``left`` (m, k), scores and ones ``right`` (n, k)."""

    genotypes: Genotypes
    left: Array
    right: Array

    @classmethod
    def of(cls, genotypes: Genotypes, k: int, rng: np.random.Generator) -> _Span:
        means, loadings, scores = _leading(genotypes.loci, k - 1, rng)
        ones = np.ones(len(scores))
        return cls(genotypes, np.column_stack([loadings, means]), np.column_stack([scores, ones]))

    def least_squares(self, rng: np.random.Generator) -> tuple[Point, GenotypeAccount]:
        """Return frequencies and memberships fitted by turns from random ones, each clipped to where it may be."""
        k = self.left.shape[1]
        x, p = rng.dirichlet(np.ones(k), len(self.right)), np.empty((len(self.left), k))
        change, rounds = np.inf, 0
        while change >= SMALL_CHANGE and rounds < MOST_ROUNDS:
            before = x
            p = np.clip(self.left @ _regressed(self.right, x), 1e-3, 1.0 - 1e-3)
            x = np.maximum(self.right @ _regressed(self.left, p), 1e-3)
            x /= x.sum(axis=1, keepdims=True)
            change, rounds = float(np.sqrt(((x - before) ** 2).mean())), rounds + 1
        directions = f"{k - 1} leading direction{'s' * (k > 2)}"
        reason = f"least squares along {directions}: memberships change by {change:.1g} after {rounds} rounds"
        account = GenotypeAccount(change < SMALL_CHANGE, reason, directions=k - 1, rounds=rounds)
        return Point(self.genotypes.theta(p), x), account


def _regressed(wanted: Array, given: Array) -> Array:
    """The b (k, k) that makes given @ b.T nearest to wanted, both (rows, k)."""
    gram = given.T @ given
    gram[np.diag_indices_from(gram)] += 1e-9 * np.trace(gram)
    return np.asarray(np.linalg.solve(gram, given.T @ wanted).T)


def _leading(loci: NDArray[np.uint8], rank: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Means (m,), and loadings (m, rank) and orthonormal scores (n, rank) of half the loci's codes (m, n) about them.

    Missing genotypes count as the mean. Weak directions lie close together and which of them are taken decides on the
    maximum that is reached, so they are computed to the end: from the rows' products, or by Lanczos if rows are many.
    """
    m, n = loci.shape
    known = loci < 3
    means = (loci * known).sum(axis=1) / (2.0 * np.maximum(known.sum(axis=1), 1))

    def centred(block: int) -> Array:
        some = slice(block * ROW_BLOCK, (block + 1) * ROW_BLOCK)
        return np.asarray((0.5 * loci[some] - means[some, None]) * known[some])

    def summed(shape: tuple[int, int], product: Callable[[Array], Array]) -> Array:
        """Return the sum over all loci of the product that a block of them makes."""

        def fill(first: int, partials: Arrays) -> None:
            for b in range(len(partials[0])):
                partials[0][b] = product(centred(first + b))

        return sum_over(Blocks([shape], fill), m, n).root[0]

    def applied(vectors: Array) -> Array:
        """Return centred.T @ centred @ vectors over all loci."""
        columns = vectors.reshape(n, -1)
        return summed((n, columns.shape[1]), lambda c: c.T @ (c @ columns)).reshape(vectors.shape)

    if rank == 0:
        scores = np.empty((n, 0))
    elif n <= MOST_PRODUCTS:
        scores = np.linalg.eigh(summed((n, n), lambda c: c.T @ c))[1][:, ::-1][:, :rank]
    else:
        from scipy.sparse.linalg import LinearOperator, eigsh  # slow to import

        products = LinearOperator((n, n), matvec=applied, matmat=applied, dtype=np.float64)
        scores = eigsh(products, rank, v0=rng.standard_normal(n), tol=1e-6)[1][:, ::-1]
    loadings = np.concatenate(in_threads(lambda b: centred(b) @ scores, -(-m // ROW_BLOCK)))
    return means, loadings, np.asarray(scores)
