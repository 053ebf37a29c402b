"""Diagnostics: each says what was found, what it means and what to do, and asks for a look where one is due."""

import numpy as np
import pytest

from mixmem.output.diagnostics import diagnostics
from tests.output.test_page import document

MEMBERSHIPS = np.array([[0.9, 0.1], [0.5, 0.5]])


def by_name(about):
    return {found.name: found for found in diagnostics(about, MEMBERSHIPS)}


def test_all_say_what_they_mean_and_what_to_do():
    found = by_name(document())
    names = ["Convergence", "Refinement", "Chains", "Goodness of fit", "Noise", "Concentration", "Clear rows"]
    assert list(found) == [*names, "Negative moments", "Matching", "Likelihood"]
    for each in found.values():
        for text in (each.finding, each.meaning, each.advice):
            assert text[0].isupper() or text[0].isdigit() or text.startswith("alpha0")
            assert text.endswith(".")
    looked_at = {name for name, each in found.items() if each.state == "look"}
    assert looked_at == {"Chains", "Goodness of fit"}  # R-hat 1.2 and misfit 1.5


@pytest.mark.parametrize(
    ("change", "name", "advice"),
    [
        ({"converged": False}, "Convergence", "fit fewer"),
        ({"contamination": {"value": 0.3, "estimated": False, "standard_error": 0.0}}, "Noise", "careless answers"),
        ({"start": {"blocks": {"negative_fraction": 0.45}}}, "Negative moments", "more rows"),
        ({"start": {"plan": {"condition": [3.0, 250.0, 4.0]}}}, "Anchors", "fewer components"),
        ({"start": {"discrepancy": -0.4}}, "Concentration", "--alpha0"),
        ({"alpha0": {"at_bound": True}}, "Concentration", "--alpha0"),
        ({"refine": {"likelihood_after": -6.0}}, "Refinement", "--refine none"),
    ],
)
def test_what_may_be_wrong_asks_for_a_look(change, name, advice):
    about = document()
    for key, value in change.items():
        about["report"][key] = about["report"][key] | value if isinstance(value, dict) else value
    found = by_name(about)[name]
    assert found.state == "look"
    assert advice in found.advice


def test_what_old_fits_did_not_keep_is_left_out():
    about = document()
    about["goodness"] = None
    about["report"]["refine"] |= {"gibbs": None, "method": None}
    about["report"]["start"] = {"way": "genotypes", "converged": True, "reason": "least squares"}
    found = by_name(about)
    assert not {"Chains", "Goodness of fit", "Negative moments", "Matching", "Anchors"} & set(found)
    assert "--refine gibbs" in found["Refinement"].advice
