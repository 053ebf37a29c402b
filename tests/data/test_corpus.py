"""Readers of documents: every format gives the same counts, in chunks of any size; bad files are refused."""

from __future__ import annotations

import gzip

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from scipy.io import mmwrite

from mixmem import InputError, simulate_documents
from mixmem.data import corpus_files
from mixmem.data.corpus import Corpus, limited, stop_word_list
from mixmem.data.corpus_files import read_corpus
from mixmem.data.documents import Documents

COUNTS = simulate_documents(20, 12, 3, length=15, random_state=0).counts
WORDS = [f"w{w}" for w in range(12)]


def dense(corpus):
    found = corpus.documents
    shape = (found.n_documents, found.n_words)
    return sparse.csr_matrix((found.counts, found.indices, found.indptr), shape=shape).toarray()


def pairs(row, first):
    return " ".join(f"{w + first}:{int(row[w])}" for w in np.flatnonzero(row))


def write(folder, name):
    """Write the counts in a format and return its path."""
    path, rows = folder / name, COUNTS.toarray()
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    if name.startswith("docword"):
        lines = [f"{d + 1} {w + 1} {int(rows[d, w])}" for d, w in np.argwhere(rows)]
        text = "\n".join(["20", "12", str(len(lines)), *lines, ""])
    elif name.startswith("c.dat"):
        text = "\n".join(f"{(row > 0).sum()} {pairs(row, 0)}" for row in rows)
    elif name.startswith("c.svm"):
        text = "\n".join(f"1 {pairs(row, 1)} # note" for row in rows)
    elif name == "c.npz":
        sparse.save_npz(path, COUNTS)
        return path
    elif name == "c.mtx":
        mmwrite(path, COUNTS.astype(int))
        return path
    elif name == "c.csv":
        pl.DataFrame({"id": [f"d{d}" for d in range(20)], **{w: rows[:, j].astype(int) for j, w in enumerate(WORDS)}}
        ).write_csv(path)  # fmt: skip
        return path
    elif name == "c.parquet":
        lists = [[w for j, w in enumerate(WORDS) for _ in range(int(row[j]))] for row in rows]
        pl.DataFrame({"tokens": lists, "label": ["x", "y"] * 10}).write_parquet(path)
        return path
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("chunk", [40, 1 << 24])
@pytest.mark.parametrize(
    "name", ["docword.c.txt", "docword.c.txt.gz", "c.dat", "c.dat.gz", "c.svm", "c.npz", "c.mtx", "c.csv", "c.parquet"]
)
def test_every_format_gives_the_same_counts(name, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_files, "CHUNK_BYTES", chunk)
    path = write(tmp_path, name)
    found = read_corpus(path, column="tokens" if name == "c.parquet" else None)
    order = [found.words.index(word) for word in WORDS if word in found.words]
    seen = [j for j, word in enumerate(WORDS) if word in found.words]
    np.testing.assert_array_equal(dense(found)[:, order], COUNTS.toarray()[:, seen])
    if name == "c.csv":
        assert read_corpus(path, row_id="id").ids[:2] == ["d0", "d1"]
    if name == "c.parquet":
        assert found.column("label").tolist()[:2] == ["x", "y"]


def test_texts_in_folders_lines_and_columns(tmp_path):
    texts = ["The cat and the dog", "Cat, cat!", ""]
    (tmp_path / "pets").mkdir()
    for at, text in enumerate(texts):
        (tmp_path / "pets" / f"{at}.txt").write_text(text)
    (tmp_path / "lines.txt").write_text("\n".join(texts[:2]) + "\n\n")
    pl.DataFrame({"text": texts, "year": [1, 2, 3]}).write_csv(tmp_path / "t.csv")
    folder, lines, table = read_corpus(tmp_path), read_corpus(tmp_path / "lines.txt"), read_corpus(tmp_path / "t.csv")
    assert lines.words == table.words == ["and", "cat", "dog", "the"]
    np.testing.assert_array_equal(dense(lines), [[1, 1, 1, 2], [0, 2, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(dense(table), dense(lines))
    assert table.column("year").tolist() == [1, 2, 3]
    assert folder.ids == ["lines.txt", "pets/0.txt", "pets/1.txt", "pets/2.txt"]
    assert folder.column("folder").tolist() == ["", "pets", "pets", "pets"]
    assert table.texts[1] == "Cat, cat!"
    assert all(corpus.documents.of_texts for corpus in (folder, limited(lines), table.without_empty()))


def test_ten_x_folders_are_turned(tmp_path):
    mmwrite(tmp_path / "matrix.mtx", COUNTS.T.astype(int))
    (tmp_path / "features.tsv").write_text("\n".join(f"ENS{w}\tgene{w % 11}" for w in range(12)))
    (tmp_path / "barcodes.tsv").write_text("\n".join(f"cell{d}" for d in range(20)))
    found = read_corpus(tmp_path)
    np.testing.assert_array_equal(dense(found), COUNTS.toarray())
    assert found.words[0] == "gene0"
    assert found.words[-1] == "gene0-2"
    assert found.ids[-1] == "cell19"
    (tmp_path / "features.tsv").write_text("a\nb")
    with pytest.raises(InputError, match="names 2 genes"):
        read_corpus(tmp_path)


def test_annotated_data(tmp_path):
    anndata = pytest.importorskip("anndata")
    import pandas as pd

    names = pd.Index([f"c{d}" for d in range(20)])
    table = anndata.AnnData(
        COUNTS.astype(np.float32), pd.DataFrame({"tissue": ["a", "b"] * 10}, index=names), pd.DataFrame(index=WORDS)
    )
    table.write_h5ad(tmp_path / "c.h5ad")
    found = read_corpus(tmp_path / "c.h5ad")
    np.testing.assert_array_equal(dense(found), COUNTS.toarray())
    assert (found.words, found.ids[1], found.column("tissue")[1]) == (WORDS, "c1", "b")


def test_vocabularies_are_limited():
    counts = sparse.csr_matrix([[1, 1, 1, 0, 0], [1, 3, 0, 0, 0], [1, 0, 0, 4, 0]])
    corpus = Corpus(Documents.of(counts), ["The", "dog", "rare", "cat", "never"])
    assert limited(corpus).words == ["The", "dog", "rare", "cat"]
    assert limited(corpus, min_df=2).words == ["The", "dog"]
    assert limited(corpus, max_df=0.9).words == ["dog", "rare", "cat"]
    assert limited(corpus, stop_words=stop_word_list("english")).words == ["dog", "rare", "cat"]
    two = limited(corpus, max_words=2, stop_words={"the"})
    assert two.words == ["dog", "cat"]
    np.testing.assert_array_equal(dense(two), [[1, 0], [3, 0], [0, 4]])
    with pytest.raises(InputError, match="no word is left of 4"):
        limited(corpus, stop_words={"the", "dog", "rare", "cat"})


def test_stop_words_of_languages():
    assert stop_word_list("none") == frozenset()
    pytest.importorskip("stop_words")
    assert "und" in stop_word_list("german")
    assert "les" in stop_word_list("fr")
    with pytest.raises(InputError, match="no stop words of 'klingon'"):
        stop_word_list("klingon")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("docword.x.txt", "2\n3\n1\n1 1 -2\n", r"line 4: '1 1 -2' is not of whole numbers"),
        ("docword.x.txt", "2\n3\n2\n1 1 2\n", "cut short: 1 counts, and its third line says 2"),
        ("docword.x.txt", "2\n3\n1\n1 1 2\n1 2 2\n", "more than the 1 counts"),
        ("docword.x.txt", "2\n3\n1\n1 9 2\n", "names word 9; expected 1 to 3"),
        ("docword.x.txt", "2\n3\n2\n2 1 2\n1 1 1\n", "not sorted by document"),
        ("docword.x.txt", "", "cut short"),
        ("c.dat", "2 0:1 1:1\n3 0:1\n", "line 2: says 3 words and holds 1"),
        ("c.dat", "1 0:1.5\n", "line 1: expected whole counts"),
        ("c.dat", "1 zero\n", "line 1: expected the number of distinct words and then word:count"),
        ("c.svm", "1 0:3\n", "words numbered from 1"),
        ("c.svm", "", "holds no document"),
        ("c.mtx", "no matrix", "is no Matrix Market file"),
        ("c.npz", "no matrix", "is no sparse matrix"),
        ("c.csv", "a,b\n1,-2\n", "row 1: column 'b' holds -2"),
        ("c.csv", "a,b\nx,y\n", "has no column 'text' and none of counts"),
        ("c.xyz", "", r"suffix '.xyz'; expected docword"),
        ("c.txt", "a\n!\n", "holds no words"),
    ],
)
def test_bad_files_are_refused(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_corpus(tmp_path / name)


def test_names_that_do_not_fit_are_refused(tmp_path):
    path = write(tmp_path, "c.dat")
    (tmp_path / "few.txt").write_text("a\nb")
    with pytest.raises(InputError, match=r"has 2 words, and .* counts 12"):
        read_corpus(path, vocabulary=tmp_path / "few.txt")
    with pytest.raises(InputError, match="does not exist"):
        read_corpus(tmp_path / "none.dat")
    with pytest.raises(InputError, match="no column 'boddy'"):
        read_corpus(write(tmp_path, "c.csv"), column="boddy")
    with pytest.raises(InputError, match="give --labels FILE"):
        read_corpus(path).column("label")
    (tmp_path / "void").mkdir()
    with pytest.raises(InputError, match=r"holds no \.txt file"):
        read_corpus(tmp_path / "void")
