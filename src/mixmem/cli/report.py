"""`mixmem report`: the page made again from the files of a fit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from mixmem.cli.fit import REPORTED_FILES
from mixmem.cli.labels import GroupedBy, labels_of_file
from mixmem.errors import InputError
from mixmem.output.fit_files import FitFiles
from mixmem.output.groups import GROUPS_FILE, Groups
from mixmem.output.page import render_page
from mixmem.results.fit_report import read_report
from mixmem.storage.atomic import write_atomically
from mixmem.storage.model_file import load_model
from mixmem.storage.run_id import file_digest
from mixmem.words import listing


def rebuild_report(folder: Path, grouped: GroupedBy | None = None) -> Path:
    """Make report.html again from fit.json, theta.csv, alpha.csv and memberships.csv, and intervals.csv and groups.csv
    if they are there; ``grouped`` says by which labels the rows are to be grouped from now on."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; expected the one that `mixmem fit` wrote")
    for name in ("fit.json", *REPORTED_FILES):
        if not (folder / name).is_file():
            raise InputError(f"{folder} lacks {name}; expected the folder that `mixmem fit` wrote: fit again")
    try:
        document = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
        _refuse_two_fits(folder, document)
        document["report"] = read_report(document["report"]).to_plain()  # of this format or that of 0.1
        files = FitFiles.read(folder)
        if grouped is not None:
            files = replace(files, groups=_groups(document["data"], files, grouped))
        page = render_page(document, files)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, pl.exceptions.PolarsError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"the files in {folder} do not go together or are damaged ({reason}); fit again") from error
    if grouped is not None and files.groups is not None:
        with write_atomically(folder / GROUPS_FILE) as temporary:
            files.groups.write(temporary, files.row_ids)
    with write_atomically(folder / "report.html") as temporary:
        temporary.write_text(page, encoding="utf-8")
    return folder / "report.html"


def _groups(data: dict[str, Any], files: FitFiles, grouped: GroupedBy) -> Groups:
    """Return the groups of a fit's rows: by a column of the table that was fitted, unless another is named."""
    file = grouped.file
    if file is None:
        if data.get("genotypes") or data["path"] == "-" or not Path(data["path"].partition("::")[0]).exists():
            raise InputError(
                f"--by {grouped.column}: the table that was fitted ({data['path']}) holds no column of labels or is no "
                "longer there; give a table that does with --labels FILE"
            )
        file = data["path"]
    row_ids, name = files.row_ids.tolist(), data.get("id")
    return Groups.of(grouped.column, labels_of_file(file, grouped.column, row_ids, name))


def _refuse_two_fits(folder: Path, document: dict[str, Any]) -> None:
    """Refuse files that another fit wrote than fit.json tells of; fits of 0.1 have no name to go by."""
    if "run" not in document:
        return
    other = [name for name in REPORTED_FILES if file_digest(folder / name) != document["files"][name]]
    model = folder / "model.mixmem"
    if model.is_file() and load_model(model)[1].get("run") != document["run"]:
        other.append(model.name)
    if other:
        raise InputError(
            f"the files in {folder} do not go together or are damaged: {listing(other)} not as the fit of fit.json "
            "wrote them; expected all files of one fit: copy them again, or fit again"
        )
