"""Threads: how many, in what order, and what is left of them."""

import threading

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from mixmem.engine.local import (
    current_threads,
    in_parts,
    in_tasks,
    in_threads,
    max_threads,
    n_tasks,
    threads,
    threads_for,
)


def test_pieces_in_threads_keep_their_order():
    assert in_threads(lambda r: r * r, 7) == [0, 1, 4, 9, 16, 25, 36]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_thread_count_is_restored(n_threads):
    with threads(None) as before:
        pass
    with threads(n_threads) as inside:
        assert inside <= max(1, n_threads)
    with threads(None) as after:
        assert after == before


def test_the_number_of_threads_nests():
    with threads(1):
        assert current_threads() == 1
        with threads_for(10**12):
            assert current_threads() == 1
    assert current_threads() == max_threads()


@pytest.mark.skipif(max_threads() < 2, reason="needs two threads")
def test_threads_are_kept_while_a_block_runs_and_end_with_it():
    meet = threading.Barrier(2)

    def who(_):
        meet.wait(10)  # both threads take part
        return threading.get_ident()

    alive = threading.active_count()
    with threads(2):
        first, second = set(in_threads(who, 2)), set(in_threads(who, 2))
        assert len(first) == 2
        assert first == second
        with threads(2):  # a block inside ends no threads of the one around it
            assert set(in_threads(who, 2)) == first
        assert set(in_threads(who, 2)) == first
    assert threading.active_count() == alive
    in_threads(who, 2)
    assert threading.active_count() == alive


def test_a_failure_in_a_thread_is_raised_and_leaves_the_block_usable():
    def fail(r):
        raise ValueError(f"number {r}")

    with threads(None):
        with pytest.raises(ValueError, match="number 0"):
            in_threads(fail, 5)
        assert in_threads(lambda r: r, 5) == [0, 1, 2, 3, 4]


def test_workers_start_no_further_threads():
    with threads(max_threads()):
        assert in_threads(lambda _: current_threads(), 4) == [1 if max_threads() > 1 else max_threads()] * 4


def test_parts_cover_the_range_once():
    seen = np.zeros(11, dtype=int)

    def mark(first, last):
        seen[first:last] += 1

    in_parts(mark, len(seen))
    assert (seen == 1).all()


def blas_threads():
    np.linalg.inv(np.eye(2))
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_is_given_back_after_fits_that_ran_at_once():
    """The first to begin is not the first to end."""
    before = blas_threads()
    begun, ended = threading.Event(), threading.Event()

    def other():
        with threads(1):
            begun.set()
            ended.wait(10)

    worker = threading.Thread(target=other)
    with threads(1):
        worker.start()
        begun.wait(10)
    assert set(blas_threads()) <= {1}
    ended.set()
    worker.join()
    assert blas_threads() == before


def _threads_of(number):
    return number, current_threads()


def test_tasks_go_where_joblib_is_told_to():
    tasks = [(number,) for number in range(5)]
    assert n_tasks() == 1
    with threads(2):
        assert [number for number, _ in in_tasks(_threads_of, tasks)] == list(range(5))
    for settings in ({"backend": "threading", "n_jobs": 2}, {"backend": "loky", "n_jobs": 2}):
        with joblib.parallel_config(**settings):
            assert n_tasks() == 2
            assert list(in_tasks(_threads_of, tasks)) == [(number, 1) for number in range(5)]
    with joblib.parallel_config(backend="sequential"):
        assert n_tasks() == 1
