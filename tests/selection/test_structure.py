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


def test_copies_are_named_and_are_no_structure():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"c{j}": rng.integers(0, 3, 600).astype(str) for j in range(6)})
    frame["x"], frame["y"] = rng.standard_normal(600), rng.standard_normal(600)
    frame = frame.assign(
        again=frame["c2"], renamed=frame["c2"].map({"0": "b", "1": "c", "2": "a"}), feet=3.28 * frame["x"]
    )
    found = looked(encode(frame))
    assert found.copies == (["c2", "again", "renamed"], ["x", "feet"])
    assert not found.found
    assert looked(encode(frame.assign(nearly=frame["c1"].where(frame.index != 599, "2")))).copies == found.copies


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
