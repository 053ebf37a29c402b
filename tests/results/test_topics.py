"""Intervals of topics, groups of documents, and the page's escaping."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem import InputError, TopicModel, align_components, simulate_documents
from mixmem.results.topic_groups import by_groups, group_names


@pytest.fixture(scope="module")
def drawn():
    return simulate_documents(800, 120, 4, length=100, beta=0.2, random_state=1)


@pytest.fixture(scope="module")
def model(drawn):
    return TopicModel(4, random_state=0).fit(drawn.counts)


def test_intervals_hold_the_truth(drawn, model):
    """95 % intervals of words with 20 tokens or more: at least 88 %, where chance of this many gives 95 +- 3."""
    table = model.intervals()
    assert table.columns.tolist() == ["topic", "word", "estimate", "standard_error", "lower", "upper"]
    frequent = table["estimate"].to_numpy() * model.report_.tokens / 4 > 20
    truth = drawn.components[align_components(model.components_.T, drawn.components.T)].ravel()
    held = ((table["lower"] <= truth) & (truth <= table["upper"]))[frequent]
    assert held.mean() > 0.88
    narrow = model.intervals(level=0.5)
    assert (narrow["upper"] <= table["upper"]).all()


def test_differences_are_against_the_nearest_other_topic(drawn, model):
    table = model.differences()
    row = table[(table["topic"] == 2)].iloc[0]
    w = model.words_.index(row["word"])
    logs = np.log2(model.components_[:, w])
    others = [h for h in range(4) if h != 1]
    nearest = min(others, key=lambda h: abs(logs[1] - logs[h]))
    assert row["versus"] == nearest + 1
    assert row["log2_fold_change"] == pytest.approx(logs[1] - logs[nearest])
    with pytest.raises(InputError, match="differs from no other"):
        TopicModel(1, random_state=0).fit(drawn.counts).differences()
    with pytest.raises(InputError, match="level is the share"):
        model.intervals(level=2)


def test_groups_of_documents():
    memberships = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    table = by_groups(memberships, np.array(["b", "a", "b"], dtype=object), "kind")
    assert table["kind"].to_list() == ["a", "b"]
    assert table["topic_1"].to_list() == [0.0, 1.0]
    days = np.array([f"{2000 + y}-03-{d:02d}" for y in range(9) for d in range(1, 20)])
    assert set(group_names(days, "day")) == {str(2000 + y) for y in range(9)}
    months = np.array([f"2001-{m:02d}-{d:02d}" for m in range(1, 13) for d in range(1, 20)])
    assert "2001-07" in group_names(months, "day")
    classes = group_names(np.linspace(0, 1, 500), "number")
    assert len(set(classes)) == 10
    with pytest.raises(InputError, match="neither dates nor numbers"):
        group_names(np.array([f"t{at}" for at in range(100)]), "name")
