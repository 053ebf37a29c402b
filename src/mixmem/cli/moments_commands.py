"""`mixmem moments`: sums over the parts of a table, counted where the rows are."""

from __future__ import annotations

from pathlib import Path

import typer

from mixmem.cli import moments_options, option_values, options, running
from mixmem.errors import InputError

app = typer.Typer(
    rich_markup_mode=None,
    help="Count the parts of a table where their rows are. "
    "In turn: init, count, merge, then mixmem fit --moments. Rows stay where they are.",
)


@app.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """Without a command, say which there are."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def init(
    context: typer.Context,
    data: moments_options.PartData,
    out: moments_options.PlanOut,
    components: options.FitComponents = None,
    plan: moments_options.JoinedPlan = None,
    sample: moments_options.SampleOut = None,
    beginning: moments_options.Beginning = "triples",
    id_column: options.Id = None,
    kind: options.Kind = None,
    missing: options.Missing = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    header: options.Header = "auto",
    weight: options.Weight = None,
    alpha0: options.Alpha0 = "auto",
    contamination: options.Contamination = "auto",
    memberships: options.Memberships = "mean",
    sweeps: options.Sweeps = "auto",
    anchors: options.Anchors = None,
    restarts: options.Restarts = 10,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    memory_limit: options.PiecesLimit = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Fix what all parts count, and where each part begins.

    A plan holds the coding, the anchors and the number of components.
    """
    from mixmem.cli.moments import init_text, join_plan, make_moments_plan, refuse_options_of_the_plan

    dialect = option_values.dialect_of(delimiter, decimal, header)
    if plan is not None:
        refuse_options_of_the_plan(context, "--plan", {"data", "plan", *option_values.DIALECT})
        with running.shown(quiet, verbose):
            made = join_plan(plan, data, out, dialect, jobs=jobs)
    else:
        if components is None:
            raise InputError("a plan needs the number of components; give -k")
        described = option_values.described(id_column, missing, dialect, kind=kind, weight=weight)
        settings = {
            "n_components": components,
            "variables": described.kinds,
            "alpha0": option_values.number_or_auto("--alpha0", alpha0, float),
            "contamination": option_values.number_or_auto("--contamination", contamination, float),
            "memberships": memberships,
            "sweeps": option_values.number_or_auto("--sweeps", sweeps, int),
            "anchors": option_values.anchors_of(anchors),
            "n_restarts": restarts,
            "random_state": seed,
            "n_jobs": jobs,
            "memory_limit": memory_limit,
        }
        with running.shown(quiet, verbose):
            made = make_moments_plan(data, settings, described, out, sample, start=beginning, quiet=quiet)
    if not quiet:
        typer.echo(init_text(made, out, sample))


@app.command()
def count(
    part: moments_options.Part,
    out: moments_options.MomentsOut,
    plan: moments_options.PlanFile = None,
    after: moments_options.After = None,
    name: moments_options.PartName = None,
    least: moments_options.Least = 0,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    header: options.Header = "auto",
    jobs: options.Jobs = None,
    memory_limit: options.PiecesLimit = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Count the rows of a part as a plan says, where they are."""
    from mixmem.cli.moments import count_part, count_text

    dialect = option_values.dialect_of(delimiter, decimal, header)
    with running.shown(quiet, verbose):
        found = count_part(
            part, out, plan, after, name, dialect, least=least, jobs=jobs, memory_limit=memory_limit, quiet=quiet
        )
    if not quiet:
        typer.echo(count_text(found, out))


@app.command()
def merge(
    files: moments_options.MomentFiles,
    out: moments_options.MomentsOut,
    quiet: options.Quiet = False,
) -> None:
    """Add the sums of parts, in any order to the same bits."""
    from mixmem.cli.moments import merge_files, merge_text

    found = merge_files(files, out)
    if not quiet:
        typer.echo(merge_text(found, out))


def fit_sums(
    context: typer.Context,
    moments: Path,
    sample: Path | None,
    out: Path,
    *,
    jobs: int | None,
    strict: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Fit sums of parts, write what there is, and say what comes next."""
    from mixmem.cli.fit import FIT_FILES
    from mixmem.cli.moments import (
        NEXT_PLAN,
        fit_moments,
        moments_fit_text,
        refuse_options_of_the_plan,
        write_moments_fit,
    )
    from mixmem.storage.atomic import staged_folder

    refuse_options_of_the_plan(context, "--moments", {"moments", "sample", "strict"})
    with running.shown(quiet, verbose), staged_folder(out, (*FIT_FILES, NEXT_PLAN)) as folder:
        found = fit_moments(moments, sample, jobs=jobs, quiet=quiet)
        write_moments_fit(folder, found, moments)
    if not quiet:
        typer.echo(moments_fit_text(found, out))
    if found.fitted:
        running.end_strictly(strict, found.model.report_.warnings)
