"""`mixmem topics`: topics of documents, as files and a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mixmem import __version__
from mixmem.cli.attempts import Attempts
from mixmem.cli.compilation import announce_compilation
from mixmem.cli.console import noted, warned, written
from mixmem.data.corpus import Corpus, limited, stop_word_list
from mixmem.data.corpus_files import read_corpus
from mixmem.models.topics.model import TopicModel
from mixmem.models.topics.parameters import PARAMETERS
from mixmem.output.tables import MEMBERSHIP_DIGITS, PARAMETER_DIGITS, as_polars, write_table
from mixmem.output.topics_page import render_topics_page
from mixmem.parameters import check_values
from mixmem.progress import current
from mixmem.records import plain
from mixmem.results.notices import Notice
from mixmem.results.topic_groups import by_groups
from mixmem.selection.n_topics import TopicChoice, choose_topics
from mixmem.storage.provenance import provenance
from mixmem.words import plain_number

TOPIC_FILES = (
    "report.html", "topics.csv", "top_words.csv", "memberships.csv", "topics_by.csv", "differences.csv", "model.mixmem",
    "topics.json", "choose_k.csv",
)  # fmt: skip
"""What is written: a run that leaves a file out removes that of an earlier one."""
TOP_WORDS, DIFFERENT_CELLS = 30, 200_000_000


@dataclass(frozen=True)
class Reading:
    """How a corpus is to be read: options of the command."""

    column: str | None = None
    row_id: str | None = None
    vocabulary: Path | None = None
    labels: Path | None = None
    by: str | None = None
    stop_words: str | None = None
    min_df: int = 1
    max_df: float = 1.0
    max_words: int | None = None

    def corpus(self, path: Path) -> Corpus:
        """Return the corpus, its vocabulary limited as asked for."""
        found = read_corpus(path, column=self.column, vocabulary=self.vocabulary, row_id=self.row_id)
        if self.labels is not None:
            from mixmem.data.corpus_texts import read_labels_table

            more = read_labels_table(self.labels, found.documents.n_documents)
            found = replace(found, columns={**found.columns, **more})
        if self.by is not None:
            found.column(self.by)
        return limited(
            found,
            min_df=self.min_df,
            max_df=self.max_df,
            max_words=self.max_words,
            stop_words=self._stop_words(texts=found.texts is not None),
        )

    def _stop_words(self, *, texts: bool) -> frozenset[str]:
        asked = self.stop_words
        if asked is None:
            return stop_word_list("english" if texts else "none")
        if Path(asked).is_file():
            return frozenset(Path(asked).read_text(encoding="utf-8").split())
        return stop_word_list(asked)


@dataclass(frozen=True)
class TopicRun:
    """A fit on its way to the files, and what topics.json will hold."""

    model: TopicModel
    corpus: Corpus
    memberships: np.ndarray
    document: dict[str, Any]
    groups: pl.DataFrame | None
    choice: TopicChoice | None
    attempts: Attempts

    @property
    def notices(self) -> list[Notice]:
        """Return what speaks against the result."""
        return [*self.model.report_.warnings, *self.attempts.notices]


def run_topics(
    path: Path, numbers: Sequence[int], settings: Mapping[str, Any], reading: Reading, *, quiet: bool = False
) -> TopicRun:
    """Read, choose the number of topics if there are several, fit, and look at the topics from all sides."""
    model = TopicModel(numbers[0], **settings)
    check_values(model.get_params(deep=False), PARAMETERS)  # before the data are read: that may take long
    progress = current()
    with progress.stage("reading"):
        read = reading.corpus(path)
        corpus = read.without_empty() if read.texts is not None else read
    announce_compilation(quiet)
    choice = None
    if len(numbers) > 1:
        choice = choose_topics(
            corpus.documents, numbers, random_state=settings["random_state"], n_jobs=settings["n_jobs"]
        )
        model.set_params(n_components=choice.n_components)
    model.fit(corpus.documents, words=corpus.words)
    attempts = Attempts()
    if empty := read.documents.n_documents - corpus.documents.n_documents:
        attempts.notices.append(_empty_texts(empty, read.documents.n_documents))
    with progress.stage("memberships"):
        memberships = model.memberships_
    coherence = attempts.attempt("coherence", lambda: model.coherence().tolist())
    groups = None
    if (by := reading.by) is not None:
        groups = attempts.attempt(f"topics by {by}", lambda: by_groups(memberships, corpus.column(by), by))
    document = {
        "mixmem": __version__,
        "corpus": str(path),
        "settings": {
            "n_components": model.n_components,
            **settings,
            **{name: _text(value) for name, value in vars(reading).items()},
        },
        "alpha": model.alpha_.tolist(),
        "beta": model.beta_,
        "prevalence": model.topic_prevalence_.tolist(),
        "coherence": coherence,
        "choice": None if choice is None else {"reason": choice.reason, "table": choice.table.to_dict("records")},
        "report": model.report_.to_plain(),
        **provenance(),
    }
    return TopicRun(model, corpus, memberships, document, groups, choice, attempts)


def _empty_texts(empty: int, of: int) -> Notice:
    """Say how many texts have no words, and so no topics."""
    holds, are = ("hold", "are") if empty > 1 else ("holds", "is")
    return Notice(
        "empty-texts", "minor",
        f"{empty:,} of {of:,} texts {holds} no words, or none that are kept, and {are} left out",
        "nothing has to be done: memberships.csv has the others",
    )  # fmt: skip


def write_topics(folder: Path, run: TopicRun) -> None:
    """Write all files; the page and what else can be done without become notices if they fail."""
    model = run.model
    names = model.get_feature_names_out().tolist()
    table = {name: pl.Series(model.components_[h]).round_sig_figs(PARAMETER_DIGITS) for h, name in enumerate(names)}
    write_table(folder / "topics.csv", pl.DataFrame({"word": model.words_, **table}))
    write_table(folder / "top_words.csv", as_polars(_all_top_words(model), PARAMETER_DIGITS))
    shares = {name: pl.Series(run.memberships[:, h]).round_sig_figs(MEMBERSHIP_DIGITS) for h, name in enumerate(names)}
    ids: Any = run.corpus.ids or range(1, len(run.memberships) + 1)
    write_table(folder / "memberships.csv", pl.DataFrame({"document": list(ids), **shares}))
    model.save(folder / "model.mixmem")
    if run.choice is not None:
        write_table(folder / "choose_k.csv", as_polars(run.choice.table, PARAMETER_DIGITS))
    if run.groups is not None:
        write_table(folder / "topics_by.csv", run.groups)
    k, nonzeros = len(names), run.corpus.documents.n_nonzeros
    if k > 1 and nonzeros * k * k <= DIFFERENT_CELLS:
        run.attempts.write(
            folder / "differences.csv",
            lambda path: write_table(path, as_polars(model.differences(), PARAMETER_DIGITS)),
        )
    run.attempts.write(folder / "report.html", lambda path: path.write_text(_page(run), encoding="utf-8"))
    run.document["warnings"] = run.attempts.to_plain()
    text = json.dumps(plain(run.document), indent=1, allow_nan=False)
    (folder / "topics.json").write_text(text + "\n", encoding="utf-8")


def _all_top_words(model: TopicModel) -> Any:
    """The words that stand for topics by each of the rankings, one below the other."""
    import pandas as pd

    tables = [model.top_words(TOP_WORDS, by=by).assign(by=by) for by in ("probability", "relevance", "frex")]
    return pd.concat(tables, ignore_index=True)


def _page(run: TopicRun) -> str:
    return render_topics_page(run.document, run.model, run.corpus, run.memberships, run.groups)


def topics_text(run: TopicRun, out: Path) -> str:
    """Say what was found, in a few lines."""
    model, report = run.model, run.model.report_
    top = model.top_words(7, by="relevance").groupby("topic")["word"].agg(" ".join)
    k = len(model.topic_prevalence_)
    learned = f"alpha0 {plain_number(model.alpha0_)}, beta {plain_number(model.beta_)}"
    lines = [
        *warned(run.notices),
        *([] if run.choice is None else [f"{run.choice.reason} (choose_k.csv has all)"]),
        f"{k} topic{'s' * (k > 1)} in {report.documents:,} documents of {report.words:,} different words, "
        f"{report.tokens:,.0f} tokens in all",
        "maximum likelihood, no priors" if report.refine == "em" else learned,
        "",
        f"  {'topic':<8}{'share of tokens':>16}  words that stand for it",
        *(f"  {h:<8}{share:>16.1%}  {top.get(h, '')}" for h, share in enumerate(model.topic_prevalence_, start=1)),
        "",
        *noted(run.notices),
    ]
    return "\n".join([*lines, written(out, TOPIC_FILES, "report.html")])


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
