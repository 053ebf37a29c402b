"""From what scikit-learn hands over to documents, with refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mixmem.data.document_pieces import AnyDocuments, DocumentPieces
from mixmem.data.documents import Documents
from mixmem.errors import InputError
from mixmem.typing import Array
from mixmem.words import suggestion

SEED_WEIGHT = 0.1
"""Tokens added to a topic for a word that it is known by, per token of that word in the corpus."""


def documents_of(estimator: Any, X: Any, *, reset: bool) -> Documents:
    """Return the documents of a matrix of counts, checked as scikit-learn does it."""
    from sklearn.utils.validation import validate_data

    if isinstance(X, Documents):
        if not reset and X.n_words != estimator.n_features_in_:
            raise InputError(f"the documents have {X.n_words} words; expected the model's {estimator.n_features_in_}")
        if reset:
            estimator.n_features_in_ = X.n_words
        return X
    if _is_texts(X):
        raise InputError(
            "TopicModel takes counts of words, and got texts; expected "
            "make_pipeline(CountVectorizer(), TopicModel(10)).fit(texts)"
        )
    if not reset:
        _refuse_transposed(getattr(X, "shape", ()), estimator.n_features_in_)
    held = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32, np.int64])
    return corpus_of(held)


def _refuse_transposed(shape: tuple[int, ...], n_words: int) -> None:
    if len(shape) == 2 and shape[0] == n_words != shape[1]:
        raise InputError(
            f"X has {shape[1]} features, but TopicModel is expecting {n_words} features as input: it has as many rows, "
            "and looks transposed; expected one row per document and one column per word"
        )


def _is_texts(X: Any) -> bool:
    if isinstance(X, str):
        return True
    if not isinstance(X, Iterable) or hasattr(X, "columns") or sparse.issparse(X):
        return False
    first = next(iter(X), None) if not isinstance(X, np.ndarray) or X.ndim == 1 else None
    return isinstance(first, str)


def corpus_of(matrix: Any) -> Documents:
    """Return the documents of a matrix (documents, words); a negative count is refused."""
    rows = sparse.csr_matrix(matrix)
    if len(rows.data) and rows.data.min() < 0:
        place = int(np.flatnonzero(rows.data < 0)[0])
        document = int(np.searchsorted(rows.indptr, place, side="right")) - 1
        raise InputError(
            f"Negative values in data: document {document + 1} holds {rows.data[place]:g} in column "
            f"{rows.indices[place] + 1}; expected counts of words, 0 or more"
        )
    return Documents.of(rows)


def refuse_unfit(corpus: AnyDocuments, k: int) -> None:
    """Refuse a corpus without words, or with too few for so many topics."""
    seen = int((corpus.word_counts > 0.0).sum())
    if seen == 0:
        raise InputError(
            f"none of the {corpus.n_documents:,} documents holds a word; expected counts, or other stop words and caps "
            "of the vocabulary"
        )
    if k > seen:
        raise InputError(
            f"{k} topics need at least as many different words, and the documents hold {seen} (n_features = "
            f"{corpus.n_words}); expected at most {seen} topics"
        )


def seeds_of(seed_words: Any, words: Sequence[str], corpus: AnyDocuments, k: int) -> Array | None:
    """Return what is added to beta (V, k) for words that topics are known by; None without any.

    ``seed_words``: {topic from 1: words} or a list of lists of words, one per topic.
    """
    if not seed_words:
        return None
    listed = seed_words if isinstance(seed_words, Mapping) else {h + 1: own for h, own in enumerate(seed_words)}
    places = {word: w for w, word in enumerate(words)}
    out = np.zeros((corpus.n_words, k))
    for topic, own in listed.items():
        if not isinstance(topic, (int, np.integer)) or not 1 <= topic <= k:
            raise InputError(f"seed_words names topic {topic!r}; expected a number from 1 to {k}")
        for word in [own] if isinstance(own, str) else own:
            if word not in places:
                raise InputError(f"the seed word {word!r} is not in the vocabulary{suggestion(str(word), places)}")
            out[places[word], topic - 1] += max(1.0, SEED_WEIGHT * corpus.word_counts[places[word]])
    return out


def word_names(X: Any, words: Iterable[Any] | None, n_words: int) -> list[str]:
    """Return the names of words: those given, else the columns of a frame, else word_1, word_2, …"""
    names = words if words is not None else getattr(X, "words" if isinstance(X, DocumentPieces) else "columns", None)
    if names is None:
        return [f"word_{w + 1}" for w in range(n_words)]
    found = [str(name) for name in names]
    if len(found) != n_words:
        raise InputError(f"words has {len(found)} names; expected one for each of the {n_words} columns")
    return found
