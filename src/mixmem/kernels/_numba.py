"""The one door to numba: decorators, and the row block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, njit

ROW_BLOCK = 512
"""Rows summed together before anything is added across blocks; part of the result's last bits, so it is fixed."""

kernel: Any = njit(cache=True, nogil=True)
vector_kernel: Any = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
"""A sum in its innermost loop is taken in vector lanes: in an order fixed when it is compiled, not by the threads.

A loop that sums must not write into arrays: compiled code looks where those lie in memory before it takes lanes, and
takes them one by one where they lie close together.
"""

if config.DISABLE_JIT:  # type: ignore[attr-defined]
    # With NUMBA_DISABLE_JIT=1 kernels are plain Python, and NumPy's numbers would warn where compiled ones wrap around
    # or become infinite without a word.
    kernel = vector_kernel = np.errstate(all="ignore")


def processor() -> str:
    """Return the name of the processor that kernels are compiled for."""
    from llvmlite.binding import get_host_cpu_name

    return str(get_host_cpu_name())
