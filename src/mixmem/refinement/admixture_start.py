"""Where the likelihood of genotypes is climbed from: least squares in the space of their leading directions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.engine.local import in_threads
from mixmem.kernels import ROW_BLOCK
from mixmem.moments.estimate import Estimate
from mixmem.moments.matching import match_columns
from mixmem.moments.sums import waves
from mixmem.moments.theta_from_factors import concentration
from mixmem.refinement.admixture import Genotypes, genotypes_of
from mixmem.refinement.ascent import Point
from mixmem.typing import Array

MOST_PRODUCTS = 4000
"""Rows up to which the products of all pairs are computed."""


def admixture_start(genotypes: Genotypes, k: int, rng: np.random.Generator) -> Point:
    """Theta (rows, k) and memberships (n, k) to start from: least squares in the space of the leading components.

    The genotypes' leading k - 1 directions about the loci's means are what memberships can explain; in their span
    frequencies and memberships are fitted by turns, each clipped to where it may be. Of different generators the
    likelihoods reached from it hardly differ.
    """
    means, loadings, scores = _leading(genotypes.loci, k - 1, rng)
    left, right = np.column_stack([loadings, means]), np.column_stack([scores, np.ones(len(scores))])
    x, p = rng.dirichlet(np.ones(k), len(scores)), np.empty((len(left), k))
    for _ in range(100):
        before = x
        p = np.clip(left @ _regressed(right, x), 1e-3, 1.0 - 1e-3)
        x = np.maximum(right @ _regressed(left, p), 1e-3)
        x /= x.sum(axis=1, keepdims=True)
        if np.sqrt(((x - before) ** 2).mean()) < 1e-4:
            break
    return Point(genotypes.theta(p), x)


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

    def applied(vectors: Array) -> Array:
        """centred.T @ centred @ vectors over all loci."""
        return _summed(m, vectors.nbytes, lambda b: (c := centred(b)).T @ (c @ vectors))

    if rank == 0:
        scores = np.empty((n, 0))
    elif n <= MOST_PRODUCTS:
        scores = np.linalg.eigh(_summed(m, 8 * n * n, lambda b: (c := centred(b)).T @ c))[1][:, ::-1][:, :rank]
    else:
        from scipy.sparse.linalg import LinearOperator, eigsh  # slow to import

        products = LinearOperator((n, n), matvec=applied, matmat=applied, dtype=np.float64)
        scores = eigsh(products, rank, v0=rng.standard_normal(n), tol=1e-6)[1][:, ::-1]
    loadings = np.concatenate(in_threads(lambda b: centred(b) @ scores, -(-m // ROW_BLOCK)))
    return means, loadings, np.asarray(scores)


def _summed(m: int, n_bytes: int, part: Callable[[int], Array]) -> Array:
    """part(0) + part(1) + … over the blocks of m loci, in this order; a part holds ``n_bytes``."""
    total = None
    for first, count in waves(m, n_bytes):
        for value in in_threads(partial(_later, part, first), count):
            total = value if total is None else total + value
    assert total is not None
    return total


def _later(part: Callable[[int], Array], first: int, block: int) -> Array:
    """Block ``block`` of a wave that begins at block ``first``."""
    return part(first + block)


def genotype_start(table: Encoded, k: int, alpha0: float, seed: np.random.SeedSequence) -> Estimate:
    """Where the likelihood of genotypes is climbed from, in place of the moment estimate."""
    start = admixture_start(genotypes_of(table), k, np.random.default_rng([*seed.generate_state(4), 5]))
    even = concentration(np.average(start.memberships, axis=0, weights=table.weights), alpha0)
    kept = match_columns(start.theta, start.theta)
    return Estimate(start.theta, even, (), None, kept, start.memberships)
