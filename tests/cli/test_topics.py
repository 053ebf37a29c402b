"""`mixmem topics` from a line to its files."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from mixmem import TopicModel, simulate_documents
from mixmem.cli import main

FILES = {
    "report.html", "topics.csv", "top_words.csv", "memberships.csv", "differences.csv", "model.mixmem", "topics.json",
}  # fmt: skip


@pytest.fixture
def table(tmp_path):
    """A table of texts with a label that goes with the topics."""
    drawn = simulate_documents(120, 40, 2, length=30, alpha=0.05, random_state=0)
    texts = [" ".join(f"word{w}" for w in np.repeat(np.arange(40), row.astype(int))) for row in drawn.counts.toarray()]
    own = drawn.memberships.argmax(axis=1)
    path = tmp_path / "texts.csv"
    days = [f"{2000 + d % 9}-01-{1 + d % 28:02d}" for d in range(120)]
    pl.DataFrame({"name": [f"d{d}" for d in range(120)], "text": texts, "kind": own, "day": days}).write_csv(path)
    return path


def test_files_of_a_fit(table, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["topics", str(table), "-k", "2", "--out", str(out), "--id", "name", "--by", "kind"]) == 0
    assert {path.name for path in out.iterdir()} == FILES | {"topics_by.csv"}
    said = capsys.readouterr().out
    assert "2 topics in 120 documents of 24 different words" in said
    assert "  topic    share of tokens  words that stand for it" in said
    assert f"{out / 'report.html'}" in said
    assert "(open this)" in said
    topics, memberships = pl.read_csv(out / "topics.csv"), pl.read_csv(out / "memberships.csv")
    assert topics.columns == ["word", "topic_1", "topic_2"]
    assert topics["topic_1"].sum() == pytest.approx(1)
    assert memberships["document"][0] == "d0"
    by = pl.read_csv(out / "topics_by.csv")
    assert by.columns == ["kind", "documents", "topic_1", "topic_2"]
    assert abs(by["topic_1"][0] - by["topic_1"][1]) > 0.8
    model = TopicModel.load(out / "model.mixmem")
    assert model.words_ == topics["word"].to_list()
    assert json.loads((out / "topics.json").read_text())["report"]["documents"] == 120
    page = (out / "report.html").read_text()
    assert "Topics by kind" in page
    assert "http://www.w3.org/2000/svg" in page
    assert page.count("http") == 1  # nothing is loaded from elsewhere
    assert set(pl.read_csv(out / "top_words.csv")["by"]) == {"probability", "relevance", "frex"}


def test_texts_without_words_are_left_out(table, tmp_path, capsys):
    frame, out = pl.read_csv(table), tmp_path / "out"
    texts = [None if d in (0, 3) else "of the" if d == 4 else text for d, text in enumerate(frame["text"])]
    frame.with_columns(text=pl.Series(texts)).write_csv(table)
    assert main(["topics", str(table), "-k", "2", "--out", str(out), "--by", "kind"]) == 0
    said = capsys.readouterr().out
    assert "3 of 120 texts hold no words, or none that are kept, and are left out; nothing has to be done" in said
    assert pl.read_csv(out / "memberships.csv")["document"].to_list() == [2, 3, *range(6, 121)]
    assert pl.read_csv(out / "topics_by.csv")["documents"].sum() == 117


def test_a_number_of_topics_is_chosen(table, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["topics", str(table), "-k", "1,2,5", "--out", str(out)]) == 0
    assert "2 topics is the largest number tried that holds" in capsys.readouterr().out
    assert pl.read_csv(out / "choose_k.csv")["n_components"].to_list() == [1, 2, 5]
    assert len(pl.read_csv(out / "topics.csv").columns) == 3
    assert "Number of topics" in (out / "report.html").read_text()


def test_a_run_leaves_no_files_of_an_earlier_one(table, tmp_path):
    out = tmp_path / "out"
    for more in (["--by", "day"], []):
        assert main(["topics", str(table), "-k", "2", "--out", str(out), "--quiet", *more]) == 0
    assert {path.name for path in out.iterdir()} == FILES


def test_options_reach_the_model(table, tmp_path, monkeypatch):
    seen = {}
    monkeypatch.setattr(TopicModel, "fit", lambda self, X, **_: seen.update(self.get_params()) or 1 / 0)
    line = ["topics", str(table), "-k", "3", "--out", str(tmp_path / "o"), "--alpha0", "2", "--beta", "0.1", "--start"]
    line += ["online", "--refine", "none", "--rounds", "7", "--seed", "5", "--seed-words", "1=word1,word2"]
    assert main(line) == 1
    assert not (tmp_path / "o").exists()
    assert (seen["n_components"], seen["alpha0"], seen["beta"], seen["start"]) == (3, 2.0, 0.1, "online")
    assert (seen["refine"], seen["max_iter"], seen["random_state"]) == (None, 7, 5)
    assert seen["seed_words"] == {1: ["word1", "word2"]}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--by", "knd"], "did you mean 'kind'"),
        (["--seed-words", "goal"], "--seed-words is TOPIC=WORDS"),
        (["--refine", "vb"], "refine must be"),
        (["-k", "two"], "-k is a number of topics"),
        (["--min-df", "1000"], "no word is left"),
        (["-k", "4000"], "documents hold 24"),
        (["--column", "bdy"], "has no column 'bdy'"),
        (["--stop-words", "klingon"], "stop words of 'klingon'"),
    ],
)
def test_bad_usage_is_refused(table, tmp_path, capsys, more, message):
    assert main(["topics", str(table), "-k", "2", "--out", str(tmp_path / "o"), *more]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "o").exists()


def test_counts_of_cells_are_maximised(tmp_path, capsys):
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(12), 3)
    rows = np.array([rng.multinomial(20_000, x @ truth) for x in rng.dirichlet(np.full(3, 0.3), 60)])
    path = tmp_path / "cells.csv"
    pl.DataFrame({"tissue": ["a", "b", "c"] * 20, **{f"g{g}": rows[:, g] for g in range(12)}}).write_csv(path)
    out = tmp_path / "out"
    assert main(["topics", str(path), "-k", "3", "--out", str(out), "--by", "tissue", "--quiet"]) == 0
    found = json.loads((out / "topics.json").read_text())
    assert found["report"]["refine"] == "em"
    table = pl.read_csv(out / "differences.csv")
    assert table.columns[:5] == ["topic", "word", "probability", "versus", "log2_fold_change"]
    assert (table["lower"] <= table["log2_fold_change"]).all()
