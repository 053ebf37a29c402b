"""Facts of a table are computed once and handed on: what one default fit, and one command, count and build."""

from __future__ import annotations

from collections import Counter

import pytest

from mixmem import GDLM, simulate_gdlm
from mixmem.cli import main
from mixmem.likelihood.table import LikelihoodTable
from mixmem.moments import anchors, sums, third_moments
from mixmem.moments.sweep import FullTensor
from mixmem.selection import alpha0

TABLE = simulate_gdlm(600, 12, 2, random_state=0)
HALVES = Counter(first_moments=2, make_plan=4, third_moments=4, FullTensor=2, LikelihoodTable=11)
"""What is counted and built of two halves of the rows, with one and with two components, once a fit is done."""

SAMPLED, STARTS = 6, 5
"""Tables of cells that it takes to sample halves of a small table (by latent classes, by chains, rows scored), and to
try three starts: all rows, those that are compared, and memberships for each."""


@pytest.fixture
def calls(monkeypatch):
    """How often the passes over a table are made, wherever they are called from."""
    found: Counter[str] = Counter()

    def counted(name, function):
        def call(*arguments, **options):
            found[name] += 1
            return function(*arguments, **options)

        return call

    for function in (sums.first_moments, third_moments.third_moments, anchors.make_plan):
        patched = counted(function.__name__, function)
        for module in _users_of(function):
            monkeypatch.setattr(module, function.__name__, patched)
    for kind in (FullTensor, LikelihoodTable):
        monkeypatch.setattr(kind, "__init__", counted(kind.__name__, kind.__init__))
    return found


def _users_of(function):
    import sys

    modules = [module for name, module in sys.modules.items() if name.startswith("mixmem.")]
    return [module for module in modules if getattr(module, function.__name__, None) is function]


@pytest.mark.slow
def test_one_default_fit(calls):
    GDLM(2, random_state=0).fit(TABLE.encoded)
    assert (
        calls["first_moments"] == HALVES["first_moments"] + 1 + alpha0.FOLDS
    )  # the search for alpha0 leaves rows out in turns
    assert calls["make_plan"] == HALVES["make_plan"] + 2  # the search for alpha0 has anchors of its own
    assert calls["third_moments"] == HALVES["third_moments"] + 2
    points = alpha0.COARSE + 2 * alpha0.ROUGH_HALVINGS
    assert calls["FullTensor"] <= HALVES["FullTensor"] + 2 + alpha0.FOLDS * points  # one per estimate
    # rows scored for alpha0, before and after sampling, sampling, memberships
    assert calls["LikelihoodTable"] <= HALVES["LikelihoodTable"] + SAMPLED + STARTS + 4 + alpha0.FOLDS


@pytest.mark.usefixtures("halves_looked_at")
def test_one_fit_with_alpha0_given(calls):
    GDLM(2, alpha0=0.2, refine=None, random_state=0).fit(TABLE.encoded)
    assert calls - HALVES == Counter(first_moments=1, make_plan=1, third_moments=1, FullTensor=1)


@pytest.mark.slow
def test_one_command(calls, tmp_path):
    TABLE.frame.to_csv(tmp_path / "d.csv", index=False)
    arguments = ["fit", str(tmp_path / "d.csv"), "-k", "2", "--out", str(tmp_path / "out"), "--quiet"]
    assert main(arguments) == 0
    assert (
        calls["first_moments"] == HALVES["first_moments"] + 1 + alpha0.FOLDS
    )  # the search for alpha0 leaves rows out in turns
    assert calls["make_plan"] == HALVES["make_plan"] + 2
    # and the rows' memberships, and the mean likelihood
    assert calls["LikelihoodTable"] <= HALVES["LikelihoodTable"] + SAMPLED + STARTS + 5 + alpha0.FOLDS
