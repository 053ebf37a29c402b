"""The most likely theta and memberships of a table of any kinds, and what population geneticists expect of it.

Tables of diploid loci with two alleles each have a start and steps of their own (:mod:`mixmem.refinement.admixture`):
the model and the likelihood are those of ADMIXTURE, sum of g log f + (2 - g) log(1 - f) over observed genotypes g, f
the frequency that the sample's memberships give the locus.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.engine.rows import Arrays, Blocks, RowSum, sum_over
from mixmem.kernels.em import em_pass
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


CellsHeld = Callable[[Array, Array], Array]
"""The mean over all rows of a table, by codes and components, of the cells held at a theta and an alpha."""


def numbers_refitted(
    table: Encoded, theta: Array, alpha: Array, *, progress: Progress, everywhere: CellsHeld | None = None
) -> Array:
    """Return theta (rows, k) with the statistics of numbers made more likely, given the memberships that go with it.

    Moments know a variance as a small difference of large sums; given memberships the likelihood knows it better.
    Where the table is a sample, ``everywhere`` gives the means over all rows; what these have more than the sample's
    is held fixed.
    """
    if not table.schema.has("number").any():
        return theta
    with progress.stage("numbers"):
        cells = LikelihoodTable(table)
        memberships = memberships_inside(fit_rows(table, theta, alpha).memberships)
        extra: Array | float = 0.0
        if everywhere is not None:
            own = held_cells(table, theta, alpha).root[0] * cells.likelihoods(theta)
            extra = everywhere(theta, alpha) * table.total - own
        steps = EMSteps(Cells(cells.codes, cells.starts, cells.absent), _rule(cells, table), table.weights, extra)
        own = np.concatenate([group.theta_rows.ravel() for group in cells.numbers])
        for _ in range(NUMBER_STEPS):
            found = steps.step(Point(theta, memberships)).to.theta
            theta = theta.copy()
            theta[own] = found[own]
    return theta


def stepped(table: Encoded, theta: Array, alpha: Array) -> Array:
    """Return theta (rows, k) after one EM step, given the memberships that go with it.

    Where the model does not hold, moments may put levels at zero in components whose rows show them, and every such row
    is all but impossible. Each component is taken to hold a row of the table's means besides, so that a level which it
    does not show is not impossible either.
    """
    cells = LikelihoodTable(table)
    memberships = memberships_inside(fit_rows(table, theta, alpha).memberships)
    usual = np.zeros((cells.n_rows, 1))
    for column, start, absent in zip(cells.codes.T, cells.starts, cells.absent, strict=True):
        held = np.bincount(column, table.each)[: absent if absent >= 0 else None]
        usual[start : start + len(held), 0] += held / table.total
    steps = EMSteps(Cells(cells.codes, cells.starts, cells.absent), _rule(cells, table), table.weights, usual)
    return steps.step(Point(theta, memberships)).to.theta


def held_cells(table: Encoded, theta: Array, alpha: Array, first_stretch: int = 0) -> RowSum:
    """Return sums over rows which, times the cells' likelihoods, are the cells held (table's rows, k), given the rows'
    memberships."""
    cells = LikelihoodTable(table)
    x = memberships_inside(fit_rows(table, theta, alpha).memberships)
    slopes, likely = np.empty_like(x), np.ascontiguousarray(cells.likelihoods(theta))

    def fill(first: int, partials: Arrays) -> None:
        em_pass(cells.codes, cells.starts, cells.absent, likely, x, table.each, first, slopes, *partials)

    return sum_over(Blocks([likely.shape, ()], fill), table.n_rows, table.n_variables, first_stretch)


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

    >>> drawn = np.random.default_rng(0).dirichlet([0.2, 0.6], 5000)
    >>> dirichlet_of(drawn).round(1)
    array([0.2, 0.6])
    """
    mean = np.average(memberships, axis=0, weights=weights)
    variance = np.average((memberships - mean) ** 2, axis=0, weights=weights).sum()
    most = float((mean * (1.0 - mean)).sum())
    alpha0 = np.clip(most / max(variance, 1e-12) - 1.0, 0.01, 200.0)
    return np.asarray(alpha0 * np.maximum(mean, 1e-6))
