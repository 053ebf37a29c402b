"""Cross-validation of genotypes as ADMIXTURE reports it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.errors import InputError
from mixmem.progress import Progress
from mixmem.refinement.admixture import MISSING, Genotypes, are_genotypes, genotypes_of, maximise_genotypes
from mixmem.refinement.admixture_start import admixture_start
from mixmem.typing import Array

FOLD_TOLERANCE = 1e-6
"""Gain per draw below which a fold's fit ends: its error is a mean over cells, which single memberships hardly move."""


def cross_validation(table: Encoded, k: int, *, folds: int, seed: np.random.SeedSequence, progress: Progress) -> float:
    """Return the mean deviance of genotypes that were hidden, one fold after the other, as ADMIXTURE reports it.

    Every observed genotype is in one of the folds. The fit of k components without a fold has a start of its own, which
    the fold had no part in. Of a genotype g predicted as m = 2 f copies the deviance is g log(g / m) + (2 - g)
    log((2 - g) / (2 - m)).
    """
    if not are_genotypes(table.schema):
        raise InputError("cross-validation hides genotypes; expected a table of diploid loci with two alleles each")
    if folds < 2:
        raise InputError(f"cross-validation needs at least 2 folds; got {folds}")
    whole = genotypes_of(table)
    seen = whole.codes < MISSING
    own, *starts = seed.spawn(1 + folds)
    rng = np.random.default_rng(own)
    fold = rng.integers(folds, size=seen.shape, dtype=np.uint8 if folds < 256 else np.uint16)
    total = 0.0
    with progress.stage("cross-validation", folds) as step:
        for hidden, start in enumerate(starts):
            out = seen & (fold == hidden)
            part = Genotypes(np.where(out, MISSING, whole.codes).astype(np.uint8), whole.rows, whole.others)
            begin, _ = admixture_start(part, k, np.random.default_rng(start))
            found = maximise_genotypes(
                part, begin.theta, begin.memberships, weights=table.weights, tol=FOLD_TOLERANCE, settled=np.inf,
                progress=Progress(),
            )  # fmt: skip
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
