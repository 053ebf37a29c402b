"""Cross-validation of genotypes: what is hidden has no part in the fit that predicts it."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem import GDLM, InputError
from mixmem.data.encode import encode
from mixmem.data.table import Locus, Table
from mixmem.progress import Progress
from mixmem.refinement import cross_validation as module
from mixmem.refinement.admixture import MISSING


def table(n=60, m=80, seed=0):
    """Genotypes of two populations, a few of them missing."""
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.05, 0.95, (2, m)).repeat(n // 2, axis=0)
    codes = rng.binomial(2, share).astype(np.int8)
    codes[rng.random(codes.shape) < 0.05] = -1
    loci = tuple(Locus(("A", "G"), "1", j) for j in range(m))
    return encode(Table(tuple(f"rs{j}" for j in range(m)), codes, n, loci=loci))


def test_every_fold_starts_from_the_genotypes_that_are_not_hidden(monkeypatch):
    drawn, starts, fits = table(), [], []
    begin, climb = module.admixture_start, module.maximise_genotypes

    def starting(genotypes, k, rng):
        starts.append((genotypes.codes, begin(genotypes, k, rng)[0]))
        return starts[-1][1], None

    def climbing(genotypes, theta, memberships, **options):
        fits.append((genotypes.codes, theta, memberships))
        return climb(genotypes, theta, memberships, **options)

    monkeypatch.setattr(module, "admixture_start", starting)
    monkeypatch.setattr(module, "maximise_genotypes", climbing)
    found = module.cross_validation(drawn, 2, folds=3, seed=np.random.SeedSequence(1), progress=Progress())
    assert 0.0 < found < 1.0
    hidden = np.stack([(codes == MISSING) & (drawn.codes != MISSING) for codes, _ in starts])
    assert (hidden.sum(axis=0) == (drawn.codes != MISSING)).all()  # every observed genotype in one fold
    for (codes, point), (fitted, theta, memberships) in zip(starts, fits, strict=True):
        assert codes is fitted
        assert theta is point.theta
        assert memberships is point.memberships


def test_the_error_depends_on_table_k_and_seed_alone():
    drawn = table()
    errors = [GDLM(2, random_state=0, refine=refine).fit(drawn).cross_validation(drawn, 3) for refine in (None, "em")]
    assert errors[0] == errors[1]
    more = GDLM(4, random_state=0).fit(drawn).cross_validation(drawn, 3)
    assert more > errors[0]  # two components too many predict worse
    with pytest.raises(InputError, match="at least 2 folds"):
        GDLM(2, random_state=0).fit(drawn).cross_validation(drawn, 1)
