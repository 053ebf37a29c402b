from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mixmem import InputError, Schema, Variable, encode, make_plan, simulate_gdlm
from mixmem.data.coding import Coding
from mixmem.moments.anchors import capacity, carries
from mixmem.moments.memory import block_bytes


def plan_of(table, k, seed=0, **options):
    return make_plan(table.encoded, k, rng=np.random.default_rng(seed), **options)


def test_a_short_table_is_all_anchors():
    table = simulate_gdlm(200, 25, 5, random_state=0)
    plan = plan_of(table, 5)
    assert sorted(np.concatenate(plan.anchors)) == list(range(25))
    assert [len(mode) for mode in plan.anchors] == [9, 8, 8]
    assert len(plan.rest) == 0


@pytest.mark.parametrize("k", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_anchors_of_a_long_table_are_disjoint_full_rank_and_better_than_random(k):
    table = simulate_gdlm(1000, 600, k, random_state=1)
    plan = plan_of(table, k)
    together = np.concatenate(plan.anchors)
    assert len(set(together.tolist())) == len(together) < 120

    def weakest(modes):
        stacked = [np.concatenate([table.theta[4 * j : 4 * j + 4] for j in mode]) for mode in modes]
        return min(np.linalg.svd(theta, compute_uv=False)[-1] for theta in stacked)

    rng = np.random.default_rng(0)
    sizes = [len(mode) for mode in plan.anchors]
    random = [weakest(np.split(rng.choice(600, sum(sizes), replace=False), np.cumsum(sizes)[:-1])) for _ in range(20)]
    assert all(capacity(table.coding, mode) >= k for mode in plan.anchors)
    assert weakest(plan.anchors) > np.mean(random)


def test_partitions_are_even_random_and_cover_the_rest():
    table = simulate_gdlm(300, 100, 4, random_state=0)
    plan = plan_of(table, 4, n_partitions=7)
    parts = [np.concatenate(part) for part in plan.partitions]
    assert sorted(np.concatenate(parts)) == plan.rest.tolist()
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for r in range(7):
        block = np.concatenate(plan.block(r))
        assert len(set(block.tolist())) == len(block)
        assert all(
            (block_mode[: len(anchor)] == anchor).all()
            for block_mode, anchor in zip(plan.block(r), plan.anchors, strict=True)
        )
    again, other = plan_of(table, 4, n_partitions=7), plan_of(table, 4, seed=1, n_partitions=7)
    assert str(again) == str(plan)
    assert (parts[0] != np.concatenate(other.partitions[0])).any()
    assert "7 partitions" in str(plan)
    assert "anchors u" in str(plan)


def test_more_partitions_than_variables_are_as_many_as_there_are():
    table = simulate_gdlm(200, 40, 3, random_state=0)
    plan = plan_of(table, 3, n_partitions=1000)
    assert len(plan.partitions) == len(plan.rest) > 0


def test_named_anchors_are_taken():
    table = simulate_gdlm(200, 30, 3, random_state=0)
    plan = plan_of(table, 3, anchors=[["x1", "x5"], ["x2", "x9"], ["x0", "x7"]])
    assert [mode.tolist() for mode in plan.anchors] == [[1, 5], [2, 9], [0, 7]]


@pytest.mark.parametrize(
    ("anchors", "message"),
    [
        ([["x1"], ["x2"]], "three non-empty lists"),
        ([["x1"], ["x2"], []], "three non-empty lists"),
        ([["x1"], ["x2"], "x3"], "three non-empty lists"),
        ([["x1"], ["x2"], ["x1"]], "'x1' is named more than once"),
        ([["x1"], ["x2"], ["x99"]], "no variable 'x99'"),
        (
            [["x1"], ["x2"], ["x3"]],
            "n_components=6 is more than the anchors can carry.*fewer components or more anchors",
        ),
    ],
)
def test_bad_anchors_are_refused(anchors, message):
    table = simulate_gdlm(100, 30, 3, random_state=0)
    with pytest.raises(InputError, match=message):
        plan_of(table, 6, anchors=anchors)


def test_too_many_components_are_refused():
    table = simulate_gdlm(100, 4, 3, n_levels=2, random_state=0)
    with pytest.raises(InputError, match=r"ranks of at most 3, 2, 2; use at most 2 components, or more variables"):
        plan_of(table, 4)


def test_rank_counts_every_variable_once():
    coding = Coding.of(Schema(tuple(Variable(f"v{j}", ("a", "b", "c")) for j in range(6))))
    assert capacity(coding, np.array([0, 1])) == 5
    modes = (np.array([0, 1]), np.array([2, 3]), np.array([4, 5]))
    assert carries(coding, modes, 5)
    assert carries(coding, modes, 6)  # Kruskal: 5 + 5 + 5 >= 2 * 6 + 2
    assert not carries(coding, modes, 7)


def strong_and_wide():
    """Return a table of 20 columns of 60 levels, which tell components apart, and 80 of 3 levels, which hardly do."""
    rng = np.random.default_rng(0)
    component = rng.integers(3, size=3000)
    columns = {}
    for name, count, n_levels, share in (("w", 20, 60, 0.9), ("n", 80, 3, 0.4)):
        for j in range(count):
            values = np.where(rng.random(3000) < share, component, rng.integers(n_levels, size=3000))
            values[:n_levels] = np.arange(n_levels)
            columns[f"{name}{j}"] = values
    return encode(pd.DataFrame(columns), kinds=dict.fromkeys(columns, "categorical"))


def test_anchors_with_fewer_levels_are_taken_where_the_block_would_be_too_large():
    table = strong_and_wide()
    plans = [
        make_plan(table, 3, rng=np.random.default_rng(0), memory_limit=limit) for limit in (None, 10**9, 500_000, 10)
    ]
    sizes = [block_bytes(table.coding, plan.anchors, table.n_rows, 3) for plan in plans]
    assert 50_000_000 < sizes[0] == sizes[1] < 10**9
    assert sizes[2] <= 500_000
    assert carries(table.coding, plans[2].anchors, 3)
    together = np.concatenate(plans[2].anchors)
    assert len(set(together.tolist())) == len(together)
    assert str(plans[0]) == str(plans[1]) == str(plans[3])  # what cannot be met changes nothing: it is refused later


def test_more_anchors_are_taken_where_a_few_narrow_ones_do_not_carry_the_components():
    table = strong_and_wide()
    few, many = (make_plan(table, 14, rng=np.random.default_rng(0), memory_limit=limit) for limit in (None, 1_000_000))
    assert block_bytes(table.coding, many.anchors, table.n_rows, 14) <= 1_000_000
    assert carries(table.coding, many.anchors, 14)
    assert max(table.coding.soft.sizes[np.concatenate(many.anchors)]) == 3
    assert len(np.concatenate(many.anchors)) > len(np.concatenate(few.anchors))
