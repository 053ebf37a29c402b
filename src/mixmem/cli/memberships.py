"""`mixmem memberships`: rows of a table in the components of a stored model."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from mixmem.cli.compilation import announce_compilation
from mixmem.cli.reading import Described
from mixmem.cli.stored import say_what_was_found, stored_model
from mixmem.output.tables import membership_frame
from mixmem.progress import current


def row_memberships(
    model: Path,
    data: str | Path,
    described: Described | None = None,
    *,
    jobs: int | None = None,
    quiet: bool = False,
) -> pl.DataFrame:
    """Memberships of a table's rows in the components of a stored model."""
    described = described or Described()
    fitted = stored_model(model, jobs)
    with current().stage("reading"):
        table = described.encode_as(data, fitted.schema_, fitted.missing)
    say_what_was_found(table, quiet)
    announce_compilation(quiet)
    return membership_frame(fitted.fit_rows(table).memberships, table.row_ids, described.row_id or "row")
