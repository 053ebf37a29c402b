"""Arguments and options of `mixmem moments` and of fits from sums, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PartData = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="The parts of the table, each a file, a folder of files or a pattern in quotes.",
        show_default=False,
    ),
]
Part = Annotated[
    str,
    typer.Argument(metavar="PART", help="The rows: a file, a folder of files or a pattern.", show_default=False),
]
MomentFiles = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Sums that moments count wrote.", show_default=False)
]
PlanOut = Annotated[Path, typer.Option("--out", metavar="PLAN", help="File to write the plan to.")]
MomentsOut = Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write the sums to.")]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", metavar="PLAN", help="Plan that says what to count.", show_default=False)
]
JoinedPlan = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="PLAN",
        help="Plan that another place made from its own rows, without a sample: these parts join it. All else stands.",
        show_default=False,
    ),
]
SampleOut = Annotated[
    Path | None,
    typer.Option(
        "--sample",
        metavar="FILE",
        help="Keep a sample of the rows in this file, for whoever fits: one round is then enough as a rule. Without it "
        "no row is kept, and the work goes in rounds.",
        show_default=False,
    ),
]
Beginning = Annotated[
    str,
    typer.Option(
        "--start",
        metavar="triples|rows",
        help="Without a sample, begin at triples of answers counted over all parts, or at what the rows given here say "
        "for themselves: then no triples are counted, which small counts would tell much from.",
    ),
]
PartName = Annotated[
    str | None,
    typer.Option("--part", metavar="NAME", help="Name of the part in the plan.  [default: that of the file]"),
]
After = Annotated[
    Path | None,
    typer.Option(
        "--after",
        metavar="M",
        help="Merged sums that these rows are to be added to, of rows that the plan does not have.",
        show_default=False,
    ),
]
Least = Annotated[
    int,
    typer.Option(
        "--least",
        min=0,
        metavar="N",
        help="Refuse to write sums that tell of fewer than N rows with a value alike.",
    ),
]
MomentsFile = Annotated[
    Path | None,
    typer.Option(
        "--moments",
        metavar="M",
        help="Fit sums that moments merge wrote instead of a table; options of the fit are those of the plan.",
        show_default=False,
    ),
]
SampleFile = Annotated[
    Path | None,
    typer.Option(
        "--sample", metavar="FILE", help="With --moments: the sample that moments init wrote.", show_default=False
    ),
]
