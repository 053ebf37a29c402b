"""`mixmem choose-k`: the table, the figure and the recommendation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixmem import __version__
from mixmem.cli.attempts import Attempts
from mixmem.cli.compilation import announce_compilation
from mixmem.cli.console import written
from mixmem.cli.facts import Facts
from mixmem.cli.reading import Described
from mixmem.cli.table_warnings import looked_at, of_counts
from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.parameters import check_parameters
from mixmem.progress import current
from mixmem.records import plain
from mixmem.selection.n_components import KChoice, below, check_candidates, choose_k
from mixmem.storage.provenance import provenance

COLUMNS = {
    "k": "{:>4.0f}",
    "held_out": "{:>12.3f}",
    "held_out_se": "{:>8.3f}",
    "stability": "{:>11}",
    "stability_worst": "{:>7}",
    "singular_value": "{:>16.4f}",
    "noise": "{:>9.4f}",
}
AGREEMENTS = ("stability", "stability_worst")
"""Columns that are never rounded up."""
CHOICE_FILES = ("choose_k.png", "choose_k.csv", "choose_k.json")
"""What a choice writes: one that leaves a file out removes that of an earlier choice."""
LEGEND = (
    "held-out: mean log-likelihood of rows that were not fitted; ±: standard error of its difference to the "
    "recommended k, 0 for that k itself"
)
HEAD = f"{'k':>4}{'held-out':>12}{'±':>8}{'stability':>11}{'worst':>7}{'singular value':>16}{'noise':>9}"


@dataclass(frozen=True)
class ChoiceRun:
    """A choice on its way to the files, and what choose_k.json will hold."""

    choice: KChoice
    document: dict[str, Any]
    attempts: Attempts
    table_warnings: Sequence[str]
    """What of the table will be learned poorly, or may be something else than it looks."""


def run_choice(
    data: str | Path, settings: Mapping[str, Any], *, described: Described | None = None, quiet: bool = False
) -> ChoiceRun:
    """Read once and choose; ``settings`` are the parameters of :func:`mixmem.choose_k`."""
    described = described or Described()
    smallest, largest = settings["k_range"]
    if smallest >= largest:
        raise InputError(
            f"--from {smallest} --to {largest} leaves nothing to choose from; expected a larger number after --to"
        )
    check_candidates((smallest, largest), settings["n_splits"])  # before the data are read: that may take long
    check_parameters({name: settings[name] for name in ("alpha0", "random_state", "n_jobs", "memory_limit")})
    progress = current()
    with progress.stage("reading"):
        table, missing = described.encode(data)
    announce_compilation(quiet)
    choice, attempts = choose_k(table, **settings), Attempts()
    with threads(settings["n_jobs"]):
        doubts = [*looked_at(Facts.of(table), attempts), *of_counts(table)]
    n, p = table.codes.shape
    return ChoiceRun(
        choice,
        {
            "mixmem": __version__,
            **provenance(),
            "data": {
                "path": str(data),
                "rows": n,
                "variables": p,
                "id": described.row_id,
                "weight": described.weight,
                "remarks": [*table.remarks, *doubts],
            },
            "settings": {**settings, "variables": described.kinds, "missing": missing},
            "seed": choice.seed,
            "looked_at": {"rows": choice.n_rows, "variables": choice.n_variables},
            "k": choice.k,
            "reason": choice.reason,
            "alpha0": choice.alpha0,
            "spectrum_k": choice.spectrum_k,
            "seconds": {**progress.seconds, **choice.seconds},
        },
        attempts,
        doubts,
    )


def write_choice(folder: Path, run: ChoiceRun) -> None:
    """Write choose_k.csv, choose_k.png and choose_k.json."""
    run.choice.table.to_csv(folder / "choose_k.csv", index=False, float_format="%.10g")
    run.attempts.write(folder / "choose_k.png", run.choice.plot)
    run.document["warnings"] = run.attempts.to_plain()
    text = json.dumps(plain(run.document), indent=1, allow_nan=False)
    (folder / "choose_k.json").write_text(text + "\n", encoding="utf-8")


def choice_text(run: ChoiceRun, out: Path) -> str:
    """The table and the recommendation, for standard output."""
    lines = [HEAD]
    for row in run.choice.table.to_dict("records"):
        shown = row | {name: below(row[name]) for name in AGREEMENTS}
        cells = "".join(form.format(shown[name]) for name, form in COLUMNS.items()).replace("nan", "  -")
        lines.append(f"{cells}  {'<- ' * row['recommended']}{row['why']}")
    return "\n".join([*lines, LEGEND, "", run.choice.reason, written(out, CHOICE_FILES)])
