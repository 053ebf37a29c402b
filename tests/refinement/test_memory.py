from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from mixmem import GDLM, InputError, choose_k, make_plan, simulate_gdlm
from mixmem.engine import memory as machine
from mixmem.engine.local import threads
from mixmem.moments.anchors import anchor_moments
from mixmem.moments.estimate import Settings
from mixmem.moments.memory import block_bytes, block_shape, kept_sums
from mixmem.refinement import memory
from mixmem.refinement.memory import Needs, in_bytes, memory_needed

WIDE = simulate_gdlm(3000, 6, 3, n_levels=90, random_state=0).encoded
LONG = simulate_gdlm(100_000, 12, 3, random_state=0).encoded
PARTED = simulate_gdlm(2000, 200, 3, random_state=0).encoded


def needs_of(table, k=3, method=None, **options) -> Needs:
    plan = make_plan(table, k, rng=np.random.default_rng(0), **options)
    return memory_needed(table, plan, Settings(k, "pqp", "procrustes", None, 10), method)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "options"),
    [
        (WIDE, {"refine": None}),
        (LONG, {"refine": None}),
        (LONG.take(slice(0, 30_000)), {"refine": "em"}),
        (PARTED, {"refine": None, "n_partitions": 5, "sweeps": 0}),
    ],
    ids=["levels", "rows", "em", "partitions"],
)
def test_the_estimate_is_what_a_fit_takes(monkeypatch, table, options):
    found = []

    def note(limit, *given):
        found.append(memory_needed(*given))

    monkeypatch.setattr("mixmem.models._learner.refuse_beyond", note)
    model = GDLM(3, alpha0=0.6, random_state=0, n_jobs=2, **options)
    model.fit(table.take(slice(0, 500)))  # compiled, imported
    model.fit(table)
    model.set_params(memory_limit=found[-1].total)  # so that a look at halves takes no more
    tracemalloc.start()
    model.fit(table)
    peak = tracemalloc.get_traced_memory()[1] + table.codes.nbytes
    tracemalloc.stop()
    assert 1.0 <= found[-1].total / peak < 2.0


@pytest.mark.parametrize("n_rows", [1000, 70_000, 100_000])
def test_the_sums_of_a_block_have_the_size_foretold(n_rows):
    table = LONG.take(slice(0, n_rows))
    plan = make_plan(table, 3, rng=np.random.default_rng(0))
    block = anchor_moments(table, plan)
    assert block.sums.shape == block_shape(table.coding, plan.anchors)
    nodes = block.stretches.nodes
    assert kept_sums(table.coding, n_rows) == len(nodes) + (len(nodes) > 1)


def test_missing_cells_are_levels_of_a_block():
    coding = simulate_gdlm(10, 3, 2, random_state=0).coding
    modes = tuple(np.array([j]) for j in range(3))
    assert block_shape(coding, modes) == (4, 4, 4)
    holed = coding.of(coding.schema, missing=True)
    assert block_shape(holed, modes) == (5, 5, 5)
    assert block_bytes(holed, modes, 10, 2) > block_bytes(coding, modes, 10, 2)


def test_what_sampling_keeps_is_counted():
    assert needs_of(WIDE, method="gibbs").refinement > needs_of(WIDE, method="em").refinement
    assert needs_of(WIDE).partitions == 0 < needs_of(PARTED, n_partitions=5).partitions


def test_a_fit_beyond_the_limit_is_refused_by_name_and_number(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    with pytest.raises(InputError) as refusal:
        GDLM(3, alpha0=0.6, refine=None, random_state=0, memory_limit="5MB", n_jobs=2).fit(
            WIDE.take_variables(np.arange(3))
        )
    assert str(refusal.value) == (
        "the fit with 3 components needs about 36 MB of memory, most of it for the third moments of 'x0' (90 levels), "
        "'x1' (90 levels), 'x2' (90 levels), but memory_limit (--memory-limit) is 5 MB; drop such columns, declare "
        "them of another kind, take fewer components, or raise the limit"
    )


@pytest.mark.parametrize(
    ("table", "words"), [(LONG, "of 100,000 rows, but .* use fewer rows"), (WIDE, "third moments of 'x")]
)
def test_a_refusal_says_what_takes_the_memory(table, words):
    with pytest.raises(InputError, match=words):
        GDLM(3, alpha0=0.6, refine=None, memory_limit=1_000_000).fit(table)


def test_levels_are_named_where_sampling_them_takes_the_memory():
    with pytest.raises(InputError, match=r"for the probabilities of the levels of 'x0' \(90 levels\), .* and 3 others"):
        GDLM(20, alpha0=2.0, refine="gibbs", random_state=0, memory_limit=10_000_000).fit(WIDE)


def test_without_a_limit_the_memory_of_the_machine_is_one(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2_000_000)
    with pytest.raises(InputError, match=r"but 2 MB are available; .* or use a machine with more memory"):
        GDLM(3, alpha0=0.6, refine=None).fit(WIDE)


def test_choosing_k_has_the_limit_too():
    with pytest.raises(InputError, match="the fit with 4 components needs about"):
        choose_k(WIDE, (2, 4), memory_limit="5 MB", random_state=0)


@pytest.mark.slow
def test_a_limit_that_suffices_changes_nothing():
    one, two = (GDLM(3, alpha0=0.6, refine=None, random_state=0, memory_limit=m).fit(WIDE) for m in (None, "1GB"))
    assert np.array_equal(one._theta, two._theta)


def test_two_variables_have_no_block():
    table = simulate_gdlm(200, 2, 2, random_state=0).encoded
    assert needs_of(table, 2).block == 0 < needs_of(table, 2).sweeps


def test_the_estimate_of_anchors_does_not_depend_on_threads():
    plans = []
    for n_jobs in (1, 2):
        with threads(n_jobs):
            plans.append(make_plan(WIDE, 3, rng=np.random.default_rng(0), memory_limit=30_000_000))
    assert str(plans[0]) == str(plans[1])


def test_memory_of_the_machine(monkeypatch, tmp_path):
    assert machine.available_memory() > 0
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   2000 kB\n")
    monkeypatch.setattr(machine, "MEMORY_INFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "GROUP", tmp_path)
    assert machine.available_memory() == 2_048_000
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    assert machine.available_memory() == 600_000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.available_memory() == 2_048_000


def test_sizes_for_reading():
    assert [in_bytes(size) for size in (12, 1500, 250_000_000, 2_500_000_000_000)] == [
        "12 bytes", "1.5 kB", "250 MB", "2.5 TB",
    ]  # fmt: skip


def test_latent_classes_have_the_limit_too():
    items = simulate_gdlm(4000, 6, 2, n_levels=2, random_state=0).encoded  # moments carry two components
    with pytest.raises(InputError, match=r"the fit with 5 components needs about .* but memory_limit"):
        GDLM(5, alpha0=0.3, refine=None, memory_limit=200_000).fit(items)
