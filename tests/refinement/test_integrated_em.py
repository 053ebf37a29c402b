"""EM with memberships integrated out: nearer to the truth than the moments in long rows, the same at any threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mixmem import GDLM, InputError, rmse, simulate_gdlm, simulate_mixed
from mixmem.data.encode import Encoded
from mixmem.engine.local import threads
from mixmem.likelihood.table import LikelihoodTable
from mixmem.moments.components import align_components
from mixmem.progress import Progress
from mixmem.refinement.choose import choose_method
from mixmem.refinement.integrated_em import integrate_memberships, learned_eta

TABLE = simulate_gdlm(1300, 220, 3, n_levels=3, alpha=0.5, random_state=0)


def started():
    """Return theta and alpha near the truth."""
    rng = np.random.default_rng(1)
    theta = LikelihoodTable(TABLE.encoded).inside(
        TABLE.theta + rng.normal(0.0, 0.03, TABLE.theta.shape).clip(-0.1, 0.1)
    )
    return theta, TABLE.alpha


def test_a_fit_of_long_rows_comes_nearer_to_the_truth():
    errors = {}
    for refine in (None, "auto"):
        model = GDLM(3, alpha0=1.5, refine=refine, random_state=0).fit(TABLE.encoded)
        order = align_components(TABLE.theta, model._theta)
        memberships = rmse(TABLE.memberships, model.memberships_[:, order])
        errors[refine] = rmse(TABLE.theta, model._theta), memberships
    assert model.report_.refine.method == "integrated"
    assert len(model.report_.refine.integrated.changes) == 5
    assert 0.3 < model.report_.refine.integrated.theta_prior < 0.8  # drawn from Dirichlet(0.5)
    assert errors["auto"][0] < 0.98 * errors[None][0]
    assert errors["auto"][1] < 1.01 * errors[None][1]
    assert (model.transform(TABLE.codes) == model.memberships_).all()


def test_rounds_are_the_same_at_any_number_of_threads():
    found = []
    for n_jobs in (1, 3):
        with threads(n_jobs):
            found.append(integrate_memberships(TABLE.encoded, *started(), progress=Progress(), rounds=2))
    assert (found[0].theta == found[1].theta).all()
    assert (found[0].alpha == found[1].alpha).all()


def test_rows_that_stand_for_several_count_as_often():
    times = 1 + np.arange(200) % 3
    part = TABLE.encoded.take(slice(0, 200))
    tables = replace(part, weights=times.astype(float)), part.take(np.repeat(np.arange(200), times))
    found = [integrate_memberships(table, *started(), progress=Progress(), rounds=2) for table in tables]
    assert np.allclose(found[0].theta, found[1].theta, atol=1e-9)
    assert np.allclose(found[0].alpha, found[1].alpha, atol=1e-9)


@pytest.mark.parametrize("eta", [0.2, 1.0, 4.0])
def test_the_priors_strength_is_learned(eta):
    rng = np.random.default_rng(3)
    theta = rng.dirichlet(np.full(3, eta), size=(220, 3))
    counts = rng.multinomial(60, theta).transpose(0, 2, 1).reshape(660, 3)
    assert learned_eta(counts.astype(float), LikelihoodTable(TABLE.encoded)) == pytest.approx(eta, rel=0.15)


def test_numbers_are_refused_and_left_alone():
    table = simulate_mixed(30, 2, n_categorical=200, n_count=1, n_continuous=0, random_state=0).encoded
    with pytest.raises(InputError, match="refine='integrated' takes columns of categories, and 'count0' holds numbers"):
        choose_method("integrated", table, 2)
    assert choose_method("auto", table, 2)[0] is None


def test_tables_that_would_take_long_are_left_to_those_who_ask():
    table = Encoded.of(np.zeros((60_000, 220), dtype=np.uint8), TABLE.coding)
    method, reason, _ = choose_method("auto", table, 80)
    assert method is None
    assert "refine='integrated'" in reason
    assert choose_method("integrated", table, 80)[0] == "integrated"


def test_few_rows_are_left_to_the_moments():
    assert choose_method("auto", TABLE.encoded, 3)[0] == "integrated"
    method, reason, _ = choose_method("auto", TABLE.encoded, 4)
    assert method is None
    assert "1300 rows are too few" in reason
