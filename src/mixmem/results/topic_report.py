"""What a fit of topics says of itself, and against itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mixmem.data.document_pieces import AnyDocuments
from mixmem.likelihood.topic_coherence import similarity_of
from mixmem.moments.documents import SHORTEST
from mixmem.records import Record
from mixmem.results.notices import Notice
from mixmem.typing import Array
from mixmem.words import listed

EMPTY_SHARE = 0.001
"""Share of all tokens below which a topic is empty."""
SAME = 0.95
"""Similarity from which two topics are the same."""
UNEVEN, ENOUGH = 0.25, 30
"""How much more unevenly rows must share tokens than columns do to look like words, and how many it takes to tell."""


@dataclass(frozen=True)
class TopicReport(Record):
    """Tell how topics were found.

    Attributes
    ----------
    documents, words, tokens : int, int, float
        Size of the corpus; words that occur.
    empty_documents, short_documents : int
        Documents without words, and with fewer than three tokens (the empty ones among them): they have memberships,
        and the moments leave them out.
    start : str
        "moments" or "online": the start that was likelier after a few sweeps.
    trials : dict
        Log-likelihood per token of each start then, every token left out of the counts in its turn.
    refine : str or None
    sweeps : int
        Sweeps after alpha and beta were learned.
    converged : bool
    change : float
        Share of tokens that the last of them moved.
    left_out : float
        Log-likelihood per token at the end, every token left out of the counts in its turn.
    seconds : dict
        By stage.
    warnings : list of Notice
    """

    documents: int
    words: int
    tokens: float
    empty_documents: int
    short_documents: int
    start: str
    trials: dict[str, float]
    refine: str | None
    sweeps: int
    converged: bool
    change: float
    left_out: float
    seconds: dict[str, float]
    warnings: list[Notice]


def topic_doubts(corpus: AnyDocuments, topics: Array, weights: Array, converged: bool, change: float) -> list[Notice]:
    """Return the notices of a fit with topics (V, k) and shares of tokens (k,), the serious ones first."""
    found = [*_corpus_doubts(corpus), *_equal_or_empty(topics, weights)]
    if not converged:
        told = f"the sweeps were ended while {change:.1%} of the tokens still moved per sweep"
        found.append(Notice("not-converged", "minor", told, "give a larger max_iter if the topics matter in detail"))
    return sorted(found, key=lambda notice: notice.severity != "serious")


def _corpus_doubts(corpus: AnyDocuments) -> Iterator[Notice]:
    lengths = corpus.lengths
    if looks_transposed(corpus):
        yield Notice(
            "transposed", "serious",
            "the matrix looks transposed: its rows share the counts as unevenly as words do, its columns as evenly as "
            "documents",
            "expected one row per document and one column per word: hand over the transpose",
        )  # fmt: skip
    if not corpus.whole:
        yield Notice(
            "fractional-counts", "serious",
            "some counts are fractional, as tf-idf gives them: they were taken as weights, and alpha and beta were not "
            "learned",
            "hand over counts of words, such as scikit-learn's CountVectorizer makes",
        )  # fmt: skip
    short = int((lengths < SHORTEST).sum())
    if short == corpus.n_documents:
        yield Notice(
            "short-documents", "serious", "no document has three tokens or more, so that topics can hardly be told",
            "join documents that belong together",
        )  # fmt: skip
    elif short:
        yield Notice(
            "short-documents", "minor",
            f"{short:,} of {len(lengths):,} documents {'have' if short > 1 else 'has'} fewer than three tokens: "
            "there are memberships, but topics are hardly learned from so few", "nothing has to be done",
        )  # fmt: skip


def _equal_or_empty(topics: Array, weights: Array) -> Iterator[Notice]:
    shares = weights / max(float(weights.sum()), 1e-300)
    empty = shares < EMPTY_SHARE
    if empty.any() and len(shares) > 1:
        yield Notice(
            "empty-topic", "serious",
            f"{_named(np.flatnonzero(empty))} nearly empty: less than {EMPTY_SHARE:.1%} of the tokens",
            f"fit {len(shares) - int(empty.sum())} topics instead",
        )  # fmt: skip
    alike = np.triu(similarity_of(topics.T), 1)
    pairs = [(g + 1, h + 1) for g, h in np.argwhere(alike >= SAME).tolist() if not (empty[g] or empty[h])]
    if pairs:
        yield Notice(
            "equal-topics", "serious", f"topics {listed([f'{g} and {h}' for g, h in pairs])} are nearly the same",
            "fit fewer topics, or merge them",
        )  # fmt: skip


def looks_transposed(corpus: AnyDocuments) -> bool:
    """Return whether rows share the tokens as words do, most of them held by few, and columns as documents do."""
    words = corpus.word_counts[corpus.word_counts > 0.0]
    if corpus.of_texts or min(corpus.n_documents, len(words)) < ENOUGH:
        return False
    return _unevenness(corpus.lengths) - _unevenness(words) > UNEVEN


def _unevenness(values: Array) -> float:
    """Return the Gini coefficient: 0 if all are equal, near 1 if one has all."""
    ordered = np.sort(values)
    n = len(ordered)
    return float(((2.0 * np.arange(1, n + 1) - n - 1.0) * ordered).sum() / max(n * ordered.sum(), 1e-300))


def _named(places: np.ndarray) -> str:
    names = listed([str(place + 1) for place in places])
    return f"topic {names} is" if len(places) == 1 else f"topics {names} are"
