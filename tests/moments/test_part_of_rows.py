"""The change of a pass's sums over a part of the rows: means, errors, and how many rows are taken."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem import first_moments, simulate_gdlm
from mixmem.engine import rows as engine_rows
from mixmem.moments.few_passes import pass_at
from mixmem.moments.part_of_rows import Change, Changed, stretches_of_part


@pytest.fixture(scope="module")
def drawn():
    return simulate_gdlm(20_000, 6, 2, n_levels=3, alpha=0.3, random_state=0)


@pytest.fixture(scope="module")
def change(drawn):
    first, rng = first_moments(drawn.encoded), np.random.default_rng(0)
    other = drawn.theta + 0.01 * rng.standard_normal(drawn.theta.shape)
    seed = np.random.SeedSequence(0)
    works = [pass_at(theta, first, 0.6, seed) for theta in (drawn.theta, other)]
    return Change(*works, np.diag([2.0, 3.0, 0.0, 0.0]))


def test_sums_of_stretches_give_means_and_errors(drawn, change, monkeypatch):
    monkeypatch.setattr(engine_rows, "MOST_BLOCKS", 1)
    spans = [(0, 512), (5120, 5632), (15_360, 15_872), (19_968, 20_000)]
    parts = [drawn.encoded.take(slice(*span)) for span in spans]
    sums = [change.sums(part, number) for part, number in zip(parts, (0, 10, 30, 39), strict=True)]
    found = Changed.of((sums[2] + sums[0] + (sums[3] + sums[1])).root, 4, 0.1)
    lengths = np.array([len(part.codes) for part in parts], dtype=float)
    each = [
        change.after.sums(part).root[0] @ change.inverse - change.before.sums(part).root[0] @ change.inverse
        for part in parts
    ]
    mean = sum(each) / lengths.sum()
    off = np.array([own - mean * size for own, size in zip(each, lengths, strict=True)])
    np.testing.assert_allclose(found.steps, mean, rtol=1e-9)
    np.testing.assert_allclose(
        found.errors, np.sqrt(0.9 * 4 / 3 * (off**2).sum(axis=0)) / lengths.sum(), rtol=1e-6, atol=1e-12
    )
    one, two = (work.sums(drawn.encoded).root for work in (change.before, change.after))
    whole = Changed.of(change.sums(drawn.encoded, 0).root, 1, 1.0)
    for own, expected in zip(whole.added_to(one, 20_000.0), two, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-9)
    assert not whole.errors.any()


def test_a_part_is_less_sure_the_smaller_it_is(drawn, change):
    whole, some = (Changed.of(change.sums(drawn.encoded.take(slice(end)), 0).root, 1, 1.0) for end in (20_000, 4_000))
    assert whole.unsure(some, 0.5, 5.0) == 0.5
    assert whole.unsure(some, 0.1, 5.0) == 1.5


def test_all_rows_are_taken_where_a_part_would_not_save_much():
    assert len(stretches_of_part(2.0, 200.0, 20_000_000, 500)) == 27
    assert len(stretches_of_part(1.01, 1e6, 20_000_000, 500)) == 8
    assert len(stretches_of_part(1.01, 1e6, 500_000, 500)) == 0
    assert len(stretches_of_part(20.0, 200.0, 20_000_000, 500)) == 0
    assert stretches_of_part(2.0, 200.0, 20_000_000, 500).max() < 611
