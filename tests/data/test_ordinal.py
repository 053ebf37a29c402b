"""Ordered levels: how they are declared and recognised, and what their order is used for."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest

from mixmem import InputError, Variable, encode
from mixmem.cli import main
from mixmem.data.coding import ColumnCoding
from mixmem.data.declared import kinds_by_column

OFTEN = ["never", "sometimes", "often"]
FRAME = pd.DataFrame(
    {
        "q1": ["often", "never", "sometimes", "never"] * 6,
        "q2": [1, 5, 2, 4] * 6,
        "q3": ["10 or more", "2 to 9", "1", "0"] * 6,
        "sex": ["m", "f"] * 12,
    }
)


def levels(frame, name, **kinds):
    variable = next(each for each in encode(frame, kinds=kinds).schema.variables if each.name == name)
    return variable.kind, variable.levels


def test_numbers_and_texts_that_begin_with_them_stand_in_their_order():
    assert levels(FRAME, "q2", q2="ordinal") == ("ordinal", ("1", "2", "4", "5"))
    assert levels(FRAME, "q3", q3="ordinal") == ("ordinal", ("0", "1", "2 to 9", "10 or more"))


def test_the_order_of_texts_is_declared():
    assert levels(FRAME, "q1", q1="ordinal: never < sometimes < often") == ("ordinal", tuple(OFTEN))
    assert levels(FRAME, "q2", q2="ordinal:4<1<2<5") == ("ordinal", ("4", "1", "2", "5"))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("ordinal", "'q1' is declared ordinal, and its texts do not say in which order .*--kind \"q1=ordinal:"),
        ("ordinal:never<often", "'q1' holds 'sometimes', which is not in the order declared .*never < often"),
        ("categorical:never<often", "'q1' is declared 'categorical' with an order"),
        ("ordinary", "'q1' is declared 'ordinary'; expected one of categorical"),
    ],
)
def test_orders_that_are_not_known_or_do_not_fit_are_refused(kind, message):
    with pytest.raises(InputError, match=message):
        encode(FRAME, kinds={"q1": kind})


def test_ordered_categoricals_are_ordinal_and_others_are_not():
    ordered = FRAME.assign(q1=pd.Categorical(FRAME["q1"], OFTEN, ordered=True))
    assert levels(ordered, "q1") == ("ordinal", tuple(OFTEN))
    assert levels(ordered, "q1", q1="categorical")[0] == "categorical"
    plain = FRAME.assign(q1=pd.Categorical(FRAME["q1"], OFTEN))
    assert levels(plain, "q1") == ("categorical", tuple(OFTEN))
    assert levels(plain, "q1", q1="ordinal") == ("ordinal", tuple(OFTEN))


def test_a_pattern_names_many_columns():
    assert kinds_by_column({"q*": "ordinal", "q2": "count"}, ["q1", "q2", "x"]) == {"q1": "ordinal", "q2": "count"}
    found = encode(FRAME[["q2", "q3", "sex"]], kinds={"q?": "ordinal"}).schema
    assert [variable.kind for variable in found.variables] == ["ordinal", "ordinal", "categorical"]
    with pytest.raises(InputError, match=r"there is no variable 'z\*'"):
        encode(FRAME, kinds={"z*": "ordinal"})


def test_a_measure_of_spss_is_believed(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"q1": [1.0, 2.0, 3.0, 2.0] * 6, "q2": [1.0, 2.0, 3.0, 1.0] * 6})
    labels = {name: {1: "never", 2: "sometimes", 3: "often"} for name in frame}
    path = tmp_path / "survey.sav"
    measures = {"q1": "ordinal", "q2": "nominal"}
    pyreadstat.write_sav(frame, path, variable_value_labels=labels, variable_measure=measures)
    found = encode(path).schema.variables
    assert [(each.kind, each.levels) for each in found] == [("ordinal", tuple(OFTEN)), ("categorical", tuple(OFTEN))]


def test_missing_cells_are_filled_with_the_median():
    column = ColumnCoding(Variable("q", ("1", "2", "3", "4", "5"), "int", "ordinal"))
    theta = np.array([[0.4, 0.0], [0.0, 0.1], [0.2, 0.2], [0.2, 0.3], [0.2, 0.4]])
    assert column.own_kind.most_likely(column, theta, np.eye(2)) == [3, 4]


def test_info_names_the_option(tmp_path, capsys):
    rng = np.random.default_rng(0)
    path = tmp_path / "answers.csv"
    pd.DataFrame(rng.integers(1, 6, (60, 3)), columns=["item1", "item2", "item3"]).to_csv(path, index=False)
    assert main(["info", str(path)]) == 0
    assert 'if they are answers on a scale, say --kind "item*=ordinal"' in " ".join(capsys.readouterr().out.split())
    assert main(["info", str(path), "--kind", "item*=ordinal"]) == 0
    out = capsys.readouterr().out
    assert "on a scale" not in out
    assert "ordinal" in out


def test_info_names_no_pattern_that_fits_other_columns(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(1, 6, (60, 5)), columns=["pain 1", "pain 2", "pain 3", "preOp_asa", "mood"])
    frame = frame.assign(preOp_bmi=rng.normal(25, 4, 60), pid=np.arange(60))
    frame.to_csv(tmp_path / "answers.csv", index=False)
    assert main(["info", str(tmp_path / "answers.csv")]) == 0
    told = next(line for line in capsys.readouterr().out.splitlines() if "on a scale" in line).partition(", say ")[2]
    assert told == '--kind "pain *=ordinal" --kind preOp_asa=ordinal --kind mood=ordinal'
    assert main(["info", str(tmp_path / "answers.csv"), *shlex.split(told)]) == 0
    out = capsys.readouterr().out
    assert "usable variables  6 (5 ordinal, 1 continuous" in out
    assert "on a scale" not in out
