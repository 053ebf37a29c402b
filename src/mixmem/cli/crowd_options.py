"""Options of `mixmem crowd`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LabelTable = Annotated[
    str,
    typer.Argument(
        metavar="LABELS",
        help="Table with the columns task, worker, label, or one row per task and a column per worker: .csv .tsv "
        ".parquet .feather, a folder of one kind of these, or - for CSV on standard input.",
        show_default=False,
    ),
]
Truth = Annotated[
    Path | None,
    typer.Option("--truth", metavar="FILE", help="Table of task and label to count errors against; it is not fitted."),
]
Gold = Annotated[
    Path | None, typer.Option("--gold", metavar="FILE", help="Table of task and label that the fit takes as known.")
]
TruthColumns = Annotated[
    str | None,
    typer.Option("--truth-columns", metavar="A,B", help="Names of the columns of --truth and --gold: task and class."),
]
CrowdModel = Annotated[
    str,
    typer.Option(
        "--model", metavar="NAME",
        help="How workers err: blend, community, ds, ibcc, ebcc, one_coin, mace, glad, minimax, bwa, wawa or majority; "
        "auto picks by labels held out.",
    ),
]  # fmt: skip
Update = Annotated[
    Path | None,
    typer.Option(
        "--update", metavar="MODEL", help="Add LABELS to those of an earlier run: its model.mixmem or folder."
    ),
]
Budget = Annotated[
    int | None,
    typer.Option(
        "--budget", min=1, metavar="N", help="Say in next_labels.csv what N further labels are best spent on."
    ),
]
Quality = Annotated[
    bool, typer.Option("--quality", help="Write label_quality.csv: the probability of every single label.")
]
Clean = Annotated[bool, typer.Option("--clean", help="Take labels that differ in case or blanks only for the same.")]
Classifier = Annotated[
    Path | None,
    typer.Option(
        "--classifier", metavar="FILE",
        help="Table of task and a column per class: probabilities of a classifier that did not learn from LABELS.",
    ),
]  # fmt: skip
Ratings = Annotated[
    str | None,
    typer.Option(
        "--ratings", metavar="bias|mean|median", help="Take the labels as numbers, and find each task's value."
    ),
]
CrowdStart = Annotated[
    str,
    typer.Option(
        "--start", metavar="NAME", help="Where the fit begins: majority, tensor (three groups of workers) or ptpqp."
    ),
]
ClassPrior = Annotated[
    str, typer.Option("--prior", metavar="auto|uniform|estimate", help="How common the classes are.")
]
LabelColumns = Annotated[
    str, typer.Option("--columns", metavar="A,B,C", help="Names of the columns of the task, the worker and the label.")
]
Rounds = Annotated[int, typer.Option("--rounds", min=1, metavar="N", help="Largest number of rounds.")]
