"""Compiled kernels: the only package that imports numba.

Every kernel is short and pure and states its shapes. Its slow form, written for reading, is in
:mod:`mixmem.kernels.reference` under the same name, and ``tests/kernels`` compares the two. Kernels run in one thread;
who runs which part is up to :mod:`mixmem.engine`.
"""

from mixmem.kernels._numba import COMPILING, ROW_BLOCK, compiled

__all__ = ["COMPILING", "ROW_BLOCK", "compiled"]
