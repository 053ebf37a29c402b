"""Columns that name rows: left out, kept as numbers or asked about, in whatever order the rows are."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from mixmem.data.encode import encode
from mixmem.data.identifiers import names_subjects, numbering
from mixmem.errors import InputError, TableWarning

N = 200
RNG = np.random.default_rng(0)
ANSWERS = pd.DataFrame({f"q{j}": RNG.choice(["a", "b", "c"], N) for j in range(4)})
DRAWN = {
    "rising from 1": np.arange(1, N + 1),
    "sparse": np.sort(RNG.choice(50_000, N, replace=False)),
    "shuffled": RNG.permutation(N) + 1,
    "from 1000": RNG.permutation(N) + 1000,
}


def coded(frame, **how):
    """The variables, and what is said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        table = encode(frame, **how)
    return table.schema.names, table.remarks


def orders(frame):
    """The table as it is, shuffled, turned round, and two thirds and two fifths of it drawn at random."""
    yield frame
    yield frame.sample(frac=1.0, random_state=0)
    yield frame[::-1]
    yield frame.sample(frac=0.67, random_state=1)
    yield frame.sample(frac=0.4, random_state=2)


@pytest.mark.parametrize(
    "name", ["idno", "ID", "Subject_ID", "caseid", "obs", "rownames", "customerID", "pid", "row_nr"]
)
@pytest.mark.parametrize("values", DRAWN.values(), ids=DRAWN)
def test_identifiers_by_name_are_left_out_in_any_order(name, values):
    for frame in orders(ANSWERS.assign(**{name: values})):
        names, (said,) = coded(frame)
        assert names == tuple(ANSWERS)
        assert said.startswith(f"column {name!r} has a different value in each of its {len(frame)} rows")


@pytest.mark.parametrize("how", ["rising from 1", "shuffled", "from 1000"])
def test_the_first_column_numbers_rows_under_any_name(how):
    frame = ANSWERS.copy()
    frame.insert(0, "zone", DRAWN[how])
    for part in orders(frame):
        assert coded(part)[0] == tuple(ANSWERS)
    # whichever columns are taken away before
    assert coded(frame.assign(w=1.0), kinds={"q0": "ignore"}, weight="w")[0] == ("q1", "q2", "q3")


def test_a_first_column_too_short_to_tell_is_kept_and_told():
    frame = ANSWERS.copy()
    frame.insert(0, "zone", DRAWN["shuffled"])
    names, (said,) = coded(frame[:40])
    assert names == ("zone", *ANSWERS)
    assert said.startswith("column 'zone' has a different whole number in every row, as ranks and identifiers have")


def test_ranks_are_kept_in_any_order_and_told_once():
    frame = ANSWERS.assign(wealth=DRAWN["shuffled"], crime=RNG.permutation(N) + 1)
    frame.insert(0, "dept", DRAWN["rising from 1"])
    for part in orders(frame):
        names, said = coded(part)
        assert names == (*ANSWERS, "wealth", "crime")
        assert (
            "columns 'wealth', 'crime' have a different whole number in every row, as ranks and identifiers" in said[1]
        )
        assert said[1].endswith("say --kind wealth=ignore to leave the first of them out")


@pytest.mark.parametrize(
    "values",
    [
        RNG.integers(18, 90, N),
        RNG.permutation(100_000)[:N],  # all differ, as so many of a wide range do
        np.rint(RNG.lognormal(8.0, 1.0, N)),
        RNG.standard_normal(N).cumsum().round(3),
    ],
)
def test_measurements_are_kept_and_nothing_is_said(values):
    for part in orders(ANSWERS.assign(size=values)):
        assert coded(part) == ((*ANSWERS, "size"), ())


def test_numbers_all_distinct_by_chance_are_no_identifiers():
    """Of tables drawn from ranges at the border, the share taken for identifiers is that of chance."""
    rng = np.random.default_rng(1)
    for n in (30, 100, 400):
        span = n * (n - 1) // 18
        assert not any(numbering("size", rng.integers(0, span, n), first=True) for _ in range(500))


@pytest.mark.parametrize("subjects", [150, 20])
@pytest.mark.parametrize("as_text", [False, True])
def test_repeated_identifiers_are_asked_about(subjects, as_text):
    who = np.resize(RNG.permutation(subjects) + 1, N)
    frame = ANSWERS.assign(subject_id=[f"s{i}" for i in who] if as_text else who)
    names, (said,) = coded(frame)
    assert "subject_id" in names
    assert f"holds {subjects} different values in 200 rows: rows may be repeated measures of the same subject" in said
    assert "--kind subject_id=ignore" in said
    kind = "categorical" if as_text else "continuous"
    assert coded(frame, kinds={"subject_id": kind})[1] == ()
    assert coded(frame.rename(columns={"subject_id": "size"}))[1] == ()


def test_names_of_subjects():
    no = ["paid", "covid", "valid", "void", "grid", "idle", "number", "index", "price_index", "x"]
    assert [name for name in no if names_subjects(name)] == []


def test_numbers_but_for_a_text_are_no_identifiers():
    values = {f"lab{j}": [str(v) for v in RNG.normal(5, 1, N).round(6)] for j in range(3)}
    frame = ANSWERS.assign(**values, few=[str(i % 20) for i in range(N)])
    frame.loc[frame.index[::25], ["lab0", "lab1", "few"]] = "."
    frame.loc[0, "lab2"] = "."
    names, (said,) = coded(frame)
    assert names == (*ANSWERS, "few")
    assert said == (
        "4 columns hold numbers but for '.' and are taken for categories, or left out where nearly every row has "
        "another value (3 of them): 'lab0', 'lab1', 'lab2', 'few'; if that means a missing cell, say --missing . to "
        "read them as numbers"
    )
    names, said = coded(frame, missing=["."])
    assert names == (*ANSWERS, "lab0", "lab1", "lab2", "few")
    assert said[0].startswith("column 'lab0' holds numbers as texts, such as ")
    _, (alone,) = coded(frame[["q0", "q1", "few"]])
    assert "column 'few' holds numbers but for '.' and is taken for categories" in alone
    assert "say --missing few=." in alone
    with pytest.raises(
        InputError, match=r"'lab0' holds numbers but for '.'; expected numbers alone.* --missing lab0=."
    ):
        encode(frame, columns="strict")


def test_identifiers_with_a_text_among_them_are_identifiers():
    names, (said,) = coded(ANSWERS.assign(case_id=[*map(str, DRAWN["sparse"][1:]), "10x3"]))
    assert names == tuple(ANSWERS)
    assert "as an identifier has" in said


def test_many_identifiers_are_told_with_what_to_do():
    frame = ANSWERS.assign(**{f"k{j}_id": RNG.permutation(N) for j in range(6)})
    _, (said,) = coded(frame)
    assert said.startswith("6 columns have a different value in nearly every row, as identifiers have")
    assert said.endswith(
        "say, for the first of them, --id k0_id to name rows by it, or --kind k0_id=continuous to keep it"
    )
