"""Genotypes whose likelihood has several maxima: the likeliest is kept, and those nearly as likely are told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mixmem import GDLM, FitWarning
from mixmem.data.encode import encode_as
from mixmem.refinement.admixture_start import apart, genotype_starts
from mixmem.seeds import seed_sequence


def drawn(n, m, k, difference, seed):
    """Genotypes of k populations whose frequencies differ by so much (F_ST), with mixed memberships."""
    rng = np.random.default_rng(seed)
    ancestral, strength = rng.uniform(0.1, 0.9, m), (1.0 - difference) / difference
    frequencies = rng.beta(ancestral * strength, (1.0 - ancestral) * strength, (k, m))
    frame = pd.DataFrame(rng.binomial(2, rng.dirichlet(np.full(k, 0.4), n) @ frequencies)).add_prefix("s")
    return encode_as(frame, dict.fromkeys(frame, "dosage"), None, None)


def test_clear_structure_has_one_start():
    assert len(genotype_starts(drawn(100, 400, 3, 0.2, 0), 3, 1.0, seed_sequence(0))) == 1


def test_weak_structure_is_climbed_from_several_starts_and_says_so():
    table = drawn(150, 400, 3, 0.02, 0)
    with pytest.warns(FitWarning, match="nearly as likely"):
        model = GDLM(3, random_state=0).fit(table)
    likelihoods = [start.log_likelihood for start in model.report_.refine.starts]
    assert len(likelihoods) > 1
    assert model.report_.refine.em.likelihood_given_memberships[-1] == max(likelihoods)
    assert "several-maxima" in [notice.code for notice in model.report_.warnings]


def test_memberships_in_another_order_are_not_apart():
    x = np.random.default_rng(0).dirichlet(np.ones(4), 30)
    assert apart(x, x[:, [2, 0, 3, 1]]) == 0.0
    assert apart(x, x[::-1]) > 0.05
