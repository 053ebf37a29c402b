"""What cells say of their rows: the table of likelihoods, missing cells, genotypes, numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from mixmem import GDLM, Schema, Variable, encode, fit_rows, row_likelihood, simulate_gdlm
from mixmem.data.coding import Coding, ColumnCoding
from mixmem.data.encode import Encoded
from mixmem.data.kinds.continuous import DEGREES, FAR
from mixmem.likelihood.table import LEAST_PROBABILITY, LikelihoodTable
from mixmem.progress import Progress
from mixmem.results.simulate import draw_values, simulate_mixed
from mixmem.results.uncertainty import membership_intervals

MIXED = simulate_mixed(400, 3, n_categorical=3, n_count=3, n_continuous=3, missing=0.2, random_state=0)


def without(table, j):
    """Table and theta without variable j."""
    others = np.arange(table.schema.n_variables) != j
    return table.encoded.take_variables(np.flatnonzero(others)), table.theta[np.repeat(others, table.schema.sizes)]


def test_missing_cells_say_nothing():
    """Their rows of the table are one, and the kernels skip them."""
    cells = LikelihoodTable(MIXED.encoded)
    likely = cells.likelihoods(MIXED.theta)
    assert (cells.absent >= 0).all()
    assert (likely[cells.starts + cells.absent] == 1).all()
    assert (cells.lengths == (MIXED.codes != MIXED.coding.soft.absent).sum(axis=1)).all()
    assert likely.min() >= LEAST_PROBABILITY
    assert cells.n_rows == len(likely) == MIXED.coding.soft.n_cells


def test_complete_categories_have_theta_for_their_table():
    drawn = simulate_gdlm(50, 6, 3, random_state=0)
    cells = LikelihoodTable(drawn.encoded)
    assert cells.plain
    assert cells.codes is drawn.codes
    assert (cells.likelihoods(drawn.theta) == np.maximum(drawn.theta, LEAST_PROBABILITY)).all()
    assert (cells.starts == drawn.schema.offsets[:-1]).all()
    assert (cells.scale(drawn.theta) == 0).all()
    assert (cells.marks(drawn.theta) == np.tile(np.arange(4), 6)).all()


def test_the_likelihood_of_numbers_is_their_density():
    """Table and scale together, where the floor does not count."""
    theta = MIXED.theta.copy()
    cells = LikelihoodTable(MIXED.encoded)
    likely, total = cells.likelihoods(theta), np.zeros((400, 3))
    for j, column in enumerate(MIXED.coding.columns):
        own = theta[MIXED.schema.offsets[j] : MIXED.schema.offsets[j + 1]]
        seen = MIXED.codes[:, j] < MIXED.coding.soft.absent[j]
        code = MIXED.codes[seen, j]
        if column.kind == "count":
            logs = stats.nbinom(1e5, 1e5 / (1e5 + own[0])).logpmf(column.values[code][:, None])
        elif column.kind == "continuous":
            near, far = stats.norm(own[0], np.sqrt(own[1])), stats.t(DEGREES, own[0], np.sqrt(own[1]))
            at = column.values[code][:, None]
            logs = np.log((1.0 - FAR) * near.pdf(at) + FAR * far.pdf(at))
        else:
            logs = np.log(np.maximum(own[code], LEAST_PROBABILITY))
        if column.is_number:
            logs = np.maximum(logs, logs.max(axis=1, keepdims=True) + np.log(LEAST_PROBABILITY))
        total[seen] += logs
    found = sum(np.log(likely[cells.starts[c] + cells.codes[:, c]]) for c in range(9))
    assert np.allclose(found + cells.scale(theta)[:, None], total, atol=1e-9)


def test_logs_are_those_of_table_and_scale_together():
    for drawn in (MIXED, simulate_gdlm(50, 6, 3, random_state=0)):
        cells = LikelihoodTable(drawn.encoded)
        logs = cells.log_likelihoods(drawn.theta)
        found = logs[cells.starts + cells.codes].sum(axis=1)
        likely = np.log(cells.likelihoods(drawn.theta))[cells.starts + cells.codes].sum(axis=1)
        assert np.allclose(found, likely + cells.scale(drawn.theta)[:, None], rtol=1e-12)


def test_a_genotype_is_a_column_for_every_copy():
    columns = (
        ColumnCoding(Variable("a", ("x", "y", "z"))),
        ColumnCoding(Variable("g", ("A", "G"), kind="dosage"), missing=True),
        ColumnCoding(Variable("h", ("A", "C", "G"), kind="dosage")),
        ColumnCoding(Variable("t", ("A", "G"), kind="dosage", ploidy=4)),
    )
    codes = np.array([[0, 0, 0, 0], [1, 1, 3, 3], [2, 3, 5, 4]], np.uint8)
    cells = LikelihoodTable(Encoded.of(codes, Coding(columns)))
    assert cells.variables.tolist() == [0, 1, 1, 2, 2, 3, 3, 3, 3]
    assert cells.codes.tolist() == [
        [0, 0, 0, 0, 0, 0, 0, 0, 0],
        [1, 0, 1, 0, 2, 0, 1, 1, 1],
        [2, 2, 2, 2, 2, 1, 1, 1, 1],
    ]
    assert cells.absent.tolist() == [-1, 2, 2, -1, -1, -1, -1, -1, -1]
    assert cells.lengths.tolist() == [9, 9, 7]
    theta = np.random.default_rng(0).dirichlet(np.ones(2), 10)[:, :2]
    likely = cells.likelihoods(theta)
    assert (likely[[0, 1, 2, 3, 4, 6, 7, 8, 9, 10]] == theta).all()
    assert (likely[5] == 1).all()


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
    dosages = alleles.sum(axis=1).astype(np.uint8)
    one = fit_rows(Encoded.of(dosages, Coding.of(genotypes)), theta, alpha)
    twice = np.repeat(theta.reshape(p, 2, 3), 2, axis=0).reshape(-1, 3)
    other = fit_rows(Encoded.of(wide, Coding.of(haploid)), twice, alpha)
    assert (one.memberships == other.memberships).all()
    assert (one.conditional == other.conditional).all()


@pytest.mark.parametrize("j", [1, 4, 7])
def test_a_missing_cell_is_a_column_that_is_not_there(j):
    """Of a category, a count, a continuous number."""
    codes = MIXED.codes.copy()
    codes[:, j] = MIXED.coding.soft.absent[j]
    gone = Encoded.of(codes, MIXED.coding)
    one = fit_rows(gone, MIXED.theta, MIXED.alpha)
    rest, theta = without(MIXED, j)
    other = fit_rows(rest, theta, MIXED.alpha)
    assert (one.memberships == other.memberships).all()
    likely = [row_likelihood(part, own, MIXED.alpha) for part, own in ((gone, MIXED.theta), (rest, theta))]
    assert np.allclose(*likely, rtol=1e-11)


def test_likelihood_of_a_row_integrates_the_memberships():
    """Against the mean over 100,000 draws of the memberships, with counts, continuous numbers and missing cells."""
    rows = MIXED.encoded.take(slice(10))
    cells = LikelihoodTable(rows)
    likely = cells.likelihoods(MIXED.theta)
    prior = np.random.default_rng(0).dirichlet(MIXED.alpha, size=100_000)
    exact = np.zeros(10)
    for i in range(10):
        own = likely[cells.starts + cells.codes[i]]
        exact[i] = logsumexp(np.log(prior @ own.T).sum(axis=1)) - np.log(len(prior))
    exact += cells.scale(MIXED.theta)
    found = row_likelihood(rows, MIXED.theta, MIXED.alpha)
    assert np.abs(found - exact).max() < 0.05  # the draws' own error


def test_rows_of_which_nothing_is_known():
    codes = np.tile(MIXED.coding.soft.absent, (2, 1)).astype(MIXED.codes.dtype)
    nothing = Encoded.of(codes, MIXED.coding)
    alpha = np.array([0.2, 0.5, 0.9])
    found = fit_rows(nothing, MIXED.theta, alpha)
    assert np.allclose(found.memberships, alpha / alpha.sum(), atol=1e-12)
    assert np.abs(row_likelihood(nothing, MIXED.theta, alpha)).max() < 1e-12
    mean, error, _ = membership_intervals(nothing, MIXED.theta, alpha, 0.95, progress=Progress())
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
    schema = MIXED.schema
    component = rng.integers(0, 3, 30_000)
    table = encode(draw_values(schema, MIXED.theta, np.eye(3)[component], rng), schema)
    cells = LikelihoodTable(table)
    counts = np.zeros((cells.n_rows, 3))
    for c in range(9):
        np.add.at(counts, (cells.starts[c] + table.codes[:, c], component), 1.0)
    theta = cells.fitted(counts, MIXED.theta)
    assert np.abs((theta - MIXED.theta) / cells.units).max() < 0.08
    drawn = np.empty_like(theta)
    for rows, found in cells.draw_numbers(counts, theta, rng):
        drawn[rows] = found.mean
    numbers = np.repeat([variable.is_number for variable in schema.variables], schema.sizes)
    assert np.abs((drawn - theta) / cells.units)[numbers].max() < 0.08  # of counts it is a draw
