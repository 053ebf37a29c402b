"""A corpus: documents with the names of their words, their own names, and columns that tell of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixmem.data.documents import Documents
from mixmem.errors import InputError
from mixmem.words import listing, suggestion


@dataclass(frozen=True)
class Corpus:
    """Hold documents as they were read.

    Attributes
    ----------
    documents : Documents
    words : list of str
    ids : list of str or None
        Names of the documents; None where they have none.
    columns : dict
        Columns beside the text, such as a label or a date, by name.
    texts : list of str or None
        Beginnings of the documents as written, where they were read from texts.
    """

    documents: Documents
    words: list[str]
    ids: list[str] | None = None
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    texts: list[str] | None = None

    def column(self, name: str) -> NDArray[Any]:
        """Return a column by its name, or refuse."""
        if name not in self.columns:
            known = suggestion(name, self.columns) if self.columns else "; the corpus has none: give --labels FILE"
            raise InputError(f"there is no column {name!r} that tells of the documents{known}")
        return self.columns[name]

    def keep_words(self, keep: NDArray[np.bool_]) -> Corpus:
        """Return the corpus with some of the words only."""
        old = self.documents
        stay = keep[old.indices]
        ends = np.concatenate([[0], np.cumsum(stay)])
        place = (np.cumsum(keep) - 1).astype(np.int32)
        new = replace(
            old, indptr=ends[old.indptr], indices=place[old.indices[stay]], counts=old.counts[stay],
            n_words=int(keep.sum()),
        )  # fmt: skip
        return replace(self, documents=new, words=[word for word, kept in zip(self.words, keep, strict=True) if kept])

    def without_empty(self) -> Corpus:
        """Return the corpus without documents that hold no word; the others keep their names, or their numbers."""
        kept = np.flatnonzero(self.documents.lengths > 0.0)
        if len(kept) == self.documents.n_documents:
            return self
        return replace(
            self,
            documents=self.documents.take(kept),
            ids=[str(d + 1) if self.ids is None else self.ids[d] for d in kept.tolist()],
            columns={name: values[kept] for name, values in self.columns.items()},
            texts=None if self.texts is None else [self.texts[d] for d in kept.tolist()],
        )


def limited(
    corpus: Corpus,
    *,
    min_df: int = 1,
    max_df: float = 1.0,
    max_words: int | None = None,
    stop_words: Collection[str] = (),
) -> Corpus:
    """Return a corpus whose words stand in at least ``min_df`` documents and at most a share ``max_df`` of them.

    Stop words are left out, whatever their case; of the rest, the ``max_words`` most frequent ones stay. Words that
    never occur always go.
    """
    documents = corpus.documents
    held = np.bincount(documents.indices, minlength=documents.n_words)
    stops = {word.casefold() for word in stop_words}
    keep = (held >= max(1, min_df)) & (held <= max_df * documents.n_documents)
    if stops:
        keep &= np.array([word.casefold() not in stops for word in corpus.words], dtype=bool)
    if max_words is not None and keep.sum() > max_words:
        order = np.argsort(-np.where(keep, documents.word_counts, -1.0), kind="stable")
        keep = np.zeros_like(keep)
        keep[order[:max_words]] = True
    if not keep.any():
        raise InputError(
            f"no word is left of {int((held > 0).sum()):,} ({listing(corpus.words, 4)}): all are stop words or stand "
            "in too few or too many documents; use other --stop-words, --min-df or --max-df"
        )
    return corpus if keep.all() else corpus.keep_words(keep)


def stop_word_list(name: str) -> frozenset[str]:
    """Return stop words: of "english" (scikit-learn's), of another language (package stop-words), or "none"."""
    if name == "none":
        return frozenset()
    if name == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    try:
        from stop_words import StopWordError, get_stop_words
    except ImportError:
        raise InputError(
            f'stop words of {name!r} need the package stop-words: pip install "mixmem[text]"; english and none need '
            "nothing"
        ) from None
    try:
        return frozenset(get_stop_words(name))
    except StopWordError:
        raise InputError(
            f"there are no stop words of {name!r}; expected a language such as german or fr, none, or a file with one "
            "word per line"
        ) from None


def from_columns(words: Sequence[str], matrix: Any, **more: Any) -> Corpus:
    """Return the corpus of a matrix (documents, words)."""
    return Corpus(Documents.of(matrix), list(words), **more)
