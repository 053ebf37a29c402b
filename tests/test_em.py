"""EM on theta and memberships together: the steps are right, and the likelihood never falls."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mixmem import GDLM, simulate_gdlm
from mixmem.em import _Point, _Step, maximise
from mixmem.kernels import ROW_BLOCK, threads
from mixmem.progress import Progress

TABLE = simulate_gdlm(ROW_BLOCK + 90, 15, 3, n_levels=3, random_state=0)


def naive_step(codes, schema, theta, x):
    """Responsibilities cell by cell."""
    new_x, new_theta, value = np.zeros_like(x), np.zeros_like(theta), 0.0
    for i, row in enumerate(codes):
        for j, c in enumerate(row):
            at = schema.offsets[j] + c
            share = theta[at] * x[i]
            value += np.log(share.sum())
            share /= share.sum()
            new_x[i] += share / len(row)
            new_theta[at] += share
    sums = np.add.reduceat(new_theta, schema.offsets[:-1], axis=0)
    return new_theta / np.repeat(sums, schema.n_levels, axis=0), new_x, value / len(codes)


def start(seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(3), (15, 3)).transpose(0, 2, 1).reshape(45, 3)
    return theta, rng.dirichlet(np.ones(3), len(TABLE.codes))


def test_a_step_is_the_textbook_step():
    theta, x = start()
    point, value = _Step(TABLE.codes, TABLE.schema)(_Point(theta, x))
    expected = naive_step(TABLE.codes, TABLE.schema, theta, x)
    assert np.allclose(point.theta, expected[0], atol=1e-11)
    assert np.allclose(point.memberships, expected[1], atol=1e-11)
    assert np.isclose(value, expected[2])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_the_likelihood_never_falls_from_any_start(seed):
    found = maximise(TABLE.codes, TABLE.schema, *start(seed), progress=Progress(), tol=0.0, max_rounds=15)
    assert (np.diff(found.history) >= -1e-9).all()
    assert np.allclose(np.add.reduceat(found.theta, TABLE.schema.offsets[:-1], axis=0), 1.0)
    assert np.allclose(found.memberships.sum(axis=1), 1.0)


def test_acceleration_gets_further_than_as_many_plain_steps():
    theta, x = start()
    fast = maximise(TABLE.codes, TABLE.schema, theta, x, progress=Progress(), tol=0.0, max_rounds=20)
    step, point = _Step(TABLE.codes, TABLE.schema), _Point(theta, x)
    for _ in range(60):
        point, value = step(point)
    assert fast.history[-1] > value


def test_the_same_on_any_number_of_threads():
    found = []
    for n_jobs in (1, 2):
        with threads(n_jobs):
            found.append(maximise(TABLE.codes, TABLE.schema, *start(), progress=Progress(), max_rounds=5))
    assert (found[0].theta == found[1].theta).all()
    assert found[0].history == found[1].history


def test_a_fit_by_em_reports_its_likelihood():
    model = GDLM(3, alpha0=0.3, refine="em", random_state=0).fit(TABLE.encoded)
    report = model.report_["refine"]
    assert report["method"] == "em"
    history = report["em"]["likelihood_given_memberships"]
    assert history[-1] > history[0]
    assert report["likelihood_before"] != report["likelihood_after"]
