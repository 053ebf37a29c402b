"""Theta and memberships together: the steps are right, and the likelihood never falls."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixmem import GDLM, row_likelihood, simulate_gdlm, simulate_mixed
from mixmem.engine.local import threads
from mixmem.kernels import ROW_BLOCK
from mixmem.kernels.admixture import box_steps, locus_sums, row_sums
from mixmem.likelihood.memberships import fit_rows
from mixmem.moments.components import align_components
from mixmem.progress import Progress
from mixmem.refinement.admixture import SETTLED, Genotypes, NewtonSteps, maximise_genotypes
from mixmem.refinement.admixture_start import admixture_start
from mixmem.refinement.ascent import LEAST, Point
from mixmem.refinement.em import Cells, EMSteps, Rule, maximise_cells
from mixmem.refinement.maximum_likelihood import stepped

TABLE = simulate_gdlm(ROW_BLOCK + 90, 15, 3, n_levels=3, random_state=0)
OFFSETS = TABLE.schema.offsets
MISSING = 3
QUIET = Progress()


def levels_rule(offsets):
    """Theta holds the probabilities of levels, of variable j from row offsets[j] on."""

    def inside(theta):
        held = np.maximum(theta, LEAST)
        sums = np.add.reduceat(held, offsets[:-1], axis=0)
        return np.maximum(held / np.repeat(sums, np.diff(offsets), axis=0), LEAST)

    return Rule(lambda theta: theta, lambda counts, _: inside(counts), inside)


def maximise(theta, x, **options):
    """Climb from there on the table, which is complete."""
    cells = Cells(TABLE.codes, OFFSETS[:-1], np.full(15, -1))
    return maximise_cells(cells, levels_rule(OFFSETS), np.maximum(theta, 1e-6), x, progress=QUIET, **options)


def naive_step(codes, theta, x, weights):
    """Responsibilities cell by cell; theta has three levels a variable, which code 3 is not one of."""
    new_x, counts, value = np.zeros_like(x), np.zeros_like(theta), 0.0
    for i, row in enumerate(codes):
        for j in np.flatnonzero(row != MISSING):
            share = theta[3 * j + row[j]] * x[i]
            value += weights[i] * np.log(share.sum())
            new_x[i] += share / share.sum() / (row != MISSING).sum()
            counts[3 * j + row[j]] += weights[i] * share / share.sum()
    return counts / np.repeat(np.add.reduceat(counts, OFFSETS[:-1], axis=0), 3, axis=0), new_x, value / weights.sum()


def start(seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(3), (15, 3)).transpose(0, 2, 1).reshape(45, 3)
    return theta, rng.dirichlet(np.ones(3), len(TABLE.codes))


def gappy(share=0.2):
    """The table with some cells missing, as cells."""
    codes = TABLE.codes.copy()
    codes[np.random.default_rng(1).random(codes.shape) < share] = MISSING
    return Cells(codes, OFFSETS[:-1], np.full(15, MISSING))


def test_a_step_is_the_textbook_step():
    theta, x = start()
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(x))
    cells = gappy()
    stride = EMSteps(cells, levels_rule(OFFSETS), weights).step(Point(theta, x))
    expected = naive_step(cells.codes, theta, x, weights)
    assert np.allclose(stride.to.theta, expected[0], atol=1e-11)
    assert np.allclose(stride.to.memberships, expected[1], atol=1e-11)
    assert np.isclose(stride.value, expected[2])


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_the_likelihood_never_falls_from_any_start(seed):
    found = maximise(*start(seed), tol=0.0, max_rounds=40)
    assert (np.diff(found.history) >= 0.0).all()
    assert np.allclose(np.add.reduceat(found.theta, OFFSETS[:-1], axis=0), 1.0)
    assert np.allclose(found.memberships.sum(axis=1), 1.0)


def test_acceleration_gets_further_than_more_plain_steps():
    theta = np.maximum(TABLE.theta, 1e-6)
    x = fit_rows(TABLE.encoded, theta, np.full(3, 0.2)).memberships
    fast = maximise(theta, x, tol=0.0, max_rounds=30)
    steps = EMSteps(Cells(TABLE.codes, OFFSETS[:-1], np.full(15, -1)), levels_rule(OFFSETS))
    point = Point(theta, x)
    for _ in range(60):
        stride = steps.step(point)
        point = stride.to
    assert fast.history[-1] > stride.value


def test_the_same_on_any_number_of_threads():
    found = []
    for n_jobs in (1, 2):
        with threads(n_jobs):
            found.append(maximise(*start(), max_rounds=5))
    assert (found[0].theta == found[1].theta).all()
    assert found[0].history == found[1].history


def test_missing_cells_of_an_em_step_add_nothing():
    theta, x = start()
    cells = gappy()
    column = Cells(
        np.column_stack([cells.codes, np.full(len(x), MISSING, cells.codes.dtype)]),
        np.append(cells.starts, 0),
        np.append(cells.absent, MISSING),
    )
    a, b = (EMSteps(c, levels_rule(OFFSETS)).step(Point(theta, x)) for c in (cells, column))
    assert a.value == b.value
    assert (a.to.theta == b.to.theta).all()
    assert (a.to.memberships == b.to.memberships).all()


def test_a_row_of_missing_cells_keeps_its_memberships():
    theta, x = start()
    cells = gappy()
    cells.codes[7] = MISSING
    stride = EMSteps(cells, levels_rule(OFFSETS)).step(Point(theta, x))
    assert np.allclose(stride.to.memberships[7], x[7])


@pytest.mark.slow
def test_weights_of_cells_are_repeated_rows():
    theta, x = start()
    times = np.random.default_rng(3).integers(1, 4, len(x))
    cells, rule = gappy(), levels_rule(OFFSETS)
    repeated = Cells(np.repeat(cells.codes, times, axis=0), cells.starts, cells.absent)
    a = maximise_cells(cells, rule, theta, x, progress=QUIET, weights=times.astype(float), tol=1e-10)
    b = maximise_cells(repeated, rule, theta, np.repeat(x, times, axis=0), progress=QUIET, tol=1e-10)
    assert np.isclose(a.history[-1], b.history[-1], atol=1e-4)
    assert np.isclose(a.history[0], b.history[0], atol=1e-12)


@pytest.mark.slow
def test_any_theta_may_be_climbed():
    """Logarithms of probabilities as theta reach what probabilities reach."""
    theta, x = start()
    cells, plain = gappy(), levels_rule(OFFSETS)
    rule = Rule(
        np.exp,
        lambda counts, _: np.log(plain.inside(counts)),
        lambda logs: np.log(plain.inside(np.exp(logs))),
        units=3.0,
        scale=lambda logs: -2.0 * len(x),
    )
    a = maximise_cells(cells, plain, theta, x, progress=QUIET, tol=1e-9, max_rounds=400)
    b = maximise_cells(cells, rule, np.log(theta), x, progress=QUIET, tol=1e-9, max_rounds=400)
    assert np.isclose(a.history[0], b.history[0] + 2.0)
    assert abs(a.history[-1] - b.history[-1] - 2.0) < 0.02


def test_a_fit_by_em_reports_its_likelihood():
    model = GDLM(3, alpha0=0.3, refine="em", random_state=0).fit(TABLE.encoded.take(slice(150)))
    report = model.report_.refine
    assert report.method == "em"
    history = report.em.likelihood_given_memberships
    assert history[-1] > history[0]
    assert report.likelihood_before != report.likelihood_after


def genotypes(n=60, m=ROW_BLOCK + 33, k=3, missing=0.05, seed=0):
    """Genotypes of a known admixture, and what drew them."""
    rng = np.random.default_rng(seed)
    x, p = rng.dirichlet(np.full(k, 0.3), n), rng.beta(0.5, 0.5, (m, k))
    codes = rng.binomial(2, x @ p.T).astype(np.uint8)
    codes[rng.random(codes.shape) < missing] = 3
    return Genotypes(codes, 2 * np.arange(m) + 1, 2 * np.arange(m)), Point(p, x)


def loglik(codes, p, x):
    f = x @ p.T
    terms = codes * np.log(f) + (2.0 - codes) * np.log1p(-f)
    return np.where(codes < 3, terms, 0.0).sum()


def as_cells(some):
    """Every genotype as two cells, the copies of its locus."""
    first, second = (np.where(some.codes < 3, some.codes >= c, 2).astype(np.uint8) for c in (1, 2))
    return Cells(np.hstack([first, second]), np.tile(some.others, 2), np.full(2 * len(some.rows), 2))


def test_derivatives_of_genotypes_are_those_written_down():
    some, at = genotypes(n=37, m=50)
    g, p, x = some.loci, at.theta, np.ascontiguousarray(at.memberships.T)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 37)
    gradients, by_locus, by_row, values = np.zeros((50, 3)), np.zeros((50, 6)), np.zeros((6, 37)), np.zeros(37)
    for tile in ((0, 20), (20, 37)):
        locus_sums(g, x, p, weights, *tile, gradients, by_locus)
        row_sums(g, x, p, *tile, by_row, values)
    f = p @ x
    up, down = (np.where(g < 3, a, 0.0) for a in (g / f, (2.0 - g) / (1.0 - f)))
    high, low = np.tril_indices(3)
    curve = weights * (up / f + down / (1.0 - f))
    assert np.allclose(gradients, weights * (up - down) @ x.T)
    assert np.allclose(by_locus, np.einsum("ji,hi,gi->jhg", curve, x, x)[:, high, low])
    both = np.einsum("ji,jh,jg->hgi", up / f, p, p) + np.einsum("ji,jh,jg->hgi", down / (1.0 - f), 1.0 - p, 1.0 - p)
    assert np.allclose(by_row, both[high, low])
    assert np.isclose(values.sum(), loglik(some.codes, p, at.memberships))


def test_box_steps_satisfy_the_conditions_of_a_maximum():
    rng = np.random.default_rng(0)
    k, x, gradients = 4, rng.uniform(0.0, 1.0, (30, 4)), rng.normal(0.0, 3.0, (30, 4))
    roots = rng.normal(size=(30, k, k))
    full = roots @ roots.transpose(0, 2, 1) + np.eye(k)
    high, low = np.tril_indices(k)
    new = x.copy()
    box_steps(full[:, high, low], gradients, 0.0, 1.0, False, 1e-12, new)
    slope = gradients - (full @ (new - x)[:, :, None])[:, :, 0]
    assert (slope[new <= 0.0] <= 1e-8).all()
    assert (slope[new >= 1.0] >= -1e-8).all()
    assert np.allclose(slope[(new > 0.0) & (new < 1.0)], 0.0, atol=1e-8)
    short = x.copy()
    box_steps(full[:, high, low], gradients, 0.0, 1.0, True, 1e-12, short)
    length = np.sqrt(((new - x) * (full @ (new - x)[:, :, None])[:, :, 0]).sum(axis=1))
    assert np.allclose(short - x, (new - x) / np.where(length > 0.6, 1.0 + length, 1.0)[:, None])


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_the_likelihood_of_genotypes_never_falls_from_any_start(seed, k):
    some, _ = genotypes(seed=seed)
    rng = np.random.default_rng(seed)
    theta, x = some.theta(rng.uniform(0.0, 1.0, (len(some.rows), k))), rng.dirichlet(np.ones(k), len(some.codes))
    found = maximise_genotypes(some, theta, x, progress=QUIET, tol=0.0, max_rounds=30)
    assert (np.diff(found.history) >= 0.0).all()
    assert np.allclose(found.theta[some.rows] + found.theta[some.others], 1.0)
    assert np.allclose(found.memberships.sum(axis=1), 1.0)
    reached = loglik(some.codes, found.theta[some.rows], found.memberships) / len(x)
    assert np.isclose(found.history[-1], reached)


@pytest.mark.slow
def test_newton_steps_reach_what_plain_em_converges_to():
    some, _ = genotypes(missing=0.1)
    begin, _ = admixture_start(some, 3, np.random.default_rng(0))
    found = maximise_genotypes(some, begin.theta, begin.memberships, progress=QUIET, tol=1e-9)
    assert found.converged
    steps = EMSteps(as_cells(some), levels_rule(2 * np.arange(len(some.rows) + 1)))
    point = begin
    for _ in range(2000):
        stride = steps.step(point)
        point = stride.to
    assert found.history[-1] >= stride.value - 1e-3
    assert np.abs(found.memberships - point.memberships).max() < 0.01


def test_a_maximum_of_genotypes_stays_where_it_is():
    some, _ = genotypes()
    begin, _ = admixture_start(some, 3, np.random.default_rng(0))
    found = maximise_genotypes(some, begin.theta, begin.memberships, progress=QUIET, tol=1e-11)
    stride = NewtonSteps(some).step(Point(found.theta, found.memberships))
    assert np.abs(stride.to.memberships - found.memberships).max() < 1e-3
    assert np.abs(stride.at.theta - found.theta).max() < 1e-3


def hardly_different(n, m, k, distance, alpha, seed):
    """Genotypes of populations that differ from a common ancestor by so small a share (Fst)."""
    rng = np.random.default_rng(seed)
    ancestor = rng.uniform(0.05, 0.95, (m, 1))
    scale = (1.0 - distance) / distance
    shares = np.clip(rng.beta(ancestor * scale, (1.0 - ancestor) * scale, (m, k)), 0.001, 0.999)
    codes = rng.binomial(2, rng.dirichlet(np.full(k, alpha), n) @ shares.T).astype(np.uint8)
    return Genotypes(codes, 2 * np.arange(m) + 1, 2 * np.arange(m))


@pytest.mark.slow
def test_a_climb_ends_when_memberships_are_at_rest_not_only_the_likelihood():
    """Seeds that reach one maximum agree: by the gains alone they ended up to 0.025 apart here."""
    some, apart = hardly_different(300, 2000, 3, 0.01, 0.3, 1), {}
    starts = [admixture_start(some, 3, np.random.default_rng([seed, 5]))[0] for seed in range(4)]
    for settled in (np.inf, SETTLED):
        with threads(1):
            ends = [
                maximise_genotypes(some, start.theta, start.memberships, progress=QUIET, settled=settled)
                for start in starts
            ]
        assert all(end.converged for end in ends)
        first = ends[0]
        apart[settled] = max(
            np.abs(end.memberships[:, align_components(first.theta, end.theta)] - first.memberships).max()
            for end in ends
        )
    assert apart[np.inf] > 0.01
    assert apart[SETTLED] < 0.005
    assert "and no membership changes by more than 0.0003" in first.reason


def test_missing_genotypes_add_nothing():
    some, _ = genotypes()
    begin, _ = admixture_start(some, 3, np.random.default_rng(0))
    m = len(some.rows)
    codes = np.column_stack([some.codes, np.full(len(some.codes), 3, np.uint8)])
    more = Genotypes(codes, np.append(some.rows, 2 * m + 1), np.append(some.others, 2 * m))
    a = NewtonSteps(some).step(begin)
    b = NewtonSteps(more).step(Point(np.vstack([begin.theta, np.full((2, 3), 0.5)]), begin.memberships))
    assert np.isclose(a.value, b.value, rtol=1e-14)
    assert np.allclose(a.at.theta, b.at.theta[: 2 * m])
    assert np.allclose(b.at.theta[2 * m :], 0.5)
    assert np.allclose(a.to.memberships, b.to.memberships)


@pytest.mark.slow
def test_weights_of_genotypes_are_repeated_rows():
    some, _ = genotypes()
    begin, _ = admixture_start(some, 3, np.random.default_rng(0))
    times = np.random.default_rng(3).integers(1, 4, len(some.codes))
    repeated = Genotypes(np.repeat(some.codes, times, axis=0), some.rows, some.others)
    x = np.repeat(begin.memberships, times, axis=0)
    a = maximise_genotypes(some, begin.theta, begin.memberships, progress=QUIET, weights=times.astype(float), tol=1e-10)
    b = maximise_genotypes(repeated, begin.theta, x, progress=QUIET, tol=1e-10)
    assert np.isclose(a.history[0], b.history[0], rtol=1e-12)
    assert np.isclose(a.history[-1], b.history[-1], atol=1e-4)
    assert np.abs(np.repeat(a.memberships, times, axis=0) - b.memberships).max() < 0.01


def test_genotypes_are_the_same_on_any_number_of_threads():
    some, _ = genotypes(n=20, m=3 * ROW_BLOCK + 5)
    found = []
    for n_jobs in (1, 2):
        with threads(n_jobs):
            begin, _ = admixture_start(some, 3, np.random.default_rng(0))
            found.append(maximise_genotypes(some, begin.theta, begin.memberships, progress=QUIET, max_rounds=5))
    assert (found[0].theta == found[1].theta).all()
    assert (found[0].memberships == found[1].memberships).all()
    assert found[0].history == found[1].history


def test_the_start_is_near_what_drew_the_genotypes(monkeypatch):
    some, true = genotypes(n=200, m=2000)
    apart = []
    for most in (200, 10):  # rows few enough for their products, and too many
        monkeypatch.setattr("mixmem.refinement.admixture_start.MOST_PRODUCTS", most)
        begin, _ = admixture_start(some, 3, np.random.default_rng(0))
        apart.append(
            min(np.abs(begin.memberships[:, list(h)] - true.memberships).mean() for h in permutations(range(3)))
        )
    assert max(apart) < 0.05
    assert np.isclose(*apart, atol=1e-3)


def test_one_component_starts_and_ends_at_the_mean_frequencies():
    some, _ = genotypes()
    begin, _ = admixture_start(some, 1, np.random.default_rng(0))
    found = maximise_genotypes(some, begin.theta, begin.memberships, progress=QUIET, tol=1e-12)
    means = np.ma.masked_equal(some.codes, 3).mean(axis=0) / 2.0
    assert (found.memberships == 1.0).all()
    assert np.allclose(found.theta[some.rows, 0], np.clip(means, 1e-6, 1.0 - 1e-6), atol=1e-5)


HAPMAP = "popgen_hapmap3_admixture"


def hapmap(folder):
    """Genotypes (324, 13928) by the count of the second allele."""
    packed = np.fromfile(folder / HAPMAP / "hapmap3.bed", np.uint8)[3:].reshape(-1, 81)
    pairs = (packed[:, :, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
    codes = np.array([0, 3, 1, 2], np.uint8)[pairs.reshape(len(packed), 324)].T
    return Genotypes(codes, 2 * np.arange(len(packed)) + 1, 2 * np.arange(len(packed)))


@pytest.mark.slow
@pytest.mark.data
def test_hapmap_reaches_the_likelihood_and_memberships_of_admixture(data_folder):
    some = hapmap(data_folder)
    with threads(None):
        begin, _ = admixture_start(some, 3, np.random.default_rng(0))
        found = maximise_genotypes(some, begin.theta, begin.memberships, progress=QUIET)
    assert found.converged
    assert loglik(some.codes, found.theta[some.rows], found.memberships) > -3799887.17  # ADMIXTURE 1.3.0's
    theirs = np.loadtxt(data_folder / HAPMAP / "hapmap3.3.Q")
    assert min(np.abs(found.memberships[:, list(h)] - theirs).mean() for h in permutations(range(3))) < 0.01


def test_a_step_leaves_no_row_impossible():
    """Moments may put a level at zero that rows of a component show."""
    drawn = simulate_gdlm(400, 12, 2, alpha=0.3, random_state=1)
    theta = drawn.theta.copy()
    theta[:4, 0] = [0.0, 0.0, 0.0, 1.0]
    found = stepped(drawn.encoded, theta, drawn.alpha)
    np.testing.assert_allclose(np.add.reduceat(found, np.arange(0, 48, 4)), 1.0)
    assert found.min() > 0.0
    before, after = (row_likelihood(drawn.encoded, at, drawn.alpha).mean() for at in (theta, found))
    assert after > before + 0.3
    whole = simulate_mixed(400, 2, n_categorical=3, n_count=3, n_continuous=3, missing=0.2, random_state=0)
    assert np.isfinite(stepped(whole.encoded, whole.theta, whole.alpha)).all()


def test_a_step_takes_rows_as_often_as_they_stand_for():
    drawn = simulate_gdlm(60, 6, 2, alpha=0.3, random_state=2)
    times = np.random.default_rng(0).integers(1, 4, 60)
    weighted = stepped(replace(drawn.encoded, weights=times.astype(float)), drawn.theta, drawn.alpha)
    repeated = stepped(drawn.encoded.take(np.repeat(np.arange(60), times)), drawn.theta, drawn.alpha)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-10)
