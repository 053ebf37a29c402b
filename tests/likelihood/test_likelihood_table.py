"""What cells say of their rows: the table of likelihoods, missing cells, genotypes, numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from mixmem import GDLM, Schema, Variable, encode, fit_rows, row_likelihood, simulate_gdlm
from mixmem.likelihood.table import LEAST_PROBABILITY, Evidence
from mixmem.progress import Progress
from mixmem.results.simulate import draw_values, simulate_mixed
from mixmem.results.uncertainty import membership_intervals

MIXED = simulate_mixed(400, 3, n_categorical=3, n_count=3, n_continuous=3, missing=0.2, random_state=0)


def without(table, j):
    """Codes, schema and theta without variable j."""
    rows = np.repeat(np.arange(table.schema.n_variables) != j, table.schema.sizes)
    variables = [v for i, v in enumerate(table.schema.variables) if i != j]
    return np.ascontiguousarray(np.delete(table.codes, j, axis=1)), Schema(tuple(variables)), table.theta[rows]


def test_missing_cells_say_nothing():
    """Their rows of the table are one, and the kernels skip them."""
    evidence = Evidence(MIXED.codes, MIXED.schema)
    table = evidence.table(MIXED.theta)
    assert (evidence.absent >= 0).all()
    assert (table[evidence.starts + evidence.absent] == 1).all()
    assert (evidence.lengths == (MIXED.codes != MIXED.schema.features.absent).sum(axis=1)).all()
    assert table.min() >= LEAST_PROBABILITY
    assert evidence.n_rows == len(table) == MIXED.schema.features.n_cells


def test_complete_categories_have_theta_for_their_table():
    drawn = simulate_gdlm(50, 6, 3, random_state=0)
    evidence = Evidence(drawn.codes, drawn.schema)
    assert evidence.plain
    assert evidence.codes is drawn.codes
    assert (evidence.table(drawn.theta) == np.maximum(drawn.theta, LEAST_PROBABILITY)).all()
    assert (evidence.starts == drawn.schema.offsets[:-1]).all()
    assert (evidence.scale(drawn.theta) == 0).all()
    assert (evidence.marks(drawn.theta) == np.tile(np.arange(4), 6)).all()


def test_the_likelihood_of_numbers_is_their_density():
    """Table and scale together, where the floor does not count."""
    theta = MIXED.theta.copy()
    evidence = Evidence(MIXED.codes, MIXED.schema)
    table, total = evidence.table(theta), np.zeros((400, 3))
    for j, variable in enumerate(MIXED.schema.variables):
        own = theta[MIXED.schema.offsets[j] : MIXED.schema.offsets[j + 1]]
        seen = MIXED.codes[:, j] < MIXED.schema.features.absent[j]
        code = MIXED.codes[seen, j]
        if variable.kind == "count":
            logs = stats.nbinom(1e5, 1e5 / (1e5 + own[0])).logpmf(variable.values[code][:, None])
        elif variable.kind == "continuous":
            logs = stats.norm(own[0], np.sqrt(own[1])).logpdf(variable.values[code][:, None])
        else:
            logs = np.log(np.maximum(own[code], LEAST_PROBABILITY))
        if variable.is_number:
            logs = np.maximum(logs, logs.max(axis=1, keepdims=True) + np.log(LEAST_PROBABILITY))
        total[seen] += logs
    found = sum(np.log(table[evidence.starts[c] + evidence.codes[:, c]]) for c in range(9))
    assert np.allclose(found + evidence.scale(theta)[:, None], total, atol=1e-9)


def test_a_genotype_is_a_column_for_every_copy():
    variables = (
        Variable("a", ("x", "y", "z")),
        Variable("g", ("A", "G"), kind="dosage", missing=True),
        Variable("h", ("A", "C", "G"), kind="dosage"),
        Variable("t", ("A", "G"), kind="dosage", ploidy=4),
    )
    codes = np.array([[0, 0, 0, 0], [1, 1, 3, 3], [2, 3, 5, 4]], np.uint8)
    evidence = Evidence(codes, Schema(variables))
    assert evidence.variables.tolist() == [0, 1, 1, 2, 2, 3, 3, 3, 3]
    assert evidence.codes.tolist() == [
        [0, 0, 0, 0, 0, 0, 0, 0, 0],
        [1, 0, 1, 0, 2, 0, 1, 1, 1],
        [2, 2, 2, 2, 2, 1, 1, 1, 1],
    ]
    assert evidence.absent.tolist() == [-1, 2, 2, -1, -1, -1, -1, -1, -1]
    assert evidence.lengths.tolist() == [9, 9, 7]
    theta = np.random.default_rng(0).dirichlet(np.ones(2), 10)[:, :2]
    table = evidence.table(theta)
    assert (table[[0, 1, 2, 3, 4, 6, 7, 8, 9, 10]] == theta).all()
    assert (table[5] == 1).all()


def test_genotypes_have_the_answers_of_their_copies_laid_out():
    """Memberships and likelihoods of a diploid table are those of twice as many columns of alleles."""
    rng = np.random.default_rng(1)
    p = 12
    theta = rng.beta(0.5, 0.5, (p, 3))
    theta = np.stack([1 - theta, theta], axis=1).reshape(-1, 3)
    alpha = np.array([0.3, 0.4, 0.5])
    alleles = np.array([rng.random((2, p)) < (x @ theta[1::2].T) for x in rng.dirichlet(alpha, 60)])
    copies = np.sort(alleles, axis=1).astype(np.uint8)
    genotypes = Schema(tuple(Variable(f"g{j}", ("0", "1"), kind="dosage") for j in range(p)))
    haploid = Schema(tuple(Variable(f"g{j}_{c}", ("0", "1")) for j in range(p) for c in range(2)))
    wide = np.ascontiguousarray(copies.transpose(0, 2, 1).reshape(60, -1))
    one = fit_rows(alleles.sum(axis=1).astype(np.uint8), genotypes, theta, alpha)
    other = fit_rows(wide, haploid, np.repeat(theta.reshape(p, 2, 3), 2, axis=0).reshape(-1, 3), alpha)
    assert (one.memberships == other.memberships).all()
    assert (one.marginal == other.marginal).all()


@pytest.mark.parametrize("j", [1, 4, 7])
def test_a_missing_cell_is_a_column_that_is_not_there(j):
    """Of a category, a count, a continuous number."""
    gone = MIXED.codes.copy()
    gone[:, j] = MIXED.schema.features.absent[j]
    one = fit_rows(gone, MIXED.schema, MIXED.theta, MIXED.alpha)
    codes, schema, theta = without(MIXED, j)
    other = fit_rows(codes, schema, theta, MIXED.alpha)
    assert (one.memberships == other.memberships).all()
    assert np.allclose(one.marginal, other.marginal, rtol=1e-13)
    assert (one.marginal > fit_rows(MIXED.codes, MIXED.schema, MIXED.theta, MIXED.alpha).marginal).mean() > 0.5
    particles = [
        row_likelihood(gone[:100], MIXED.schema, MIXED.theta, MIXED.alpha, 1000),
        row_likelihood(codes[:100], schema, theta, MIXED.alpha, 1000),
    ]
    assert np.abs(particles[0] - particles[1]).mean() < 0.05


def test_likelihood_of_a_row_integrates_the_memberships():
    """Against the mean over 100,000 draws of the memberships, with counts, continuous numbers and missing cells."""
    rows = MIXED.codes[:10]
    evidence = Evidence(rows, MIXED.schema)
    table = evidence.table(MIXED.theta)
    prior = np.random.default_rng(0).dirichlet(MIXED.alpha, size=100_000)
    exact = np.zeros(10)
    for i in range(10):
        cells = table[evidence.starts + evidence.codes[i]]
        exact[i] = logsumexp(np.log(prior @ cells.T).sum(axis=1)) - np.log(len(prior))
    exact += evidence.scale(MIXED.theta)
    found = row_likelihood(rows, MIXED.schema, MIXED.theta, MIXED.alpha, 5000)
    assert np.abs(found - exact).max() < 0.15


def test_rows_of_which_nothing_is_known():
    nothing = np.tile(MIXED.schema.features.absent, (2, 1)).astype(MIXED.codes.dtype)
    alpha = np.array([0.2, 0.5, 0.9])
    found = fit_rows(nothing, MIXED.schema, MIXED.theta, alpha)
    assert np.allclose(found.memberships, alpha / alpha.sum(), atol=1e-12)
    assert np.allclose(found.marginal, 0.0, atol=0.02)
    assert (row_likelihood(nothing, MIXED.schema, MIXED.theta, alpha) == 0).all()
    mean, error, _ = membership_intervals(nothing, MIXED.schema, MIXED.theta, alpha, 0.95, progress=Progress())
    assert np.abs(mean - alpha / alpha.sum()).max() < 0.1
    assert (error > 0.1).all()


@pytest.mark.slow
def test_equal_rows_have_equal_answers_in_any_company():
    """Values and codes of a continuous column belong to a table; what a row is told does not."""
    drawn = simulate_mixed(700, 3, n_categorical=0, n_count=0, n_continuous=8, missing=0.1, random_state=2)
    model = GDLM(3, alpha0=0.9, refine=None, random_state=0).fit(drawn.frame)
    some = np.arange(700) % 7 == 3
    shuffled = drawn.frame[some][::-1]
    for method in (model.score_samples, model.transform):
        together, apart = method(drawn.frame), method(shuffled)
        assert (together[some] == apart[::-1]).all()
    one = model.membership_intervals(drawn.frame).estimate.to_numpy().reshape(700, 3)[some]
    assert (one == model.membership_intervals(shuffled).estimate.to_numpy().reshape(-1, 3)[::-1]).all()


def test_fitted_theta_of_known_components():
    """Cells counted by the component that made them give that component's theta."""
    rng = np.random.default_rng(3)
    schema = Schema(tuple(replace(variable, missing=False) for variable in MIXED.schema.variables))
    component = rng.integers(0, 3, 30_000)
    table = encode(draw_values(schema, MIXED.theta, np.eye(3)[component], rng), schema)
    evidence = Evidence(table.codes, table.schema)
    counts = np.zeros((evidence.n_rows, 3))
    for c in range(9):
        np.add.at(counts, (evidence.starts[c] + table.codes[:, c], component), 1.0)
    theta = evidence.fitted(counts)
    assert np.abs((theta - MIXED.theta) / evidence.units).max() < 0.08
    drawn = np.empty_like(theta)
    for rows, found in evidence.draw_numbers(counts, theta, rng):
        drawn[rows] = found.mean
    numbers = np.repeat([variable.is_number for variable in schema.variables], schema.sizes)
    assert np.abs((drawn - theta) / evidence.units)[numbers].max() < 0.08  # of counts it is a draw
