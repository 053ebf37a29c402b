"""Every kernel against its NumPy form, on shapes that do not divide the blocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from mixmem import Schema, Variable, simulate_gdlm
from mixmem.kernels import ROW_BLOCK
from mixmem.kernels.blocks import factorize_one
from mixmem.kernels.counts import block_triples, count_cells
from mixmem.kernels.grams import gram_sums
from mixmem.kernels.nqp import exact_rows, pqp_rows
from mixmem.kernels.particles import marginal_likelihood
from mixmem.kernels.passes import add_features, pair_sums, scatter_sums
from mixmem.kernels.simplex import memberships
from tests import naive


def ragged_table(seed=0, n=ROW_BLOCK + 77, levels=(2, 3, 5, 4, 2, 7, 3)):
    rng = np.random.default_rng(seed)
    variables = tuple(Variable(f"v{j}", tuple(map(str, range(d)))) for j, d in enumerate(levels))
    codes = np.stack([rng.integers(0, d, n) for d in levels], axis=1).astype(np.uint8)
    return np.ascontiguousarray(codes), Schema(variables)


def nothing_absent(codes):
    return np.full(codes.shape[1], -1)


def test_count_cells():
    codes, schema = ragged_table()
    flat = np.bincount((schema.offsets[:-1] + codes).ravel(), minlength=schema.n_rows)
    out = np.zeros(schema.n_rows)
    for first, last in ((0, 3), (3, 7)):  # ranges of variables add up
        count_cells(codes, schema.offsets, np.ones(len(codes)), first, last, out)
    assert (out == flat).all()


def test_count_cells_of_weighted_rows():
    codes, schema = ragged_table()
    weights = np.random.default_rng(1).random(len(codes))
    out = np.zeros(schema.n_rows)
    count_cells(codes, schema.offsets, weights, 0, 7, out)
    assert np.allclose(out, np.bincount((schema.offsets[:-1] + codes).ravel(), np.repeat(weights, 7)))


def two_ragged_blocks(schema):
    """Members, cells, local starts and sizes of two blocks, and the blocks."""
    blocks = [([0, 1], [2], [3, 4]), ([5], [6, 0], [1])]
    members, sizes = np.full((2, 3, 2), -1), np.zeros((2, 3), int)
    cells, local = np.zeros((2, 2, 3, 2), int)
    for b, modes in enumerate(blocks):
        for m, mode in enumerate(modes):
            members[b, m, : len(mode)] = mode
            cells[b, m, : len(mode)] = schema.offsets[mode]
            local[b, m, : len(mode)] = np.cumsum(schema.sizes[mode]) - schema.sizes[mode]
            sizes[b, m] = len(mode)
    return blocks, (members, cells, local, sizes)


def test_block_triples_of_two_ragged_blocks():
    codes, schema = ragged_table()
    blocks, places = two_ragged_blocks(schema)
    out = np.zeros((2, 8, 8, 8))
    for first, last in ((0, 1), (1, 4)):  # ranges of tasks add up
        block_triples(codes, np.ones(len(codes)), *places, *schema.features.levels, first, last, out)
    for b, modes in enumerate(blocks):
        expected = naive.raw_third(codes, schema, modes) * len(codes)
        inside = tuple(slice(d) for d in expected.shape)
        assert np.allclose(out[b][inside], expected, rtol=0, atol=1e-9)
        assert out[b].sum() == expected.sum()


def test_block_triples_of_cells_between_levels():
    """Every cell is a third of its own level and two thirds of another, rows have weights."""
    codes, schema = ragged_table(n=300)
    blocks, places = two_ragged_blocks(schema)
    rng = np.random.default_rng(2)
    weights = rng.random(len(codes))
    own = np.concatenate([np.arange(d) for d in schema.sizes])
    other = np.concatenate([rng.permutation(d) for d in schema.sizes])
    levels, shares = np.stack([own, other], axis=1), np.tile([1 / 3, 2 / 3], (schema.n_rows, 1))
    out = np.zeros((2, 8, 8, 8))
    block_triples(codes, weights, *places, levels, shares, 0, 4, out)

    def soft(j):
        rows = slice(schema.offsets[j], schema.offsets[j + 1])
        return (np.eye(schema.sizes[j])[own[rows]] / 3 + np.eye(schema.sizes[j])[other[rows]] * 2 / 3)[codes[:, j]]

    for b, modes in enumerate(blocks):
        sides = [np.hstack([soft(j) for j in mode]) for mode in modes]
        expected = np.einsum("i,ia,ib,ic->abc", weights, *sides)
        assert np.allclose(out[b][tuple(slice(d) for d in expected.shape)], expected, rtol=0, atol=1e-9)


def test_features_and_sums_are_adjoint():
    codes, schema = ragged_table()
    rng = np.random.default_rng(1)
    members = np.array([1, 2, 5])
    table, totals = rng.standard_normal((schema.n_rows, 3)), np.zeros((len(codes), 3))
    add_features(codes, schema.offsets[members], members, table, totals)
    assert np.allclose(totals, table[schema.offsets[members] + codes[:, members]].sum(axis=1))

    values = rng.standard_normal((len(codes), 3))
    partials = np.empty((2, schema.n_rows, 3))
    scatter_sums(codes, schema.offsets[members], members, values, 0, partials)
    expected = np.zeros((schema.n_rows, 3))
    np.add.at(expected, schema.offsets[members] + codes[:, members], values[:, None, :])
    assert np.allclose(partials.sum(axis=0), expected)
    assert np.isclose((totals * values).sum(), (table * expected).sum())


@pytest.mark.parametrize("weighted", [False, True])
def test_pair_sums(weighted):
    codes, schema = ragged_table()
    rng = np.random.default_rng(2)
    k, width = 3, 4
    members = np.array([0, 3])
    starts = np.array([0, schema.sizes[0]])
    rows = int(schema.sizes[members].sum())
    table, totals = rng.standard_normal((rows, 2 * width)), rng.standard_normal((len(codes), 2 * width))
    slope, weights = rng.standard_normal(width), rng.random(len(codes)) if weighted else np.ones(len(codes))
    partials, squares = np.empty((2, rows, width)), np.empty((2, width))
    pair_sums(codes, weights, starts, members, table, totals, slope, k, 0, partials, squares)
    rest = totals - table[starts + codes[:, members]].sum(axis=1)
    u, y = rest[:, :k], rest[:, width : width + k]
    g = weights[:, None] * (u * u - slope[:k] * u + y)
    expected = np.zeros((rows, k))
    np.add.at(expected, starts + codes[:, members], g[:, None, :])
    assert np.allclose(partials.sum(axis=0)[:, :k], expected)
    assert np.allclose(squares.sum(axis=0)[:k], weights @ (u * u))
    assert (partials[:, :, k:] == 0).all()


def test_gram_sums():
    _, schema = ragged_table()
    theta = np.random.default_rng(3).random((schema.n_rows, 4))
    grams = [part.T @ part for part in np.split(theta, schema.offsets[1:-1])]
    total, squares = gram_sums(theta, schema.offsets[:-1], schema.sizes)
    assert np.allclose(total, sum(grams))
    assert np.allclose(squares, sum(gram * gram for gram in grams))


def test_pqp_rows_is_theorem_4():
    rng = np.random.default_rng(4)
    factor, z, x = rng.random((9, 4)), rng.standard_normal((6, 4)), rng.random((6, 4))
    q = factor.T @ factor
    stepped = x.copy()
    pqp_rows(q, z, stepped, 1, 1e-10, 0.0)
    assert np.allclose(stepped, naive.pqp_step(q, z, x, 1e-10), rtol=1e-10)


def test_exact_rows_is_nonnegative_least_squares():
    rng = np.random.default_rng(5)
    design, target = rng.random((30, 5)), rng.standard_normal((30, 20))
    x = np.full((20, 5), 0.1)
    exact_rows(design.T @ design, -(target.T @ design), x, 10_000, 1e-14)
    assert np.allclose(x, [nnls(design, column)[0] for column in target.T], atol=1e-9)


def test_pqp_steps_converge_to_the_exact_rows():
    rng = np.random.default_rng(6)
    factor, z = rng.random((12, 3)), rng.standard_normal((4, 3))
    q = factor.T @ factor
    steps, exact = np.ones((4, 3)), np.ones((4, 3))
    pqp_rows(q, z, steps, 200_000, 1e-10, 0.0)
    exact_rows(q, z, exact, 10_000, 1e-14)
    assert np.allclose(steps, exact, atol=1e-5)


@pytest.mark.parametrize("inner", [-3, 1, 10])
def test_factorize_one_reports_its_residual(inner):
    rng = np.random.default_rng(7)
    tensor = rng.standard_normal((5, 4, 6))
    a, b, c = (rng.random((d, 2)) for d in (5, 4, 6))
    history = np.empty(3 * 40)
    done, _ = factorize_one(tensor, a, b, c, 40, inner, 1e-10, 0.0, history)
    residual = ((tensor - np.einsum("ah,bh,ch->abc", a, b, c)) ** 2).sum()
    assert np.isclose(history[3 * done - 1], residual)


def test_memberships_satisfy_the_optimality_conditions():
    table = simulate_gdlm(700, 15, 4, alpha=0.3, random_state=0)
    theta, alpha = np.maximum(table.theta, 1e-6), table.alpha
    n, k = 700, 4
    x = np.full((n, k), 0.25)
    loglik, curvature, shapes, gaps = np.empty(n), np.empty(n), np.empty((n, k)), np.empty(n)
    steps = np.empty(n, np.int64)
    starts, absent = table.schema.offsets[:-1], nothing_absent(table.codes)
    memberships(
        table.codes, starts, absent, theta, alpha, 50, 1e-10, x, loglik, curvature, shapes, steps, gaps
    )  # fmt: skip
    cells = theta[starts + table.codes]
    mix = np.einsum("ijh,ih->ij", cells, x)
    assert np.allclose(loglik, np.log(mix).sum(axis=1))
    counts = alpha + x * (cells / mix[:, :, None]).sum(axis=1)
    assert np.allclose(counts / counts.sum(axis=1, keepdims=True), x, atol=1e-8)
    assert gaps.max() <= 1e-10
    hessian = np.einsum("ijh,ijg->ihg", cells / mix[:, :, None], cells / mix[:, :, None])
    system = hessian * x[:, :, None] * x[:, None, :] + np.diag(alpha)
    assert np.allclose(curvature, np.linalg.slogdet(system)[1])
    assert np.allclose(shapes, np.einsum("ihh->ih", system))


def test_particles_estimate_the_marginal_likelihood():
    table = simulate_gdlm(20, 6, 3, alpha=0.5, random_state=1)
    theta = np.maximum(table.theta, 1e-6)
    prior = np.random.default_rng(0).dirichlet(table.alpha, size=200_000)
    exact = [np.log(np.prod(prior @ theta[table.schema.offsets[:-1] + row].T, axis=1).mean()) for row in table.codes]
    out = np.empty(20)
    starts, marks = table.schema.offsets[:-1], np.tile(np.arange(4, dtype=np.uint64), 6)
    marginal_likelihood(
        table.codes, starts, nothing_absent(table.codes), theta, marks, table.alpha, 2000, 0, out
    )  # fmt: skip
    assert np.abs(out - exact).max() < 0.1


def test_absent_cells_are_left_out_of_memberships_and_likelihoods():
    """Rows with a code for "missing" in the second and the last column: as if those columns were not there."""
    table = simulate_gdlm(60, 6, 3, alpha=0.5, random_state=1)
    theta, alpha = np.maximum(table.theta, 1e-6), table.alpha
    starts, marks = table.schema.offsets[:-1], np.tile(np.arange(4, dtype=np.uint64), 6)
    kept = [0, 2, 3, 4]
    with_gaps = table.codes.copy()
    with_gaps[:, [1, 5]] = 9
    absent = np.array([-1, 9, -1, -1, -1, 9])
    wide, wide_marks = np.vstack([theta, np.ones((10, 3))]), np.concatenate([marks, np.zeros(10, np.uint64)])
    found = []
    for codes, begin, gone in (
        (with_gaps, starts, absent),
        (np.ascontiguousarray(table.codes[:, kept]), starts[kept], np.full(4, -1)),
    ):
        x, shapes = np.full((60, 3), 1 / 3), np.empty((60, 3))
        loglik, curvature, gaps, marginal = np.empty((4, 60))
        memberships(
            codes, begin, gone, wide, alpha, 50, 1e-10, x, loglik, curvature, shapes, np.empty(60, np.int64), gaps
        )  # fmt: skip
        marginal_likelihood(codes, begin, gone, wide, wide_marks, alpha, 20_000, 0, marginal)
        found.append((x, loglik, curvature, shapes, marginal))
    for one, other in zip(found[0][:4], found[1][:4], strict=True):
        assert (one == other).all()
    assert np.abs(found[0][4] - found[1][4]).max() < 0.05  # other streams
