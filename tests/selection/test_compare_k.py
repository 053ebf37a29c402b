"""Numbers of components are held against each other by one way of learning, and looked at again near the line."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem import simulate_gdlm
from mixmem.moments.sums import first_moments
from mixmem.progress import Progress
from mixmem.selection import compare_k
from mixmem.selection.compare_k import Compared, compare
from mixmem.selection.halves import Halves, Learned, found_again


def compared(worst, gain):
    """Three numbers of components, each likelier than the one before by ``gain``."""
    rising = np.array([[0.0], [gain], [2.0 * gain]]) + 1e-3 * np.random.default_rng(0).standard_normal((3, 50))
    return Compared(rising, np.ones(50), [[(each, each)] for each in worst])


def test_what_agreement_alone_decides_is_doubtful():
    assert not compared([1.0, 0.99, 0.99], 1.0).doubtful(0)
    assert compared([1.0, 0.99, 0.2], 1.0).doubtful(0)  # refused for that alone
    assert compared([1.0, 0.2, 0.9], 1.0).doubtful(0)  # recommended, and hardly
    assert not compared([1.0, 0.2, 0.2], -1.0).doubtful(0)  # refused for its likelihood too
    assert compared([1.0, 0.2, 0.2], -1.0).doubtful(1)  # fewer than the spectrum shows


@pytest.fixture
def ways(monkeypatch):
    """The ways by which halves were learned from, and how often; halves that agree by 0.9 in all components."""
    found: list[tuple[str, int]] = []

    def learn(self, k, alpha0, memory_limit, way="moments", free_alpha0=True):
        found.append((way, k))
        scored = len(self.parts[0].held_out)
        return Learned((), np.full(k, 1.0 if k == 1 else 0.9), np.full(scored, float(k)) + np.arange(scored) * 1e-6)

    monkeypatch.setattr(Halves, "learn", learn)
    return found


def look(table):
    return compare(
        table, first_moments(table), [1, 2, 3], 1.0, free_alpha0=True, memory_limit=None,
        n_splits=2, progress=Progress(),
    )  # fmt: skip


def test_halves_are_sampled_for_all_numbers_or_none(ways, monkeypatch):
    table = simulate_gdlm(400, 12, 2, random_state=0).encoded
    size = table.codes.size
    monkeypatch.setattr(compare_k, "MOST_SPLITS", 2)
    for most, small, expected in (
        (3 * size, 3 * size, ["sampling"]),
        (3 * size, 0, ["moments", "sampling"]),
        (3 * size - 1, 0, ["moments"]),
    ):
        monkeypatch.setattr(compare_k, "SAMPLED_WORK", most)
        monkeypatch.setattr(compare_k, "SMALL_WORK", small)
        ways.clear()
        look(table)
        assert ways == [(way, k) for way in expected for _ in range(2) for k in (1, 2, 3)]


def test_numbers_near_the_line_have_more_splits(ways):
    found = look(simulate_gdlm(400, 12, 2, random_state=0).encoded)
    assert [len(each) for each in found.agreements] == [2, 2, 3]  # the one recommended: most of five say the same
    assert found.recommended[0] == 2


@pytest.mark.usefixtures("halves_looked_at")
def test_a_fit_and_a_choice_look_at_the_same_halves():
    table = simulate_gdlm(150, 8, 2, alpha=0.3, random_state=3).encoded
    first = first_moments(table)
    compared = compare(
        table, first, [1, 2], 0.6, free_alpha0=True, memory_limit=None, n_splits=2, progress=Progress()
    )  # fmt: skip
    fitted = found_again(table, first, 2, 0.6, memory_limit=None, sampled=True)
    both = min(len(fitted.worst), len(compared.worst(1)))
    assert fitted.worst[:both] == compared.worst(1)[:both]
