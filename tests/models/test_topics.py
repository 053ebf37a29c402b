from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mixmem import (
    GDLM,
    DocumentPieces,
    FitWarning,
    InputError,
    TopicModel,
    align_components,
    load,
    simulate_documents,
    simulate_gdlm,
)
from mixmem.data.documents import Documents
from mixmem.results.topic_report import looks_transposed

DRAWN = simulate_documents(600, 200, 4, length=60, random_state=0)
WORDS = [f"w{w}" for w in range(200)]


@cache
def fitted():
    return TopicModel(4, random_state=0).fit(DRAWN.counts, words=WORDS)


def distance(model, truth=DRAWN.components):
    order = align_components(truth.T, model.components_.T)
    return np.abs(model.components_[order] - truth).sum(axis=1).mean()


OLD = {"check_sample_weight_equivalence_on_sparse_data": "takes no sample weights"}


@pytest.mark.filterwarnings("ignore::mixmem.FitWarning")
@parametrize_with_checks(
    [TopicModel(2, random_state=0)],
    expected_failed_checks=lambda estimator: OLD if sklearn.__version__.startswith("1.6.") else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("refine", ["cvb0", pytest.param("gibbs", marks=pytest.mark.slow), "em", None])
@pytest.mark.parametrize("start", ["moments", "online"])
def test_topics_are_found_by_every_way(start, refine):
    model = TopicModel(4, start=start, refine=refine, random_state=0).fit(DRAWN.counts)
    assert distance(model) < 0.25
    assert model.report_.start == start
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    np.testing.assert_allclose(model.transform(DRAWN.counts).sum(axis=1), 1)


def test_alpha_and_beta_are_learned():
    model = fitted()
    assert model.alpha0_ == pytest.approx(0.4, rel=0.25)
    assert model.beta_ == pytest.approx(0.05, rel=0.25)
    assert (np.diff(model.topic_prevalence_) <= 0).all()
    assert TopicModel(4, alpha0=2.0, beta=0.3, random_state=0).fit(DRAWN.counts).alpha0_ == pytest.approx(2.0)


@pytest.mark.parametrize("refine", ["cvb0", "gibbs", "em"])
def test_threads_do_not_move_a_bit(refine, monkeypatch):
    """With little work per thread, so that threads are used at all."""
    monkeypatch.setattr("mixmem.engine.local._GRAIN", 1)
    monkeypatch.setattr("mixmem.data.documents.BATCHES", 4)
    monkeypatch.setattr("mixmem.refinement.topics.GIBBS_SWEEPS", 10)
    monkeypatch.setattr("mixmem.refinement.topics.GIBBS_WARM_UP", 5)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "4")
    counts = DRAWN.counts[:200]
    one, two, four = (
        TopicModel(4, refine=refine, max_iter=5, random_state=0, n_jobs=jobs).fit(counts) for jobs in (1, 2, 4)
    )
    assert one.components_.tobytes() == two.components_.tobytes() == four.components_.tobytes()
    assert one.transform(counts).tobytes() == four.transform(counts).tobytes()


def test_more_documents_than_can_be_held(monkeypatch):
    monkeypatch.setattr("mixmem.refinement.topics.HELD_BYTES", 1000)
    monkeypatch.setattr("mixmem.refinement.topics.SAMPLE_BYTES", 200_000)
    monkeypatch.setattr("mixmem.data.documents.BATCHES", 4)
    monkeypatch.setattr("mixmem.engine.local._GRAIN", 1)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    one = TopicModel(4, random_state=0, n_jobs=1).fit(DRAWN.counts)
    assert distance(one) < 0.2
    assert one.components_.tobytes() == TopicModel(4, random_state=0, n_jobs=3).fit(DRAWN.counts).components_.tobytes()


@pytest.fixture
def pieces(tmp_path):
    """The documents in three files, cut anywhere."""
    n = DRAWN.counts.shape[0]
    for name, rows in zip("abc", (slice(0, 7), slice(7, n // 2), slice(n // 2, n)), strict=True):
        sparse.save_npz(tmp_path / f"{name}.npz", DRAWN.counts[rows])
    return tmp_path


@pytest.mark.parametrize("held", [10**9, 1000])
def test_documents_in_files_give_the_bits_of_documents_in_memory(held, pieces, monkeypatch):
    monkeypatch.setattr("mixmem.refinement.topics.HELD_BYTES", held)
    monkeypatch.setattr("mixmem.refinement.topics.SAMPLE_BYTES", 200_000)
    for module in ("documents", "document_pieces"):
        monkeypatch.setattr(f"mixmem.data.{module}.DOCUMENT_BLOCK", 100)
    whole = TopicModel(4, random_state=0).fit(DRAWN.counts)
    found = TopicModel(4, random_state=0).fit(DocumentPieces(str(pieces / "*.npz")))
    assert whole.components_.tobytes() == found.components_.tobytes()
    assert whole.alpha_.tobytes() == found.alpha_.tobytes()
    assert np.array_equal(whole.topic_prevalence_, found.topic_prevalence_)
    assert found.report_.documents == DRAWN.counts.shape[0]
    assert found.transform(DRAWN.counts[:5]).shape == (5, 4)


def test_pieces_that_do_not_fit_together_are_refused(pieces, monkeypatch):
    monkeypatch.setattr("mixmem.refinement.topics.HELD_BYTES", 1000)
    with pytest.raises(InputError, match=r"refine='em' holds the shares .* in 3 files; expected refine='cvb0'"):
        TopicModel(4, refine="em").fit(DocumentPieces(pieces))
    sparse.save_npz(pieces / "d.npz", sparse.csr_matrix(np.ones((3, 7))))
    with pytest.raises(InputError, match=r"d.npz has other words than .*a.npz \(7 and .*by one vocabulary"):
        DocumentPieces(pieces)
    with pytest.raises(InputError, match="names no files; expected files of counts"):
        DocumentPieces(pieces / "nothing-*.npz")


def test_score_completes_documents():
    model = fitted()
    truth = model._changed(DRAWN.components, DRAWN.alpha, np.full(4, 0.25))
    assert model.score(DRAWN.counts) == pytest.approx(truth.score(DRAWN.counts), abs=0.03)
    assert model.score(DRAWN.counts) == model.score(DRAWN.counts)
    assert model.perplexity(DRAWN.counts) == pytest.approx(np.exp(-model.score(DRAWN.counts)))
    assert TopicModel(1, random_state=0).fit(DRAWN.counts).score(DRAWN.counts) < model.score(DRAWN.counts) - 0.5


@pytest.mark.parametrize("by", ["probability", "lift", "relevance", "frex"])
def test_top_words(by):
    table = fitted().top_words(5, by=by)
    assert table.columns.tolist() == ["topic", "rank", "word", "probability", "lift", "score"]
    assert len(table) == 20
    assert set(table["word"]) <= set(WORDS)
    assert (table.groupby("topic")["score"].diff().dropna() <= 1e-12).all()
    first = table[table["topic"] == 1].iloc[0]
    assert first["probability"] == fitted().components_[0, WORDS.index(first["word"])]


def test_coherence_of_words_that_always_and_never_meet():
    counts = sparse.csr_matrix(np.array([[5, 5, 0, 0], [6, 4, 0, 0], [0, 0, 5, 6], [0, 0, 4, 5]] * 5))
    model = TopicModel(2, random_state=0).fit(counts)
    np.testing.assert_allclose(model.coherence(n=2), 1.0)
    assert (model.coherence(n=4) < model.coherence(n=2)).all()
    np.testing.assert_allclose(model.coherence(measure="u_mass", n=2), np.log(11 / 10))
    with pytest.raises(InputError, match="measure must be one of"):
        model.coherence(measure="other")


def test_merged_and_aligned_topics():
    model = fitted()
    merged = model.merge([[1, 2]])
    assert merged.components_.shape == (3, 200)
    assert merged.alpha0_ == pytest.approx(model.alpha0_)
    assert merged.topic_prevalence_.sum() == pytest.approx(1)
    with pytest.raises(InputError, match="each once at most"):
        model.merge([[1, 2], [2, 3]])
    turned = model._changed(model.components_[::-1], model.alpha_[::-1], model.topic_prevalence_[::-1])
    assert (turned.align_to(model).components_ == model.components_).all()
    assert np.allclose(np.diag(model.topic_similarity()), 1)


def test_files_and_copies(tmp_path):
    model = fitted()
    model.save(tmp_path / "m.mixmem")
    for again in (
        TopicModel.load(tmp_path / "m.mixmem"),
        copy.deepcopy(model),
    ):
        assert type(again) is TopicModel
        assert again.transform(DRAWN.counts).tobytes() == model.transform(DRAWN.counts).tobytes()
        assert again.words_ == WORDS
        assert again.report_.start == model.report_.start
        with pytest.raises(InputError, match="does not hold the documents"):
            again.coherence()
        assert len(again.coherence(DRAWN.counts)) == 4
    with pytest.raises(InputError, match="holds topics of documents, not a model that mixmem fit wrote"):
        load(tmp_path / "m.mixmem")
    table = simulate_gdlm(100, 9, 2, random_state=0).frame
    GDLM(2, alpha0=1.0, refine=None, random_state=0).fit(table).save(tmp_path / "g.mixmem")
    with pytest.raises(InputError, match="holds no topic model"):
        TopicModel.load(tmp_path / "g.mixmem")


def test_streams_of_documents():
    model = TopicModel(4, random_state=0)
    for _ in range(6):
        for at in range(0, 600, 100):
            model.partial_fit(DRAWN.counts[at : at + 100], words=WORDS)
    assert distance(model) < 0.4
    assert model.words_ == WORDS
    assert model.word_shares_.sum() == pytest.approx(1)
    on = TopicModel(4, random_state=0).fit(DRAWN.counts)
    assert distance(on.partial_fit(DRAWN.counts[:100])) < 0.3


def test_pipelines_frames_and_searches():
    texts = ["apple pear apple plum", "goal match goal team", "pear plum apple", "match team goal goal"] * 10
    pipe = make_pipeline(CountVectorizer(), TopicModel(2, random_state=0)).fit(texts)
    own = pipe.transform(texts).argmax(axis=1)
    assert (own.reshape(-1, 4) == own[:4]).all()
    assert own[0] != own[1]
    part = DRAWN.counts[:300]
    frame = pd.DataFrame(part.toarray(), columns=WORDS)
    model = TopicModel(4, random_state=0).set_output(transform="pandas").fit(frame)
    assert model.transform(frame).columns.tolist() == ["topic_1", "topic_2", "topic_3", "topic_4"]
    assert model.words_ == WORDS
    found = GridSearchCV(TopicModel(random_state=0), {"n_components": [1, 4]}, cv=2).fit(part)
    assert found.best_params_ == {"n_components": 4}


def test_seed_words_pull_topics():
    top = fitted().top_words(3).set_index("topic")["word"]
    asked = {1: top[4].tolist(), 2: top[1].tolist()}
    model = TopicModel(4, seed_words=asked, random_state=0).fit(DRAWN.counts, words=WORDS)
    got = model.top_words(10).set_index("topic")["word"]
    assert set(asked[1]) <= set(got[1])
    assert set(asked[2]) <= set(got[2])
    with pytest.raises(InputError, match=r"seed word 'w2000' is not in the vocabulary; did you mean"):
        TopicModel(4, seed_words=[["w2000"]]).fit(DRAWN.counts, words=WORDS)
    with pytest.raises(InputError, match="names topic 9"):
        TopicModel(4, seed_words={9: ["w1"]}).fit(DRAWN.counts, words=WORDS)


def test_empty_and_short_documents_are_kept_and_counted():
    counts = sparse.vstack([DRAWN.counts[:300], np.zeros((2, 200)), np.eye(200)[:3]]).tocsr()
    model = TopicModel(4, random_state=0).fit(counts)
    assert (model.report_.empty_documents, model.report_.short_documents) == (2, 5)
    assert [notice.code for notice in model.report_.warnings if notice.code == "short-documents"]
    np.testing.assert_allclose(model.transform(counts)[300], model.alpha_ / model.alpha_.sum())


def test_new_documents_that_are_transposed_are_refused():
    model = TopicModel(2, random_state=0).fit(DRAWN.counts[:50])
    with pytest.raises(InputError, match="looks transposed; expected one row per document and one column per word"):
        model.transform(DRAWN.counts[:60].T)


def test_texts_are_not_taken_for_transposed():
    turned = Documents.of(DRAWN.counts.T)
    assert looks_transposed(turned)
    texts = replace(turned, of_texts=True)
    assert not looks_transposed(texts)
    assert not looks_transposed(texts.take(np.arange(150)))


def test_doubtful_matrices_are_said():
    with pytest.warns(FitWarning, match="looks transposed"):
        TopicModel(2, random_state=0).fit(DRAWN.counts.T)
    with pytest.warns(FitWarning, match="some counts are fractional"):
        TopicModel(2, random_state=0).fit(DRAWN.counts * 0.37)
    with pytest.warns(FitWarning, match="nearly the same|nearly empty"):
        TopicModel(6, random_state=0).fit(np.tile([[30, 20, 10, 5, 3, 2, 9]], (40, 1)))
    with pytest.warns(FitWarning, match="no document has three tokens"):
        TopicModel(2, random_state=0).fit(np.eye(5))


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        (["some text", "more"], {}, "takes counts of words, and got texts"),
        ([[1, 2], [3, -1]], {}, "document 2 holds -1 in column 2"),
        (np.zeros((3, 4)), {}, "none of the 3 documents holds a word"),
        ([[1, 2, 0], [3, 1, 0]], {"n_components": 3}, "documents hold 2"),
        ([[1, 2], [3, 1]], {"start": "far"}, "start must be one of"),
        ([[1, 2], [3, 1]], {"refine": "vb"}, "refine must be"),
        ([[1, 2], [3, 1]], {"beta": 0}, "beta must be"),
        ([[1.5, 2], [3, 1]], {"refine": "gibbs"}, "some counts are fractional"),
    ],
)
def test_bad_input_is_refused(counts, options, message):
    with pytest.raises(InputError, match=message):
        TopicModel(**{"n_components": 2, "random_state": 0, **options}).fit(counts)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="features"):
        fitted().transform(DRAWN.counts[:, :50])
    with pytest.raises(InputError, match="expected one for each of the 200 columns"):
        TopicModel(2).fit(DRAWN.counts, words=["a"])
    with pytest.raises(InputError, match="words; expected the model's 200"):
        fitted().transform(Documents.of(DRAWN.counts[:, :50]))


def test_pieces_that_are_no_files_of_counts_are_refused(tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(InputError, match=r"bad.npz is no sparse matrix of scipy's save_npz .*; write it again"):
        DocumentPieces(tmp_path / "bad.npz")
    with pytest.raises(InputError, match="got no files; expected names of files of counts"):
        DocumentPieces([])
    with pytest.raises(InputError, match="got a ndarray; expected names of files of counts"):
        DocumentPieces([np.zeros((2, 2))])
