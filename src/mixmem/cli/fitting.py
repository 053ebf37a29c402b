"""Fit, write, and read again: what the commands share."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import typer

from mixmem import __version__
from mixmem.cli.output import as_polars, component_names, membership_frame, write_alpha, write_table, write_theta
from mixmem.cli.reading import Described, missing_cells, number_means
from mixmem.encoding import Encoded
from mixmem.errors import InputError
from mixmem.learner import Learner
from mixmem.memberships import RowFit
from mixmem.page import render_page
from mixmem.parameters import check_parameters
from mixmem.plan import spread_rows
from mixmem.progress import current
from mixmem.read import plain_values, read_table
from mixmem.schema import Schema
from mixmem.select import LONG_ROW
from mixmem.store import write_atomically

LIKELIHOOD_CELLS = 500_000
GOODNESS_CELLS = 500_000
"""Cells up to which the fit is held against the table's pairs unasked: a second or less."""
SHOWN_MISFITS = 10
FIT_FILES = (
    "theta.csv", "alpha.csv", "memberships.csv", "intervals.csv", "model.mixmem", "fit.json", "report.html",
)  # fmt: skip
"""What a fit may write: one that leaves a file out removes that of an earlier fit."""


@dataclass(frozen=True)
class FitRun:
    """A fit on its way to the files: the model, the rows' memberships, and what fit.json will hold."""

    model: Learner
    table: Encoded
    rows: RowFit
    row_name: str
    document: dict[str, Any]

    @property
    def shares(self) -> np.ndarray:
        """Mean membership in every component (k,), rows by their weights."""
        return np.asarray(self.document["memberships"]["shares"])


def run_fit(
    data: str | Path,
    settings: Mapping[str, Any],
    *,
    row_id: str | None = None,
    weight: str | None = None,
    shown_as: str | Path | None = None,
    folds: int | None = None,
    quiet: bool = False,
    accept: Callable[[Schema], None] | None = None,
) -> FitRun:
    """Read once, fit, and find the rows' memberships.

    ``weight`` names the column of weights, ``shown_as`` is the path that fit.json names, ``folds`` those of a
    cross-validation, and ``accept`` may refuse the table before it is fitted.
    """
    model = Learner(**settings)
    check_parameters(model.get_params(deep=False))  # before the data are read: that may take long
    names = component_names(model.n_components)
    if row_id in names:
        raise InputError(f"the row ids' column cannot be called {row_id!r}, as a component is; rename it")
    progress = current()
    with progress.stage("reading"):
        table, model.missing = Described(row_id, model.variables, model.missing, weight).encode(data)
        if accept is not None:
            accept(table.schema)
    announce_compilation(quiet)
    model.fit(table)
    began = time.perf_counter()
    rows = model.fit_rows(table)
    fitted = {stage: seconds for stage, seconds in model.report_["seconds"].items() if stage != "read"}
    document = {
        "mixmem": __version__,
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "data": {
            "path": str(data if shown_as is None else shown_as),
            "rows": len(table.codes),
            "variables": table.schema.n_variables,
            "kinds": dict(Counter(variable.kind for variable in table.schema.variables)),
            "missing_cells": int(missing_cells(table).sum()),
            "means": number_means(table),
            "id": row_id,
            "weight": weight,
        },
        "settings": model.get_params(deep=False),
        "seed": model.report_["seed"],
        "log_likelihood": {
            **_log_likelihood(model, table, rows),
            "mean_of_rows_given_memberships": float(np.average(rows.conditional, weights=table.weights)),
        },
        "goodness": _goodness(model, table),
        "cross_validation": None if folds is None else {"folds": folds, "error": model.cross_validation(table, folds)},
        "memberships": {
            "shares": np.average(rows.memberships, axis=0, weights=table.weights).tolist(),
            "largest_gap": float(rows.gap.max()),
            "most_steps": int(rows.n_steps.max()),
        },
        "seconds": {**progress.seconds, **fitted, "memberships": time.perf_counter() - began},
        "report": model.report_,
    }
    return FitRun(model, table, rows, row_id or "row", document)


def _log_likelihood(model: Learner, table: Encoded, rows: RowFit) -> dict[str, Any]:
    """Mean of the rows, memberships integrated out: of long rows all, of short ones enough for a mean, spread over the
    table, since particles would take longer for every row than the fit."""
    if table.schema.n_variables > LONG_ROW:
        return {"mean_of_rows": float(np.average(rows.marginal, weights=table.weights)), "rows": len(table.codes)}
    most = max(1000, LIKELIHOOD_CELLS // table.schema.n_variables)
    some = table.take(spread_rows(np.arange(len(table.codes)), most))
    return {"mean_of_rows": model.score(some, sample_weight=some.weights), "rows": len(some.codes)}


def _goodness(model: Learner, table: Encoded) -> dict[str, Any] | None:
    """How well pairs of variables are explained, in words, with the worst variables; None where it would take long."""
    if table.codes.size > GOODNESS_CELLS or not table.whole:
        return None
    found = model.goodness_of_fit(table)
    columns = ["variable", "misfit", "worst_partner", "level", "partner_level", "observed", "fitted"]
    worst = found.variables[columns].head(SHOWN_MISFITS)
    return {"misfit": found.misfit, "summary": found.summary, "worst": worst.to_dict("records")}


def write_fit(folder: Path, run: FitRun) -> None:
    """All files of a fit. The time of writing is part of fit.json, so that and the page come last."""
    progress = current()
    with progress.stage("writing"):
        write_theta(folder / "theta.csv", run.table.schema, run.model._theta)
        write_alpha(folder / "alpha.csv", run.model.alpha_)
        write_table(folder / "memberships.csv", membership_frame(run.rows.memberships, run.table.row_ids, run.row_name))
        if run.model._errors is not None:
            write_table(folder / "intervals.csv", as_polars(run.model.intervals()))
        run.model.save(folder / "model.mixmem")
    run.document["seconds"]["writing"] = progress.seconds["writing"]
    text = json.dumps(run.document, indent=1, allow_nan=False)
    (folder / "fit.json").write_text(text + "\n", encoding="utf-8")
    page = render_page(
        run.document, run.table.schema.labels, run.model._theta, run.model.alpha_, run.rows.memberships
    )  # fmt: skip
    (folder / "report.html").write_text(page, encoding="utf-8")


def row_memberships(
    model: Path,
    data: str | Path,
    *,
    row_id: str | None = None,
    missing: Any = None,
    jobs: int | None = None,
    quiet: bool = False,
) -> pl.DataFrame:
    """Memberships of a table's rows in the components of a stored model; ``missing`` None: as the model has it."""
    fitted = _stored(model, jobs)
    with current().stage("reading"):
        table = Described(row_id, missing=missing).encode_as(data, fitted.schema_, fitted.missing)
    _say_what_was_found(table, quiet)
    announce_compilation(quiet)
    return membership_frame(fitted.fit_rows(table).memberships, table.row_ids, row_id or "row")


def filled_table(
    model: Path,
    data: str | Path,
    *,
    row_id: str | None = None,
    missing: Any = None,
    jobs: int | None = None,
    quiet: bool = False,
) -> pl.DataFrame:
    """A table as it was, with what a stored model makes of its missing cells; genotypes as numbers of copies."""
    fitted = _stored(model, jobs)
    with current().stage("reading"):
        whole = read_table(data)
        table = Described(row_id, missing=missing).encode_as(whole, fitted.schema_, fitted.missing)
    _say_what_was_found(table, quiet)
    announce_compilation(quiet)
    if whole.loci is not None:
        filled = fitted.impute(table)
        ids = pl.Series("sample", table.row_ids.tolist(), strict=False)
        return pl.DataFrame([ids, *(pl.Series(name, filled[name].to_numpy()) for name in filled.columns)])
    positions = {name: j for j, name in enumerate(whole.names if whole.positional else table.schema.names)}
    found = {j: (gaps, values) for j, gaps, values in fitted.fillings(table)}
    columns = []
    for at, name in enumerate(whole.names):
        column = plain_values(whole.column(at))
        if positions.get(name) in found:
            column = _filled(column, *found[positions[name]])
        columns.append(pl.Series(name, column.tolist(), strict=False))
    return pl.DataFrame(columns)


def _filled(column: np.ndarray, gaps: np.ndarray, values: list[Any]) -> np.ndarray:
    """A column with its gaps (rows) filled, as texts where the others are: of a file without types."""
    found = column.astype(object)
    texts = any(isinstance(value, str) for value in np.delete(found, gaps))
    for row, value in zip(gaps, values, strict=True):
        short = float(f"{value:.6g}") if isinstance(value, float) else value
        found[row] = str(short) if texts else short
    # Whole numbers were read as floats for the sake of the gaps.
    whole = column.dtype.kind == "f" and all(float(value).is_integer() and abs(value) < 2**53 for value in found)
    return found.astype(np.int64) if whole else found


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


def rebuild_report(folder: Path) -> Path:
    """Make report.html again from fit.json, theta.csv, alpha.csv and memberships.csv."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; expected the one that `mixmem fit` wrote")
    for name in ("fit.json", "theta.csv", "alpha.csv", "memberships.csv"):
        if not (folder / name).is_file():
            raise InputError(f"{folder} lacks {name}; expected the folder that `mixmem fit` wrote: fit again")
    try:
        document = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
        texts = dict.fromkeys(("variable", "level", "statistic"), pl.String)
        theta = pl.read_csv(folder / "theta.csv", schema_overrides=texts).with_columns(pl.col(*texts).fill_null(""))
        alpha = pl.read_csv(folder / "alpha.csv")["alpha"].to_numpy()
        columns = component_names(len(alpha))
        memberships = pl.read_csv(folder / "memberships.csv", columns=columns).to_numpy()
        labels = list(theta.select(*texts).iter_rows())
        page = render_page(document, labels, theta.select(columns).to_numpy(), alpha, memberships)
    except (ValueError, KeyError, TypeError, IndexError, pl.exceptions.PolarsError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"the files in {folder} do not go together or are damaged ({reason}); fit again") from error
    with write_atomically(folder / "report.html") as temporary:
        temporary.write_text(page, encoding="utf-8")
    return folder / "report.html"


def announce_compilation(quiet: bool) -> None:
    """Say why the first fit of an installation takes longer, if this is it."""
    if not quiet and not _compiled():
        typer.echo("mixmem: compiling kernels for this machine, once (about 20 s)", err=True)


def _compiled() -> bool:
    """Whether numba has left compiled kernels where it may: beside them, or in its own folder if that is read-only."""
    import mixmem.kernels

    pattern = f"*.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return any(Path(chosen).rglob(pattern))
    beside = Path(mixmem.kernels.__file__).parent / "__pycache__"
    return any(beside.glob(pattern)) or any((Path.home() / ".cache" / "numba").rglob(f"simplex.{pattern}"))
