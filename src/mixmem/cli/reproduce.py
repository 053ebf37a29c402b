"""`mixmem reproduce`: the paper's experiments, rerun."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mixmem.cli import INTERRUPTED, options

if TYPE_CHECKING:
    import polars as pl

    from mixmem.experiments.crowd import CrowdTable
    from mixmem.experiments.figure import Figure

app = typer.Typer(
    rich_markup_mode=None, help="Rerun the paper's experiments: errors, runtime, negative moments, crowd labels."
)  # fmt: skip


@app.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """Without a command, say which there are."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def figure(
    out: options.OutFolder,
    tries: options.Tries = None,
    quick: options.Quick = False,
    methods: options.Methods = None,
    jobs: options.Processes = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Errors of every method in the paper's 48 cells, beside the published ones; goes on where it was interrupted."""
    from mixmem.cli.compilation import announce_compilation
    from mixmem.experiments.figure import run_figure

    names = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    try:
        with options.shown(quiet, verbose, minutes=True):
            announce_compilation(quiet)
            found = run_figure(out, tries=tries, quick=quick, names=names, jobs=jobs, seed=seed)
    except KeyboardInterrupt:
        typer.echo(
            f"mixmem: interrupted; finished tables are in {out / 'tries.csv'}: the same command goes on from there",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    if not quiet:
        typer.echo(figure_text(found, out))


@app.command()
def runtime(
    out: options.OutFolder,
    quick: options.Quick = False,
    jobs: options.Cores = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Seconds, errors and memory for 1,000 rows and variables by number of partitions, beside the paper's minutes."""
    from mixmem.cli.compilation import announce_compilation
    from mixmem.experiments.runtime import run_runtime

    with options.shown(quiet, verbose, minutes=True):
        announce_compilation(quiet)
        found = run_runtime(out, quick=quick, jobs=jobs, seed=seed)
    if not quiet:
        typer.echo(runtime_text(found, out))


@app.command()
def negatives(
    out: options.OutFolder,
    tries: options.Tries = None,
    jobs: options.Processes = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Share of negative entries of the empirical third moments in the paper's 48 cells."""
    from mixmem.experiments.negatives import run_negatives

    with options.shown(quiet, verbose, minutes=True):
        found = run_negatives(out, tries=tries or 5, jobs=jobs, seed=seed)
    if not quiet:
        typer.echo(negatives_text(found, out))


@app.command()
def crowd(
    out: options.OutFolder,
    data: options.CrowdData = None,
    quick: options.Quick = False,
    jobs: options.Processes = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Errors of every method on five sets of crowd labels, beside the published ones."""
    from mixmem.cli.compilation import announce_compilation
    from mixmem.experiments.crowd import run_crowd_table

    with options.shown(quiet, verbose, minutes=True):
        announce_compilation(quiet)
        found = run_crowd_table(out, data=data, quick=quick, jobs=jobs, seed=seed)
    if not quiet:
        typer.echo(crowd_text(found, out))


# --- Texts for standard output


def crowd_text(found: CrowdTable, out: Path) -> str:
    """The table of errors, ours and the paper's."""
    sets = found.frame["dataset"].unique(maintain_order=True).to_list()
    lines = [f"  {'method':<10}{'setting':<11}" + "".join(f"{name:>16}" for name in sets)]
    for (method, setting), here in found.frame.group_by("method", "setting", maintain_order=True):
        rows = {row["dataset"]: row for row in here.to_dicts()}
        cells = [_error(rows[name], beside=setting == "published") for name in sets]
        lines.append(f"  {method:<10}{setting:<11}" + "".join(cells))
    return "\n".join(
        [
            *lines,
            "",
            f"errors in %, mean of {found.seeds} seeds where the start is random, in brackets the paper's",
            f"in {out}: crowd.png (look at this), results.csv",
        ]
    )


def _error(row: dict[str, Any], *, beside: bool) -> str:
    paper = f" ({row['published']:.2f})" if beside and row["published"] is not None else ""
    return f"{row['error']:.2f}{paper}".rjust(16)


def figure_text(found: Figure, out: Path) -> str:
    """Where each method stands, in a few lines."""
    from mixmem.experiments.figure import NEAR, standing
    from mixmem.experiments.pace import clock

    rows = standing(found.frame)
    lines = [
        f"  {'method':<9}{'setting':<11}{f'within {NEAR:.0%}':>14}{'mean ratio':>12}{'mean RMSE':>11}{'seconds':>9}"
    ]
    for row in rows:
        near = f"{row['near']} of {row['compared']}" if row["compared"] else "-"
        numbers = [_number(row[key], digits) for key, digits in (("ratio", 2), ("rmse", 4), ("seconds", 2))]
        lines.append(
            f"  {row['method']:<9}{row['setting']:<11}{near:>14}{numbers[0]:>12}{numbers[1]:>11}{numbers[2]:>9}"
        )  # fmt: skip
    lines += ["", f"cells within {NEAR:.0%} of the published error, mean ratio to it; seconds: median on one core"]
    if found.beaten is not None:
        lines.append(
            f"mixmem's default way is below the published ptpqp in {found.beaten[0]} of {found.beaten[1]} cells"
        )
    if found.failures:
        lines.append(f"{found.failures} estimates failed: see the column reason of {out / 'tries.csv'}")
    return "\n".join(
        [*lines, f"in {out}, after {clock(found.seconds)}: figure.png (look at this), results.csv, tries.csv"]
    )


def runtime_text(frame: pl.DataFrame, out: Path) -> str:
    """The measurements as a table."""
    lines = [
        f"  {'k':>3}{'partitions':>12}{'cores':>7}{'seconds':>9}{'RMSE':>9}{'peak MB':>9}{'paper s':>9}{'faster':>9}"
    ]
    for row in frame.to_dicts():
        faster = "-" if row["times_faster"] is None else f"{row['times_faster']:.0f} x"
        lines.append(
            f"  {row['k']:>3}{row['partitions'] or 'default':>12}{row['cores']:>7}{row['seconds']:>9.2f}"
            f"{row['rmse']:>9.4f}{row['peak_mb']:>9.0f}{_number(row['paper_seconds'], 0):>9}{faster:>9}"
        )
    return "\n".join([*lines, "", f"in {out}: runtime.png (look at this), results.csv"])


def negatives_text(frame: pl.DataFrame, out: Path) -> str:
    """The range of the shares by number of rows."""
    from mixmem.experiments.negatives import STATED

    low, high = STATED
    lines = [f"  {'n':>6}  {'distinct variables':>20}  {'all, as in the paper':>22}"]
    for n in frame["n"].unique(maintain_order=True).to_list():
        here = frame.filter(frame["n"] == n)
        shares = [here[key].to_list() for key in ("negative_fraction", "negative_full")]
        ranges = [f"{min(values):.1%} to {max(values):.1%}" for values in shares]
        lines.append(f"  {n:>6}  {ranges[0]:>20}  {ranges[1]:>22}")
    inside = frame.filter(frame["negative_full"].is_between(low, high)).height
    lines += [
        "",
        f"the paper: {low:.0%} to {high:.0%}, typically; {inside} of {frame.height} cells are inside (all variables)",
    ]
    return "\n".join([*lines, f"in {out}: negatives.png (look at this), results.csv"])


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
