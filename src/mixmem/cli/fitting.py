"""Fit, write, and read again: what the commands share."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import typer

from mixmem import __version__
from mixmem.cli.output import component_names, membership_frame, write_alpha, write_table, write_theta
from mixmem.encoding import Encoded, encode
from mixmem.errors import InputError
from mixmem.learner import Learner
from mixmem.memberships import RowFit
from mixmem.page import render_page
from mixmem.parameters import check_parameters
from mixmem.plan import spread_rows
from mixmem.progress import current
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


def run_fit(
    data: str | Path,
    settings: Mapping[str, Any],
    *,
    row_id: str | None = None,
    shown_as: str | Path | None = None,
    quiet: bool = False,
) -> FitRun:
    """Read once, fit, and find the rows' memberships; ``shown_as`` is the path that fit.json names."""
    model = Learner(**settings)
    check_parameters(model.get_params(deep=False))  # before the data are read: that may take long
    names = component_names(model.n_components)
    if row_id in names:
        raise InputError(f"the row ids' column cannot be called {row_id!r}, as a component is; rename it")
    progress = current()
    with progress.stage("reading"):
        table = encode(data, row_id=row_id)
    announce_compilation(quiet)
    model.fit(table)
    began = time.perf_counter()
    rows = model.fit_rows(table)
    some = _some(table)
    fitted = {stage: seconds for stage, seconds in model.report_["seconds"].items() if stage != "read"}
    document = {
        "mixmem": __version__,
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "data": {
            "path": str(data if shown_as is None else shown_as),
            "rows": len(table.codes),
            "variables": table.schema.n_variables,
            "id": row_id,
        },
        "settings": model.get_params(deep=False),
        "seed": model.report_["seed"],
        "log_likelihood": {
            "mean_of_rows": model.score(some),
            "rows": len(some.codes),
            "mean_of_rows_given_memberships": float(rows.conditional.mean()),
        },
        "goodness": _goodness(model, table),
        "memberships": {"largest_gap": float(rows.gap.max()), "most_steps": int(rows.n_steps.max())},
        "seconds": {**progress.seconds, **fitted, "memberships": time.perf_counter() - began},
        "report": model.report_,
    }
    return FitRun(model, table, rows, row_id or "row", document)


def _some(table: Encoded) -> Encoded:
    """Rows enough for a mean, spread over the table: the likelihood of every row would take longer than the fit."""
    most = max(1000, LIKELIHOOD_CELLS // table.schema.n_variables)
    codes, ids = spread_rows(table.codes, most), spread_rows(table.row_ids, most)
    return Encoded(codes, table.schema, ids)


def _goodness(model: Learner, table: Encoded) -> dict[str, Any] | None:
    """How well pairs of variables are explained, in words, with the worst variables; None where it would take long."""
    if table.codes.size > GOODNESS_CELLS:
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
            intervals = run.model.intervals()
            texts = {name: intervals[name].astype("string") for name in ("variable", "level")}
            write_table(folder / "intervals.csv", pl.from_pandas(intervals.assign(**texts)))
        run.model.save(folder / "model.mixmem")
    run.document["seconds"]["writing"] = progress.seconds["writing"]
    text = json.dumps(run.document, indent=1, allow_nan=False)
    (folder / "fit.json").write_text(text + "\n", encoding="utf-8")
    names = [(variable.name, level) for variable in run.table.schema.variables for level in variable.levels]
    page = render_page(run.document, names, run.model._theta, run.model.alpha_, run.rows.memberships)
    (folder / "report.html").write_text(page, encoding="utf-8")


def row_memberships(
    model: Path, data: str | Path, *, row_id: str | None = None, jobs: int | None = None, quiet: bool = False
) -> pl.DataFrame:
    """Memberships of a table's rows in the components of a stored model."""
    fitted = Learner.load(model)
    fitted.n_jobs = jobs
    check_parameters({"n_jobs": jobs})
    with current().stage("reading"):
        table = encode(data, fitted.schema_, row_id=row_id)
    announce_compilation(quiet)
    return membership_frame(fitted.fit_rows(table).memberships, table.row_ids, row_id or "row")


def rebuild_report(folder: Path) -> Path:
    """Make report.html again from fit.json, theta.csv, alpha.csv and memberships.csv."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; expected the one that `mixmem fit` wrote")
    for name in ("fit.json", "theta.csv", "alpha.csv", "memberships.csv"):
        if not (folder / name).is_file():
            raise InputError(f"{folder} lacks {name}; expected the folder that `mixmem fit` wrote: fit again")
    try:
        document = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
        texts = {"variable": pl.String, "level": pl.String}
        theta = pl.read_csv(folder / "theta.csv", schema_overrides=texts).with_columns(pl.col(*texts).fill_null(""))
        alpha = pl.read_csv(folder / "alpha.csv")["alpha"].to_numpy()
        columns = component_names(len(alpha))
        memberships = pl.read_csv(folder / "memberships.csv", columns=columns).to_numpy()
        names = list(zip(theta["variable"].to_list(), theta["level"].to_list(), strict=True))
        page = render_page(document, names, theta.select(columns).to_numpy(), alpha, memberships)
    except (ValueError, KeyError, TypeError, IndexError, pl.exceptions.PolarsError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"the files in {folder} do not go together or are damaged ({reason}); fit again") from error
    with write_atomically(folder / "report.html") as temporary:
        temporary.write_text(page, encoding="utf-8")
    return folder / "report.html"


def announce_compilation(quiet: bool) -> None:
    """Say why the first fit of an installation takes longer, if this is it."""
    if not quiet and not _compiled():
        typer.echo("mixmem: compiling kernels for this machine, once (about 25 s)", err=True)


def _compiled() -> bool:
    """Whether numba has left compiled kernels where it may: beside them, or in its own folder if that is read-only."""
    import mixmem.kernels

    pattern = f"*.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return any(Path(chosen).rglob(pattern))
    beside = Path(mixmem.kernels.__file__).parent / "__pycache__"
    return any(beside.glob(pattern)) or any((Path.home() / ".cache" / "numba").rglob(f"simplex.{pattern}"))
