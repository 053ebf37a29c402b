"""Maximum likelihood of diploid loci with two alleles: block Newton steps, the model of ADMIXTURE."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.data.schema import Schema
from mixmem.engine.rows import Arrays, Blocks, sum_over
from mixmem.kernels import ROW_BLOCK
from mixmem.kernels.admixture import box_steps, locus_sums, row_sums
from mixmem.progress import Progress
from mixmem.refinement.ascent import LEAST, Maximum, Point, Stride, climb, memberships_inside
from mixmem.typing import Array, Positions

MOST_ROUNDS = 500
"""Rounds at most: more than in EM, whose rounds are slower and which does not wait for memberships to rest."""
SETTLED = 3e-4
"""Change of a membership per round below which it has come to rest. Chosen on seven simulated tables whose components
hardly differ: memberships ended up to 0.22 from their limit by the likelihood's gains alone, 0.20 with a change of 1e-3
allowed, 0.014 with this."""
LEAST_FREQUENCY = 1e-6
"""No allele frequency comes nearer to zero or one."""
ROW_TILE = 1024
"""Rows of a locus handled together, while what is computed of them stays in the cache."""


@dataclass(frozen=True)
class Genotypes:
    """Diploid biallelic loci, two draws each: ``codes`` (n, m) of 0, 1, 2 copies of the counted allele, 3 missing;
    theta's rows of the counted alleles (``rows``, (m,)) and of the ``others`` (m,)."""

    codes: NDArray[np.uint8]
    rows: Positions
    others: Positions

    @cached_property
    def loci(self) -> NDArray[np.uint8]:
        """The codes locus by locus (m, n)."""
        return np.ascontiguousarray(self.codes.T)

    def theta(self, frequencies: Array) -> Array:
        """Theta (rows, k) from the counted alleles' frequencies (m, k)."""
        out = np.empty((int(max(self.rows.max(), self.others.max())) + 1, frequencies.shape[1]))
        out[self.rows], out[self.others] = frequencies, 1.0 - frequencies
        return out


def maximise_genotypes(
    genotypes: Genotypes,
    theta: Array,
    memberships: Array,
    *,
    progress: Progress,
    weights: Array | None = None,
    tol: float = 1e-8,
    settled: float = SETTLED,
    max_rounds: int = MOST_ROUNDS,
) -> Maximum:
    """Block Newton steps from theta (rows, k) and memberships (n, k), best those of :func:`admixture_start`.

    Rows may have weights (n,). It ends when :data:`PATIENCE` rounds in a row gain less than ``tol`` per draw and change
    no membership by more than ``settled``. BLAS is to be held to one thread, as :func:`mixmem.engine.local.threads`
    does, or bits may depend on the number of threads.
    """
    steps = NewtonSteps(genotypes, weights)
    observed = 2.0 * (genotypes.loci < 3).sum(axis=0)
    per_row = float(steps.weights @ observed) / steps.total
    inside = np.clip(theta, LEAST_FREQUENCY, 1.0 - LEAST_FREQUENCY)
    start = Point(inside, memberships_inside(memberships))
    return climb(steps, start, progress=progress, tol=tol, per_row=per_row, max_rounds=max_rounds, settled=settled)


class NewtonSteps:
    """Newton steps of all loci and then, at the new frequencies, of all rows; rows have weights (n,).

    The accelerator sees the memberships only: frequencies follow from them within a step or two.
    """

    def __init__(self, genotypes: Genotypes, weights: Array | None = None):
        self.genotypes = genotypes
        self.weights = np.ones(len(genotypes.codes)) if weights is None else weights
        self.total = float(self.weights.sum())

    def step(self, start: Point) -> Stride:
        x, p = np.ascontiguousarray(start.memberships.T), start.theta[self.genotypes.rows]
        k, n = x.shape

        def fill(first: int, partials: Arrays) -> None:
            for b in range(len(partials[0])):
                partials[0][b], partials[1][b] = self._block(first + b, x, p)

        work = Blocks([(k * (k + 1) // 2, n), (n,)], fill)
        hessians, values = sum_over(work, len(p), n).root
        at = Point(self.genotypes.theta(p), start.memberships)
        to = Point(at.theta, _row_steps(hessians, start.memberships))
        return Stride(at, to, float(self.weights @ values) / self.total)

    def _block(self, block: int, x: Array, p: Array) -> tuple[Array, Array]:
        """Step the loci of a block, p (m, k) in place; what row_sums adds up of them; x (k, n)."""
        some = slice(block * ROW_BLOCK, (block + 1) * ROW_BLOCK)
        loci, own, (k, n) = self.genotypes.loci[some], p[some], x.shape
        tiles = [(first, min(n, first + ROW_TILE)) for first in range(0, n, ROW_TILE)]
        gradients, hessians = np.zeros(own.shape), np.zeros((len(own), k * (k + 1) // 2))
        for tile in tiles:
            locus_sums(loci, x, own, self.weights, *tile, gradients, hessians)
        box_steps(hessians, gradients, LEAST_FREQUENCY, 1.0 - LEAST_FREQUENCY, True, 1e-6, own)
        sums, values = np.zeros((k * (k + 1) // 2, n)), np.zeros(n)
        for tile in tiles:
            row_sums(loci, x, own, *tile, sums, values)
        return sums, values

    def vector(self, point: Point) -> Array:
        return point.memberships.ravel()

    def point(self, vector: Array, near: Point) -> Point:
        x = vector.reshape(near.memberships.shape)
        return Point(near.theta, memberships_inside(x, near.memberships))


def _row_steps(hessians: Array, x: Array) -> Array:
    """Memberships (n, k) after a Newton step on the simplex; hessians (k (k + 1) / 2, n) as row_sums gives them.

    A row's terms are g log(x'p) + (2 - g) log(x'(1 - p)), whose gradient is the Hessian times x, and that times x the
    number d of draws: maximising them less d sum(x) over x >= 0 keeps the sum at one without asking for it.
    """
    n, k = x.shape
    high, low = np.tril_indices(k)
    own = np.ascontiguousarray(hessians.T)
    full = np.empty((n, k, k))
    full[:, high, low] = full[:, low, high] = own
    gradients = (full @ x[:, :, None])[:, :, 0]
    gradients -= (gradients * x).sum(axis=1, keepdims=True)
    new = x.copy()
    box_steps(own, gradients, LEAST, 2.0, False, 1e-9, new)
    return memberships_inside(new)


MISSING = 3
"""Code of a missing genotype."""


TWO_ALLELES = "leave them out, as `bcftools view -m2 -M2` and `plink2 --max-alleles 2` do"
"""What to do with variants of more than two alleles."""


def are_genotypes(schema: Schema) -> bool:
    """Return whether all variables are diploid loci of two alleles."""
    return all(variable.own_kind.diploid_locus(variable) for variable in schema.variables)


def genotypes_of(table: Encoded) -> Genotypes:
    """A table of diploid loci of two alleles, as it is maximised."""
    rows = table.schema.offsets[:-1]
    return Genotypes(np.asarray(table.codes, dtype=np.uint8), rows + 1, rows)
