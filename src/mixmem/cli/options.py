"""Arguments and options, each declared once; commands pick theirs by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixmem.errors import InputError
from mixmem.words import listing

if TYPE_CHECKING:
    from mixmem.cli.labels import GroupedBy
    from mixmem.data.dialect import Dialect
    from mixmem.results.notices import Notice

SERIOUS = 3
"""Exit code of a result with a serious warning, with --strict."""


HEADERS = ("auto", "yes", "no")


def _from_config(context: typer.Context, file: Path | None) -> Path | None:
    """Let a file give the defaults of the command's options: what stands on the line still wins."""
    if file is not None:
        from mixmem.cli.config_file import read_config

        names = {
            option.removeprefix("--"): parameter.name
            for parameter in context.command.params
            for option in parameter.opts
            if option.startswith("--") and option not in ("--config", "--help")
        }
        values = read_config(file, names)
        repeatable = {parameter.name for parameter in context.command.params if getattr(parameter, "multiple", False)}
        context.default_map = {
            names[key]: [value] if names[key] in repeatable and isinstance(value, str) else value
            for key, value in values.items()
        }
    return file


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Table: .csv .tsv .txt .xlsx .sav .dta .parquet .feather .jsonl .npz .bed .vcf .vcf.gz .str, one of these "
        "in a .zip .xz .gz .zst, a folder of one kind, FILE::PART for a sheet or a table of a database, or - for CSV "
        "on standard input.",
        show_default=False,
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model that fit wrote: model.mixmem.", show_default=False)]
FitFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that fit wrote.", show_default=False)]

Components = Annotated[int, typer.Option("-k", "--components", min=1, help="Number of components.", show_default=False)]
OutFolder = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write into; made if it is not there.")]
OutFile = Annotated[
    Path, typer.Option("--out", metavar="FILE", help="File to write: .csv, .tsv or .parquet; - for CSV on the output.")
]
Id = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="Column with the rows' names; it is not fitted.")
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="COLUMN=KIND",
        help="Kind of a column: categorical, binary, ordinal, dosage, count, continuous, or ignore to leave it out. "
        "May be repeated.  [default: inferred; see mixmem info]",
        show_default=False,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="VALUES",
        help="Values that mean a missing cell, beside empty ones and NA: NA,?,-9 in all columns, chol=0 in one. May be "
        "repeated.",
        show_default=False,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight", metavar="COLUMN", help="Column that says how many rows each row stands for; it is not fitted."
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHARACTER",
        help="What parts the columns of a text file: a character, or tab, blank.  [default: found]",
        show_default=False,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", metavar="MARK", help="Decimal mark of a text file: . or ,  [default: found]"),
]
Header = Annotated[
    str,
    typer.Option("--header", metavar="auto|yes|no", help="Whether the first line of a text file holds names."),
]
Columns = Annotated[
    str,
    typer.Option(
        "--columns",
        metavar="useful|strict",
        help="Leave out columns that are constant, empty, dates or identifiers, or refuse the table for them.",
    ),
]
Unknown = Annotated[
    str,
    typer.Option(
        "--handle-unknown",
        metavar="missing|error",
        help="Let cells with levels that the model does not know count as missing, or refuse the table for them.",
    ),
]
Groups = Annotated[str, typer.Option("--by", metavar="COLUMN", help="Column that groups the rows.", show_default=False)]
GroupBy = Annotated[
    str | None,
    typer.Option("--by", metavar="COLUMN", help="Column that groups the rows on the page; it is not fitted."),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Table that holds the column of --by, if DATA does not: with the rows' ids in its first column, or one "
        "line per row in the same order.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="COLUMN", help="Column of the clusters that rows come from, such as schools."),
]
Stratum = Annotated[
    str | None, typer.Option("--stratum", metavar="COLUMN", help="Column of the strata that rows were sampled from.")
]
Level = Annotated[float, typer.Option("--level", min=0.5, max=0.999, help="Share of intervals that hold the truth.")]
CompareFolder = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder to write into.  [default: compare-COLUMN in the fit's folder]"),
]
QFile = Annotated[
    Path | None,
    typer.Option(
        "--q", metavar="FILE", help="Write memberships in ADMIXTURE's layout too: one row per sample, no header."
    ),
]
PFile = Annotated[
    Path | None,
    typer.Option(
        "--p",
        metavar="FILE",
        help="Write frequencies of the first allele in ADMIXTURE's layout too: one row per variant, no header.",
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--cv", metavar="N", min=2, help="Predict genotypes hidden in N folds and report the error, as ADMIXTURE does."
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Same seed, same data, same result, on any number of cores.")]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, metavar="N", help="Threads.  [default: all cores]")]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Memory that the work may take, such as 2GB; what needs more is refused.  [default: what is available]",
        show_default=False,
    ),
]
FitMemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Memory that the work may take, such as 2GB. A larger table of CSV, Parquet or Arrow files is read in "
        "pieces, and fitted in few passes.  [default: what is available]",
        show_default=False,
    ),
]
PiecesLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Memory that the work may take, such as 2GB; a larger table of CSV, Parquet or Arrow files is read in "
        "pieces.  [default: what is available]",
        show_default=False,
    ),
]
Passes = Annotated[
    str,
    typer.Option(
        "--passes",
        metavar="auto|few|all",
        help="few: a sample of the rows, corrected by one or two passes over all; all: every step sees all rows, which "
        "must fit into memory; auto: few where they do not.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Let the workers of a Dask cluster do the work, in few passes: the address that its scheduler prints. All "
        "of them must see the files.",
        show_default=False,
    ),
]
ScratchFolder = Annotated[
    Path | None,
    typer.Option(
        "--scratch",
        metavar="DIR",
        help="Folder for codes of tables larger than memory, a byte per cell; removed at the end.  [default: CSV: the "
        "system's temporary folder; others: read anew instead]",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        is_eager=True,
        callback=_from_config,
        help="TOML file of options, by their long names; options on the command line win.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="End with exit code 3 if the result has a serious warning.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Name every stage with its seconds; show tracebacks.")]

Alpha0 = Annotated[
    str,
    typer.Option(
        "--alpha0",
        metavar="A|auto",
        help="How mixed rows are (the sum of alpha): small where each belongs to few components; auto finds it.",
    ),
]
Refine = Annotated[
    str,
    typer.Option(
        "--refine",
        metavar="auto|none|gibbs|em",
        help="Step after the moment estimate: sampling, maximum likelihood, or none.",
    ),
]
Contamination = Annotated[
    str,
    typer.Option(
        "--contamination",
        metavar="SHARE|auto",
        help="Share of cells that hold answers at random; auto estimates it where the fit samples.",
    ),
]
Memberships = Annotated[
    str,
    typer.Option(
        "--memberships",
        metavar="mean|mode",
        help="Memberships of a row: the posterior mean, which errs least, or its mode.",
    ),
]
Partitions = Annotated[
    str,
    typer.Option(
        "--partitions",
        metavar="N|auto",
        help="Number of blocks of the paper's partitioned way; auto takes all variables in one pass instead.",
    ),
]
Sweeps = Annotated[
    str,
    typer.Option(
        "--sweeps", metavar="N|auto", help="Passes over all triples of variables; 0 for none, as in the paper."
    ),
]
Solver = Annotated[
    str,
    typer.Option(
        "--solver",
        metavar="NAME",
        help="How blocks are factorized: pqp, hals, wnmf, lee_seung, tpm, nojd0, nojd1 or meld.",
    ),
]
Matching = Annotated[str, typer.Option("--matching", metavar="procrustes|angle", help="How blocks are matched.")]
Anchors = Annotated[
    list[str] | None,
    typer.Option(
        "--anchors",
        metavar="A,B,...",
        help="Variables of one of the three anchor groups, with commas; give the option three times.  [default: chosen "
        "from the data]",
        show_default=False,
    ),
]
BlockStart = Annotated[
    str,
    typer.Option(
        "--block-start",
        metavar="random|anchors",
        help="Where the blocks of --partitions begin: at random, as in the paper, or at the anchors' solution.",
    ),
]
MostRounds = Annotated[int, typer.Option("--max-rounds", min=1, help="Rounds over a block's three modes at most.")]
Tolerance = Annotated[
    str,
    typer.Option(
        "--tol",
        metavar="T|auto",
        help="Relative fall of a block's residual that ends its rounds; auto: 1e-4 where sweeps follow, else 1e-6.",
    ),
]
CheckAlpha0 = Annotated[
    bool, typer.Option("--check-alpha0", help="Estimate alpha0 beside the one given, and say where the two differ.")
]
Restarts = Annotated[int, typer.Option("--restarts", min=1, help="Random starts of the anchor block.")]

Smallest = Annotated[int, typer.Option("--from", min=1, metavar="K", help="Smallest number of components to try.")]
Largest = Annotated[int, typer.Option("--to", min=2, metavar="K", help="Largest number of components to try.")]
Splits = Annotated[int, typer.Option("--splits", min=1, help="Times the rows are split in halves.")]

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
        help="blend, community, ds, ibcc, ebcc, one_coin, mace, glad, minimax, bwa, wawa or majority; auto picks by "
        "labels held out.",
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
    typer.Option("--ratings", metavar="bias|mean|median", help="The labels are numbers: find each task's value."),
]
CrowdStart = Annotated[
    str, typer.Option("--start", metavar="NAME", help="majority, tensor (three groups of workers) or ptpqp.")
]
ClassPrior = Annotated[
    str, typer.Option("--prior", metavar="auto|uniform|estimate", help="How common the classes are.")
]
LabelColumns = Annotated[
    str, typer.Option("--columns", metavar="A,B,C", help="Names of the columns of the task, the worker and the label.")
]
Rounds = Annotated[int, typer.Option("--rounds", min=1, help="Rounds at most.")]

CorpusPath = Annotated[
    Path,
    typer.Argument(
        metavar="CORPUS",
        help="Counts of words: UCI docword.*.txt, LDA-C .dat or .ldac, Matrix Market .mtx, libsvm .svm, .npz, .h5ad, a "
        "10x folder; or texts: a folder of .txt, a .txt with one text per line, a .csv, .tsv or .parquet. Each may be "
        "gzipped.",
        show_default=False,
    ),
]
Topics = Annotated[
    str,
    typer.Option(
        "-k",
        "--components",
        metavar="K|LIST",
        help="Number of topics, or several such as 5,10,20,40 to choose from.",
        show_default=False,
    ),
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        "--column", metavar="NAME", help="Column of a table that holds texts or lists of tokens.  [default: text]"
    ),
]
Vocabulary = Annotated[
    Path | None,
    typer.Option("--vocab", metavar="FILE", help="One word per line.  [default: vocab.txt or the like beside CORPUS]"),
]
DocumentLabels = Annotated[
    Path | None,
    typer.Option("--labels", metavar="FILE", help="Table with one row per document, in their order, for --by."),
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="COLUMN", help="Show topics by the values of a column: labels, or dates."),
]
StopWords = Annotated[
    str | None,
    typer.Option(
        "--stop-words",
        metavar="LANGUAGE|FILE",
        help="Words to leave out: of a language (english, german, fr, ...), of a file with one per line, or none.  "
        "[default: english for texts, none for counts]",
        show_default=False,
    ),
]
MinDf = Annotated[int, typer.Option("--min-df", min=1, metavar="N", help="Leave out words of fewer documents.")]
MaxDf = Annotated[
    float, typer.Option("--max-df", min=0.0, max=1.0, metavar="SHARE", help="Leave out words of more documents.")
]
MaxWords = Annotated[
    int | None, typer.Option("--max-words", min=1, metavar="N", help="Keep so many words, the most frequent ones.")
]
SeedWords = Annotated[
    list[str] | None,
    typer.Option(
        "--seed-words",
        metavar="TOPIC=WORDS",
        help="Words that a topic is known by, such as 1=goal,match. May be repeated.",
        show_default=False,
    ),
]
Beta = Annotated[
    str,
    typer.Option("--beta", metavar="B|auto", help="How many words a topic has: small for few; auto finds it."),
]
TopicStart = Annotated[
    str, typer.Option("--start", metavar="auto|moments|online", help="Where sweeps begin; auto tries both.")
]
TopicRefine = Annotated[
    str,
    typer.Option(
        "--refine",
        metavar="auto|cvb0|gibbs|em|none",
        help="Step after the start: sweeps, sampling, maximum likelihood without priors (large counts), or none.",
    ),
]
Sweeping = Annotated[int, typer.Option("--rounds", min=1, help="Sweeps at most after alpha and beta were learned.")]

Rows = Annotated[int, typer.Option("--rows", min=1, help="Rows to draw.")]
Variables = Annotated[int, typer.Option("--variables", min=0, help="Categories to draw.")]
Counts = Annotated[int, typer.Option("--counts", min=0, help="Counts to draw beside them.")]
Reals = Annotated[int, typer.Option("--continuous", min=0, help="Continuous numbers to draw beside them.")]
MissingShare = Annotated[
    float, typer.Option("--missing", min=0.0, max=1.0, metavar="SHARE", help="Share of cells lost at random.")
]
Levels = Annotated[int, typer.Option("--levels", min=2, help="Levels of every category.")]
Noise = Annotated[
    float, typer.Option("--noise", min=0.0, max=1.0, metavar="DELTA", help="Share of cells replaced by uniform draws.")
]
Alpha = Annotated[float, typer.Option("--alpha", metavar="A", help="Concentration of every component.")]

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
Quick = Annotated[bool, typer.Option("--quick", help="A part that still tells something, in a minute or two.")]
Methods = Annotated[
    str | None, typer.Option("--methods", metavar="A,B", help="Methods to run, with commas.  [default: all]")
]
Processes = Annotated[int | None, typer.Option("--jobs", min=1, metavar="N", help="Processes.  [default: all cores]")]
Cores = Annotated[
    int | None, typer.Option("--jobs", min=1, metavar="N", help="Threads beside one.  [default: all cores]")
]


def number_or_auto(option: str, text: str, kind: type[int] | type[float]) -> str | int | float:
    """ "auto", or the number that a text stands for."""
    if text == "auto":
        return text
    try:
        return kind(text)
    except ValueError:
        words = "an integer" if kind is int else "a positive number"
        raise InputError(f"{option} is auto or {words}; got {text!r}") from None


def anchors_of(texts: list[str] | None) -> str | list[list[str]]:
    """Return the three groups of anchors by name; "auto" if none are named."""
    if not texts:
        return "auto"
    groups = [[name.strip() for name in text.split(",") if name.strip()] for text in texts]
    if len(groups) != 3 or not all(groups):
        raise InputError(
            f"--anchors names one group of variables, and there are three: expected the option three times, got "
            f"{listing(texts)}; for example --anchors a,b --anchors c,d --anchors e,f"
        )
    return groups


def kinds_of(texts: list[str] | None) -> dict[str, str] | None:
    """Kinds by column, from texts such as age=continuous; None if there are none."""
    from mixmem.data.kinds import KINDS
    from mixmem.data.table_checks import IGNORED

    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, kind = text.rpartition("=")
        if not equals or not name:
            raise InputError(f"--kind is COLUMN=KIND, such as age=continuous; got {text!r}")
        if kind not in KINDS and kind != IGNORED:
            raise InputError(f"--kind {text}: there is no kind {kind!r}; expected one of {', '.join(KINDS)}, {IGNORED}")
        if found.setdefault(name, kind) != kind:
            raise InputError(f"--kind declares {name!r} both {found[name]} and {kind}; give one of them")
    return found or None


def dialect_of(delimiter: str | None, decimal: str | None, header: str) -> Dialect:
    """What the options say of how a text file writes its table."""
    from mixmem.data.dialect import Dialect

    separator = {"tab": "\t", "\\t": "\t", "blank": " ", "space": " "}.get(delimiter or "", delimiter)
    if separator is not None and len(separator) != 1:
        raise InputError(f"--delimiter is one character, or tab or blank; got {delimiter!r}")
    if decimal not in (None, ".", ","):
        raise InputError(f"--decimal is . or , ; got {decimal!r}")
    return Dialect(separator, decimal, {"auto": None, "yes": True, "no": False}[_one_of("--header", header, HEADERS)])


def grouped_by(by: str | None, labels: str | None) -> GroupedBy | None:
    """How the rows are grouped, as the options say; None if they are not."""
    from mixmem.cli.labels import GroupedBy

    if by is None and labels is not None:
        raise InputError(f"--labels {labels} needs --by COLUMN, the column of that table that groups the rows")
    return None if by is None else GroupedBy(by, labels)


def strict_of(columns: str) -> str:
    """Whether useless columns are left out or refused, as the option says."""
    return _one_of("--columns", columns, ("useful", "strict"))


def unknown_of(handle: str) -> str:
    """What is done with levels that a model does not know, as the option says."""
    return _one_of("--handle-unknown", handle, ("missing", "error"))


def _one_of(option: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise InputError(f"{option} is one of {', '.join(allowed)}; got {value!r}")
    return value


def missing_of(texts: list[str] | None) -> list[str] | dict[str, list[str]] | None:
    """Values that mean a missing cell: of all columns (a list), by column (a dictionary); None if there are none.

    Values of all columns that come with some of single columns have the key "".
    """
    found: dict[str, list[str]] = {}
    for text in texts or ():
        name, equals, values = text.partition("=")
        listed = [value.strip() for value in (values if equals else text).split(",")]
        if (equals and not name) or "" in listed:
            raise InputError(
                f"--missing is a list of values for all columns (NA,?,-9) or one column (chol=0); got {text!r}"
            )
        found.setdefault(name if equals else "", []).extend(listed)
    return found[""] if list(found) == [""] else found or None


def topic_numbers(text: str) -> list[int]:
    """Numbers of topics, from a text such as 10 or 5,10,20."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and int(part) >= 1 for part in parts):
        raise InputError(f"-k is a number of topics of at least 1, or several such as 5,10,20; got {text!r}")
    return [int(part) for part in parts]


def seed_words_of(texts: list[str] | None) -> dict[int, list[str]] | None:
    """Words by topic, from texts such as 1=goal,match; None if there are none."""
    found: dict[int, list[str]] = {}
    for text in texts or ():
        topic, equals, words = text.partition("=")
        listed = [word.strip() for word in words.split(",") if word.strip()]
        if not equals or not topic.strip().isdigit() or not listed:
            raise InputError(f"--seed-words is TOPIC=WORDS, such as 1=goal,match; got {text!r}")
        found.setdefault(int(topic), []).extend(listed)
    return found or None


@contextmanager
def shown(quiet: bool, verbose: bool, *, minutes: bool = False) -> Iterator[None]:
    """Progress as the options ask: lines, nothing, or bars where someone looks.

    What takes ``minutes`` says how far it is in any case: its output goes to a file or a log which is watched.
    """
    import sys
    import warnings

    from mixmem.errors import TableWarning
    from mixmem.progress import BarProgress, LineProgress, Progress, showing

    if quiet and verbose:
        raise InputError("--quiet and --verbose ask for opposite things; give one of them")
    kind: type[Progress] = Progress
    if verbose:
        kind = LineProgress
    elif not quiet and sys.stderr.isatty():
        kind = BarProgress
    if minutes and not quiet and kind is not BarProgress:
        from mixmem.experiments.pace import EveryStep, PacedProgress

        kind = EveryStep if verbose else PacedProgress
    with showing(kind), warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", TableWarning)
        yield


def end_strictly(strict: bool, notices: Iterable[Notice]) -> None:
    """End the command with exit code 3 if ``strict`` and a serious warning ask for it; files are written by then."""
    if strict and any(notice.severity == "serious" for notice in notices):
        raise typer.Exit(SERIOUS)
