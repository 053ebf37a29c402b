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
    mixed = pd.DataFrame(RNG.standard_normal((100, 3))).mask(RNG.random((100, 3)) < 0.2).assign(c=list("abcde") * 20)
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
