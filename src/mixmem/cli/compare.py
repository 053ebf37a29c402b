"""`mixmem compare`: groups of rows by their mean memberships in the components of a fit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixmem import __version__
from mixmem.cli.attempts import Attempts
from mixmem.cli.compilation import announce_compilation
from mixmem.cli.console import written
from mixmem.cli.reading import Described
from mixmem.cli.stored import say_what_was_found, stored_model
from mixmem.data.read import read_table
from mixmem.data.table import plain_values
from mixmem.errors import InputError
from mixmem.plots import ComparePlot
from mixmem.progress import current
from mixmem.records import plain
from mixmem.results.compare import Comparison
from mixmem.storage.provenance import provenance
from mixmem.words import suggestion

COMPARE_FILES = ("compare.png", "means.csv", "differences.csv", "compare.json")
MOST_LINES = 30


@dataclass(frozen=True)
class CompareRun:
    """A comparison on its way to the files, and what compare.json will hold."""

    found: Comparison
    document: dict[str, Any]
    attempts: Attempts


def run_compare(
    folder: Path,
    data: str | Path,
    by: str,
    described: Described,
    *,
    sampling: dict[str, str | None],
    level: float = 0.95,
    jobs: int | None = None,
    quiet: bool = False,
) -> CompareRun:
    """Read the model of a fit's folder and a table, and compare its groups; ``sampling`` names columns of weights,
    clusters and strata."""
    model = folder / "model.mixmem" if folder.is_dir() else folder
    if not model.is_file():
        raise InputError(f"{folder} holds no model.mixmem; expected the folder that `mixmem fit` wrote")
    fitted = stored_model(model, jobs)
    with current().stage("reading"):
        source = read_table(data, dialect=described.dialect)
        named = {"--by": by, **{f"--{name}": column for name, column in sampling.items() if column is not None}}
        columns = {}
        for option, name in named.items():
            if name not in source.names:
                raise InputError(f"{option}: there is no column {name!r}{suggestion(name, source.names)}")
            columns[option] = plain_values(source.column(source.names.index(name)))
        table = described.encode_as(source, fitted.schema_, fitted.missing)
    say_what_was_found(table, quiet)
    announce_compilation(quiet)
    found = fitted.compare(
        table, columns["--by"], level=level, sample_weight=columns.get("--weight"),
        clusters=columns.get("--cluster"), strata=columns.get("--stratum"), name=by,
    )  # fmt: skip
    document = {
        "mixmem": __version__,
        **provenance(),
        "model": str(model),
        "data": str(data),
        "by": by,
        **sampling,
        "level": level,
        "rows": table.n_rows,
        "left_out": found.left_out,
        "test": {"statistic": found.statistic, "degrees": found.degrees, "p_value": found.p_value},
        "summary": found.summary,
        "notes": list(found.notes),
    }
    return CompareRun(found, document, Attempts())


def write_compare(folder: Path, run: CompareRun) -> None:
    """Write means.csv, differences.csv, compare.png and compare.json."""
    run.found.means.to_csv(folder / "means.csv", index=False, float_format="%.10g")
    run.found.differences.to_csv(folder / "differences.csv", index=False, float_format="%.10g")
    figure = ComparePlot.from_comparison(run.found).plot().figure_
    run.attempts.write(folder / "compare.png", lambda path: figure.savefig(path, format="png"))
    run.document["warnings"] = run.attempts.to_plain()
    text = json.dumps(plain(run.document), indent=1, allow_nan=False)
    (folder / "compare.json").write_text(text + "\n", encoding="utf-8")


def compare_text(run: CompareRun, out: Path) -> str:
    """The means and what they say, for standard output."""
    found = run.found
    lines = [f"{'group':<24}{'rows':>8}{'component':>11}{'mean':>8}   interval"]
    for at, row in enumerate(found.means.head(MOST_LINES).to_dict("records")):
        first = at == 0 or row["component"] == 1
        lines.append(
            f"{str(row['group'])[:23] if first else '':<24}{format(row['rows'], ',') if first else '':>8}"
            f"{row['component']:>11}{row['mean']:>8.3f}   {row['lower']:.3f} to {row['upper']:.3f}"
        )
    if len(found.means) > MOST_LINES:
        lines.append(f"... and {len(found.means) - MOST_LINES} more in means.csv")
    notes = [f"note: {note}" for note in found.notes]
    if found.left_out:
        notes.append(f"note: {found.left_out:,} rows have no {found.by} and were left out")
    sentence = found.summary[0].upper() + found.summary[1:] + "."
    return "\n".join([*lines, "", sentence, *notes, written(out, COMPARE_FILES)])
