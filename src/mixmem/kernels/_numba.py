"""The one door to numba: decorators, and the row block."""

from __future__ import annotations

from typing import Any

from numba import njit

ROW_BLOCK = 512
"""Rows summed together before anything is added across blocks; part of the result's last bits, so it is fixed."""

kernel: Any = njit(cache=True, nogil=True)
vector_kernel: Any = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
"""A sum in its innermost loop is taken in vector lanes: in an order fixed when it is compiled, not by the threads."""
