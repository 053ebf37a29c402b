"""The commands: each a short function over the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mixmem.cli import (
    crowd_options,
    experiment_options,
    moments_commands,
    moments_options,
    option_values,
    options,
    running,
    topic_options,
)
from mixmem.cli import reproduce as reproducing
from mixmem.cli.examples import EXAMPLES
from mixmem.errors import InputError

app = typer.Typer(
    rich_markup_mode=None,  # rich would cost --help a quarter of a second
    pretty_exceptions_enable=False,
    help="Mixed membership models: hidden components of a table, and every row's memberships in them. "
    "Start with: mixmem demo",
)
app.add_typer(reproducing.app, name="reproduce")
app.add_typer(moments_commands.app, name="moments")


def _version(wanted: bool) -> None:
    if wanted:
        from mixmem import __version__

        typer.echo(f"mixmem {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
    ] = False,
) -> None:
    """Without a command, say which there are."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog=EXAMPLES["demo"])
def demo(
    out: options.OutFolder = Path("mixmem-demo"),
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Fit a simulated survey and write a report: run this first.

    The fit is compared with the truth that the survey was drawn from.
    """
    from mixmem.cli.console import demo_text
    from mixmem.cli.demo import run_demo

    with running.shown(quiet, verbose):
        result = run_demo(out, seed=seed, jobs=jobs, quiet=quiet)
    if not quiet:
        typer.echo(demo_text(result, out))


@app.command(epilog=EXAMPLES["fit"])
def fit(
    context: typer.Context,
    out: options.OutFolder,
    data: options.FitData = None,
    components: options.FitComponents = None,
    moments: moments_options.MomentsFile = None,
    sample: moments_options.SampleFile = None,
    id_column: options.Id = None,
    kind: options.Kind = None,
    missing: options.Missing = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    header: options.Header = "auto",
    columns: options.Columns = "useful",
    weight: options.Weight = None,
    by: options.By = None,
    labels: options.Labels = None,
    alpha0: options.Alpha0 = "auto",
    refine: options.Refine = "auto",
    contamination: options.Contamination = "auto",
    memberships: options.Memberships = "mean",
    partitions: options.Partitions = "auto",
    sweeps: options.Sweeps = "auto",
    solver: options.Solver = "pqp",
    matching: options.Matching = "procrustes",
    restarts: options.Restarts = 10,
    anchors: options.Anchors = None,
    block_start: options.BlockStart = "random",
    max_rounds: options.MostRounds = 300,
    tol: options.Tolerance = "auto",
    check_alpha0: options.CheckAlpha0 = False,
    q: options.QFile = None,
    p: options.PFile = None,
    cv: options.Folds = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    memory_limit: options.FitMemoryLimit = None,
    passes: options.Passes = "auto",
    scratch: options.ScratchFolder = None,
    scheduler: options.Scheduler = None,
    config: options.Config = None,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Find the components of a table and every row's memberships.

    With --moments the components are found from sums over its parts, without the rows.
    """
    if moments is not None:
        moments_commands.fit_sums(context, moments, sample, out, jobs=jobs, strict=strict, quiet=quiet, verbose=verbose)
        return
    if data is None:
        raise InputError("Missing argument 'DATA': expected a table, or sums that moments merge wrote with --moments")
    if components is None:
        raise InputError("Missing option '-k': expected the number of components")
    if sample is not None:
        raise InputError("--sample goes with sums; expected it beside --moments, or not at all")
    from mixmem.cli.admixture import fit_places, refuse_for, write_admixture
    from mixmem.cli.console import fit_text
    from mixmem.cli.fit import run_fit, write_fit

    dialect = option_values.dialect_of(delimiter, decimal, header)
    described = option_values.described(id_column, missing, dialect, kind=kind, weight=weight, columns=columns)
    settings = {
        "n_components": components,
        "variables": described.kinds,
        "missing": described.missing,
        "alpha0": option_values.number_or_auto("--alpha0", alpha0, float),
        "refine": None if refine == "none" else refine,
        "contamination": option_values.number_or_auto("--contamination", contamination, float),
        "memberships": memberships,
        "n_partitions": option_values.number_or_auto("--partitions", partitions, int),
        "sweeps": option_values.number_or_auto("--sweeps", sweeps, int),
        "solver": solver,
        "matching": matching,
        "n_restarts": restarts,
        "anchors": option_values.anchors_of(anchors),
        "block_start": block_start,
        "max_rounds": max_rounds,
        "tol": option_values.number_or_auto("--tol", tol, float),
        "check_alpha0": check_alpha0,
        "random_state": seed,
        "n_jobs": jobs,
        "memory_limit": memory_limit,
        "passes": passes,
        "scratch": None if scratch is None else str(scratch),
    }
    grouped = option_values.grouped_by(by, labels)
    accept = refuse_for(frequencies=p is not None, folds=cv is not None)
    with running.shown(quiet, verbose), fit_places(out, q, p, data) as places:
        result = run_fit(
            data, settings, described=described, grouped=grouped, folds=cv, quiet=quiet, accept=accept,
            folder=places.folder, scheduler=scheduler,
        )  # fmt: skip
        result.document["options"] = option_values.as_typed(context)
        write_fit(places.folder, result)
        write_admixture(places, result)
    if not quiet:
        running.tell_of_table(result.table_warnings)
        typer.echo(fit_text(result, out))
    running.end_strictly(strict, result.notices)


@app.command("choose-k", epilog=EXAMPLES["choose-k"])
def choose_k(
    data: options.Data,
    out: options.OutFolder,
    smallest: options.Smallest = 2,
    largest: options.Largest = 12,
    id_column: options.Id = None,
    kind: options.Kind = None,
    missing: options.Missing = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    header: options.Header = "auto",
    columns: options.Columns = "useful",
    weight: options.Weight = None,
    alpha0: options.Alpha0 = "auto",
    splits: options.Splits = 2,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    memory_limit: options.MemoryLimit = None,
    config: options.Config = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Recommend the number of components of a table, with reasons."""
    from mixmem.cli.choose_k import CHOICE_FILES, choice_text, run_choice, write_choice
    from mixmem.storage.atomic import staged_folder

    dialect = option_values.dialect_of(delimiter, decimal, header)
    described = option_values.described(id_column, missing, dialect, kind=kind, weight=weight, columns=columns)
    settings = {
        "k_range": (smallest, largest),
        "alpha0": option_values.number_or_auto("--alpha0", alpha0, float),
        "n_splits": splits,
        "random_state": seed,
        "n_jobs": jobs,
        "memory_limit": memory_limit,
    }
    with running.shown(quiet, verbose), staged_folder(out, CHOICE_FILES) as folder:
        result = run_choice(data, settings, described=described, quiet=quiet)
        write_choice(folder, result)
    if not quiet:
        running.tell_of_table(result.table_warnings)
        typer.echo(choice_text(result, out))


@app.command(epilog=EXAMPLES["memberships"])
def memberships(
    model: options.Model,
    data: options.Data,
    out: options.OutFile,
    id_column: options.Id = None,
    missing: options.Missing = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    header: options.Header = "auto",
    handle_unknown: options.Unknown = "missing",
    jobs: options.Jobs = None,
    memory_limit: options.PiecesLimit = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Find the memberships of further rows by a fitted model.

    The values that meant a missing cell when the model was fitted mean so again; --missing adds further ones.
    """
    from mixmem.cli.memberships import row_memberships
    from mixmem.output.tables import refuse_overwriting, table_writer

    refuse_overwriting(out, data, model)
    dialect = option_values.dialect_of(delimiter, decimal, header)
    described = option_values.described(id_column, missing, dialect, handle_unknown=handle_unknown)
    with running.shown(quiet, verbose), table_writer(out) as write:
        for frame in row_memberships(model, data, described, jobs=jobs, memory_limit=memory_limit, quiet=quiet):
            write(frame)


@app.command(epilog=EXAMPLES["impute"])
def impute(
    model: options.Model,
    data: options.Data,
    out: options.OutFile,
    id_column: options.Id = None,
    missing: options.Missing = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    header: options.Header = "auto",
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Fill the missing cells of a table by a fitted model.

    Each gets what the model makes most likely; all else stays as it is. The values that meant a missing cell when the
    model was fitted mean so again; --missing adds further ones. Genotypes are written as numbers of copies of the
    second allele.
    """
    from mixmem.cli.impute import filled_table
    from mixmem.output.tables import refuse_overwriting, table_writer

    refuse_overwriting(out, data, model)
    dialect = option_values.dialect_of(delimiter, decimal, header)
    # what a cell holds is not overwritten
    described = option_values.described(id_column, missing, dialect, handle_unknown="error")
    with running.shown(quiet, verbose), table_writer(out) as write:
        write(filled_table(model, data, described, jobs=jobs, quiet=quiet))


@app.command(epilog=EXAMPLES["compare"])
def compare(
    folder: options.FitFolder,
    data: options.Data,
    by: options.Groups,
    out: options.CompareFolder = None,
    id_column: options.Id = None,
    missing: options.Missing = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    header: options.Header = "auto",
    weight: options.Weight = None,
    cluster: options.Cluster = None,
    stratum: options.Stratum = None,
    level: options.Level = 0.95,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Compare groups of rows by their mean memberships.

    The means come with intervals, a test and a picture. Averages of estimated memberships make groups look too much
    alike; these means are corrected for that.
    """
    from mixmem.cli.compare import COMPARE_FILES, compare_text, run_compare, write_compare
    from mixmem.storage.atomic import staged_folder

    dialect = option_values.dialect_of(delimiter, decimal, header)
    described = option_values.described(id_column, missing, dialect)
    sampling = {"weight": weight, "cluster": cluster, "stratum": stratum}
    where = out or (folder if folder.is_dir() else folder.parent) / f"compare-{by}"
    with running.shown(quiet, verbose), staged_folder(where, COMPARE_FILES) as place:
        result = run_compare(folder, data, by, described, sampling=sampling, level=level, jobs=jobs, quiet=quiet)
        write_compare(place, result)
    if not quiet:
        typer.echo(compare_text(result, where))


@app.command(epilog=EXAMPLES["crowd"])
def crowd(
    labels: crowd_options.LabelTable,
    out: options.OutFolder,
    truth: crowd_options.Truth = None,
    gold: crowd_options.Gold = None,
    truth_columns: crowd_options.TruthColumns = None,
    model: crowd_options.CrowdModel = "blend",
    start: crowd_options.CrowdStart = "majority",
    prior: crowd_options.ClassPrior = "auto",
    rounds: crowd_options.Rounds = 300,
    columns: crowd_options.LabelColumns = "task,worker,label",
    clean: crowd_options.Clean = False,
    update: crowd_options.Update = None,
    budget: crowd_options.Budget = None,
    quality: crowd_options.Quality = False,
    classifier: crowd_options.Classifier = None,
    ratings: crowd_options.Ratings = None,
    strict: options.Strict = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    config: options.Config = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Find true labels, and how far to trust every worker.

    The tasks were labelled by a crowd whose workers err, each in ways of their own.
    """
    from mixmem.cli.crowd import CROWD_FILES, CrowdInput, crowd_text, names_of, run_crowd, truth_names, write_crowd
    from mixmem.storage.atomic import staged_folder

    if ratings is not None:
        from mixmem.cli.ratings import ratings_text, run_ratings, write_ratings

        with running.shown(quiet, verbose), staged_folder(out, CROWD_FILES) as folder:
            found = run_ratings(labels, ratings, names_of(columns), truth, truth_names(truth_columns))
            write_ratings(folder, found)
        if not quiet:
            typer.echo(ratings_text(found, out))
        return
    settings = {
        "model": model,
        "start": start,
        "prior": prior,
        "n_iter": rounds,
        "columns": names_of(columns),
        "clean": clean,
        "random_state": seed,
        "n_jobs": jobs,
    }
    source = CrowdInput(labels, truth, gold, truth_names(truth_columns), update, classifier)
    with running.shown(quiet, verbose), staged_folder(out, CROWD_FILES) as folder:
        result = run_crowd(source, settings, quiet=quiet)
        write_crowd(folder, result, budget=budget, quality=quality)
    if not quiet:
        typer.echo(crowd_text(result, out))
    running.end_strictly(strict, result.notices)


@app.command(epilog=EXAMPLES["topics"])
def topics(
    corpus: topic_options.CorpusPath,
    components: topic_options.Topics,
    out: options.OutFolder,
    column: topic_options.TextColumn = None,
    id_column: options.Id = None,
    vocab: topic_options.Vocabulary = None,
    labels: topic_options.DocumentLabels = None,
    by: options.By = None,
    stop_words: topic_options.StopWords = None,
    min_df: topic_options.MinDf = 1,
    max_df: topic_options.MaxDf = 1.0,
    max_words: topic_options.MaxWords = None,
    seed_words: topic_options.SeedWords = None,
    alpha0: options.Alpha0 = "auto",
    beta: topic_options.Beta = "auto",
    start: topic_options.TopicStart = "auto",
    refine: topic_options.TopicRefine = "auto",
    rounds: topic_options.Sweeping = 30,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    config: options.Config = None,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Find the topics of documents and their memberships.

    Each topic is shown with the words that stand for it.
    """
    from mixmem.cli.topics import TOPIC_FILES, Reading, run_topics, topics_text, write_topics
    from mixmem.storage.atomic import staged_folder

    settings = {
        "alpha0": option_values.number_or_auto("--alpha0", alpha0, float),
        "beta": option_values.number_or_auto("--beta", beta, float),
        "start": start,
        "refine": None if refine == "none" else refine,
        "max_iter": rounds,
        "seed_words": topic_options.seed_words_of(seed_words),
        "random_state": seed,
        "n_jobs": jobs,
    }
    reading = Reading(column, id_column, vocab, labels, by, stop_words, min_df, max_df, max_words)
    with running.shown(quiet, verbose), staged_folder(out, TOPIC_FILES) as folder:
        result = run_topics(corpus, topic_options.topic_numbers(components), settings, reading, quiet=quiet)
        write_topics(folder, result)
    if not quiet:
        typer.echo(topics_text(result, out))
    running.end_strictly(strict, result.notices)


@app.command(epilog=EXAMPLES["simulate"])
def simulate(
    rows: experiment_options.Rows,
    components: options.Components,
    out: options.OutFolder,
    variables: experiment_options.Variables = 25,
    counts: experiment_options.Counts = 0,
    continuous: experiment_options.Reals = 0,
    levels: experiment_options.Levels = 4,
    noise: experiment_options.Noise = 0.0,
    missing: experiment_options.MissingShare = 0.0,
    alpha: experiment_options.Alpha = 0.1,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Draw a table from the model, with its truth."""
    from mixmem.cli.simulate import draw, write_simulation
    from mixmem.storage.atomic import staged_folder

    with running.shown(quiet, verbose), staged_folder(out) as folder:
        drawn = draw(
            rows, components, variables=variables, counts=counts, continuous=continuous, levels=levels, noise=noise,
            missing=missing, alpha=alpha, seed=seed,
        )  # fmt: skip
        write_simulation(folder, drawn)
    if not quiet:
        typer.echo(
            f"{rows:,} rows of {variables + counts + continuous:,} variables written to {out / 'data.csv'}, "
            "their truth to truth_*.csv"
        )


@app.command(epilog=EXAMPLES["info"])
def info(
    data: options.Data,
    id_column: options.Id = None,
    kind: options.Kind = None,
    missing: options.Missing = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    header: options.Header = "auto",
    columns: options.Columns = "useful",
    weight: options.Weight = None,
    verbose: options.Verbose = False,
) -> None:
    """Show what would be fitted, and what is wrong with it.

    Every variable is listed with its kind, its levels and its missing cells.
    """
    from mixmem.cli.info import describe, refusal

    dialect = option_values.dialect_of(delimiter, decimal, header)
    described = option_values.described(id_column, missing, dialect, kind=kind, weight=weight, columns=columns)
    with running.shown(False, verbose):
        description = describe(data, described)
    typer.echo(description.text)
    refusal(description)


@app.command(epilog=EXAMPLES["report"])
def report(
    folder: options.FitFolder,
    by: options.By = None,
    labels: options.Labels = None,
    verbose: options.Verbose = False,
) -> None:
    """Make report.html again from the other files of a fit.

    With --by the rows are grouped by a column of the table that was fitted, or of --labels.
    """
    from mixmem.cli.report import rebuild_report

    typer.echo(str(rebuild_report(folder, option_values.grouped_by(by, labels))))
