from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from mixmem.engine import local
from mixmem.refinement import gibbs
from mixmem.selection import halves

AS_USERS_HAVE_IT = {name: getattr(halves, name) for name in ("MOST_WORK", "SMALL_WORK", "MOST_SPLITS")}


@pytest.fixture(scope="session", autouse=True)
def _one_thread_per_worker() -> Iterator[None]:
    """Give workers, who share the cores, one thread each where a test does not say how many: more would wait."""
    every = local.kernel_threads

    def fewer(n_jobs: int | None) -> AbstractContextManager[int]:
        return every(1 if n_jobs is None and "NUMBA_NUM_THREADS" not in os.environ else n_jobs)

    with pytest.MonkeyPatch.context() as patch:
        if "PYTEST_XDIST_WORKER" in os.environ:
            patch.setattr(local, "kernel_threads", fewer)
        yield


@pytest.fixture(scope="session", autouse=True)
def _less_work_without_the_jit() -> Iterator[None]:
    """Let chains sample 28 sweeps instead of 350 and more where kernels are plain Python (`make coverage`), and hold
    only fits of the smallest tables against halves of their rows, which takes six times as long as the fit itself.

    The same lines run. What is asserted of a converged chain is left to `make test`, by the mark `slow`; a test of what
    halves show asks for ``halves_looked_at``.
    """
    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            patch.setattr(gibbs, "BATCH", 2)
            patch.setattr(halves, "MOST_WORK", 5_000)
        yield


@pytest.fixture
def halves_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold fits against halves of their rows as users have it, where kernels are plain Python or halves quick, too."""
    for name, value in AS_USERS_HAVE_IT.items():
        monkeypatch.setattr(halves, name, value)


@pytest.fixture(scope="module")
def quick_halves() -> Iterator[None]:
    """Look at halves of a small table's rows as at those of a larger one: by moments, and sampled where these leave
    doubts; and of one split, not up to five. Sampled halves take three quarters of a small table's fit.

    For files that test something else; a test in one of them for which halves count asks for ``halves_looked_at``.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halves, "SMALL_WORK", 0)
        patch.setattr(halves, "MOST_SPLITS", 1)
        yield


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The public data sets, beside the checkout or where MIXMEM_DATA says; tests that need them skip without."""
    folder = Path(os.environ.get("MIXMEM_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no public data sets at {folder}; set MIXMEM_DATA to their folder")
    return folder
