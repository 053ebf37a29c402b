"""Arguments and options, each declared once; commands pick theirs by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _from_config(context: typer.Context, file: Path | None) -> Path | None:
    """Let a file give the defaults of the command's options: what stands on the line still wins."""
    if file is not None:
        from mixmem.cli.config_file import read_config, rerun_data

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
        if (data := rerun_data(file)) is not None:
            context.default_map["data"] = data
    return file


_DATA = typer.Argument(
    metavar="DATA",
    help="Table: .csv .tsv .txt .xlsx .sav .dta .parquet .feather .jsonl .npz .bed .vcf .vcf.gz .str, one of these "
    "in a .zip .xz .gz .zst, a folder of one kind, FILE::PART for a sheet or a table of a database, or - for CSV "
    "on standard input.",
    show_default=False,
)
Data = Annotated[str, _DATA]
FitData = Annotated[str | None, _DATA]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model that fit wrote: model.mixmem.", show_default=False)]
FitFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that fit wrote.", show_default=False)]

_COMPONENTS = typer.Option("-k", "--components", min=1, metavar="K", help="Number of components.", show_default=False)
Components = Annotated[int, _COMPONENTS]
FitComponents = Annotated[int | None, _COMPONENTS]
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
        help="Kind of a column: categorical, binary, ordinal, dosage, count, continuous, or ignore to leave it out. A "
        'pattern names many columns ("q*=ordinal"); ordinal:low<middle<high says the order of texts. May be repeated.  '
        "[default: inferred; see mixmem info]",
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
        help="Character between the columns of a text file; tab and blank are said by name.  [default: found]",
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
By = Annotated[
    str | None,
    typer.Option("--by", metavar="COLUMN", help="Column that groups rows or documents on the page; it is not fitted."),
]
Groups = Annotated[str, typer.Option("--by", metavar="COLUMN", help="Column that groups the rows.", show_default=False)]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Table that holds the column of --by, if the fitted table does not: with the rows' ids in its first "
        "column, or one line per row in the same order.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="COLUMN", help="Column of the clusters that rows come from, such as schools."),
]
Stratum = Annotated[
    str | None, typer.Option("--stratum", metavar="COLUMN", help="Column of the strata that rows were sampled from.")
]
Level = Annotated[
    float, typer.Option("--level", min=0.5, max=0.999, metavar="SHARE", help="Share of intervals that hold the truth.")
]
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
Seed = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", help="Same seed, same data, same result, on any number of cores.")
]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, metavar="N", help="Threads to use.  [default: all cores]")]
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
        help="How often all rows are read. few: fit a sample, corrected by one or two passes over all rows; all: let "
        "every sweep go over all rows, read anew where they do not fit into memory, which is slow; auto: few where "
        "they do not fit.",
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
        help="TOML file of options, by their long names, or the fit.json of an earlier fit, which is then made again "
        "with its data and options; what stands on the command line wins.",
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
        metavar="auto|none|gibbs|integrated|em",
        help="Step after the moment estimate: sampling, rounds of EM for long rows, maximum likelihood, or none.",
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
MostRounds = Annotated[
    int, typer.Option("--max-rounds", min=1, metavar="N", help="Largest number of rounds over a block's three modes.")
]
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
Restarts = Annotated[int, typer.Option("--restarts", min=1, metavar="N", help="Random starts of the anchor block.")]

Smallest = Annotated[int, typer.Option("--from", min=1, metavar="K", help="Smallest number of components to try.")]
Largest = Annotated[int, typer.Option("--to", min=2, metavar="K", help="Largest number of components to try.")]
Splits = Annotated[
    int, typer.Option("--splits", min=1, metavar="N", help="Number of times the rows are split in halves, at least.")
]
