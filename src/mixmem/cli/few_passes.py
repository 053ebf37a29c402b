"""A fit of a table that is not held: read in pieces, memberships written as they come."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mixmem.cli.attempts import Attempts
from mixmem.cli.facts import Facts
from mixmem.cli.fit import NOT_SCORED, FitRun, fit_document, log_likelihood
from mixmem.cli.reading import Described
from mixmem.cli.table_warnings import looked_at
from mixmem.data.chunks import Reading
from mixmem.data.schema import Schema
from mixmem.data.sources import source_of
from mixmem.engine.rows import Arrays, Blocks, RowSum, sum_over
from mixmem.errors import InputError
from mixmem.kernels import ROW_BLOCK
from mixmem.models._learner import Learner
from mixmem.models._passes import Everything, FittedRows
from mixmem.output.tables import growing_table, membership_frame
from mixmem.progress import current

TEXT_BYTES = 11
"""What a membership takes as text."""


def run_in_few_passes(
    model: Learner,
    said: Described,
    data: str | Path,
    folder: Path | None,
    accept: Callable[[Schema], None] | None,
    scheduler: str | None = None,
) -> FitRun:
    """Fit a table in few passes, and write its rows' memberships into the folder, if there is one.

    ``scheduler`` is the address of a Dask cluster that does the work.
    """
    progress, attempts = current(), Attempts()
    with progress.stage("reading"):
        source = source_of(data, said.dialect)
    found = said.of_columns(source.names)
    model.missing = found.missing
    if folder is not None:
        _require_room(folder, source.n_rows, model.n_components)
    kept: dict[str, Any] = {}

    def then(everything: Everything) -> None:
        if accept is not None:
            accept(everything.sample.schema)
        kept["everything"] = everything
        kept["rows"] = _write_memberships(model, everything, folder, said.row_id or "row")

    reading = Reading(source, found.missing, found.weight, None, found.row_id)
    if scheduler is None:
        model.fit_reading(reading, then)
    else:
        from mixmem.engine.dask import connected

        with connected(scheduler) as client:
            model.fit_reading(reading, then, client)
    everything: Everything = kept["everything"]
    written: Written = kept["rows"]
    sample = everything.sample
    likelihood = attempts.attempt("the log-likelihood of the rows", lambda: log_likelihood(model, sample))
    counted = Facts(replace(sample, weights=None), everything.first)
    results = {
        "log_likelihood": {**(likelihood or NOT_SCORED), "mean_of_rows_given_memberships": written.conditional},
        "goodness": None,
        "cross_validation": None,
        "memberships": {
            "shares": written.shares.tolist(),
            "largest_gap": written.largest_gap,
            "most_steps": written.most_steps,
        },
        "seconds": {**progress.seconds, **model.report_.seconds, "memberships": written.seconds},
    }
    document = fit_document(model, said, str(data), int(counted.missing.sum()), counted.number_means, results)
    facts = Facts.of(sample)
    part = f"in a sample of {sample.n_rows:,} rows, " if sample.n_rows < model.report_.rows else ""
    doubts = [f"{part}{text}" for text in looked_at(facts, attempts)]
    document["data"] |= {"by": None, "labels": None, "remarks": [*sample.remarks, *doubts]}
    rows = model.fit_rows(sample)
    model._row_name = said.row_id
    return FitRun(model, facts, rows, said.row_id or "row", document, attempts, doubts, held=False)


class Written:
    """What is told of all rows' memberships, added up as they are written."""

    def __init__(self) -> None:
        self.sums: RowSum | None = None
        self.largest_gap, self.most_steps, self.seconds = 0.0, 0, 0.0

    def add(self, found: FittedRows, n_variables: int, first_stretch: int) -> None:
        """Add the rows of a chunk that begins at a stretch."""
        rows, sums = found.rows, _weighted(found, n_variables, first_stretch)
        self.sums = sums if self.sums is None else self.sums + sums
        self.largest_gap = max(self.largest_gap, float(rows.gap.max()))
        self.most_steps = max(self.most_steps, int(rows.n_steps.max()))

    @property
    def shares(self) -> np.ndarray:
        """Mean memberships (k,), rows by their weights."""
        assert self.sums is not None
        memberships, _, total = self.sums.root
        return np.asarray(memberships / total)

    @property
    def conditional(self) -> float:
        """Mean log-likelihood of a row given its memberships."""
        assert self.sums is not None
        _, values, total = self.sums.root
        return float(values / total)


def _weighted(found: FittedRows, n_variables: int, first_stretch: int) -> RowSum:
    each, rows = found.weights, found.rows

    def fill(first: int, partials: Arrays) -> None:
        for b in range(len(partials[0])):
            some = slice((first + b) * ROW_BLOCK, (first + b + 1) * ROW_BLOCK)
            partials[0][b] = each[some] @ rows.memberships[some]
            partials[1][b] = each[some] @ rows.conditional[some]
            partials[2][b] = each[some].sum()

    work = Blocks([(rows.memberships.shape[1],), (), ()], fill)
    return sum_over(work, len(each), n_variables, first_stretch)


def _write_memberships(model: Learner, everything: Everything, folder: Path | None, row_name: str) -> Written:
    """Write all rows' memberships, chunk by chunk, and return what is told of them."""
    written, chunks = Written(), everything.chunks
    path = Path("/dev/null") if folder is None else folder / "memberships.csv"
    began = time.perf_counter()
    with growing_table(path) as add:
        for number, found in enumerate(everything.row_fits(model._noisy, model.alpha_, model.report_.memberships)):
            add(membership_frame(found.rows.memberships, found.row_ids, row_name))
            written.add(found, chunks.coding.n_variables, chunks.first_stretch(number))
    written.seconds = time.perf_counter() - began
    return written


def _require_room(folder: Path, n_rows: int, k: int) -> None:
    """Refuse to begin where the disk has no room for the memberships."""
    size, free = n_rows * (TEXT_BYTES * k + 10), shutil.disk_usage(folder).free
    if free < size:
        raise InputError(
            f"memberships of {n_rows:,} rows take about {size / 1e9:.2g} GB, but {folder.parent} has {free / 1e9:.2g} "
            "GB left; write elsewhere with --out"
        )
