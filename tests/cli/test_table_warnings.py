"""What is said of a table's rows before anyone reads components into them."""

from __future__ import annotations

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


def test_every_word_for_a_missing_cell_is_named():
    answers = np.resize(["yes", "no", "refused", "not asked"], 400)
    text = said(pd.DataFrame({"q": answers, "r": np.roll(answers, 1), "s": np.resize([0, 1, 1], 400)}))
    assert "say --missing refused" in text
    assert "say --missing not asked" in text
