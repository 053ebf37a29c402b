"""Fit, write, and read again: what the commands share."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixmem import __version__
from mixmem.cli.attempts import Attempts
from mixmem.cli.compilation import announce_compilation
from mixmem.cli.facts import Facts
from mixmem.cli.labels import GroupedBy
from mixmem.cli.reading import Described, Variants
from mixmem.cli.table_warnings import looked_at
from mixmem.data.encode import Encoded
from mixmem.data.schema import Schema
from mixmem.errors import InputError
from mixmem.likelihood.memberships import RowFit
from mixmem.models._learner import Learner
from mixmem.moments.anchors import spread_rows
from mixmem.output.fit_files import FitFiles
from mixmem.output.groups import GROUPS_FILE, Groups
from mixmem.output.page import render_page
from mixmem.output.tables import as_polars, component_names, membership_frame, write_alpha, write_table, write_theta
from mixmem.parameters import check_parameters
from mixmem.progress import current
from mixmem.records import plain
from mixmem.results.notices import Notice
from mixmem.storage.provenance import provenance
from mixmem.storage.run_id import file_digest

LIKELIHOOD_CELLS, LEAST_SCORED = 500_000, 200
"""Cells whose likelihood is taken, and the least rows."""
GOODNESS_CELLS = 500_000
"""Cells up to which the fit is held against the table's pairs unasked: a second or less."""
NOT_SCORED = {"mean_of_rows": None, "standard_error": None, "rows": 0}
SHOWN_MISFITS = 10
FIT_FILES = (
    "theta.csv", "alpha.csv", "memberships.csv", "intervals.csv", GROUPS_FILE, "model.mixmem", "fit.json",
    "report.html",
)  # fmt: skip
"""What a fit may write: one that leaves a file out removes that of an earlier fit."""
REPORTED_FILES = ("theta.csv", "alpha.csv", "memberships.csv")
"""What a page is made from, beside fit.json, which has their digests."""


@dataclass(frozen=True)
class FitRun:
    """A fit on its way to the files: the model, the rows' memberships, and what fit.json will hold."""

    model: Learner
    facts: Facts
    rows: RowFit
    row_name: str
    document: dict[str, Any]
    attempts: Attempts
    table_warnings: Sequence[str] = ()
    """What of the table will be learned poorly, or may be something else than it looks."""
    variants: Variants | None = None
    """All variants of a genotype file, also those that were left out."""
    groups: Groups | None = None
    """Groups of the rows, which the page shows."""
    held: bool = True
    """Whether all rows are; else the table and its memberships are a sample's, and the file of all is written."""

    @property
    def notices(self) -> list[Notice]:
        """What speaks against the fit, and what could not be made beside it."""
        return [*self.model.report_.warnings, *self.attempts.notices]

    @property
    def table(self) -> Encoded:
        """The coded table."""
        return self.facts.table

    @property
    def shares(self) -> np.ndarray:
        """Mean membership in every component (k,), rows by their weights."""
        return np.asarray(self.document["memberships"]["shares"])


def run_fit(
    data: str | Path,
    settings: Mapping[str, Any],
    *,
    described: Described | None = None,
    grouped: GroupedBy | None = None,
    shown_as: str | Path | None = None,
    folds: int | None = None,
    quiet: bool = False,
    accept: Callable[[Schema], None] | None = None,
    folder: Path | None = None,
    scheduler: str | None = None,
) -> FitRun:
    """Read once, fit, and find the rows' memberships.

    What the fit can do without may fail: it is left out, and a notice says so. ``described`` says how the table is
    read, ``grouped`` which labels group its rows on the page, ``shown_as`` is the path that fit.json names, ``folds``
    those of a cross-validation, and ``accept`` may refuse the table before it is fitted. Memberships of a table that is
    not held are written into ``folder`` at once; ``scheduler`` is the address of a Dask cluster that does the work.
    """
    model = Learner(**settings)
    described = described or Described(None, model.variables, model.missing)
    row_id = described.row_id
    check_parameters(model.get_params(deep=False))  # before the data are read: that may take long
    names = component_names(model.n_components)
    if row_id in names:
        raise InputError(f"the row ids' column cannot be called {row_id!r}, as a component is; rename it")
    progress = current()
    said = described
    if scheduler is not None or model._in_few_passes(data, model._settings(), said.dialect):
        from mixmem.cli.few_passes import run_in_few_passes

        refuse_in_few_passes(folds, grouped)
        announce_compilation(quiet)
        return run_in_few_passes(model, said, data, folder, accept, scheduler)
    with progress.stage("reading"):
        source, described = described.read(data)
        groups = None
        if grouped is not None:
            source, groups = grouped.split(source, described.weight)
            described = described.without(grouped.column)
        table, model.missing, variants = described.coded(source), described.missing, Variants.of(source)
        del source  # the codes are enough from here on
        if accept is not None:
            accept(table.schema)
    announce_compilation(quiet)
    model.fit(table)
    began = time.perf_counter()
    rows = model.rows_
    facts = Facts.of(table, model._trained().first)
    attempts = Attempts()
    likelihood = attempts.attempt("the log-likelihood of the rows", lambda: log_likelihood(model, table))
    goodness = attempts.attempt("goodness of fit", lambda: _goodness(model, table))
    error = (
        None if folds is None else attempts.attempt("cross-validation", lambda: model.cross_validation(table, folds))
    )
    doubts = looked_at(facts, attempts)
    fitted = {stage: seconds for stage, seconds in model.report_.seconds.items() if stage != "read"}
    found = {
        "log_likelihood": {
            **(likelihood or NOT_SCORED),
            "mean_of_rows_given_memberships": float(np.average(rows.conditional, weights=table.weights)),
        },
        "goodness": goodness,
        "cross_validation": None if error is None else {"folds": folds, "error": error},
        "memberships": {
            "shares": np.average(rows.memberships, axis=0, weights=table.weights).tolist(),
            "largest_gap": float(rows.gap.max()),
            "most_steps": int(rows.n_steps.max()),
        },
        "seconds": {**progress.seconds, **fitted, "memberships": time.perf_counter() - began},
    }
    shown = str(data if shown_as is None else shown_as)
    document = fit_document(model, said, shown, int(facts.missing.sum()), facts.number_means, found)
    document["data"] |= {
        "by": None if grouped is None else grouped.column,
        "labels": None if grouped is None else grouped.file,
        "remarks": [*table.remarks, *doubts],
    }
    model._row_name = row_id
    return FitRun(model, facts, rows, row_id or "row", document, attempts, doubts, variants, groups)


def fit_document(
    model: Learner,
    said: Described,
    path: str,
    missing_cells: int,
    means: Mapping[str, float],
    found: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what fit.json holds: of the data, the settings, and what was ``found``."""
    report = model.report_
    return {
        "mixmem": __version__,
        "run": model.run_id,
        **provenance(),
        "data": {
            "path": path,
            "rows": report.rows,
            "variables": model.schema_.n_variables,
            **_kinds(model.schema_),
            "missing_cells": missing_cells,
            "means": dict(means),
            "id": said.row_id,
            "weight": said.weight,
        },
        "settings": model.get_params(deep=False),
        "seed": report.seed,
        **found,
        "report": report.to_plain(),
    }


def refuse_in_few_passes(folds: int | None, grouped: GroupedBy | None) -> None:
    """Refuse what needs all rows in memory."""
    if grouped is not None:
        raise InputError("--by groups all rows on the page, and this table is read in few passes; leave --by out")
    if folds is not None:
        raise InputError("--cv hides genotypes of all rows in memory, and this table is read in few passes; leave --cv")


def _kinds(schema: Schema) -> dict[str, Any]:
    """Return how many variables there are of each kind, and the same in words, as a page shows them."""
    names = Counter(variable.kind for variable in schema.variables)
    counted = Counter(variable.own_kind.nouns for variable in schema.variables)
    words = {nouns[count > 1]: count for nouns, count in counted.items()}
    return {
        "kinds": dict(names),
        "in_words": words,
        "all_of": [] if schema.has("plain").all() or len(words) != 1 else [f"all {next(iter(counted))[1]}"],
        "genotypes": all(variable.own_kind.cells == "copies" for variable in schema.variables),
    }


def log_likelihood(model: Learner, table: Encoded) -> dict[str, Any]:
    """Mean of the rows, memberships integrated out, over rows enough for a mean, spread over the table."""
    most = max(LEAST_SCORED, LIKELIHOOD_CELLS // table.schema.n_variables)
    some = table.take(spread_rows(np.arange(len(table.codes)), most))
    values, errors = model.score_samples(some, return_std=True)
    weights = np.ones(len(values)) if some.weights is None else some.weights
    return {
        "mean_of_rows": float(np.average(values, weights=weights)),
        "standard_error": float(np.sqrt(((weights * errors) ** 2).sum()) / weights.sum()),
        "rows": len(values),
    }


def _goodness(model: Learner, table: Encoded) -> dict[str, Any] | None:
    """How well pairs of variables are explained, in words, with the worst variables; None where it would take long."""
    if table.codes.size > GOODNESS_CELLS or not table.whole:
        return None
    found = model.goodness_of_fit(table)
    columns = ["variable", "misfit", "worst_partner", "level", "partner_level", "observed", "fitted"]
    shown = zip(*(found.variable_columns[name][:SHOWN_MISFITS].tolist() for name in columns), strict=True)
    worst = [dict(zip(columns, values, strict=True)) for values in shown]
    return {"misfit": found.misfit, "summary": found.summary, "worst": worst}


def write_fit(folder: Path, run: FitRun) -> None:
    """Write all files of a fit. The time of writing and the notices are part of fit.json, so that comes last."""
    progress, attempts = current(), run.attempts
    with progress.stage("writing"):
        write_theta(folder / "theta.csv", run.table.schema, run.model._theta)
        write_alpha(folder / "alpha.csv", run.model.alpha_)
        if run.held:
            frame = membership_frame(run.rows.memberships, run.table.row_ids, run.row_name)
            write_table(folder / "memberships.csv", frame)
        if run.model._errors is not None or _by_jackknife(run):
            attempts.write(
                folder / "intervals.csv", lambda path: write_table(path, as_polars(run.model._interval_columns()))
            )
        if run.groups is not None:
            run.groups.write(folder / GROUPS_FILE, run.table.row_ids)
        run.model.save(folder / "model.mixmem")
    run.document["seconds"]["writing"] = progress.seconds["writing"]
    run.document["files"] = {name: file_digest(folder / name) for name in REPORTED_FILES}
    run.document["warnings"] = [notice.to_plain() for notice in run.notices]
    attempts.write(folder / "report.html", lambda path: path.write_text(_page(folder, run), encoding="utf-8"))
    run.document["warnings"] = [notice.to_plain() for notice in run.notices]
    text = json.dumps(plain(run.document), indent=1, allow_nan=False)
    (folder / "fit.json").write_text(text + "\n", encoding="utf-8")


def _by_jackknife(run: FitRun) -> bool:
    """Whether intervals are found by leaving out rows: where weights kept the fit from sampling, if it is soon done."""
    whole = run.table.whole or not run.held or run.model.report_.refine.method is not None
    return not whole and run.table.n_variables > 2 and run.table.codes.size <= GOODNESS_CELLS


def _page(folder: Path, run: FitRun) -> str:
    """Return the page as `mixmem report` would make it again: from the files."""
    return render_page(plain(run.document), FitFiles.read(folder))
