"""`mixmem memberships`: rows of a table in the components of a stored model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from mixmem.cli.compilation import announce_compilation
from mixmem.cli.reading import Described
from mixmem.cli.stored import say_what_was_found, stored_model
from mixmem.data.chunks import Reading
from mixmem.data.encode import Encoded
from mixmem.data.read import read_table
from mixmem.data.sources import Source, larger_than, source_of
from mixmem.engine.memory import available_memory
from mixmem.errors import InputError
from mixmem.models._learner import Learner
from mixmem.output.tables import membership_frame
from mixmem.parameters import bytes_of, check_parameters
from mixmem.progress import current
from mixmem.refinement.memory import bytes_per_row

MOST_ROWS, BYTES_PER_CELL = 100_000, 32
"""Rows of a piece at most, and what a cell takes as read and coded."""


def row_memberships(
    model: Path,
    data: str | Path,
    described: Described | None = None,
    *,
    jobs: int | None = None,
    memory_limit: str | None = None,
    quiet: bool = False,
) -> Iterator[pl.DataFrame]:
    """Yield memberships of a table's rows in a stored model's components, in pieces of files larger than memory.

    Rows are named by the column that named those of the fit, where it is there and no other is given.
    """
    described = described or Described()
    fitted = stored_model(model, jobs)
    check_parameters({"memory_limit": memory_limit})
    most = bytes_of(memory_limit) or available_memory()
    announce_compilation(quiet)
    if larger_than(data, most, bytes_per_row(len(fitted.alpha_)), described.dialect):
        everything = source_of(data, described.dialect)
        described, row_name = _named(described, fitted, everything.names)
        source = Reading(everything, row_id=described.row_id).knowing(fitted.coding_).source
        size = min(MOST_ROWS, max(1, most // (BYTES_PER_CELL * max(1, len(source.names)))))
        with current().stage("memberships", source.n_rows) as step:
            for begin in range(0, source.n_rows, size):
                end = min(source.n_rows, begin + size)
                table = _piece(described, source, begin, end, fitted)
                yield membership_frame(fitted.fit_rows(table).memberships, table.row_ids, row_name)
                step(end - begin)
        return
    with current().stage("reading"):
        whole = read_table(data, dialect=described.dialect)
        described, row_name = _named(described, fitted, whole.names)
        table = described.encode_as(whole, fitted.schema_, fitted.missing)
    say_what_was_found(table, quiet)
    yield membership_frame(fitted.fit_rows(table).memberships, table.row_ids, row_name)


def _named(described: Described, fitted: Learner, columns: Sequence[str]) -> tuple[Described, str]:
    """Return what is said of a table of these columns, with what names its rows, and how that is called."""
    name = described.row_id or (fitted._row_name if fitted._row_name in columns else None)
    return replace(described, row_id=name), name or "row"


def _piece(described: Described, source: Source, begin: int, end: int, fitted: Learner) -> Encoded:
    """Return some rows as codes, known by their place in the whole table; a refusal says where they are."""
    table = source.read(begin, end)
    try:
        found = described.encode_as(table, fitted.schema_, fitted.missing)
    except InputError as error:
        raise InputError(f"{source.place(begin, end)}, counted from the first of them: {error}") from error
    named = described.row_id is not None or table.row_ids is not None
    return found if named else replace(found, row_ids=np.arange(begin, end))
