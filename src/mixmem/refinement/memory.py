"""The memory of a fit, known before anything large is allocated, and the refusal of what does not fit.

Counted are the coded table and the arrays of every stage at its largest. Python itself and its libraries, about 300 MB,
and the table as it was read come on top.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded
from mixmem.engine.local import current_threads
from mixmem.engine.memory import available_memory
from mixmem.engine.rows import WAVE_BYTES, n_stretches
from mixmem.errors import InputError
from mixmem.kernels import ROW_BLOCK
from mixmem.moments.anchors import Plan
from mixmem.moments.block_factorization import BATCH_BYTES
from mixmem.moments.estimate import Settings
from mixmem.moments.memory import block_bytes, block_shape, kept_sums
from mixmem.refinement.ascent import DEPTH
from mixmem.refinement.gibbs import CHAINS, batches_for
from mixmem.typing import Positions

NAMED = 3
"""Columns that a refusal names."""


@dataclass(frozen=True)
class Needs:
    """Bytes that a fit takes: the coded table, and each stage with what it keeps of those before.

    ``block`` is the anchors' block, ``partitions`` the blocks of the paper's way, ``sweeps`` second moments and rows'
    features, or latent classes in their place, ``refinement`` likelihoods, memberships and what sampling keeps.
    """

    codes: int
    block: int
    partitions: int
    sweeps: int
    refinement: int

    @property
    def total(self) -> int:
        """The table, and the stage that takes most."""
        return self.codes + max(self.block, self.partitions, self.sweeps, self.refinement)


def memory_needed(table: Encoded, plan: Plan | None, settings: Settings, method: str | None) -> Needs:
    """Return the bytes that a fit of a plan takes, with the method of refinement (None: none).

    Without a plan the fit begins from latent classes: log-likelihoods and shares of rows, and theta, a few times each.
    """
    coding, n, k, solver = table.coding, table.n_rows, settings.n_components, settings.solver
    if plan is None:
        classes = 5 * 8 * k * (n + coding.soft.n_cells)
        return Needs(table.codes.nbytes, 0, 0, classes, _refining(table, k, method))
    runs, blocks = min(settings.n_restarts, current_threads()), [plan.block(r) for r in range(len(plan.partitions))]
    if coding.n_variables < 3:
        return Needs(table.codes.nbytes, 0, 0, 4 * 8 * n * int(coding.soft.offsets[-1]), _refining(table, k, method))
    one = 8 * int(np.prod(block_shape(coding, plan.anchors)))
    kept = (kept_sums(coding, n) + 1) * one  # with the raw moments
    largest = max((block_bytes(coding, modes, n, k, solver) for modes in blocks), default=0)
    # blocks of one batch are worked on together
    batch = max((BATCH_BYTES // (8 * int(np.prod(block_shape(coding, modes)))) for modes in blocks), default=0)
    return Needs(
        codes=table.codes.nbytes,
        block=block_bytes(coding, plan.anchors, n, k, solver, runs),
        partitions=kept + largest * max(1, min(batch, len(blocks))) if blocks else 0,
        sweeps=kept + _sweeping(table, k),
        refinement=_refining(table, k, method),
    )


def _sweeping(table: Encoded, k: int) -> int:
    """Return the bytes of the rows' features, of tables by cells, and of the sums by row blocks."""
    cells, width = table.coding.soft.n_cells, -(-k // 4) * 4
    sums = 8 * cells * width
    stretches = max(1, n_stretches(table.n_rows, table.n_variables))
    waves = min(-(-table.n_rows // ROW_BLOCK) * sums, max(WAVE_BYTES, sums))
    return 16 * table.n_rows * width + (8 + stretches.bit_length()) * sums + 8 * 6 * cells * k + waves


def bytes_per_row(k: int) -> int:
    """Return what every row takes beside its cells: features in sweeps, memberships."""
    return 16 * -(-k // 4) * 4 + 3 * 8 * k


def _refining(table: Encoded, k: int, method: str | None) -> int:
    """Return the bytes of likelihoods and memberships, and of what chains of samples or an ascent keep."""
    coding, n = table.coding, table.n_rows
    draws = sum(column.own_kind.n_draws(column) for column in coding.columns)
    laid_out = n * draws * table.codes.itemsize if draws > table.n_variables else 0
    rows, cells = 8 * n * k, 8 * max(coding.soft.n_cells, coding.schema.n_rows) * k
    always = laid_out + 3 * (rows + cells)
    if method == "gibbs":
        # codes column by column; per chain components of cells, counts; per batch three records of theta, stacked for
        # the diagnostics
        by_column, batches = n * draws * table.codes.itemsize, 7 * batches_for(table.codes.size, k) * cells
        return always + by_column + CHAINS * (n * draws + rows + 12 * cells + batches)
    if method == "integrated":  # modes, means and sums by row blocks
        return always + 2 * rows + 3 * cells + min(-(-n // ROW_BLOCK) * cells, max(WAVE_BYTES, cells))
    if method == "em":
        # changes of ends and of moves, as they are kept and stacked, and the points of a step
        return always + (4 * DEPTH + 8) * (rows + cells) + min(-(-n // ROW_BLOCK) * cells, max(WAVE_BYTES, cells))
    return always


def refuse_beyond(limit: int | None, table: Encoded, plan: Plan | None, settings: Settings, method: str | None) -> None:
    """Refuse a fit that takes more memory than the limit, or than there is if no limit is given."""
    needs = memory_needed(table, plan, settings, method)
    most = available_memory() if limit is None else limit
    if needs.total <= most:
        return
    rowless = memory_needed(table.take(slice(0, 0)), plan, settings, method)
    what, way = _largest(needs, rowless, table, plan)
    bound = f"{in_bytes(most)} are available" if limit is None else f"memory_limit (--memory-limit) is {in_bytes(most)}"
    last = "use a machine with more memory" if limit is None else "raise the limit"
    raise InputError(
        f"the fit with {settings.n_components} components needs about {in_bytes(needs.total)} of memory, most of it "
        f"for {what}, but {bound}; {way}, take fewer components, or {last}"
    )


def _largest(needs: Needs, rowless: Needs, table: Encoded, plan: Plan | None) -> tuple[str, str]:
    """Return what takes most, in words, and what can be done about it; ``rowless`` is what a table of no rows needs."""
    coding, everything = table.coding, np.arange(table.n_variables)
    blocks, others = max(needs.block, needs.partitions), max(needs.sweeps, needs.refinement)
    if others > blocks and max(rowless.sweeps, rowless.refinement) < 0.5 * others:
        return f"what is known of {table.n_rows:,} rows", "use fewer rows"
    members = everything
    if plan is not None and needs.block > max(needs.partitions, others):
        members = np.concatenate(plan.anchors)
    what = "third moments" if blocks >= others else "probabilities of the levels"
    return f"the {what} of {_widest(coding, members)}", "drop such columns, declare them of another kind"


def _widest(coding: Coding, variables: Positions) -> str:
    """Name the variables with most levels: 'city' (7,000 levels), 'street' (900 levels) and 4 others."""
    sizes = coding.schema.sizes
    variables = np.sort(variables)
    order = variables[np.argsort(-sizes[variables], kind="stable")]
    named = [f"{coding.names[j]!r} ({int(sizes[j]):,} levels)" for j in order[:NAMED] if coding.columns[j].levels]
    left = len(variables) - len(named)
    if not named:
        return f"{left:,} columns"
    return ", ".join(named) + (f" and {left:,} other{'s' * (left > 1)}" if left else "")


def in_bytes(size: int) -> str:
    """Return a size as a person reads it.

    >>> in_bytes(7_400_000_000), in_bytes(48_000_000), in_bytes(1234)
    ('7.4 GB', '48 MB', '1.2 kB')
    """
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if size >= 1000**power:
            return f"{size / 1000**power:.2g} {unit}" if size < 100 * 1000**power else f"{size // 1000**power:,} {unit}"
    return f"{size} bytes"
