"""Variables, offsets, and the theta table."""

import json

import numpy as np
import pytest

from mixmem.data.coding import Coding
from mixmem.data.schema import Schema, Variable
from mixmem.errors import InputError


@pytest.fixture
def schema() -> Schema:
    return Schema(
        (
            Variable("colour", ("blue", "red", "green")),
            Variable("visits", ("0", "1"), "int"),
            Variable("smokes", ("False", "True"), "bool"),
            Variable("dose", ("1", "2"), "float"),
        )
    )


def test_offsets_are_where_each_variable_begins(schema):
    assert schema.offsets.tolist() == [0, 3, 5, 7, 9]
    assert schema.sizes.tolist() == [3, 2, 2, 2]
    assert schema.offsets.dtype == schema.sizes.dtype == np.int64
    assert (schema.n_variables, schema.n_rows) == (4, 9)
    assert schema.variables[0].n_rows == 3


def test_values_come_back_in_their_types(schema):
    values = [column.held() for column in Coding.of(schema).columns]
    assert values == [["blue", "red", "green", None], [0, 1, None], [False, True, None], [1.0, 2.0, None]]
    assert [type(v[0]) for v in values] == [str, int, bool, float]


@pytest.mark.parametrize(("levels", "dtype"), [(2, np.uint8), (255, np.uint8), (256, np.uint16)])
def test_codes_are_as_narrow_as_the_levels_allow(levels, dtype):
    assert Coding.of(Schema((Variable("v", tuple(map(str, range(levels)))),))).codes_dtype == dtype


def test_theta_frame_is_long(schema):
    theta = np.arange(18.0).reshape(9, 2)
    frame = schema.theta_frame(theta)
    assert frame.columns.tolist() == ["variable", "level", "statistic", "component_1", "component_2"]
    assert frame.iloc[4].tolist() == ["visits", "1", "probability", 8.0, 9.0]
    assert len(frame) == 9


def test_theta_of_another_shape_is_refused(schema):
    with pytest.raises(InputError, match=r"theta has shape \(3, 2\); expected \(9, k\)"):
        schema.theta_frame(np.zeros((3, 2)))


def test_json_round_trip(schema):
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_a_foreign_document_is_refused():
    with pytest.raises(InputError, match="not one that mixmem wrote"):
        Schema.from_dict({"variables": [{"name": "a"}]})


def test_index_gives_positions(schema):
    assert schema.index(["dose", "colour"]).tolist() == [3, 0]
    assert schema.index("visits").tolist() == [1]


def test_unknown_names_are_answered_with_the_nearest(schema):
    with pytest.raises(InputError, match="no variable 'color'; did you mean 'colour'"):
        schema.index(["color"])
    with pytest.raises(InputError, match="no variable 'zzz'; expected one of 'colour', 'visits'"):
        schema.index(["zzz"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": ()}, "'v' has no levels"),
        ({"levels": ("a", "b", "a")}, "'v' lists level 'a' twice"),
        ({"levels": tuple(map(str, range(65_536)))}, "65536 levels; expected at most 65000"),
        ({"levels": ("a",), "kind": "vague"}, "'v' is declared 'vague'; expected one of categorical"),
        ({"levels": ("a",), "value_type": "date"}, "value type 'date'; expected one of str, int"),
    ],
)
def test_variables_are_checked(arguments, message):
    with pytest.raises(InputError, match=message):
        Variable("v", **arguments)


def test_names_are_distinct():
    with pytest.raises(InputError, match="columns 1 and 3 have the same name 'a'"):
        Schema((Variable("a", ("x",)), Variable("b", ("x",)), Variable("a", ("x",))))
