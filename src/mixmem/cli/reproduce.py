"""`mixmem reproduce`: the paper's experiments, rerun."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mixmem.cli import INTERRUPTED, experiment_options, options, running

if TYPE_CHECKING:
    import polars as pl

    from mixmem.experiments.crowd import CrowdTable
    from mixmem.experiments.figure import Figure

app = typer.Typer(
    rich_markup_mode=None,
    help="Rerun the paper's experiments: one of them, or all.",
)  # fmt: skip


@app.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """Without a command, say which there are."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def figure(
    out: options.OutFolder,
    tries: experiment_options.Tries = None,
    quick: experiment_options.Quick = False,
    full: experiment_options.Full = False,
    methods: experiment_options.Methods = None,
    settings: experiment_options.MethodSettings = None,
    jobs: experiment_options.Processes = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Rerun the paper's figure: errors of every method in 48 cells.

    The published errors stand beside them. A run that was interrupted goes on where it stopped.
    """
    from mixmem.cli.compilation import announce_compilation
    from mixmem.experiments.figure import run_figure

    names, kinds = _split(methods), _split(settings)
    try:
        with running.shown(quiet, verbose, minutes=True):
            announce_compilation(quiet)
            found = run_figure(
                out, tries=tries, quick=quick, full=full, names=names, settings=kinds, jobs=jobs, seed=seed
            )
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
    quick: experiment_options.Quick = False,
    jobs: experiment_options.Cores = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Time 1,000 rows and variables by number of partitions.

    Seconds, errors and memory stand beside the paper's minutes.
    """
    from mixmem.cli.compilation import announce_compilation
    from mixmem.experiments.runtime import run_runtime

    with running.shown(quiet, verbose, minutes=True):
        announce_compilation(quiet)
        found = run_runtime(out, quick=quick, jobs=jobs, seed=seed)
    if not quiet:
        typer.echo(runtime_text(found, out))


@app.command()
def negatives(
    out: options.OutFolder,
    tries: experiment_options.Tries = None,
    quick: experiment_options.Quick = False,
    jobs: experiment_options.Processes = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Count negative third moments in the paper's 48 cells.

    The share is counted with 10 variables, as the authors did, and with 25.
    """
    from mixmem.experiments.negatives import run_negatives

    with running.shown(quiet, verbose, minutes=True):
        found = run_negatives(out, tries=tries, quick=quick, jobs=jobs, seed=seed)
    if not quiet:
        typer.echo(negatives_text(found, out))


@app.command()
def crowd(
    out: options.OutFolder,
    data: experiment_options.CrowdData = None,
    quick: experiment_options.Quick = False,
    jobs: experiment_options.Processes = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Rerun the paper's table of errors on five sets of crowd labels.

    The published errors stand beside them.
    """
    from mixmem.cli.compilation import announce_compilation
    from mixmem.experiments.crowd import run_crowd_table

    with running.shown(quiet, verbose, minutes=True):
        announce_compilation(quiet)
        found = run_crowd_table(out, data=data, quick=quick, jobs=jobs, seed=seed)
    if not quiet:
        typer.echo(crowd_text(found, out))


@app.command("all")
def everything(
    out: options.OutFolder,
    data: experiment_options.CrowdData = None,
    quick: experiment_options.Quick = False,
    jobs: experiment_options.Processes = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Run them all and write one page of every published number.

    This run's number stands beside each that was run.
    """
    from mixmem.cli.compilation import announce_compilation
    from mixmem.errors import InputError
    from mixmem.experiments.crowd import run_crowd_table
    from mixmem.experiments.figure import run_figure
    from mixmem.experiments.negatives import run_negatives
    from mixmem.experiments.page import write_page
    from mixmem.experiments.runtime import run_runtime

    with running.shown(quiet, verbose, minutes=True):
        announce_compilation(quiet)
        shared: dict[str, Any] = {"quick": quick, "jobs": jobs, "seed": seed}
        errors = run_figure(out / "figure", **shared)
        shares = run_negatives(out / "negatives", **shared)
        times = run_runtime(out / "runtime", **shared)
        labels, note = None, ""
        try:
            labels = run_crowd_table(out / "crowd", data=data, **shared)
        except InputError as refusal:
            note = f"Not run: {refusal}."
        page = write_page(
            out, figure=errors.frame, negatives=shares, runtime=times,
            crowd_table=None if labels is None else labels.frame, crowd_note=note, quick=quick, seed=seed,
        )  # fmt: skip
    if quiet:
        return
    texts = [
        figure_text(errors, out / "figure"), negatives_text(shares, out / "negatives"),
        runtime_text(times, out / "runtime"), note if labels is None else crowd_text(labels, out / "crowd"),
    ]  # fmt: skip
    typer.echo("\n\n".join([*texts, f"every published number and this run's: {page} (open this)"]))


# --- Texts for standard output


def _split(text: str | None) -> list[str] | None:
    """Return the names in a text with commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


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
    from mixmem.experiments.figure import NEAR, OURS, standing
    from mixmem.experiments.pace import clock

    near = f"within {NEAR:.0%}"
    lines = [
        f"  {'method':<9}{'setting':<10}{'cells':>6}{near:>12}{'or program':>12}{'mean ratio':>12}{'mean RMSE':>11}"
        f"{'CPU s':>8}"
    ]
    for row in standing(found.frame):
        counted = [f"{row[key]} of {row['compared']}" if row["compared"] else "-" for key in ("near", "near_either")]
        numbers = [_number(row[key], digits) for key, digits in (("ratio", 2), ("rmse", 4), ("cpu_seconds", 2))]
        lines.append(
            f"  {row['method']:<9}{row['setting']:<10}{row['cells']:>6}{counted[0]:>12}{counted[1]:>12}"
            f"{numbers[0]:>12}{numbers[1]:>11}{numbers[2]:>8}"
        )  # fmt: skip
    lines += [
        "",
        "authors: as the authors' programs ran; fair: each method done well",
        f"cells {near} of the published error, or of what the authors' own program gave where it was run;",
        "mean ratio to the published error; CPU seconds: median",
    ]
    for setting, words in OURS.items():
        beaten = found.beaten(setting)
        if beaten is not None:
            lines.append(f"mixmem ({words}) is below the published ptpqp in {beaten[0]} of {beaten[1]} cells")
    if found.failures:
        lines.append(f"{found.failures} estimates failed: see the column reason of {out / 'tries.csv'}")
    return "\n".join(
        [*lines, f"in {out}, after {clock(found.seconds)}: figure.png (look at this), results.csv, tries.csv"]
    )


def runtime_text(frame: pl.DataFrame, out: Path) -> str:
    """The measurements as a table."""
    from mixmem.experiments.page import falls

    lines = [
        f"  {'k':>3}{'partitions':>12}{'cores':>7}{'CPU s':>8}{'seconds':>9}{'RMSE':>9}{'peak MB':>9}{'paper s':>9}"
        f"{'faster':>9}"
    ]
    for row in frame.to_dicts():
        faster = "-" if row["times_faster"] is None else f"{row['times_faster']:.0f} x"
        lines.append(
            f"  {row['k']:>3}{row['partitions'] or 'default':>12}{row['cores']:>7}{row['cpu_seconds']:>8.2f}"
            f"{row['seconds']:>9.2f}{row['rmse']:>9.4f}{row['peak_mb']:>9.0f}{_number(row['paper_seconds'], 0):>9}"
            f"{faster:>9}"
        )
    lines += ["", falls(frame), "faster: against the paper's seconds, by CPU seconds on one core, else by the clock"]
    return "\n".join([*lines, f"in {out}: runtime.png (look at this), results.csv"])


def negatives_text(frame: pl.DataFrame, out: Path) -> str:
    """The range of the shares by number of variables and of rows, and how many cells lie where the paper says."""
    from mixmem.experiments.negatives import COUNTED, STATED

    low, high = STATED
    lines = [f"  {'variables':>9}{'n':>7}  {'full tensor':>18}  {'distinct variables':>20}"]
    told = []
    for (width,), part in frame.group_by("variables", maintain_order=True):
        for n in part["n"].unique(maintain_order=True).to_list():
            here = part.filter(part["n"] == n)
            shares = [here[key].to_list() for key in ("negative_full", "negative_fraction")]
            ranges = [f"{min(values):.1%} to {max(values):.1%}" for values in shares]
            lines.append(f"  {width:>9}{n:>7}  {ranges[0]:>18}  {ranges[1]:>20}")
        inside = part.filter(part["negative_full"].is_between(low, high)).height
        near = part.filter(part["negative_full"].is_between(low - 0.01, high + 0.03)).height
        counted = ", as the authors counted" if width == COUNTED else ""
        told.append(
            f"{width} variables{counted}: {inside} of {part.height} cells inside (full tensor), {near} within "
            f"{low - 0.01:.0%} to {high + 0.03:.0%}"
        )
    lines += ["", f"the paper: {low:.0%} to {high:.0%}, typically", *told]
    return "\n".join([*lines, f"in {out}: negatives.png (look at this), results.csv"])


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
