"""The one door to numba: decorators, and the row block."""

from __future__ import annotations

import os
import sys
from pathlib import Path
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


COMPILING = "compiling kernels for this machine, once (about 20 s)"
"""What is said where :func:`compiled` says no."""


def compiled() -> bool:
    """Return whether no kernel waits to be compiled: numba has left them beside the sources or in its own folder, or
    they run as plain Python."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return True
    pattern = f"*.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return any(Path(chosen).rglob(pattern))
    beside = Path(__file__).parent / "__pycache__"
    return any(beside.glob(pattern)) or any((Path.home() / ".cache" / "numba").rglob(f"simplex.{pattern}"))


def processor() -> str:
    """Return the name of the processor that kernels are compiled for."""
    from llvmlite.binding import get_host_cpu_name

    return str(get_host_cpu_name())
