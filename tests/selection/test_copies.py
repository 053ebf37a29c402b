"""Columns that say what another says, exactly or nearly: they are named, and are no structure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mixmem import choose_k, encode
from mixmem.moments.sums import first_moments
from mixmem.selection.copies import copied_variables, copies_told
from mixmem.selection.structure import structure_of


def looked(table):
    return structure_of(table, first_moments(table))


def told(frame):
    """What is said of a frame's columns."""
    table = encode(frame)
    groups, ways = copied_variables(table, np.arange(table.n_variables))
    return copies_told(groups, ways) if groups else ""


def noise(n=300, seed=3):
    """Independent columns of three levels, and a number."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"q{j}": rng.integers(0, 3, n).astype(str) for j in range(5)})
    return frame.assign(age=rng.integers(18, 90, n) + rng.uniform(-0.4, 0.4, n).round(2))


def test_copies_are_named_and_are_no_structure():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"c{j}": rng.integers(0, 3, 600).astype(str) for j in range(6)})
    frame["x"], frame["y"] = rng.standard_normal(600), rng.standard_normal(600)
    frame = frame.assign(
        again=frame["c2"], renamed=frame["c2"].map({"0": "b", "1": "c", "2": "a"}), feet=3.28 * frame["x"]
    )
    found = looked(encode(frame))
    assert found.copies == (["c2", "again", "renamed"], ["x", "feet"])
    assert found.together == ("say the same in every row", "rise together in every row")
    assert not found.found


def test_copies_are_held_by_enough_rows_and_told_truly():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({f"c{j}": rng.integers(0, 3, 400).astype(str) for j in range(4)})
    frame["week"], frame["score"] = np.sort(rng.standard_normal(400)).round(3), rng.integers(20, 90, 400).astype(float)
    frame = frame.assign(later=frame["week"] ** 3, again=frame["score"], word=frame["c0"])
    for held, copies in ((15, ()), (60, (["c0", "word"], ["week", "later"], ["score", "again"]))):
        part = frame.copy()
        part.loc[held:, ["week", "later", "score", "again"]] = np.nan
        found = looked(encode(part))
        assert found.copies == (copies or (["c0", "word"],))
        if copies:
            here = "in the 60 rows that hold them"
            assert found.together == ("say the same in every row", f"rise together {here}", f"say the same {here}")
            assert copies_told(found.copies, found.together) == (
                f"'c0' and 'word' say the same in every row; 'week' and 'later' rise together {here}; "
                f"'score' and 'again' say the same {here}"
            )
    # where one is missing, and the other holds its largest value, they are copies in the other rows
    apart = frame.assign(other=frame["score"].where(frame["score"] < frame["score"].max()))
    both = int(apart["other"].notna().sum())
    told = dict(zip(map(tuple, looked(encode(apart)).copies), looked(encode(apart)).together, strict=True))
    assert told["score", "other"] == f"say the same in the {both} rows that hold both"


EVERY = "in every row"
GO = f"'{{}}' and 'again' go together: the first tells the second {EVERY}"


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (
            lambda f: f["q0"].map({"0": "b", "1": "c", "2": "a"}).where(f.index > 2),
            "'q0' and 'again' say the same in the 297 rows that hold both",
        ),
        (lambda f: f["q0"].where(f.index != 7, "9"), "'q0' and 'again' say the same in 299 of 300 rows"),
        (lambda f: 100.0 - f["age"], f"'age' and 'again' go opposite ways {EVERY}"),
        (
            lambda f: (3.0 * f["age"]).where(f.index > 2),
            "'age' and 'again' rise together in the 297 rows that hold both",
        ),
        (lambda f: (f["age"] // 20).astype(int).astype(str), GO.format("age")),
        (lambda f: (f["q1"] == "2").map({True: "yes", False: "no"}), GO.format("q1")),
    ],
    ids=["blanks", "one differs", "falls", "rises", "groups", "dummy"],
)
def test_columns_that_nearly_say_what_another_says_are_no_structure(column, said):
    frame = noise()
    assert told(frame) == ""
    frame = frame.assign(again=column(frame))
    assert told(frame) == said
    assert told(frame.iloc[:, ::-1]).startswith(("'again' and", said[:4]))  # in whatever order columns come
    assert not looked(encode(frame)).found


def test_related_columns_are_no_copies():
    rng = np.random.default_rng(5)
    frame = noise(2_000)
    flipped = rng.random(2_000) < 0.05
    frame = frame.assign(near=frame["q0"].where(~flipped, "1"), alike=frame["age"] + rng.normal(0.0, 1.2, 2_000))
    assert told(frame) == ""
    few = noise(500).assign(rare=np.where(np.arange(500) % 100 == 7, "x", "y"))  # any column tells 99 % of it
    assert told(few) == ""
    assert 0.997 < frame["age"].rank().corr(frame["alike"].rank()) < 0.999


def test_choose_k_finds_no_components_in_copies():
    frame = noise().drop(columns="age")
    choice = choose_k(frame.assign(again=frame["q0"].where(frame.index != 7, "9")), (1, 3), random_state=0)
    assert choice.k == 1
    assert "k = 1: the variables, copies left out, vary as if they were independent" in choice.reason
    assert "'q0' and 'again' say the same in 299 of 300 rows" in choice.reason
    assert set(choice.table["why"][1:]) == {"copies of columns alone"}


def test_tables_that_are_too_wide_are_not_compared_pair_by_pair():
    rng = np.random.default_rng(0)
    table = encode(rng.integers(0, 2, (60, 700)))
    assert copied_variables(table, np.arange(table.n_variables))[0] == ()
