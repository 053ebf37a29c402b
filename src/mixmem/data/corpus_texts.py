"""Corpora from texts: folders and files of them, and columns of tables."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from mixmem.data.corpus import Corpus, from_columns
from mixmem.data.dialect import dialect_of
from mixmem.data.documents import Documents
from mixmem.data.polars_panics import panics_as_errors
from mixmem.data.text_encodings import as_utf8, opened, read_bytes
from mixmem.errors import InputError
from mixmem.words import listing, suggestion

SHOWN = 200
"""Characters of a text that are kept to show what a document is about."""
TEXT = "text"


def text_folder(folder: Path) -> Corpus:
    """Return the corpus of a folder of texts, a document each, in the order of their names."""
    files = sorted(path for path in folder.rglob("*.txt*") if path.suffix in (".txt", ".gz") and path.is_file())
    if not files:
        raise InputError(f"{folder} holds no .txt file; expected a folder of texts, one document each")
    texts = [as_utf8(read_bytes(path), str(path)).decode() for path in files]
    names = [str(path.relative_to(folder)) for path in files]
    sections = np.array([path.parent.name if path.parent != folder else "" for path in files], dtype=object)
    columns = {"folder": sections} if any(sections) else {}
    return texts_corpus(texts, str(folder), ids=names, columns=columns)


def text_lines(path: Path) -> Corpus:
    """Return the corpus of a file with one text per line; empty lines are empty documents."""
    with opened(path) as file:
        texts = as_utf8(file.read(), str(path)).decode().splitlines()
    return texts_corpus(texts, str(path))


def texts_corpus(texts: list[Any], where: str, **more: Any) -> Corpus:
    """Return the corpus of texts, or of lists of tokens."""
    from sklearn.feature_extraction.text import CountVectorizer

    tokens = next((text for text in texts if text is not None), "")
    listed = not isinstance(tokens, str)
    vectorizer = CountVectorizer(analyzer=_tokens) if listed else CountVectorizer()
    try:
        counts = vectorizer.fit_transform(texts if listed else ("" if text is None else str(text) for text in texts))
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        raise InputError(f"{where} holds no words; expected texts with words of two letters or more") from None
    shown = [_shown(text) for text in texts]
    documents = replace(Documents.of(counts), of_texts=True)
    return Corpus(documents, vectorizer.get_feature_names_out().tolist(), texts=shown, **more)


def _tokens(text: Iterable[Any] | None) -> list[str]:
    return [] if text is None else [str(token) for token in text]


def _shown(text: Any) -> str:
    line = " ".join(("" if text is None else text if isinstance(text, str) else " ".join(map(str, text))).split())
    return line[:SHOWN]


def table_corpus(path: Path, column: str | None, row_id: str | None) -> Corpus:
    """Return the corpus of a table: a column of texts or of lists of tokens, or a column of counts per word."""
    frame = _frame(path)
    if column is None and TEXT in frame.columns:
        column = TEXT
    for name in (column, row_id):
        if name is not None and name not in frame.columns:
            raise InputError(f"{path} has no column {name!r}{suggestion(name, frame.columns)}")
    ids = None if row_id is None else [str(value) for value in frame[row_id].to_list()]
    rest = [name for name in frame.columns if name not in (column, row_id)]
    if column is None:
        return _counts_corpus(frame, rest, path, ids)
    if frame[column].dtype not in (pl.String, pl.Categorical) and not isinstance(frame[column].dtype, pl.List):
        raise InputError(f"{path}: column {column!r} holds {frame[column].dtype}; expected texts or lists of tokens")
    texts = [None if text is None else list(text) if not isinstance(text, str) else text for text in frame[column]]
    columns = {name: frame[name].to_numpy() for name in rest if not isinstance(frame[name].dtype, pl.List)}
    return texts_corpus(texts, f"{path}, column {column!r}", ids=ids, columns=columns)


def _counts_corpus(frame: pl.DataFrame, names: list[str], path: Path, ids: list[str] | None) -> Corpus:
    """Return the corpus of columns of counts; columns that are no numbers tell of the documents."""
    words = [name for name in names if frame[name].dtype.is_numeric()]
    if not words:
        raise InputError(
            f"{path} has no column {TEXT!r} and none of counts, only {listing(names, 4)}; name the column of texts "
            "with --column"
        )
    matrix = frame.select(words).fill_null(0).to_numpy()
    bad = (matrix < 0) | (matrix != np.rint(matrix))
    if bad.any():
        row, place = map(int, np.argwhere(bad)[0])
        raise InputError(
            f"{path}, row {row + 1}: column {words[place]!r} holds {matrix[row, place]:g}; expected whole counts of "
            "words, 0 or more: name the column of texts with --column, or that of row names with --id"
        )
    columns = {name: frame[name].to_numpy() for name in names if name not in words}
    return from_columns(words, sparse.csr_matrix(matrix), ids=ids, columns=columns)


def _frame(path: Path) -> pl.DataFrame:
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    try:
        with panics_as_errors():
            if suffix == ".parquet":
                return pl.read_parquet(path)
            raw = as_utf8(read_bytes(path), str(path))
            separator = str(dialect_of(raw, "\t" if suffix == ".tsv" else ",").separator)
            return pl.read_csv(io.BytesIO(raw), separator=separator, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise InputError(f"{path} cannot be read as {suffix} ({reason}); check what the file is") from None


def read_labels_table(path: Path, n_documents: int) -> dict[str, Any]:
    """Return the columns of a table with one row per document, in their order."""
    frame = _frame(path)
    if frame.height != n_documents:
        raise InputError(
            f"{path} has {frame.height:,} rows, and there are {n_documents:,} documents; expected one row per document"
        )
    return {name: frame[name].to_numpy() for name in frame.columns}
