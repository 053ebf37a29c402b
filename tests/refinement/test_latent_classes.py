"""Latent classes as a start, and fits that the moments alone cannot begin."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem import GDLM, InputError, align_components, rmse, row_likelihood, simulate_gdlm, simulate_mixed
from mixmem.moments.anchors import largest_k
from mixmem.moments.sums import first_moments
from mixmem.progress import Progress
from mixmem.refinement.latent_classes import STARTS, latent_class_start, within_reach

UNMIXED = simulate_gdlm(800, 16, 4, n_levels=2, alpha=0.001, random_state=0)


def classes(table, k, alpha0=0.01, seed=0):
    return latent_class_start(
        table, first_moments(table), k, alpha0, seed=np.random.SeedSequence(seed), progress=Progress()
    )  # fmt: skip


def test_classes_of_unmixed_rows_are_found():
    found = classes(UNMIXED.encoded, 4)
    theta = found.theta[:, align_components(UNMIXED.theta, found.theta)]
    assert rmse(UNMIXED.theta, theta) < 0.04
    assert found.alpha.sum() == pytest.approx(0.01)
    assert (found.account.way, found.account.converged, len(found.account.tried)) == ("latent classes", True, STARTS)
    # of rows that are in one class each, the likelihood of classes is that of the limit of small alpha0
    small = row_likelihood(UNMIXED.encoded, found.theta, 1e-3 * found.alpha).mean()
    assert small == pytest.approx(found.account.log_likelihood, abs=0.01)


def test_the_likelihood_never_falls_and_the_seed_decides():
    tried = classes(UNMIXED.encoded, 4, seed=1).account.tried
    assert tried == sorted(tried, reverse=True)
    one, same, other = (classes(UNMIXED.encoded, 4, seed=seed) for seed in (2, 2, 3))
    assert (one.theta == same.theta).all()
    assert one.account.tried != other.account.tried


def test_tables_of_all_kinds_with_missing_cells_and_weights():
    drawn = simulate_mixed(500, 2, n_categorical=4, n_count=3, n_continuous=3, alpha=0.01, missing=0.1, random_state=0)
    found = classes(drawn.encoded, 2)
    assert np.isfinite(found.theta).all()
    mean = row_likelihood(drawn.encoded, found.theta, found.alpha).mean()
    assert mean > row_likelihood(drawn.encoded, drawn.theta, drawn.alpha).mean() - 0.3


def test_what_the_moments_reach():
    assert within_reach(UNMIXED.encoded, largest_k(UNMIXED.coding))
    assert not within_reach(UNMIXED.encoded, largest_k(UNMIXED.coding) + 1)
    four = simulate_gdlm(100, 4, 2, n_levels=2, random_state=0).encoded
    with pytest.raises(InputError, match=r"n_components=4 has 19 unknowns, more than the 15 shares of different rows"):
        within_reach(four, 4)


@pytest.mark.slow
def test_more_components_than_anchors_can_hold_are_fitted():
    drawn = simulate_gdlm(1500, 16, 10, n_levels=2, alpha=0.1, random_state=1)
    model = GDLM(10, alpha0=1.0, random_state=0).fit(drawn.encoded)
    assert model.report_.start.way == "latent classes"
    assert "no-guarantee" in [notice.code for notice in model.report_.warnings]
    assert model.score(drawn.encoded) > row_likelihood(drawn.encoded, drawn.theta, drawn.alpha).mean() - 0.01


@pytest.mark.slow
def test_unmixed_rows_do_not_end_in_a_bad_mode():
    """Given so small an alpha0, a chain leaves no row's first component: where it begins decides."""
    model = GDLM(4, alpha0=0.01, random_state=0).fit(UNMIXED.encoded)
    assert {"moments", "latent classes"} <= {start.way for start in model.report_.refine.starts}
    assert rmse(UNMIXED.theta, model._theta[:, align_components(UNMIXED.theta, model._theta)]) < 0.05
    likelihood = classes(UNMIXED.encoded, 4).account.log_likelihood
    assert model.score(UNMIXED.encoded) > likelihood - 0.02


def test_more_unknowns_than_rows_are_refused():
    drawn = simulate_gdlm(200, 12, 3, n_levels=4, random_state=0)
    with pytest.raises(InputError, match="n_components=60 has 2,219 unknowns, more than the 200 rows can tell"):
        GDLM(60, random_state=0).fit(drawn.codes)


def test_anchors_that_were_asked_for_are_still_refused():
    names = [f"x{j}" for j in range(6)]
    with pytest.raises(InputError, match="more than the anchors can carry"):
        GDLM(5, alpha0=0.5, anchors=[names[:2], names[2:4], names[4:]]).fit(UNMIXED.codes)
