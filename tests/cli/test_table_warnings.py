"""What is said of a table's rows before anyone reads components into them."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest

from mixmem import encode, simulate_gdlm
from mixmem.cli.facts import Facts
from mixmem.cli.table_warnings import table_warnings

RNG = np.random.default_rng(0)
ANSWERS = simulate_gdlm(200, 20, 3, n_levels=5, random_state=0).codes + 1


def said(table):
    return " ".join(table_warnings(Facts.of(encode(table))))


@pytest.mark.parametrize(
    "table",
    [
        ANSWERS,
        RNG.integers(0, 2, (2000, 6)),  # few different rows are possible
        pd.DataFrame(ANSWERS).astype(float).mask(RNG.random(ANSWERS.shape) < 0.3),
        pd.DataFrame(RNG.standard_normal((100, 5))),
    ],
)
def test_plain_tables_have_nothing_said_of_their_rows(table):
    assert "repeat another" not in said(table)
    assert "add up to" not in said(table)
    assert "same number in every column" not in said(table)


def test_cells_of_copies_hold_no_numbers():
    copies = pd.DataFrame(RNG.integers(0, 3, (60, 8))).astype(float).mask(RNG.random((60, 8)) < 0.1)
    with_gaps = encode(copies, kinds=dict.fromkeys(copies.columns, "dosage"))
    assert table_warnings(Facts.of(with_gaps)) == []


def test_rows_that_were_copied():
    assert "800 of 1,000 rows repeat another cell by cell" in said(np.tile(ANSWERS, (5, 1)))
    mixed = pd.DataFrame(RNG.standard_normal((100, 8))).mask(RNG.random((100, 8)) < 0.2).assign(c=list("abcde") * 20)
    assert "100 of 200 rows repeat another cell by cell" in said(pd.concat([mixed, mixed], ignore_index=True))


def test_answers_given_without_reading():
    table = ANSWERS.copy()
    table[:30] = RNG.integers(1, 6, (30, 1))
    found = said(table)
    assert "30 of 200 rows hold the same number in every column" in found
    assert "repeat another" not in found


def test_ranks_and_shares():
    assert "add up to 15 in every row" in said(np.array([RNG.permutation(5) + 1 for _ in range(100)]))
    assert "add up to 1 in every row" in said(pd.DataFrame(RNG.dirichlet(np.ones(4), 100).round(3)))


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([1, 2, 3, 4, 5, 98, 99], ["98", "99"]),
        ([-1, 1, 2, 3, 4, 5], ["-1"]),
        ([-9, 1, 2, 3, 9], ["-9", "9"]),
        ([1, 2, 3, 4, 5, 6, 7, 9], ["9"]),
        ([9, 12, 14, 16, 17, 18, 20], []),
        ([-9, 9, 12, 14, 16, 99], ["-9", "99"]),
        ([1, 3, 5, 7, 9], []),
        ([-1, 0, 1], []),
        ([95, 96, 97, 98, 99], []),
        (list(range(1, 10)), []),
    ],
)
def test_numbers_away_from_the_answers_often_mean_missing_cells(values, named):
    text = said(
        pd.DataFrame({"q": np.resize(values, 400), "r": np.resize([0, 1, 1], 400), "s": np.resize([0, 1], 400)})
    )
    assert ["--missing q=" + value in text for value in named] == [True] * len(named)
    assert text.count("often means a missing cell") == len(named)


def test_columns_are_named_where_others_hold_a_number_as_an_answer():
    frame = pd.DataFrame({"party": np.resize([1, 2, 3, 9], 400), "space": np.resize([0, 1, 9], 400)})
    assert "if it does here, say --missing 9" in said(frame.assign(sex=np.resize([0, 1], 400)))
    for answers in (range(1, 11), range(30), ["8", "9", "none"]):  # levels, numbers, texts
        text = said(frame.assign(other=np.resize(list(answers), 400)))
        assert "'9' in 'party', 'space' often means a missing cell" in text
        assert "say --missing party=9 --missing space=9" in text


def test_every_word_for_a_missing_cell_is_named():
    answers = np.resize(["yes", "no", "refused", "not asked"], 400)
    text = said(pd.DataFrame({"q": answers, "r": np.roll(answers, 1), "s": np.resize([0, 1, 1], 400)}))
    assert "say --missing refused" in text
    assert 'say --missing "not asked"' in text


@pytest.mark.parametrize("code", ["nk", "N/K", "unk", "d/k", "not stated"])
def test_short_codes_for_a_missing_cell_are_named(code):
    answers = np.resize(["y", "n", code], 400)
    frame = pd.DataFrame({"angina": answers, "stroke": np.roll(answers, 1), "s": np.resize([0, 1, 1], 400)})
    assert f"{code!r} in 'angina', 'stroke' often means a missing cell" in said(frame)


def test_options_can_be_typed_as_they_are_told():
    answers = np.resize(["yes", "no", "don't know"], 400)
    frame = pd.DataFrame({"time of day": answers, "cost $": np.roll(answers, 1), "s": np.resize([0, 1, 1], 400)})
    assert """say --missing "don't know\"""" in said(frame)
    assert """say --missing "time of day=don't know\"""" in said(frame[["time of day", "s"]])
    told = said(frame[["cost $", "s"]]).partition("say --missing ")[2]
    assert shlex.split(told.split(" two variables")[0])[0] == "cost $=don't know"


def test_what_one_row_holds_is_no_code_for_missing_cells():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"q": np.resize([1, 2, 3, 4], 30), "size": rng.normal(10, 1, 30).round(2), "r": [0, 1, 1] * 10}
    )
    once, twice = frame.copy(), frame.copy()
    once.loc[0, ["q", "size"]] = [99, 670]
    twice.loc[:1, ["q", "size"]] = [99, 670]
    assert "--missing" not in said(once)
    assert "--missing q=99" in said(twice)
    assert "--missing size=670" in said(twice)


@pytest.mark.parametrize(("values", "offered"), [(range(1, 9), True), (np.arange(1, 5, 0.5), False)])
def test_counts_are_offered_for_whole_numbers_alone(values, offered):
    rare = np.append(np.resize(list(values)[:-1], 399), list(values)[-1])
    frame = pd.DataFrame({"risk": rare, "q": np.resize([0, 1, 1], 400), "r": np.resize([0, 1], 400)})
    assert "1 level(s) occur in fewer than 5 rows" in said(frame)
    assert ("--kind risk=count" in said(frame)) == offered


def test_a_mark_among_numbers_is_told_once():
    texts = ["." if i % 9 == 0 else str(i % 20) for i in range(200)]
    frame = pd.DataFrame({"lab": texts, "word": np.resize(["a", "b", "."], 200), "r": [0, 1] * 100})
    assert "'.' in 'word' often means a missing cell: if it does here, say --missing word=." in said(frame)


def test_columns_that_may_be_weights_are_asked_about():
    rng = np.random.default_rng(3)
    rows = rng.choice(["x", "y", "z", "w"], (400, 3), p=[0.5, 0.3, 0.15, 0.05])
    counts = pd.DataFrame(rows, columns=["a", "b", "c"]).value_counts().reset_index(name="Freq")
    assert "column 'Freq' may say how many rows each stands for: if so, say --weight Freq" in said(counts)
    assert "--weight" not in said(counts.rename(columns={"Freq": "size"}))
    assert "--weight" not in " ".join(table_warnings(Facts.of(encode(counts, weight="Freq"))))
    frame = pd.DataFrame(rows).assign(count=rng.poisson(3, 400))  # patterns have several rows
    assert "--weight" not in said(frame)
    assert "--weight pspwght" in said(pd.DataFrame(rows).assign(pspwght=rng.lognormal(0, 0.5, 400)))
    survey = rng.lognormal(0, 0.5, 400)
    assert "--weight weight" in said(pd.DataFrame(rows).assign(weight=survey / survey.mean()))
    assert "--weight" not in said(pd.DataFrame(rows).assign(weight=rng.normal(70, 12, 400)))
    design = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(dwt=rng.normal(170, 20, 400).round())
    assert "--weight dwt" in said(design)
    assert "--weight" not in said(design.assign(dwt=design["dwt"].where(design.index > 9)))
    assert "--weight" not in said(design.assign(dht=rng.normal(70, 3, 400).round()))
    assert "--weight dwt" in said(design.assign(dwt=survey / survey.mean(), ht=rng.normal(70, 3, 400).round()))
