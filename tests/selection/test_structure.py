"""Independent columns are called so, and dependent ones are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mixmem import encode, simulate_gdlm, simulate_mixed
from mixmem.moments.sums import first_moments
from mixmem.selection import structure
from mixmem.selection.structure import Structure, structure_of


def looked(table):
    return structure_of(table, first_moments(table))


def holes(rng):
    frame = pd.DataFrame(rng.integers(0, 4, (300, 12))).astype("category")
    return encode(frame.mask(np.repeat(rng.random((300, 4)) < 0.3, 3, axis=1)))


def rare(rng):
    return encode(
        np.column_stack([rng.choice(6, 400, p=0.01 + 0.94 * rng.dirichlet(np.full(6, 0.3))) for _ in range(9)])
    )


def numbers(rng):
    columns = {f"x{j}": rng.standard_normal(300) for j in range(4)} | {f"n{j}": rng.poisson(3.0, 300) for j in range(3)}
    return encode(pd.DataFrame(columns | {f"c{j}": rng.integers(0, 3, 300).astype(str) for j in range(3)}))


def weighted(rng):
    return replace(encode(rng.integers(0, 3, (300, 8))), weights=rng.uniform(0.2, 3.0, 300))


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: encode(rng.integers(0, 3, (500, 12))),
        lambda rng: encode(rng.integers(0, 2, (100, 40))),
        lambda rng: encode(rng.integers(0, 2, (60, 3))),
        holes,
        rare,
        numbers,
        weighted,
    ],
)
def test_noise_is_noise(draw):
    found = [looked(draw(np.random.default_rng(seed))).p_value for seed in range(20)]
    assert sum(p < 0.01 for p in found) <= 2
    assert np.mean(found) > 0.3


@pytest.mark.parametrize(("n", "p", "k", "alpha"), [(300, 10, 2, 0.5), (1000, 16, 4, 1.0), (100, 60, 3, 0.3)])
def test_components_show(n, p, k, alpha):
    for seed in range(3):
        assert looked(simulate_gdlm(n, p, k, alpha=alpha, random_state=seed).encoded).found


def test_components_show_in_tables_of_all_kinds():
    drawn = simulate_mixed(400, 3, n_categorical=4, n_count=4, n_continuous=4, missing=0.2, random_state=0)
    assert looked(drawn.encoded).found


def test_idle_variables_are_named():
    drawn = simulate_gdlm(2000, 8, 3, alpha=0.2, random_state=1)
    rng = np.random.default_rng(0)
    found = looked(encode(drawn.frame.assign(junk=rng.integers(0, 3, 2000))))
    assert found.idle == ["junk"]


def test_few_rows_name_few_variables_idle():
    tables = [simulate_gdlm(40, 12, 3, alpha=0.3, random_state=seed).encoded for seed in range(20)]
    assert np.mean([len(looked(table).idle) for table in tables]) < 1.0


def test_shuffles_find_what_the_sums_leave_in_doubt(monkeypatch):
    drawn = [
        simulate_gdlm(200, 20, 6, n_levels=3, alpha=0.3, noise=0.2, random_state=seed).encoded for seed in range(8)
    ]
    shuffled = [looked(table).found for table in drawn]
    monkeypatch.setattr(structure, "SHUFFLED_WORK", 0)
    assert sum(shuffled) > sum(looked(table).found for table in drawn)


def test_what_the_first_look_does_not_see_a_second_does(monkeypatch):
    monkeypatch.setattr(structure, "QUICK", (10_000, 3, 100))
    found = looked(simulate_gdlm(600, 12, 2, random_state=0).encoded)
    assert found.found
    assert (found.rows, found.variables) == (600, 12)


def test_tables_too_small_to_tell():
    assert looked(encode(np.array([[0, 1], [1, 0]]))) == Structure(1.0, 2, 2, [])


def test_weights_that_repeat_rows_are_repeated_rows():
    drawn = simulate_gdlm(200, 6, 2, random_state=3).encoded
    twice = drawn.take(np.r_[0:200, 0:200])
    weighted = replace(drawn, weights=np.full(200, 2.0))
    assert looked(weighted).p_value == pytest.approx(looked(twice).p_value, rel=1e-3)


@pytest.mark.parametrize(("n", "p"), [(300, 30), (1_000, 80)])  # small enough to be shuffled, and not
def test_noise_with_uneven_weights_is_noise(n, p):
    rng = np.random.default_rng(4)
    tables = [replace(encode(rng.integers(0, 3, (n, p))), weights=rng.lognormal(0.0, 0.7, n)) for _ in range(20)]
    found = np.array([looked(table).p_value for table in tables])
    assert (found < 0.05).sum() <= 3
    assert np.mean(found) > 0.3
    drawn = simulate_gdlm(n, p, 3, alpha=0.3, random_state=0).encoded
    assert looked(replace(drawn, weights=tables[0].weights)).found


def test_doubtful_tables_with_whole_weights_are_shuffled_as_repeated_rows():
    rng = np.random.default_rng(3)
    table, weights = encode(rng.integers(0, 2, (200, 8))), np.ones(200)
    weights[:20] = 2.0
    found = looked(replace(table, weights=weights)).p_value
    assert structure.DOUBTFUL[0] < found < structure.DOUBTFUL[1]
    assert found == looked(table.take(np.repeat(np.arange(200), weights.astype(int)))).p_value


def test_cubes_are_those_of_positive_eigenvalues_between_variables():
    rng = np.random.default_rng(2)
    z, share = rng.standard_normal((30, 4)), rng.dirichlet(np.ones(30))
    owner = np.array([0, 0, 1, 2])
    hollow = np.einsum("ia,ib,i->ab", z, z, share) * (owner[:, None] != owner)
    values = np.linalg.eigvals(hollow).real
    assert structure._cubes(z, owner[:, None] != owner, share) == pytest.approx((values[values > 0.0] ** 3).sum())


@pytest.mark.parametrize("n_rows", [10_500, 30_000])
def test_rare_levels_of_many_rows_are_no_structure(n_rows):
    """A part of the rows is looked at first, and has variances of its own."""
    rng = np.random.default_rng(3)
    noise = encode(rng.choice(5, (n_rows, 12), p=[0.9, 0.06, 0.02, 0.015, 0.005]))
    assert not structure_of(noise, first_moments(noise)).found


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_drop_out_at_a_random_place_are_no_structure(seed):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 4, (600, 60)).astype(float)
    ends = np.where(rng.random(600) < 0.7, rng.integers(1, 60, 600), 60)
    cells[np.arange(60) >= ends[:, None]] = np.nan
    noise = encode(cells, kinds={f"x{j}": "categorical" for j in range(60)})
    assert not structure_of(noise, first_moments(noise)).found


def test_a_column_of_many_levels_does_not_take_the_place_of_all_others():
    drawn = simulate_gdlm(600, 8, 2, alpha=0.2, random_state=0)
    frame = pd.DataFrame(drawn.codes, columns=[f"x{j}" for j in range(8)]).astype(str)
    frame.insert(0, "case", np.random.default_rng(0).integers(0, 200, 600).astype(str))
    weights = np.random.default_rng(1).gamma(1.0, size=600)
    found = looked(replace(encode(frame, kinds={"case": "categorical"}), weights=weights))
    assert found.found
    assert found.variables == 8
