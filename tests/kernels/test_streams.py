"""Streams against their slow forms: bit for bit, with the JIT and without."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import stats

from mixmem.kernels import reference, streams

SEEDS = [0, 1, 12345, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_splitmix_streams_are_equal_to_the_bit(seed):
    state, expected = np.uint64(seed), seed
    for _ in range(200):
        state, bits = streams.mixed(np.uint64(state))  # a compiled kernel hands back a Python integer
        expected, expected_bits = reference.mixed(expected)
        assert (int(state), int(bits)) == (expected, expected_bits)
        assert int(streams.mixed_bits(np.uint64(state))) == reference.mixed_bits(expected) == expected_bits
        assert float(streams.unit(np.uint64(expected_bits))) == reference.unit(expected_bits)


def test_splitmix_is_the_published_generator():
    """The first numbers of seed 1234567 as Vigna's splitmix64.c gives them."""
    state, found = np.uint64(1234567), []
    for _ in range(3):
        state, bits = streams.mixed(np.uint64(state))
        found.append(int(bits))
    assert found == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("step", "row"), [(0, 0), (1, 7), (10_000, 123_456_789), (2**40, 2**40)])
def test_starts_of_streams_are_equal_to_the_bit(seed, step, row):
    assert int(streams.stream(np.uint64(seed), step, row)) == reference.stream(seed, step, row)


@pytest.mark.parametrize("shape", [1e-3, 0.3, 1.0, 2.5, 400.0])
def test_gamma_draws(shape):
    state, expected = np.uint64(5), 5
    for _ in range(100):
        state, value = streams.log_gamma_draw(np.uint64(state), shape)
        expected, expected_value = reference.log_gamma_draw(expected, shape)
        assert int(state) == expected
        assert value == pytest.approx(expected_value, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 7.3])
def test_gamma_draws_follow_their_distribution(shape):
    state, draws = streams.stream(3, 0, 0), np.empty(20_000)
    for i in range(len(draws)):
        state, draws[i] = streams.log_gamma_draw(np.uint64(state), shape)
    assert stats.kstest(np.exp(draws), stats.gamma(shape).cdf).pvalue > 1e-3


def test_no_draw_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        streams.log_gamma_draw(np.uint64(streams.stream(np.uint64(2**64 - 1), 10**9, 10**9)), 0.5)


SCRIPT = """
import numpy as np
from mixmem.kernels import gibbs, streams
state, bits = streams.mixed(np.uint64(2**64 - 1))
columns = np.arange(24, dtype=np.uint8).reshape(4, 6) % 3
assigned, held, counts = np.full((4, 6), 9, np.uint8), np.zeros((6, 2)), np.zeros((12, 2), np.int64)
table = np.linspace(0.1, 0.9, 24).reshape(12, 2)
for step in range(5):
    gibbs.assign_cells(
        columns, np.arange(4) * 3, np.full(4, -1), table, np.ones(2), 2**63 + 1, step, assigned, held, counts
    )
print(int(state), int(bits), int(streams.stream(7, 8, 9)), assigned.ravel().tolist(), held.ravel().tolist())
"""


def test_both_modes_draw_the_same(capsys):
    """The sampler here, compiled or not, and in a process of the other mode; neither warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(SCRIPT, "draws", "exec"), {})
    here = capsys.readouterr().out
    other = "0" if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" else "1"
    there = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env=os.environ | {"NUMBA_DISABLE_JIT": other},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert here
    assert here == there
