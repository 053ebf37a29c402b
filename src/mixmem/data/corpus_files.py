"""Corpora from files: counts in the formats of the field, and texts."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mixmem.data.corpus import Corpus, from_columns
from mixmem.data.documents import Documents
from mixmem.data.text_encodings import as_utf8, opened, read_bytes
from mixmem.errors import InputError
from mixmem.kernels.digits import whole_numbers

CHUNK_BYTES = 1 << 24
"""Bytes that are parsed at once; the result does not depend on it."""
VOCABULARIES = ("vocab.txt", "vocabulary.txt", "vocab.tsv", "words.txt")


def read_corpus(
    source: str | PathLike[str], *, column: str | None = None, vocabulary: Path | None = None, row_id: str | None = None
) -> Corpus:
    """Read documents from a file or folder.

    Parameters
    ----------
    source : path
        UCI bag of words (docword.*.txt), LDA-C (.dat, .ldac), Matrix Market (.mtx), libsvm (.svm, .libsvm,
        .svmlight), scipy's .npz, AnnData (.h5ad), a table (.csv, .tsv, .parquet) with a column of texts or of lists of
        tokens, or with a column of counts per word, a .txt with one text per line, a folder of texts, or a 10x folder
        (matrix.mtx with features and barcodes); any text may be gzipped.
    column : str or None
        Column of the texts in a table; None takes one called "text", else columns of counts.
    vocabulary : path or None
        File with one word per line; None looks for vocab.txt and the like beside the file.
    row_id : str or None
        Column of the documents' names in a table.
    """
    path = Path(source)
    if not path.exists():
        raise InputError(f"{path} does not exist; check the name and the folder")
    if path.is_dir():
        from mixmem.data.corpus_texts import text_folder

        return _tenx(path) if _one_of(path, "matrix.mtx") else text_folder(path)
    suffix = _suffix(path)
    if suffix in TABLES:
        from mixmem.data.corpus_texts import table_corpus

        return table_corpus(path, column, row_id)
    if path.name.lower().startswith("docword") or (suffix == ".txt" and _is_docword(path)):
        return _named(_docword(path), path, vocabulary)
    if suffix == ".txt":
        from mixmem.data.corpus_texts import text_lines

        return text_lines(path)
    if suffix not in COUNTS:
        raise InputError(
            f"{path} has the suffix {suffix!r}; expected docword.*.txt, {' '.join(COUNTS)}, {' '.join(TABLES)}, .txt, "
            "or a folder of texts (each may be gzipped)"
        )
    found = COUNTS[suffix](path)
    return found if isinstance(found, Corpus) else _named(found, path, vocabulary)


def _suffix(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _is_docword(path: Path) -> bool:
    """Return whether a text begins with three lines of one number each, and lines of three after."""
    with opened(path) as file:
        lines = [file.readline().split() for _ in range(4)]
    numbers = all(part.isdigit() for line in lines for part in line)
    return numbers and [len(line) for line in lines] == [1, 1, 1, 3]


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces that end with a line."""
    with opened(path) as file:
        rest = b""
        while piece := file.read(CHUNK_BYTES):
            piece = rest + piece
            cut = piece.rfind(b"\n") + 1
            rest = piece[cut:]
            if cut:
                yield piece[:cut]
        if rest:
            yield rest


def _numbers(piece: bytes, path: Path, lines_before: int) -> np.ndarray:
    out = np.empty(len(piece) // 2 + 1, dtype=np.int64)
    count, bad = whole_numbers(np.frombuffer(piece, dtype=np.uint8), out)
    if bad >= 0:
        line = lines_before + piece.count(b"\n", 0, bad) + 1
        text = piece.split(b"\n")[line - lines_before - 1].decode(errors="replace").strip()
        raise InputError(f"{path}, line {line}: {text[:60]!r} is not of whole numbers; expected counts of words")
    return out[:count]


def _docword(path: Path) -> Documents:
    """Documents, words and nonzeros in three lines, then lines of document, word and count, from 1."""
    head: list[int] = []
    filled, lines, last = 0, 0, 0
    sizes, words, counts = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)
    for piece in _chunks(path):
        numbers = _numbers(piece, path, lines)
        if not head:
            if len(numbers) < 3:
                raise InputError(f"{path} is cut short: expected the numbers of documents, words and counts first")
            head, numbers = numbers[:3].tolist(), numbers[3:]
            sizes = np.zeros(head[0], dtype=np.int64)
            words, counts = np.empty(head[2], dtype=np.int32), np.empty(head[2], dtype=np.float32)
        rows = _triples(numbers, head, path, lines)
        end = filled + len(rows)
        if end > head[2]:
            raise InputError(f"{path} holds more than the {head[2]:,} counts that its third line says; check the file")
        if len(rows) and (rows[0, 0] < last or (np.diff(rows[:, 0]) < 0).any()):
            raise InputError(f"{path} is not sorted by document; sort its lines by their first number")
        sizes += np.bincount(rows[:, 0] - 1, minlength=head[0])
        words[filled:end], counts[filled:end] = rows[:, 1] - 1, rows[:, 2]
        filled, lines = end, lines + piece.count(b"\n")
        last = int(rows[-1, 0]) if len(rows) else last
    if not head or filled != head[2]:
        told = head[2] if head else 0
        raise InputError(f"{path} is cut short: {filled:,} counts, and its third line says {told:,}; copy it again")
    return _tidy(Documents(np.concatenate([[0], np.cumsum(sizes)]), words, counts, head[1]))


def _triples(numbers: np.ndarray, head: list[int], path: Path, lines: int) -> np.ndarray:
    if len(numbers) % 3:
        raise InputError(f"{path}, after line {lines}: a line does not hold three numbers (document, word, count)")
    rows = numbers.reshape(-1, 3)
    for place, name in enumerate(("document", "word")):
        wrong = (rows[:, place] < 1) | (rows[:, place] > head[place])
        if wrong.any():
            raise InputError(
                f"{path} names {name} {rows[wrong][0, place]}; expected 1 to {head[place]:,}, as its first lines say"
            )
    return rows


def _tidy(documents: Documents) -> Documents:
    """Return documents whose words are sorted and stand once each, no count zero; the same ones if they are."""
    indptr, indices = documents.indptr, documents.indices
    rising = np.ones(len(indices), dtype=bool)
    rising[1:] = indices[1:] > indices[:-1]
    rising[indptr[:-1][np.diff(indptr) > 0]] = True
    if rising.all() and (documents.counts > 0).all():
        return documents
    shape = (documents.n_documents, documents.n_words)
    return Documents.of(sparse.csr_matrix((documents.counts, indices, indptr), shape=shape))


def _ldac(path: Path) -> Documents:
    """Lines of the number of distinct words, then word:count, words from 0."""
    return _lines(path, first=0, leading="the number of distinct words")


def _libsvm(path: Path) -> Documents:
    """Lines of a label, then word:count, words from 1; labels are not kept."""
    return _lines(path, first=1, leading="a label")


def _lines(path: Path, *, first: int, leading: str) -> Documents:
    sizes, pairs = [], []
    number = 0
    for piece in _chunks(path):
        for line in piece.splitlines():
            number += 1
            parts = line.split(b"#")[0].split()
            if not parts:
                continue
            try:
                found = np.array([part.split(b":") for part in parts[1:]], dtype=np.float64).reshape(len(parts) - 1, 2)
                float(parts[0])
            except ValueError:
                raise InputError(
                    f"{path}, line {number}: expected {leading} and then word:count; got {line[:40]!r}"
                ) from None
            if (found != np.rint(found)).any() or (found < 0).any() or (len(found) and found[:, 0].min() < first):
                raise InputError(
                    f"{path}, line {number}: expected whole counts, 0 or more, of words numbered from {first}"
                )
            if first == 0 and float(parts[0]) != len(found):
                raise InputError(f"{path}, line {number}: says {int(float(parts[0]))} words and holds {len(found)}")
            sizes.append(len(found))
            pairs.append(found)
    if not pairs:
        raise InputError(f"{path} holds no document; expected lines of {leading} and then word:count")
    both = np.concatenate(pairs)
    words = both[:, 0].astype(np.int32) - first
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return _tidy(Documents(indptr, words, both[:, 1].astype(np.float32), int(words.max(initial=-1)) + 1))


def _market(path: Path) -> Documents:
    from scipy.io import mmread

    try:
        with opened(path) as file:
            return checked(sparse.csr_matrix(mmread(file)), path)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no Matrix Market file ({error}); check what it is") from None


def _npz(path: Path) -> Documents:
    try:
        return checked(sparse.load_npz(path).tocsr(), path)
    except (ValueError, OSError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no sparse matrix of scipy's save_npz ({error}); write it again") from None


def checked(matrix: Any, path: Path) -> Documents:
    """Return the documents of a matrix read from a file; what is no count is refused."""
    bad = (matrix.data < 0) | (matrix.data != np.rint(matrix.data))
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(matrix.indptr, place, side="right"))
        raise InputError(
            f"{path}, document {row} holds {matrix.data[place]:g} in column {matrix.indices[place] + 1}; expected "
            "whole counts of words, 0 or more"
        )
    return Documents.of(matrix)


def _h5ad(path: Path) -> Corpus:
    try:
        import anndata
    except ImportError:
        raise InputError(f'{path} needs the package anndata to be read: pip install "mixmem[cells]"') from None
    table = anndata.read_h5ad(path)
    found = checked(sparse.csr_matrix(table.X), path)
    columns = {str(name): table.obs[name].to_numpy() for name in table.obs.columns}
    return Corpus(found, [str(name) for name in table.var_names], [str(name) for name in table.obs_names], columns)


def _tenx(folder: Path) -> Corpus:
    """A 10x folder: genes in rows, cells in columns, so it is turned."""
    matrix = _one_of(folder, "matrix.mtx")
    assert matrix is not None
    genes, cells = _one_of(folder, "features.tsv", "genes.tsv"), _one_of(folder, "barcodes.tsv")
    found = _market(matrix)
    shape = (found.n_documents, found.n_words)
    turned = sparse.csr_matrix((found.counts, found.indices, found.indptr), shape=shape).T.tocsr()
    rows = _fields(genes)
    names = [row[1] if len(row) > 1 else row[0] for row in rows] if rows else [f"gene_{g + 1}" for g in range(shape[0])]
    if len(names) != shape[0]:
        raise InputError(
            f"{genes} names {len(names):,} genes, and {matrix} has {shape[0]:,}; expected files of one run"
        )
    ids = [row[0] for row in _fields(cells)] or None
    return from_columns(_unique(names), turned, ids=ids)


def _fields(path: Path | None) -> list[list[str]]:
    if path is None:
        return []
    return [line.split("\t") for line in as_utf8(read_bytes(path), str(path)).decode().splitlines() if line.strip()]


def _unique(names: list[str]) -> list[str]:
    """Return names with a number appended where one comes again."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return out


def _one_of(folder: Path, *names: str) -> Path | None:
    """Return the first of some files, or of their gzipped forms, that a folder has."""
    candidates = [folder / f"{name}{end}" for name in names for end in ("", ".gz")]
    return next((path for path in candidates if path.is_file()), None)


def _named(found: Documents, path: Path, vocabulary: Path | None) -> Corpus:
    """Return the corpus with its words' names: from the file given, or one beside it."""
    file = vocabulary or _beside(path)
    if file is None:
        return Corpus(found, [f"word_{w + 1}" for w in range(found.n_words)])
    words = [row[0].strip() for row in _fields(file)]
    if len(words) < found.n_words:
        raise InputError(
            f"{file} has {len(words):,} words, and {path} counts {found.n_words:,}; expected one line per word: name "
            "the right file with --vocab"
        )
    return Corpus(replace(found, n_words=len(words)), words)


def _beside(path: Path) -> Path | None:
    name = path.name.removesuffix(".gz")
    if name.lower().startswith("docword"):
        return _one_of(path.parent, "vocab" + name[len("docword") :], *VOCABULARIES)
    return _one_of(path.parent, *VOCABULARIES)


COUNTS: dict[str, Callable[[Path], Documents | Corpus]] = {
    ".dat": _ldac,
    ".ldac": _ldac,
    ".mtx": _market,
    ".svm": _libsvm,
    ".libsvm": _libsvm,
    ".svmlight": _libsvm,
    ".npz": _npz,
    ".h5ad": _h5ad,
}
TABLES = (".csv", ".tsv", ".parquet")
