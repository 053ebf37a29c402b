"""Stored models, as the commands use them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import typer

from mixmem.cli.facts import Facts
from mixmem.data.encode import Encoded
from mixmem.models._learner import Learner
from mixmem.parameters import check_parameters


def stored_model(model: Path, jobs: int | None) -> Learner:
    """Return the model in a file, or in the folder of a fit, to be used with so many threads."""
    fitted = Learner.load(model / "model.mixmem" if model.is_dir() else model)
    fitted.n_jobs = jobs
    check_parameters({"n_jobs": jobs})
    return fitted


def say_what_was_found(table: Encoded, quiet: bool) -> None:
    """Say how many of the model's variants are there: genotypes are matched by the variants' names."""
    variants = np.array([variable.own_kind.cells == "copies" for variable in table.schema.variables])
    if quiet or not variants.any():
        return
    empty = int((variants & (Facts.of(table).missing == table.n_rows)).sum())
    if empty:
        typer.echo(
            f"mixmem: {variants.sum() - empty:,} of the model's {variants.sum():,} variants were found; the others "
            "count as missing",
            err=True,
        )
