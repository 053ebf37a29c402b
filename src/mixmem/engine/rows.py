"""The loop over rows: sums in a fixed order, and results per row.

Rows come in blocks of 512, counted from row 0. Block sums are added in order within a *stretch* of 1 to 64 blocks (so
many that a stretch holds about 65,536 x 512 cells), and stretch sums are added by a fixed binary tree: node (l, i) is
the sum of the stretches i 2^l to (i + 1) 2^l - 1 that exist. Nothing else decides the bits: not threads, chunks, files
or machines. An unfinished sum (:class:`RowSum`) is its list of maximal whole nodes; ``+`` joins siblings, in any order
of adding. A part of a table that is counted alone begins at a stretch number of its own; cut at stretch borders, the
parts add up to the bits of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mixmem.engine.local import in_parts, in_threads
from mixmem.errors import InputError
from mixmem.kernels import ROW_BLOCK
from mixmem.typing import Array

MOST_BLOCKS, STRETCH_CELLS = 64, 65_536
"""Blocks of a stretch at most, and variables times blocks that it holds; part of the last bits, so they are fixed."""
WAVE_BYTES = 32_000_000
"""Memory for block sums under way at once; a wave of row blocks is as long as fits, the bits do not depend on it."""

Arrays = tuple[Array, ...]
Shape = tuple[int, ...]


def stretch_blocks(n_variables: int) -> int:
    """Return the blocks of a stretch in a table of so many variables.

    >>> [stretch_blocks(p) for p in (10, 1024, 10_000, 100_000)]
    [64, 64, 4, 1]
    """
    most = max(1, min(MOST_BLOCKS, STRETCH_CELLS // max(1, n_variables)))
    return 1 << (most.bit_length() - 1)


def stretch_rows(n_variables: int) -> int:
    """Return the rows of a stretch: tables are to be cut at multiples of it.

    Parameters
    ----------
    n_variables : int
        Variables of the table.

    Examples
    --------
    >>> stretch_rows(100)
    32768
    """
    return ROW_BLOCK * stretch_blocks(n_variables)


def n_stretches(n_rows: int, n_variables: int) -> int:
    """Return the number of stretches of a table; a part that follows it begins at that number.

    Parameters
    ----------
    n_rows, n_variables : int
        Size of the table.

    Examples
    --------
    >>> n_stretches(100_000, 100)
    4
    """
    return -(-n_rows // stretch_rows(n_variables))


@dataclass(frozen=True)
class RowSum:
    """An unfinished sum over rows: the maximal whole nodes of the tree, each a tuple of arrays.

    ``nodes`` maps (level, index) to the sum of stretches index 2^level to (index + 1) 2^level - 1.
    """

    nodes: dict[tuple[int, int], Arrays]

    def __add__(self, other: RowSum) -> RowSum:
        """Join two sums over different stretches."""
        for mine in self.nodes:
            for theirs in other.nodes:
                if _overlap(mine, theirs):
                    both = max(mine[1] << mine[0], theirs[1] << theirs[0])
                    raise InputError(
                        f"both sums hold stretch {both} of the table, so rows would count twice; count each part with "
                        "the first_stretch at which it begins (n_stretches of the parts before it)"
                    )
        nodes = dict(self.nodes)
        for place, arrays in other.nodes.items():
            _place(nodes, place, arrays)
        return RowSum(nodes)

    @property
    def closed(self) -> RowSum:
        """The sum of all stretches as one node, which others can no longer be added to."""
        return RowSum({(0, 0): self.root})

    @property
    def root(self) -> Arrays:
        """The sum of all stretches that there are, added up the tree; a node without a sibling goes up as it is."""
        if len(self.nodes) == 1:
            return next(iter(self.nodes.values()))
        nodes = dict(self.nodes)
        while len(nodes) > 1:
            level = min(at for at, _ in nodes)
            index = min(i for at, i in nodes if at == level)
            arrays = nodes.pop((level, index))
            sibling = nodes.pop((level, index ^ 1), None)
            nodes[level + 1, index >> 1] = arrays if sibling is None else _added(arrays, sibling)
        return next(iter(nodes.values()))


def _overlap(one: tuple[int, int], two: tuple[int, int]) -> bool:
    (low, i), (high, j) = sorted((one, two))
    return i >> (high - low) == j


def _place(nodes: dict[tuple[int, int], Arrays], place: tuple[int, int], arrays: Arrays) -> None:
    """Put a node into the list and join it with its sibling as long as there is one."""
    level, index = place
    while (sibling := nodes.pop((level, index ^ 1), None)) is not None:
        arrays = _added(sibling, arrays) if index & 1 else _added(arrays, sibling)
        level, index = level + 1, index >> 1
    nodes[level, index] = arrays


def _added(left: Arrays, right: Arrays) -> Arrays:
    return tuple(a + b for a, b in zip(left, right, strict=True))


@dataclass(frozen=True)
class Blocks:
    """Sums of row blocks, each on its own: what threads share is the blocks.

    ``fill(first, partials)`` fills partials, one array (blocks, *shape) per shape, with the sums of blocks first,
    first + 1, …, counted from the first row that is summed.
    """

    shapes: Sequence[Shape]
    fill: Callable[[int, Arrays], None]


@dataclass(frozen=True)
class Slices:
    """Sums that rows are added to one after the other: what threads share is ``count`` slices of the sums.

    ``add(rows, begin, end, sums)`` adds a slice of rows to the slices begin to end of the sums, which no other call
    touches. For sums too large to be kept per block.
    """

    shapes: Sequence[Shape]
    count: int
    add: Callable[[slice, int, int, Arrays], None]


def sum_over(work: Blocks | Slices, n_rows: int, n_variables: int, first_stretch: int = 0) -> RowSum:
    """Sum over rows 0 to n_rows in the fixed order.

    Parameters
    ----------
    work : Blocks or Slices
        The sums of some rows, as a pure function of them.
    n_rows : int
        Rows of the table, or of the part of it.
    n_variables : int
        Variables of the table, which decide how long a stretch is.
    first_stretch : int
        The number of the stretch with which the part begins.

    Returns
    -------
    RowSum
        Its ``root`` is the sum; sums of other parts can be added first.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.arange(1000.0)
    >>> def fill(first, partials):
    ...     for b in range(len(partials[0])):
    ...         partials[0][b] = values[(first + b) * 512 : (first + b + 1) * 512].sum()
    >>> sum_over(Blocks([()], fill), 1000, 5).root[0]
    array(499500.)
    """
    nodes: dict[tuple[int, int], Arrays] = {}
    stretches = _by_blocks if isinstance(work, Blocks) else _by_slices
    for number, sums in enumerate(stretches(work, n_rows, stretch_blocks(n_variables)), start=first_stretch):  # type: ignore[arg-type]
        _place(nodes, (0, number), sums)
    if not nodes:
        nodes[0, first_stretch] = tuple(np.zeros(shape) for shape in work.shapes)
    return RowSum(nodes)


def _by_blocks(work: Blocks, n_rows: int, stretch: int) -> Iterator[Arrays]:
    """Yield the stretches' sums, from waves of blocks."""
    sums: Arrays | None = None
    bytes_per_block = 8 * sum(map(math.prod, work.shapes))
    for first, count in waves(n_rows, bytes_per_block):
        partials = tuple(np.empty((count, *shape)) for shape in work.shapes)
        in_parts(_filler(work, first, partials), count)
        for b in range(count):
            if sums is None or (first + b) % stretch == 0:
                if sums is not None:
                    yield sums
                sums = tuple([np.asarray(partial[b] + 0.0) for partial in partials])
            else:
                for total, partial in zip(sums, partials, strict=True):
                    np.add(total, partial[b], out=total)
    if sums is not None:
        yield sums


def _filler(work: Blocks, first: int, partials: Arrays) -> Callable[[int, int], None]:
    """Return what fills blocks begin to end of a wave that starts at block ``first``."""
    return lambda begin, end: work.fill(first + begin, tuple(partial[begin:end] for partial in partials))


def _by_slices(work: Slices, n_rows: int, stretch: int) -> Iterator[Arrays]:
    """Yield the stretches' sums, one stretch after the other."""
    for first in range(0, n_rows, stretch * ROW_BLOCK):
        rows = slice(first, min(n_rows, first + stretch * ROW_BLOCK))
        sums = tuple(np.zeros(shape) for shape in work.shapes)
        in_parts(_adder(work, rows, sums), work.count)
        yield sums


def _adder(work: Slices, rows: slice, sums: Arrays) -> Callable[[int, int], None]:
    return lambda begin, end: work.add(rows, begin, end, sums)


def waves(n_rows: int, bytes_per_block: int) -> Iterator[tuple[int, int]]:
    """Yield row blocks in waves (first block, number of blocks) that fit :data:`WAVE_BYTES`, in row order."""
    total = -(-n_rows // ROW_BLOCK)
    size = max(1, min(total, WAVE_BYTES // max(1, bytes_per_block)))
    for first in range(0, total, size):
        yield first, min(size, total - first)


def map_rows(run: Callable[[slice], None], n_rows: int, done: Callable[[int], None] | None = None) -> None:
    """Call run(rows) for slices of rows that cover the table; results per row are written as they come.

    ``done`` is called with the number of rows just finished: then slices are row blocks, so that it is called often.
    Without it every thread has one slice.

    >>> import numpy as np
    >>> out = np.zeros(3)
    >>> map_rows(lambda rows: out.__setitem__(rows, 1.0), 3)
    >>> out
    array([1., 1., 1.])
    """
    if done is None:
        in_parts(lambda first, last: run(slice(first, last)), n_rows)
        return

    def some(block: int) -> None:
        rows = slice(block * ROW_BLOCK, min(n_rows, (block + 1) * ROW_BLOCK))
        run(rows)
        done(rows.stop - rows.start)

    in_threads(some, -(-n_rows // ROW_BLOCK))
