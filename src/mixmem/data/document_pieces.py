"""Documents in several files, of which one at a time is in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from glob import glob
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mixmem.data.corpus_files import read_corpus
from mixmem.data.documents import DOCUMENT_BLOCK, Documents
from mixmem.errors import InputError
from mixmem.typing import Array


class DocumentPieces:
    """Read documents from several files, one after the other, as often as they are asked for.

    Parameters
    ----------
    files : path, or list of paths
        Files of counts of the same words, such as :func:`scipy.sparse.save_npz` writes: a folder of them, a pattern
        such as "parts/*.npz", or their names.

    Attributes
    ----------
    n_documents, n_words, n_nonzeros : int
    words : list of str
    lengths : (n,) array
        Tokens of every document.
    word_counts : (words,) array
        Tokens of every word.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from scipy import sparse
    >>> from mixmem import DocumentPieces, TopicModel, simulate_documents
    >>> counts = simulate_documents(200, 50, 2, random_state=0).counts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(2):
    ...         sparse.save_npz(Path(folder) / f"{number}.npz", counts[100 * number : 100 * (number + 1)])
    ...     TopicModel(2, random_state=0).fit(DocumentPieces(folder)).report_.documents
    200
    """

    def __init__(self, files: str | PathLike[str] | Iterable[str | PathLike[str]]):
        given = [files] if isinstance(files, (str, PathLike)) else list(files)
        if other := [each for each in given if not isinstance(each, (str, PathLike))]:
            raise InputError(f"got a {type(other[0]).__name__}; expected names of files of counts, or a folder")
        if not given:
            raise InputError("got no files; expected names of files of counts, a folder of them or a pattern")
        self.files: list[Path] = [file for name in given for file in _files(Path(name))]
        self.words: list[str] = []
        self.n_documents, self.n_nonzeros, self.whole, self.of_texts = 0, 0, True, True
        lengths, self.word_counts = [], np.empty(0)
        for piece in self:
            self.word_counts = piece.word_counts + (self.word_counts if len(self.word_counts) else 0.0)
            lengths.append(piece.lengths)
            self.n_documents += piece.n_documents
            self.n_nonzeros += piece.n_nonzeros
            self.whole &= piece.whole
            self.of_texts &= piece.of_texts
        self.n_words = len(self.word_counts)
        self.lengths: Array = np.concatenate(lengths)

    def __iter__(self) -> Iterator[Documents]:
        """Yield the documents of each file; one whose words are not those of the first is refused."""
        for file in self.files:
            found = read_corpus(file)
            if not self.words:
                self.words = found.words
            if found.words != self.words:
                raise InputError(
                    f"{file} has other words than {self.files[0]} ({len(found.words):,} and {len(self.words):,}, or in "
                    "another order); count all documents by one vocabulary"
                )
            yield found.documents

    @property
    def n_blocks(self) -> int:
        """Return the number of blocks."""
        return -(-self.n_documents // DOCUMENT_BLOCK)

    def blocks(self) -> Iterator[Documents]:
        """Yield the documents by blocks of a fixed number, however they are spread over files."""
        waiting: list[Documents] = []
        for piece in self:
            waiting.append(piece)
            while (held := sum(own.n_documents for own in waiting)) >= DOCUMENT_BLOCK:
                whole = Documents.joined(waiting)
                yield whole.part(0, DOCUMENT_BLOCK)
                waiting = [whole.part(DOCUMENT_BLOCK, held)]
        if sum(own.n_documents for own in waiting):
            yield Documents.joined(waiting)

    def take(self, rows: NDArray[np.int64]) -> Documents:
        """Return some of the documents, in ascending order."""
        found, first = [], 0
        for piece in self:
            inside = rows[(rows >= first) & (rows < first + piece.n_documents)]
            found.append(piece.take(inside - first))
            first += piece.n_documents
        return Documents.joined(found)

    @cached_property
    def all(self) -> Documents:
        """Return all documents at once."""
        return Documents.joined(list(self))


AnyDocuments = Documents | DocumentPieces


def _files(path: Path) -> list[Path]:
    """Return the file that a path names, those of a folder, or those that match a pattern, in the order of names."""
    if path.is_file():
        return [path]
    found = path.iterdir() if path.is_dir() else map(Path, glob(str(path)))
    files = sorted(file for file in found if file.is_file() and not file.name.startswith((".", "_")))
    if not files:
        raise InputError(f"{path} names no files; expected files of counts, a folder of them or a pattern")
    return files
