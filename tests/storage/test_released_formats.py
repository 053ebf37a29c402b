"""Model files of every released format load, and give what they gave then."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mixmem import load

FIXTURES = Path(__file__).parents[1] / "fixtures"
CASES = [
    (folder, name)
    for folder in sorted(path for path in FIXTURES.iterdir() if path.is_dir())
    for name in json.loads((folder / "memberships.json").read_text())
]


@pytest.mark.parametrize(("folder", "name"), CASES, ids=lambda part: getattr(part, "name", part))
def test_a_released_model_gives_the_memberships_it_gave(folder, name):
    model = load(folder / f"{name}.mixmem")
    expected = json.loads((folder / "memberships.json").read_text())[name]
    assert np.allclose(model.transform(pd.read_csv(folder / f"{name}.csv")), expected, rtol=0, atol=1e-9)
    assert model.report_.rows > 0
    assert model.report_.start.way == ("genotypes" if name == "genotypes" else "moments")


@pytest.mark.parametrize(("folder", "name"), CASES, ids=lambda part: getattr(part, "name", part))
def test_a_released_model_is_saved_in_the_present_format(folder, name, tmp_path):
    model = load(folder / f"{name}.mixmem")
    model.save(tmp_path / "again.mixmem")
    again = load(tmp_path / "again.mixmem")
    assert (again.coding_, again.report_) == (model.coding_, model.report_)
    assert np.array_equal(again.alpha_, model.alpha_)


def test_a_genotype_fit_of_0_1_no_longer_claims_guarantees():
    start = load(FIXTURES / "0.1" / "genotypes.mixmem").report_.start
    assert not hasattr(start, "matching")
    assert not hasattr(start, "blocks")
