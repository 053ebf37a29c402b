"""The most likely theta and memberships of a table of any kinds, and what population geneticists expect of it.

Tables of diploid loci with two alleles each have a start and steps of their own (:mod:`mixmem.refinement.admixture`):
the model and the likelihood are those of ADMIXTURE, sum of g log f + (2 - g) log(1 - f) over observed genotypes g, f
the frequency that the sample's memberships give the locus.
"""

from __future__ import annotations

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.likelihood.memberships import fit_rows
from mixmem.likelihood.table import LikelihoodTable
from mixmem.progress import Progress
from mixmem.refinement.admixture import are_genotypes, genotypes_of, maximise_genotypes
from mixmem.refinement.ascent import Maximum, Point, memberships_inside
from mixmem.refinement.em import Cells, EMSteps, Rule, maximise_cells
from mixmem.typing import Array

NUMBER_STEPS = 3
"""EM steps of numbers after the moments. Memberships that rows seem to have are not quite theirs, so that more steps
err more again: chosen on simulated tables of 16 and 60 columns."""


def most_likely(table: Encoded, theta: Array, memberships: Array, *, progress: Progress) -> Maximum:
    """Theta (rows, k) and memberships (n, k) at the maximum of the likelihood, from where they are."""
    if are_genotypes(table.schema):
        return maximise_genotypes(genotypes_of(table), theta, memberships, weights=table.weights, progress=progress)
    cells = LikelihoodTable(table)
    draws = Cells(cells.codes, cells.starts, cells.absent)
    return maximise_cells(draws, _rule(cells, table), theta, memberships, weights=table.weights, progress=progress)


def numbers_refitted(table: Encoded, theta: Array, alpha: Array, *, progress: Progress) -> Array:
    """Return theta (rows, k) with the statistics of numbers made more likely, given the memberships that go with it.

    Moments know a variance as a small difference of large sums; given memberships the likelihood knows it better.
    """
    if not table.schema.has("number").any():
        return theta
    with progress.stage("numbers"):
        cells = LikelihoodTable(table)
        memberships = memberships_inside(fit_rows(table, theta, alpha, memberships="mode").memberships)
        steps = EMSteps(Cells(cells.codes, cells.starts, cells.absent), _rule(cells, table), table.weights)
        own = np.concatenate([group.theta_rows.ravel() for group in cells.numbers])
        for _ in range(NUMBER_STEPS):
            found = steps.step(Point(theta, memberships)).to.theta
            theta = theta.copy()
            theta[own] = found[own]
    return theta


def _rule(cells: LikelihoodTable, table: Encoded) -> Rule:
    """Return how theta belongs to the cells of a table."""
    weights = table.each
    return Rule(
        cells.likelihoods,
        cells.fitted,
        cells.inside,
        cells.units,
        (lambda at: float(weights @ cells.scale(at))) if cells.numbers else None,
    )


def dirichlet_of(memberships: Array, weights: Array | None = None) -> Array:
    """The alpha (k,) of a Dirichlet distribution with the means and the total variance of memberships (n, k).

    >>> import numpy as np
    >>> drawn = np.random.default_rng(0).dirichlet([0.2, 0.6], 5000)
    >>> dirichlet_of(drawn).round(1)
    array([0.2, 0.6])
    """
    mean = np.average(memberships, axis=0, weights=weights)
    variance = np.average((memberships - mean) ** 2, axis=0, weights=weights).sum()
    most = float((mean * (1.0 - mean)).sum())
    alpha0 = np.clip(most / max(variance, 1e-12) - 1.0, 0.01, 200.0)
    return np.asarray(alpha0 * np.maximum(mean, 1e-6))
