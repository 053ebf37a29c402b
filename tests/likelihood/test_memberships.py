from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from mixmem import Schema, Variable, fit_rows, rmse, row_likelihood, simulate_gdlm
from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded, encode
from mixmem.kernels.gibbs import membership_posterior
from mixmem.likelihood.table import LikelihoodTable


def pure(levels, p):
    """Theta whose components each own a level: every cell names its component."""
    schema = Schema(tuple(Variable(f"v{j}", tuple("abc"[:levels])) for j in range(p)))
    return Coding.of(schema), np.tile(np.eye(levels), (p, 1))


def test_where_cells_name_their_component_both_answers_are_exact():
    """The posterior is Dirichlet(alpha + counts): memberships are its mean, the marginal its normaliser."""
    coding, theta = pure(3, 8)
    codes = np.random.default_rng(0).integers(0, 3, (50, 8)).astype(np.uint8)
    alpha = np.array([0.2, 0.5, 0.9])
    table = Encoded.of(codes, coding)
    found = fit_rows(table, theta, alpha)
    counts = np.stack([(codes == h).sum(axis=1) for h in range(3)], axis=1)
    mean = (alpha + counts) / (alpha.sum() + 8)
    assert np.abs(found.memberships - mean).max() < 1e-4  # theta is held at 1e-6 from below, not at 0
    exact = gammaln(alpha.sum()) - gammaln(alpha.sum() + 8) + (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=1)
    assert np.abs(row_likelihood(table, theta, alpha) - exact).max() < 1e-3


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_rows_lie_on_the_simplex_and_are_optimal(seed, k):
    table = simulate_gdlm(40, 10, k, alpha=0.3, random_state=seed)
    found = fit_rows(table.encoded, table.theta, table.alpha)
    assert np.allclose(found.memberships.sum(axis=1), 1)
    assert (found.memberships > 0).all()
    assert found.gap.max() <= 1e-8


def test_memberships_approach_the_truth_as_rows_grow_longer():
    errors = []
    for p in (25, 400):
        table = simulate_gdlm(300, p, 4, alpha=0.3, random_state=0)
        errors.append(rmse(table.memberships, fit_rows(table.encoded, table.theta, table.alpha).memberships))
    assert errors[1] < 0.4 * errors[0]


def test_a_rows_answer_does_not_depend_on_its_company():
    table = simulate_gdlm(1300, 20, 3, random_state=1)
    together = fit_rows(table.encoded, table.theta, table.alpha)
    alone = fit_rows(table.encoded.take(slice(700, 701)), table.theta, table.alpha)
    assert (together.memberships[700] == alone.memberships[0]).all()
    assert together.conditional[700] == alone.conditional[0]


def test_means_are_those_of_sampled_memberships():
    """Against a sampler of the same posterior."""
    drawn = simulate_gdlm(40, 20, 3, alpha=0.3, random_state=9)
    cells, alpha = LikelihoodTable(drawn.encoded), drawn.alpha
    mean, error, bounds = np.empty((40, 3)), np.empty((40, 3)), np.empty((40, 2, 3))
    membership_posterior(
        cells.codes, cells.starts, cells.absent, cells.likelihoods(drawn.theta), cells.marks(drawn.theta), alpha, 100,
        4_000, np.array([0.1, 0.9]), mean, error, bounds,
    )  # fmt: skip
    found = fit_rows(drawn.encoded, drawn.theta, alpha)
    assert np.abs(found.memberships - mean).max() < 0.03
    assert (found.n_steps == 0).all()
    assert np.allclose(found.memberships.sum(axis=1), 1.0)
    mode = fit_rows(drawn.encoded, drawn.theta, alpha, memberships="mode")
    assert (mode.n_steps > 0).all()
    errors = [np.sqrt(((each.memberships - drawn.memberships) ** 2).mean()) for each in (found, mode)]
    assert errors[0] < errors[1]


def test_long_rows_take_the_mean_and_it_errs_less():
    drawn = simulate_gdlm(400, 300, 4, alpha=0.3, random_state=9)
    found, mode = (fit_rows(drawn.encoded, drawn.theta, drawn.alpha, memberships=rule) for rule in ("mean", "mode"))
    assert rmse(drawn.memberships, found.memberships) < rmse(drawn.memberships, mode.memberships)
    assert np.allclose(found.memberships.sum(axis=1), 1.0)
    assert (found.conditional < mode.conditional + 1.0).all()
    assert (found.n_steps == mode.n_steps).all()


def test_rows_of_a_long_table_with_few_cells_take_the_mode():
    drawn = simulate_gdlm(3, 120, 4, alpha=0.3, random_state=9)
    frame = drawn.frame.astype(object)
    frame.iloc[0, 60:] = None
    table = encode(frame, drawn.schema)
    found, mode = (fit_rows(table, drawn.theta, drawn.alpha, memberships=rule) for rule in ("mean", "mode"))
    assert (found.memberships[0] == mode.memberships[0]).all()
    assert (found.memberships[1:] != mode.memberships[1:]).any(axis=1).all()
