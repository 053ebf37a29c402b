"""Options of `mixmem simulate` and `mixmem reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Rows = Annotated[int, typer.Option("--rows", min=1, metavar="N", help="Rows to draw.")]
Variables = Annotated[int, typer.Option("--variables", min=0, metavar="N", help="Columns of categories to draw.")]
Counts = Annotated[int, typer.Option("--counts", min=0, metavar="N", help="Columns of counts to draw beside them.")]
Reals = Annotated[int, typer.Option("--continuous", min=0, metavar="N", help="Columns of numbers to draw beside them.")]
MissingShare = Annotated[
    float, typer.Option("--missing", min=0.0, max=1.0, metavar="SHARE", help="Share of cells lost at random.")
]
Levels = Annotated[int, typer.Option("--levels", min=2, metavar="N", help="Levels of every column of categories.")]
Noise = Annotated[
    float, typer.Option("--noise", min=0.0, max=1.0, metavar="DELTA", help="Share of cells replaced by uniform draws.")
]
Alpha = Annotated[
    float, typer.Option("--alpha", metavar="A", help="Alpha of every component: small where each row belongs to few.")
]
Tries = Annotated[
    int | None, typer.Option("--tries", min=1, metavar="N", help="Tables per cell.  [default: 5, with --quick 1]")
]
MethodSettings = Annotated[
    str | None,
    typer.Option(
        "--settings",
        metavar="A,B",
        help="Settings to run, with commas: authors (as the authors' programs ran), fair (each method done well), "
        "moments and default (mixmem's own).  [default: all]",
    ),
]
Full = Annotated[
    bool, typer.Option("--full", help="Run what takes long (nojd as the authors ran it, default fits) on every table.")
]
CrowdData = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Folder with bluebird_crowd.txt and the others.  [default: what MIXMEM_DATA names]",
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Run a part that still tells something, in a few minutes.")]
Methods = Annotated[
    str | None, typer.Option("--methods", metavar="A,B", help="Methods to run, with commas.  [default: all]")
]
Processes = Annotated[
    int | None, typer.Option("--jobs", min=1, metavar="N", help="Processes to use.  [default: all cores]")
]
Cores = Annotated[
    int | None,
    typer.Option("--jobs", min=1, metavar="N", help="Threads to time beside a single one.  [default: all cores]"),
]
