"""Options of `mixmem topics`, and what their texts stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mixmem.errors import InputError

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
    typer.Option(
        "--vocab",
        metavar="FILE",
        help="File of the words, one per line.  [default: vocab.txt or the like beside CORPUS]",
    ),
]
DocumentLabels = Annotated[
    Path | None,
    typer.Option("--labels", metavar="FILE", help="Table with one row per document, in their order, for --by."),
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
MinDf = Annotated[
    int, typer.Option("--min-df", min=1, metavar="N", help="Leave out words that fewer than N documents hold.")
]
MaxDf = Annotated[
    float,
    typer.Option(
        "--max-df",
        min=0.0,
        max=1.0,
        metavar="SHARE",
        help="Leave out words that more than this share of the documents holds.",
    ),
]
MaxWords = Annotated[
    int | None, typer.Option("--max-words", min=1, metavar="N", help="Keep the N most frequent words.")
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
Sweeping = Annotated[
    int,
    typer.Option("--rounds", min=1, metavar="N", help="Largest number of sweeps after alpha and beta were learned."),
]


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
