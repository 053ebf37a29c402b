"""Stored models, as the commands use them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import typer

from mixmem.cli.reading import missing_cells
from mixmem.data.encode import Encoded
from mixmem.models._learner import Learner
from mixmem.parameters import check_parameters


def _stored(model: Path, jobs: int | None) -> Learner:
    fitted = Learner.load(model)
    fitted.n_jobs = jobs
    check_parameters({"n_jobs": jobs})
    return fitted


def _say_what_was_found(table: Encoded, quiet: bool) -> None:
    """Genotypes are matched by the variants' names: say so if some of the model's are not there."""
    dosage = np.array([variable.kind == "dosage" for variable in table.schema.variables])
    empty = int((dosage & (missing_cells(table) == len(table.codes))).sum())
    if empty and not quiet:
        typer.echo(
            f"mixmem: {dosage.sum() - empty:,} of the model's {dosage.sum():,} variants were found; the others count "
            "as missing",
            err=True,
        )
