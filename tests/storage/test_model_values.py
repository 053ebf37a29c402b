"""Model files whose values no fit gives are refused, by the file's and the variable's name."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mixmem import GDLM, InputError, load, simulate_mixed
from mixmem.storage.model_file import load_model, save_model


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The file of a model of categories, counts and numbers."""
    table = simulate_mixed(200, 2, n_categorical=4, n_count=2, n_continuous=2, random_state=0).frame
    path = tmp_path_factory.mktemp("model") / "m.mixmem"
    counts = {"count0": "count", "count1": "count"}
    GDLM(2, alpha0=0.4, refine=None, variables=counts, random_state=0).fit(table).save(path)
    return path


def row_of(path, name, statistic):
    """The first row of theta with this variable and statistic."""
    labels = load(path).schema_.labels
    return next(row for row, (variable, _, of) in enumerate(labels) if (variable, of) == (name, statistic))


@pytest.mark.parametrize(
    ("name", "statistic", "change", "message"),
    [
        (
            "x1",
            "probability",
            lambda value: -0.1,
            "probability of '.' in component_2 is -0.1; expected a number from 0",
        ),
        ("x1", "probability", lambda value: np.nan, "in component_2 is nan"),
        ("x1", "probability", lambda value: np.inf, "in component_2 is inf"),
        ("x1", "probability", lambda value: (value + 0.1) % 1.0, "the probabilities in component_2 sum to"),
        ("count0", "mean", lambda value: -2.0, "the mean in component_2 is -2; expected a number from 0"),
        ("real1", "mean", lambda value: np.nan, "the mean in component_2 is nan"),
        ("real1", "variance", lambda value: 0.0, "the variance in component_2 is 0; expected a positive number"),
        ("count1", "variance", lambda value: -value, "expected a positive number"),
    ],
)
def test_a_theta_that_no_fit_gives_is_refused(stored, tmp_path, name, statistic, change, message):
    arrays, header = load_model(stored)
    theta, row = arrays["theta"].copy(), row_of(stored, name, statistic)
    theta[row, 1] = change(theta[row, 1])
    path = tmp_path / "changed.mixmem"
    save_model(path, {**arrays, "theta": theta}, header)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: variable {name!r}: .*{message}.*fit again$"):
        load(path)


def test_a_doubled_theta_is_refused(stored, tmp_path):
    arrays, header = load_model(stored)
    save_model(tmp_path / "m.mixmem", {**arrays, "theta": 2.0 * arrays["theta"]}, header)
    with pytest.raises(InputError, match="variable 'x0': the"):
        load(tmp_path / "m.mixmem")


@pytest.mark.parametrize(
    ("array", "values", "message"),
    [
        ("alpha", [0.2, 0.0], "alpha of component_2 is 0; expected a positive number"),
        ("alpha", [np.nan, 0.1], "alpha of component_1 is nan"),
        ("alpha", [0.2, np.inf], "alpha of component_2 is inf"),
        ("contamination", [1.0], "the contamination is 1; expected a share from 0"),
        ("contamination", [-0.1], "the contamination is -0.1"),
        ("contamination", [np.nan], "the contamination is nan"),
    ],
)
def test_an_alpha_or_contamination_that_no_fit_gives_is_refused(stored, tmp_path, array, values, message):
    arrays, header = load_model(stored)
    save_model(tmp_path / "m.mixmem", {**arrays, array: np.array(values)}, header)
    with pytest.raises(InputError, match=message):
        load(tmp_path / "m.mixmem")


def test_an_unchanged_model_loads_under_its_name(stored, tmp_path):
    model = load(stored)
    model.n_jobs = 1  # changes nothing in a result, so not its name either
    model.save(tmp_path / "again.mixmem")
    assert load(tmp_path / "again.mixmem").run_id == load_model(stored)[1]["run"]
