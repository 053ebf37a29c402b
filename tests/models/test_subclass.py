"""Subclasses with parameters of their own can be cloned, searched and stored."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from mixmem import GDLM, simulate_gdlm

TABLE = simulate_gdlm(200, 9, 2, random_state=0).frame


class Labelled(GDLM):
    """One more parameter; the others are handed on."""

    def __init__(self, n_components=5, *, label="none", **options):
        super().__init__(n_components, **options)
        self.label = label


class Fewer(GDLM):
    """Its own signature, of some parameters only."""

    def __init__(self, n_components=2, *, alpha0=0.2, scale=1.0):
        super().__init__(n_components, alpha0=alpha0, refine=None, random_state=0)
        self.scale = scale


@pytest.mark.parametrize(
    ("model", "own"),
    [
        (Labelled(2, label="a", alpha0=0.2, refine=None, random_state=0), ("label", "a")),
        (Fewer(scale=3.0), ("scale", 3.0)),
    ],
)
def test_a_subclass_with_one_more_parameter(model, own, tmp_path):
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert getattr(copied, own[0]) == own[1]
    assert clone(model.set_params(n_components=3)).n_components == 3
    fitted = model.set_params(n_components=2).fit(TABLE)
    fitted.save(tmp_path / "m.mixmem")
    again = type(model).load(tmp_path / "m.mixmem")
    assert getattr(again, own[0]) == own[1]
    assert np.array_equal(again.transform(TABLE), fitted.transform(TABLE))


def test_the_parameters_are_those_of_the_signature():
    assert list(GDLM().get_params()) == [
        "n_components", "alpha0", "variables", "anchors", "n_partitions", "sweeps", "solver", "matching",
        "block_start", "max_rounds", "tol", "check_alpha0", "refine", "contamination", "memberships", "missing",
        "handle_unknown", "n_restarts", "random_state", "n_jobs", "memory_limit", "passes", "scratch", "verbose",
    ]  # fmt: skip
    assert list(Fewer().get_params()) == ["n_components", "alpha0", "scale"]
