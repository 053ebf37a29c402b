"""The most likely theta and memberships of a table of any kinds, and what population geneticists expect of it.

Tables of diploid loci with two alleles each have a start and steps of their own (:mod:`mixmem.em`): the model and the
likelihood are those of ADMIXTURE, sum of g log f + (2 - g) log(1 - f) over observed genotypes g, f the frequency that
the sample's memberships give the locus.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixmem.assemble import concentration
from mixmem.em import Cells, Genotypes, Maximum, Rule, maximise_cells, maximise_genotypes
from mixmem.encoding import Encoded
from mixmem.errors import InputError
from mixmem.estimate import Estimate
from mixmem.evidence import Evidence
from mixmem.leading import admixture_start
from mixmem.match import match_columns
from mixmem.moments import Array, row_weights
from mixmem.progress import Progress
from mixmem.schema import Schema

MISSING = 3
"""Code of a missing genotype."""


def are_genotypes(schema: Schema) -> bool:
    """Whether all variables are diploid loci of two alleles."""
    return all(v.kind == "dosage" and len(v.levels) == 2 and v.ploidy == 2 for v in schema.variables)


def genotypes_of(table: Encoded) -> Genotypes:
    """A table of diploid loci of two alleles, as it is maximised."""
    rows = table.schema.offsets[:-1]
    return Genotypes(np.asarray(table.codes, dtype=np.uint8), rows + 1, rows)


def genotype_start(table: Encoded, k: int, alpha0: float, seed: np.random.SeedSequence) -> Estimate:
    """Where the likelihood of genotypes is climbed from, in place of the moment estimate."""
    start = admixture_start(genotypes_of(table), k, np.random.default_rng([*seed.generate_state(4), 5]))
    even = concentration(np.average(start.memberships, axis=0, weights=table.weights), alpha0)
    kept = match_columns(start.theta, start.theta)
    return Estimate(start.theta, even, (), None, kept, start.memberships)


def most_likely(table: Encoded, theta: Array, memberships: Array, *, progress: Progress) -> Maximum:
    """Theta (rows, k) and memberships (n, k) at the maximum of the likelihood, from where they are."""
    if are_genotypes(table.schema):
        return maximise_genotypes(genotypes_of(table), theta, memberships, weights=table.weights, progress=progress)
    evidence = Evidence(table.codes, table.schema)
    weights = row_weights(table.codes, table.weights)
    rule = Rule(
        evidence.table,
        lambda counts, _: evidence.fitted(counts),
        evidence.inside,
        evidence.units,
        (lambda at: float(weights @ evidence.scale(at))) if evidence.numbers else None,
    )
    cells = Cells(evidence.codes, evidence.starts, evidence.absent)
    return maximise_cells(cells, rule, theta, memberships, weights=table.weights, progress=progress)


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


def cross_validation(
    table: Encoded,
    theta: Array,
    memberships: Array,
    *,
    folds: int,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> float:
    """Mean deviance of genotypes that were hidden, one fold after the other, as ADMIXTURE reports it.

    Every observed genotype is in one of the folds. The fit without a fold starts from that of the whole table. Of a
    genotype g predicted as m = 2 f copies the deviance is g log(g / m) + (2 - g) log((2 - g) / (2 - m)).
    """
    if not are_genotypes(table.schema):
        raise InputError("cross-validation hides genotypes; expected a table of diploid loci with two alleles each")
    if folds < 2:
        raise InputError(f"cross-validation needs at least 2 folds; got {folds}")
    whole = genotypes_of(table)
    seen = whole.codes < MISSING
    rng = np.random.default_rng(seed)
    fold = rng.integers(folds, size=seen.shape, dtype=np.uint8 if folds < 256 else np.uint16)
    total = 0.0
    with progress.stage("cross-validation", folds) as step:
        for hidden in range(folds):
            out = seen & (fold == hidden)
            part = Genotypes(np.where(out, MISSING, whole.codes).astype(np.uint8), whole.rows, whole.others)
            found = maximise_genotypes(part, theta, memberships, weights=table.weights, tol=1e-6, progress=Progress())
            total += _deviance(whole.codes, out, found.memberships, found.theta[whole.rows])
            step(1)
    return total / max(int(seen.sum()), 1)


def _deviance(
    codes: NDArray[np.uint8], hidden: NDArray[np.bool_], memberships: Array, frequencies: Array, rows: int = 256
) -> float:
    """Deviance of the hidden genotypes (n, m), summed; memberships (n, k), frequencies (m, k)."""
    total = 0.0
    for begin in range(0, len(codes), rows):
        part = slice(begin, begin + rows)
        g = codes[part][hidden[part]].astype(float)
        copies = np.clip(2.0 * (memberships[part] @ frequencies.T)[hidden[part]], 1e-9, 2.0 - 1e-9)
        total += float((_entropy(g, copies) + _entropy(2.0 - g, 2.0 - copies)).sum())
    return total


def _entropy(g: Array, copies: Array) -> Array:
    """g log(g / copies), 0 where g is."""
    return np.asarray(np.where(g > 0.0, g * np.log(np.maximum(g, 1.0) / copies), 0.0))
