from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixmem import InputError, align_components, factorize, solve_nqp, third_moment
from mixmem.moments.solvers import SOLVERS, random_start
from mixmem.moments.solvers.compressed import compressed_pqp
from mixmem.moments.solvers.joint_diagonalization import diagonalize_jointly
from mixmem.moments.solvers.nqp import pqp_gamma, pqp_phi
from mixmem.moments.solvers.symmetric import compress
from mixmem.moments.solvers.tensor_pqp import alternate


def random_program(seed, k, negative=True):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((k + 3, k)) if negative else rng.random((k + 3, k))
    return factor.T @ factor + 0.05 * np.eye(k), rng.standard_normal(k)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.booleans())
def test_pqp_falls_monotonically_to_the_minimum(seed, k, negative):
    q, z = random_program(seed, k, negative)
    found = solve_nqp(q, z, max_iter=20_000)
    steps = np.diff(found.history)
    assert (steps <= 1e-12 * np.abs(found.history).max()).all()
    gradient = q @ found.x + z
    if found.converged:
        assert (gradient >= -1e-3).all()
        assert np.abs(found.x * gradient).max() < 1e-3


def test_pqp_converges_linearly():
    """Distance to the minimum falls by a factor that settles: its logarithm ends as a straight line."""
    q, z = random_program(3, 4, negative=False)
    found = solve_nqp(q, z, tol=1e-14)
    gap = found.history - found.history[-1]
    part = np.log(gap[(gap > 1e-9 * gap[0]) & (gap < 1e-2 * gap[0])])
    slopes = np.diff(part)
    assert found.converged
    assert slopes.max() < -0.01
    settled = slopes[len(slopes) // 2 :]
    assert settled.min() / settled.max() < 1.1


def test_pqp_refuses_what_theorem_7_does_not_cover():
    q, z = random_program(0, 3)
    with pytest.raises(ValueError, match="phi must exceed the bound"):
        solve_nqp(q, z, phi=pqp_phi(q, z, epsilon=0.0))
    with pytest.raises(ValueError, match="gamma must be at least"):
        solve_nqp(q, z, gamma=pqp_gamma(q) - 0.1)
    with pytest.raises(ValueError, match="positive definite; its smallest eigenvalue is -1"):
        solve_nqp(-np.eye(3), z)
    with pytest.raises(ValueError, match="symmetric 3 x 3"):
        solve_nqp(np.eye(2), z)
    with pytest.raises(ValueError, match="cannot leave zero"):
        solve_nqp(q, z, start=[1.0, 0.0, 1.0])
    assert not solve_nqp(q, z, max_iter=2).converged


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([None, 1, 7]), st.integers(1, 4))
def test_no_update_raises_the_residual_on_tensors_half_negative(seed, inner, k):
    rng = np.random.default_rng(seed)
    tensor = rng.standard_normal((6, 5, 7))
    assert 0.3 < (tensor < 0).mean() < 0.7
    found = factorize(tensor, k, inner=inner, max_iter=60, tol=0.0, random_state=rng)
    assert (np.diff(found.history) <= 1e-10 * found.history[0]).all()
    assert all((factor >= 0).all() for factor in found.factors)
    assert np.isclose(found.residual, ((tensor - found.tensor) ** 2).sum())


def test_residual_of_an_exact_tensor_falls_linearly():
    rng = np.random.default_rng(0)
    tensor = np.einsum("ah,bh,ch->abc", *(rng.random((6, 2)) for _ in range(3)))
    gap = factorize(tensor, 2, inner=20, tol=1e-14, random_state=0).history[2::3]
    part = np.log(gap[(gap < 1e-3 * gap[0]) & (gap > 1e-10 * gap[0])])
    half = len(part) // 2
    assert half > 5
    assert 0.3 < (part[0] - part[half]) / (part[half] - part[-1]) < 3.0


@pytest.mark.parametrize("k", [2, *(pytest.param(k, marks=pytest.mark.slow) for k in (3, 5, 8))])
@pytest.mark.parametrize("seed", range(5))
def test_exact_moments_in_truth_out(k, seed):
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(4, 0.5), size=(12, k)).transpose(0, 2, 1).reshape(48, k)
    alpha = rng.uniform(0.05, 0.5, k)
    tensor = third_moment(theta[:16], theta[16:32], theta[32:], alpha)
    found = factorize(tensor, k, n_restarts=10, random_state=0)
    estimate = 4 * np.concatenate(found.factors)  # four variables a mode, each column summing to one
    order = align_components(theta, estimate)
    assert np.abs(estimate[:, order] - theta).max() < 1e-5
    weights = found.weights[order] / 64
    alpha0 = alpha.sum()
    assert np.allclose(weights, 2 * alpha / (alpha0 * (alpha0 + 1) * (alpha0 + 2)), rtol=1e-4)


def paper_example():
    """The positive 2 x 2 x 2 tensor of section 4.4, whose only decomposition has a negative factor."""
    a = c = np.array([[1.0, 1.0], [1.0, 0.0]])
    b = np.array([[2.0, -1.0], [2.0, 1.0]])
    tensor = np.einsum("ah,bh,ch->abc", a, b, c)
    assert (tensor[:, :, 0] == [[1, 3], [2, 2]]).all()
    assert (tensor[:, :, 1] == [[2, 2], [2, 2]]).all()
    return tensor


@pytest.mark.slow
def test_the_papers_example_gets_nonnegative_factors_of_least_residual():
    tensor = paper_example()
    found = factorize(tensor, 2, n_restarts=20, tol=1e-12, max_iter=5000, random_state=0)
    assert all((factor >= 0).all() for factor in found.factors)
    others = [factorize(tensor, 2, tol=1e-12, max_iter=5000, random_state=seed).residual for seed in range(1000, 1100)]
    assert found.residual <= min(others) * (1 + 1e-6)
    assert found.residual > 0.01  # no nonnegative pair of terms makes this tensor


@pytest.mark.parametrize("solver", ["wnmf", "lee_seung"])
def test_multiplicative_updates_fall_and_recover_a_nonnegative_tensor(solver):
    rng = np.random.default_rng(0)
    tensor = np.einsum("ah,bh,ch->abc", *(rng.random((5, 2)) for _ in range(3)))
    found = factorize(tensor, 2, solver=solver, max_iter=2000, tol=1e-12, inner=5, random_state=0)
    assert (np.diff(found.history) <= 1e-9).all()
    assert found.residual < 1e-3 * (tensor**2).sum()


def test_wnmf_leaves_negative_entries_out():
    rng = np.random.default_rng(1)
    tensor = np.einsum("ah,bh,ch->abc", *(rng.random((6, 2)) for _ in range(3)))
    spoiled = np.where(rng.random(tensor.shape) < 0.2, -5.0, tensor)
    found = factorize(spoiled, 2, solver="wnmf", n_restarts=5, max_iter=5000, tol=1e-12, random_state=0)
    assert np.abs(found.tensor - tensor).max() < 0.05


def test_lee_seung_refuses_negative_entries_by_name():
    with pytest.raises(InputError, match=r"'lee_seung' needs .* 1 of 8 are negative; use solver='pqp'"):
        factorize(np.array([[[1.0, 2], [3, 4]], [[5, 6], [7, -8]]]), 1, solver="lee_seung")


def test_a_solver_says_why_it_stopped():
    tensor = np.random.default_rng(0).standard_normal((5, 5, 5))
    short = factorize(tensor, 3, max_iter=2, tol=0.0, random_state=0)
    assert (short.converged, short.n_sweeps) == (False, 2)
    assert "max_iter=2" in short.reason
    long = factorize(tensor, 3, random_state=0)
    assert long.converged
    assert "less than" in long.reason


def test_the_best_restart_is_kept():
    tensor = np.random.default_rng(2).standard_normal((6, 6, 6))
    rng = np.random.default_rng(0)
    starts = [random_start(tensor.shape, 3, rng) for _ in range(8)]
    alone = [factorize(tensor, 3, starts=[start]).residual for start in starts]
    assert np.isclose(factorize(tensor, 3, starts=starts).residual, min(alone))


@pytest.mark.parametrize(
    ("tensor", "k", "solver", "message"),
    [
        (np.zeros((2, 2)), 1, "pqp", "third-order array; got shape"),
        (np.full((2, 2, 2), np.nan), 1, "pqp", "finite numbers"),
        (np.ones((2, 2, 2)), 0, "pqp", "at least 1; got 0"),
        (np.ones((2, 2, 2)), 1, "magic", "unknown solver 'magic'; expected one of 'pqp'"),
    ],
)
def test_refusals(tensor, k, solver, message):
    with pytest.raises(InputError, match=message):
        factorize(tensor, k, solver=solver)


def test_every_solver_keeps_the_contract():
    tensor = np.random.default_rng(3).random((4, 5, 6))
    pairs = (tensor.sum(axis=2), tensor.sum(axis=1), tensor.sum(axis=0))
    for name in SOLVERS:
        found = factorize(tensor, 2, solver=name, pairs=pairs, max_iter=20, random_state=0)
        assert [factor.shape for factor in found.factors] == [(4, 2), (5, 2), (6, 2)]
        assert np.allclose([factor.sum(axis=0) for factor in found.factors], 1)
        assert found.weights.shape == (2,)
        assert found.residual == found.history[-1]


# --- General decompositions


def symmetric_tensor(columns, weights):
    return np.einsum("ah,bh,ch,h->abc", columns, columns, columns, weights), (columns * weights) @ columns.T


@pytest.mark.parametrize("solver", ["tpm", "nojd0", "nojd1"])
@pytest.mark.parametrize("seed", range(5))
def test_exact_orthogonal_tensors_are_decomposed(solver, seed):
    rng = np.random.default_rng(seed)
    columns = np.linalg.qr(rng.standard_normal((9, 5)))[0]
    tensor, second = symmetric_tensor(columns, rng.uniform(1, 3, 5))
    found = factorize(tensor, 5, solver=solver, pairs=(second,) * 3, random_state=seed)
    assert np.abs(found.tensor - tensor).max() < 1e-6
    unit = found.factors[2] / np.linalg.norm(found.factors[2], axis=0)
    assert np.allclose(np.abs(unit.T @ columns).max(axis=0), 1, atol=1e-6)


@pytest.mark.parametrize("solver", ["nojd0", "nojd1"])
@pytest.mark.parametrize("seed", range(5))
def test_exact_asymmetric_tensors_are_jointly_diagonalized(solver, seed):
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((d, 5)) for d in (7, 8, 9)]
    tensor = np.einsum("ah,bh,ch->abc", *factors)
    found = factorize(tensor, 5, solver=solver, random_state=seed)
    assert np.abs(found.tensor - tensor).max() < 1e-5 * np.abs(tensor).max()


def noisy_block(seed):
    """A block of three views with its pair moments, all off by a tenth: nothing of it is symmetric by itself."""
    rng = np.random.default_rng(seed)
    views = [rng.random((d, 3)) for d in (5, 6, 7)]
    tensor = np.einsum("ah,bh,ch->abc", *views)
    pairs = tuple(views[s] @ views[t].T for s, t in ((0, 1), (0, 2), (1, 2)))
    tensor, *pairs = (moment + 0.1 * rng.standard_normal(moment.shape) for moment in (tensor, *pairs))
    return tensor, pairs


@pytest.mark.parametrize("seed", range(3))
def test_noisy_moments_are_made_symmetric(seed):
    """Guards against a compression that leaves the third or the second moment as it came: exact ones are symmetric
    anyway, noisy ones are not, and the solvers after it take them to be."""
    compressed = compress(*noisy_block(seed), 3)
    assert np.allclose(compressed.second, compressed.second.T, rtol=0.0, atol=1e-10 * np.abs(compressed.second).max())
    for order in permutations(range(3)):
        turned = np.transpose(compressed.tensor, order)
        assert np.allclose(turned, compressed.tensor, rtol=0.0, atol=1e-10 * np.abs(turned).max())


@pytest.mark.parametrize("seed", range(3))
def test_the_first_two_views_of_a_noisy_block_may_change_places(seed):
    """Guards against a symmetric tensor made of one triangle, which would depend on which view comes first."""
    tensor, (ab, ac, bc) = noisy_block(seed)
    found = [compress(tensor, (ab, ac, bc), 3), compress(tensor.transpose(1, 0, 2), (ab.T, bc, ac), 3)]
    # back in the coordinates of the third view: an eigenvector's sign is of no account there
    thirds = [np.einsum("ijl,ai,bj,cl->abc", one.tensor, *[one.basis] * 3) for one in found]
    seconds = [one.basis @ one.second @ one.basis.T for one in found]
    for one, other in (thirds, seconds):
        assert np.allclose(one, other, rtol=0.0, atol=1e-9 * np.abs(one).max())


def test_power_method_on_exact_moments_of_distinct_variables():
    rng = np.random.default_rng(0)
    theta = rng.dirichlet(np.full(4, 0.5), size=(9, 3)).transpose(0, 2, 1).reshape(36, 3)
    alpha = np.array([0.2, 0.3, 0.4])
    u, v, w = theta[:12], theta[12:24], theta[24:]
    pairs = tuple((a * (alpha / (0.9 * 1.9))) @ b.T for a, b in ((u, v), (u, w), (v, w)))
    found = factorize(third_moment(u, v, w, alpha), 3, solver="tpm", pairs=pairs, random_state=0)
    estimate = 3 * np.concatenate(found.factors)
    assert np.abs(estimate[:, align_components(theta, estimate)] - theta).max() < 1e-6


def test_the_papers_example_has_a_negative_factor_in_a_general_decomposition():
    found = factorize(paper_example(), 2, solver="nojd0", random_state=0)
    assert np.abs(found.tensor - paper_example()).max() < 1e-8
    assert min(factor.min() for factor in found.factors) < -0.1


def test_joint_diagonalizer_keeps_the_best_of_noisy_matrices():
    rng = np.random.default_rng(1)
    mixing = rng.standard_normal((4, 4))
    matrices = np.einsum("ih,rh,jh->rij", mixing, rng.standard_normal((12, 4)), mixing)
    noise = 1e-3 * rng.standard_normal(matrices.shape)
    v, history, _ = diagonalize_jointly(matrices + noise + noise.transpose(0, 2, 1))
    overlap = np.abs(v @ mixing)
    overlap /= overlap.max(axis=1, keepdims=True)
    assert np.sort(overlap, axis=1)[:, -2].max() < 0.02
    assert min(history) <= history[0]


def test_hals_and_exact_updates_end_in_the_same_place():
    rng = np.random.default_rng(5)
    tensor = np.einsum("ah,bh,ch->abc", *(rng.random((d, 3)) for d in (8, 9, 10)))
    tensor += 0.3 * rng.standard_normal(tensor.shape)
    start = [random_start(tensor.shape, 3, rng)]
    ends = [factorize(tensor, 3, solver=s, starts=start, tol=1e-13, max_iter=5000).residual for s in ("hals", "pqp")]
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)


def test_meld_reweights_and_stays_nonnegative():
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(6), size=2).T for _ in range(3)]
    tensor = np.einsum("ah,bh,ch->abc", *factors) + 1e-4 * rng.standard_normal((6, 6, 6))
    found = factorize(tensor, 2, solver="meld", random_state=0)
    assert (np.diff(found.history) <= 1e-12).all()
    order = align_components(factors[0], found.factors[0])
    assert np.abs(found.factors[0][:, order] - factors[0]).max() < 0.02
    assert all((factor >= 0).all() for factor in found.factors)


def test_the_first_stage_of_meld_descends():
    """The second stage goes on from where the first came to: near the least squares fit, even if it may take one round
    only. A first stage that makes no cycle leaves random factors (relative residual .82)."""
    rng = np.random.default_rng(0)
    tensor = np.einsum("ah,bh,ch->abc", *(rng.dirichlet(np.full(8, 0.5), size=3).T for _ in range(3)))
    found = factorize(tensor, 3, solver="meld", random_state=0, max_iter=60)
    assert np.sqrt(found.residual / (tensor**2).sum()) < 0.05
    with pytest.raises(ValueError, match="0 would update nothing"):
        alternate(tensor[None], [0], [random_start(tensor.shape, 3, rng)], max_iter=1, tol=0.0, rule=0)


# --- Options: as the authors' programs ran


@pytest.mark.parametrize("solver", ["tpm", "nojd0", "nojd1"])
def test_all_directions_of_an_exact_tensor_hold_no_more_than_the_leading_ones(solver):
    rng = np.random.default_rng(3)
    columns = np.linalg.qr(rng.standard_normal((8, 3)))[0]
    tensor, second = symmetric_tensor(columns, rng.uniform(1, 3, 3))
    options = {"directions": "all"} | ({} if solver == "tpm" else {"rule": "qrj1d", "n_projections": 30})
    found = factorize(tensor, 3, solver=solver, pairs=(second,) * 3, random_state=0, options=options)
    unit = found.factors[2] / np.linalg.norm(found.factors[2], axis=0)
    assert np.allclose(np.abs(unit.T @ columns).max(axis=0), 1, atol=1e-3)


def test_whitening_with_all_directions_finds_noise():
    """Noise in directions that hold nothing else is divided by its own size there: components drown in it."""
    rng = np.random.default_rng(0)
    columns = rng.dirichlet(np.full(12, 0.5), size=3).T
    tensor, second = symmetric_tensor(columns, np.ones(3))
    noise = rng.standard_normal((12, 12))
    second = second + 1e-3 * (noise + noise.T)
    tensor = tensor + sum(
        1e-3 * np.transpose(rng.standard_normal((12,) * 3), order) for order in permutations(range(3))
    )
    errors = []
    for directions in ("leading", "all"):
        options = {"directions": directions, "n_starts": 30}
        found = factorize(tensor, 3, solver="tpm", pairs=(second,) * 3, random_state=0, options=options).factors[2]
        errors.append(np.abs(found[:, align_components(columns, found)] - columns).max())
    assert errors[1] > 4 * errors[0]


def test_meld_on_second_moments():
    """Exact ones identify what lies on the simplex from a start near it; few rounds end where they began."""
    rng = np.random.default_rng(0)
    theta = rng.dirichlet(np.full(4, 0.3), size=(12, 2)).transpose(0, 2, 1).reshape(48, 2)
    second, tensor = theta @ theta.T / 2, np.einsum("ah,bh,ch->abc", theta, theta, theta) / 2
    options = {"order": 2, "sizes": [[4] * 12] * 3}
    settings = {"solver": "meld", "pairs": (second,) * 3, "random_state": 0, "options": options}
    found = factorize(tensor, 2, **settings, max_iter=300, tol=1e-12)
    estimate = 12 * found.factors[0]
    assert np.abs(estimate[:, align_components(theta, estimate)] - theta).max() < 0.02
    assert (estimate >= 0.0).all()
    short = factorize(tensor, 2, **settings, max_iter=1, tol=0.0)
    assert not short.converged
    modes = [theta[:16], theta[16:32], theta[32:]]
    pairs = tuple(a @ b.T / 2 for a, b in ((modes[0], modes[1]), (modes[0], modes[2]), (modes[1], modes[2])))
    settings["options"] = {"order": 2, "sizes": [[4] * 4] * 3}
    found = factorize(tensor[:16, 16:32, 32:], 2, **settings | {"pairs": pairs}, max_iter=300, tol=1e-12)
    estimate = 4 * np.concatenate(found.factors)
    assert np.abs(estimate[:, align_components(theta, estimate)] - theta).max() < 0.1


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        ("pqp", {"order": 2}, "solver 'pqp' has no option 'order'; it has none"),
        ("tpm", {"rule": "x"}, "no option 'rule'; it has directions, n_starts"),
        ("tpm", {"directions": "some"}, "directions must be one of 'leading', 'all'; got 'some'"),
        ("nojd0", {"rule": "magic"}, "rule must be one of 'ffdiag', 'qrj1d'; got 'magic'"),
        ("meld", {"order": 4}, "order must be 2 or 3"),
        ("meld", {"order": 2, "sizes": [[4], [4], [5]]}, "sizes must sum to the tensor's shape"),
    ],
)
def test_options_that_are_not_are_refused(solver, options, message):
    tensor = np.random.default_rng(0).random((4, 4, 4))
    with pytest.raises(InputError, match=message):
        factorize(tensor, 2, solver=solver, pairs=(tensor.sum(axis=2),) * 3, options=options)


def test_what_solvers_need_is_said_before_they_run(monkeypatch):
    tensor = np.ones((3, 4, 5))
    with pytest.raises(InputError, match=r"'tpm' needs second moments .* \(3, 4\), \(3, 5\) and \(4, 5\)"):
        factorize(tensor, 2, solver="tpm")
    with pytest.raises(InputError, match=r"pairs must have the shapes"):
        factorize(tensor, 2, solver="tpm", pairs=(np.ones((3, 3)),) * 3)
    monkeypatch.setattr("mixmem.moments.solvers.available_memory", lambda: 1000)
    with pytest.raises(InputError, match=r"'meld' needs 2,720 bytes of memory .* 1,000 are free"):
        factorize(tensor, 2, solver="meld")
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"modes of at least k = 4 rows; the tensor has shape \(3, 4, 5\)"):
        factorize(tensor, 4, solver="nojd0")


def test_a_compressed_block_is_factorized_as_the_whole_one():
    """Exact moments of eight components: the same terms, whichever way."""
    rng = np.random.default_rng(0)
    factors = tuple(rng.dirichlet(np.full(4, 0.5), size=(10, 8)).transpose(0, 2, 1).reshape(40, 8) for _ in range(3))
    tensor = np.einsum("ah,bh,ch->abc", *factors)
    pairs = (factors[0] @ factors[1].T, factors[0] @ factors[2].T, factors[1] @ factors[2].T)
    starts = [random_start(tensor.shape, 8, child) for child in rng.spawn(10)]
    found = compressed_pqp(tensor, pairs, 8, starts, max_iter=500, tol=1e-9)
    assert found.converged
    assert np.abs(found.tensor - tensor).max() < 1e-3 * tensor.max()
    assert all(factor.min() >= 0.0 for factor in found.factors)
    noisy = tensor + 0.1 * tensor.std() * rng.standard_normal(tensor.shape)
    stopped = compressed_pqp(noisy, pairs, 8, starts, max_iter=1, tol=0.0)
    assert not stopped.converged
    assert "max_iter=1" in stopped.reason
