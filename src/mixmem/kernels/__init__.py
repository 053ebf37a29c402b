"""Compiled kernels: the only package that imports numba.

Every kernel is short and pure, states its shapes and its NumPy form in the docstring, and is compared with that
form in ``tests/test_kernels.py``. Sums over rows are taken in blocks of :data:`ROW_BLOCK` rows, counted from row 0,
and the block sums are added in row order, so the bits do not depend on the number of threads.
"""

from mixmem.kernels._numba import ROW_BLOCK, in_parts, in_threads, kernel_threads, max_threads, threads, threads_for

__all__ = ["ROW_BLOCK", "in_parts", "in_threads", "kernel_threads", "max_threads", "threads", "threads_for"]
