"""Reasons to doubt a fit, each with a fit that has it."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from mixmem import GDLM, FitWarning, simulate_gdlm
from mixmem.data.schema import Schema, Variable
from mixmem.moments.estimate import PlanReport
from mixmem.results.doubts import Evidence, LookedBack, agreement_of, doubts, may_be_survey_weights
from mixmem.selection.halves import FoundAgain
from mixmem.selection.structure import Structure

DRAWN = simulate_gdlm(400, 8, 3, alpha=0.2, random_state=0)
DRAWN_WIDER = simulate_gdlm(400, 16, 3, alpha=0.2, random_state=0)
THERE = Structure(1e-9, 400, 8, [])


def told(theta=DRAWN.theta, alpha=DRAWN.alpha, *, structure=THERE, memberships=None, schema=DRAWN.schema, **changes):
    looked = LookedBack(structure, None, memberships)
    known = {
        "weights": np.ones(400),
        "converged": True,
        "reason": "the reason",
        "way": "moments",
        "at_bound": False,
    } | changes
    return doubts(Evidence(schema, theta, alpha, looked=looked, **known))


def codes(notices):
    return [(notice.code, notice.severity) for notice in notices]


def test_a_good_fit_has_none():
    assert told() == told(memberships=DRAWN.memberships) == []


def test_partitions_that_cannot_be_had_are_told_with_the_reason():
    plan = PlanReport([["a", "b"], ["c"], ["d"]], 3, "the plan", asked=500)
    (notice,) = told(plan=plan)
    assert notice.text == (
        "500 partitions were asked for and 3 were made: the 4 anchors leave 3 to split, one per partition; ask for at "
        "most 3 partitions, or name fewer anchors"
    )
    (notice,) = told(plan=replace(plan, partitions=0, asked=5))
    assert "0 were made: all 4 variables are anchors, so that none is left to split; leave the number" in notice.text
    assert told(plan=replace(plan, asked=3)) == told(plan=replace(plan, asked=None)) == []


def test_python_warns_of_them():
    with pytest.warns(FitWarning, match="500 partitions were asked for and 4 were made"):
        GDLM(3, alpha0=0.3, n_partitions=500, sweeps=0, refine=None, random_state=0).fit(DRAWN_WIDER.encoded)


def test_an_alpha0_that_the_rows_speak_against_is_told():
    (notice,) = told(alpha0_apart=(5.0, 0.31))
    assert notice.text.startswith("alpha0 was given as 5, and the rows are most likely at 0.31; fit again without")


def test_no_structure_comes_first():
    found = told(structure=Structure(0.4, 400, 8, ["x1"]), converged=False)
    assert codes(found) == [("no-structure", "serious"), ("not-converged", "serious")]
    assert "40%" in found[0].text


def test_one_component_is_held_against_nothing():
    assert told(DRAWN.theta[:, :1], np.ones(1), structure=None) == []


def test_empty_components():
    found = told(alpha=np.array([0.5, 0.3, 1e-5]))
    assert codes(found) == [("empty-component", "serious")]
    assert found[0].text.startswith("component 3 is empty")
    assert found[0].remedy == "fit 2 components instead"
    memberships = np.column_stack([np.full(400, 0.999), np.full((400, 2), 0.0005)])
    assert told(memberships=memberships)[0].text.startswith("components 2 and 3 are empty")


def test_components_of_one_or_two_rows():
    memberships = np.column_stack([np.full((400, 2), 0.5), np.zeros(400)])
    memberships[:2] = [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    found = told(memberships=memberships)
    assert codes(found) == [("few-rows", "serious")]
    assert found[0].text.startswith("component 3 is owned by one or two rows")


def test_rows_count_as_often_as_they_stand_for():
    """Two rows of weight 200 are four hundred rows, not two."""
    memberships = np.column_stack([np.full((400, 2), 0.5), np.zeros(400)])
    memberships[:2] = [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    weights = np.where(np.arange(400) < 2, 200.0, 1.0)
    assert told(memberships=memberships, weights=weights) == []
    assert codes(told(memberships=memberships, weights=1.0 / weights)) == [("empty-component", "serious")]


def test_whole_weights_that_may_be_those_of_a_survey_are_asked_about():
    rng = np.random.default_rng(0)
    for weights, asked in (
        (rng.integers(800, 1200, 400), True),
        (rng.integers(800, 1200, 400) / 1000, False),
        (rng.integers(1, 4, 400), False),
        (np.where(np.arange(400) < 20, 1, 300), False),
    ):
        assert may_be_survey_weights(replace(DRAWN.encoded, weights=weights.astype(float))) == asked
    assert not may_be_survey_weights(DRAWN.encoded)
    crossed = simulate_gdlm(32, 5, 2, n_levels=2, random_state=0).encoded
    assert not may_be_survey_weights(replace(crossed, weights=np.full(32, 50.0)))
    (notice,) = told(weights=np.full(400, 60.0), may_be_survey_weights=True)
    assert (notice.code, notice.severity) == ("weights-as-counts", "minor")
    (notice,) = told(weights=np.full(400, 1000.0), may_be_survey_weights=True)
    assert notice.severity == "serious"  # checks by halves of 400,000 rows are worth nothing
    assert "400 rows stand for 400,000" in notice.text


def test_components_that_coincide():
    theta = DRAWN.theta.copy()
    theta[:, 2] = theta[:, 0]
    found = told(theta)
    assert codes(found) == [("equal-components", "serious")]
    assert "components 1 and 3 are the same" in found[0].text


def graded(seed, load=2.0):
    """Answers in four steps that one factor drives."""
    rng = np.random.default_rng(seed)
    answers = rng.standard_normal((1000, 1)) * rng.uniform(0.6, 1.0, 12) * load + rng.logistic(size=(1000, 12))
    return (answers[..., None] > [-1.0, 0.0, 1.0]).sum(axis=2)


def test_steps_along_one_scale_are_told():
    model = GDLM(3, alpha0=0.5, refine=None, random_state=0).fit(graded(0))
    (notice,) = [notice for notice in model.report_.warnings if notice.code == "one-scale"]
    assert notice.severity == "minor"
    means = np.add.reduceat(
        model.theta_.filter(like="component_").to_numpy() * np.tile(np.arange(4.0), 12)[:, None], np.arange(0, 48, 4)
    ).mean(axis=0)
    order = np.argsort(means)
    said = [f"in the order {a + 1}, {b + 1} and {c + 1} each" for a, b, c in (order, order[::-1])]
    assert any(text in notice.message for text in said)


@pytest.mark.parametrize("k", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_kinds_of_rows_are_no_steps(k):
    for seed in range(3):
        drawn = simulate_gdlm(500, 15, k, alpha=0.2, random_state=seed)
        model = GDLM(k, alpha0=0.2 * k, refine=None, random_state=0).fit(drawn.encoded)
        assert "one-scale" not in {notice.code for notice in model.report_.warnings}


def test_a_start_without_guarantee_is_told():
    assert codes(told(way="latent classes")) == [("no-guarantee", "minor")]


def test_minor_ones_come_last():
    found = told(structure=Structure(1e-9, 400, 8, ["x1", "x4"]), at_bound=True, converged=False)
    assert codes(found) == [("not-converged", "serious"), ("idle-variables", "minor"), ("alpha0-at-bound", "minor")]
    assert "'x1' and 'x4' show no relation to any other variable" in found[1].text


def test_python_warns_of_serious_ones_by_our_class():
    noise = np.random.default_rng(0).integers(0, 3, (300, 8))
    with pytest.warns(FitWarning, match="does not show more than one component"):
        model = GDLM(2, alpha0=0.5, refine=None, random_state=0).fit(noise)
    assert model.report_.warnings[0].code == "no-structure"
    assert not model.report_.structure.found
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert GDLM(3, alpha0=0.6, refine=None, random_state=0).fit(DRAWN_WIDER.codes).report_.warnings == []


def test_maxima_that_lie_apart_are_told():
    (notice,) = told(apart=0.21)
    assert (notice.code, notice.severity) == ("several-maxima", "serious")
    assert "memberships that lie 0.21 apart" in notice.text


def test_much_noise_is_told():
    assert told(noise=0.14) == []
    (notice,) = told(noise=0.31)
    assert (notice.code, notice.severity) == ("much-noise", "minor")
    assert notice.text.startswith("31% of the cells are taken for noise, and theta describes the others")


def test_variants_that_keep_genotypes_from_the_likelihood_of_ancestry_are_told():
    two, other = (Variable(name, ("A", "C"), kind="dosage") for name in ("rs1", "rs2"))
    three = Variable("rs3", ("A", "C", "G"), kind="dosage")
    theta = np.random.default_rng(0).random((7, 3))
    found = {notice.code: notice.text for notice in told(theta, schema=Schema((two, other, three)))}
    assert found["other-variants"].startswith("1 of the 3 variants have not just two alleles in two copies ('rs3'), so")
    assert "other-variants" not in [notice.code for notice in told(theta[:4], schema=Schema((two, other)))]


def test_copies_are_told():
    (notice,) = told(structure=replace(THERE, copies=(["a", "b", "c"], ["d", "e"])))
    assert (notice.code, notice.severity) == ("copied-variables", "minor")
    assert notice.text.startswith("'a', 'b' and 'c' say the same in every row; so do 'd' and 'e': ")


@pytest.mark.parametrize(
    ("place", "name", "told"),
    [
        ("mixmem.models._learner", "structure_of", "a look at the table's structure"),
        ("mixmem.models._learner", "fit_rows", "a look at the rows' memberships"),
        ("mixmem.models._learner", "found_again", "a look at halves of the rows"),
        ("mixmem.models._learner", "agreement_of", "a look at halves of the rows"),
        ("mixmem.refinement.choose", "row_likelihood", "the likelihood of rows before and after refinement"),
    ],
)
def test_a_fit_is_not_lost_to_a_look_at_it(monkeypatch, place, name, told):
    def fail(*given, **options):
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr(f"{place}.{name}", fail)
    method = "gibbs" if name in ("fit_rows", "row_likelihood") else None
    model = GDLM(2, alpha0=0.4, refine=method, random_state=0).fit(DRAWN.encoded.take(slice(0, 60)))
    (notice,) = [notice for notice in model.report_.warnings if notice.code == "diagnostic-failed"]
    assert notice.message.startswith(f"{told} could not be made (ZeroDivisionError: by chance)")
    assert model.transform(DRAWN.encoded).shape == (400, 2)


def halves(agreement, gain, converged=True, apart=0.0):
    """What halves of the rows say, with components in another order than the fit's."""
    order = np.array([2, 0, 1])
    likelier = None if gain is None else (gain[0] + gain[1] * np.sqrt(3.0) * np.array([-1.0, -1.0, 1.0, 1.0]),)
    one = FoundAgain((DRAWN.theta[:, order],), (np.asarray(agreement)[order] - 0.01,), likelier, np.ones(4))
    other = FoundAgain((DRAWN.theta,), (np.asarray(agreement) + 0.01,), likelier, np.ones(4))
    again = one.and_with(other)
    known = agreement_of(DRAWN.schema, DRAWN.theta, again)
    assert known == pytest.approx(agreement)
    looked = LookedBack(THERE, None, None, again=again, agreement=known)
    return doubts(
        Evidence(
            DRAWN.schema, DRAWN.theta, DRAWN.alpha, np.ones(400), converged, "", "moments", False, looked, apart=apart
        )
    )


def test_components_that_halves_of_the_rows_agree_on_are_not_doubted():
    assert halves([0.9, 0.95, 0.99], (0.2, 0.01)) == halves([0.9, 0.95, 0.99], None) == []


def test_advice_on_convergence_goes_by_what_halves_show():
    (notice,) = halves([0.9, 0.95, 0.99], (0.2, 0.01), converged=False)
    assert notice.code == "not-converged"
    assert notice.remedy.startswith("halves of the rows show the same components, so compare fits with other seeds:")
    for found in (halves([0.9, 0.95, 0.2], (0.2, 0.01), False), halves([0.9, 0.95, 0.99], (-0.2, 0.01), False)):
        assert found[0].remedy.startswith("look with `mixmem choose-k`")
    not_converged, several = halves([0.9, 0.95, 0.99], (0.2, 0.01), converged=False, apart=0.21)
    assert (not_converged.code, several.code) == ("not-converged", "several-maxima")
    assert not_converged.remedy == "use more variables, or fewer components"  # other memberships are as likely
    assert several.remedy == f"do not interpret single memberships; {not_converged.remedy}"


def test_a_component_that_is_not_found_again_is_named():
    (notice,) = halves([0.9, -0.1, 0.7], (0.2, 0.01))
    assert (notice.code, notice.severity) == ("not-found-again", "serious")
    assert notice.text.startswith(
        "component 2 was not found again: learned from either half of the rows, it agrees by 0.00 (1 is the same, 0.85 "
        "is asked for); do not interpret it; look with"
    )
    (notice,) = halves([0.1, 0.2, 0.99], None)
    assert "components 1 and 2 were not found again" in notice.message
    assert "they agree by 0.10 and 0.20" in notice.message


def test_a_component_that_is_found_less_well_is_a_minor_doubt():
    (notice,) = halves([0.9, 0.95, 0.7], (0.2, 0.01))
    assert (notice.code, notice.severity) == ("found-less-well", "minor")
    assert notice.message.startswith("component 3 is found less well")
    (notice,) = halves([0.9, 0.95, 0.8496], (0.2, 0.01))
    assert "it agrees by 0.84 (1 is the same, 0.85 is asked for)" in notice.message


def test_components_that_other_rows_do_not_need_are_too_many():
    (notice,) = halves([0.9, 0.95, 0.2], (-0.031, 0.004))
    assert (notice.code, notice.severity) == ("too-many-components", "serious")
    assert notice.text.startswith(
        "rows that were not fitted are more likely with 2 components than with 3, by 0.031 ± 0.004 per row; halves of "
        "the rows agree least on component 3, by 0.20 (1 is the same, 0.85 is asked for); fit fewer components"
    )
    (notice,) = halves([0.9, 0.95, 0.9], (-0.031, 0.004))
    assert notice.text.startswith(
        "rows that were not fitted are more likely with 2 components than with 3, by 0.031 ± 0.004 per row; fit fewer"
    )


@pytest.mark.usefixtures("halves_looked_at")
@pytest.mark.parametrize("refine", [None, "em"])
def test_a_fit_with_too_many_components_says_so(refine):
    drawn = simulate_gdlm(600, 12, 2, alpha=0.05, random_state=1)
    with pytest.warns(FitWarning, match="more likely with 2 components than with 3"):
        model = GDLM(3, alpha0=0.1, refine=refine, random_state=0).fit(drawn.encoded)
    assert len(model.report_.agreement) == 3
    again = type(model.report_).from_plain(model.report_.to_plain())
    assert again.agreement == model.report_.agreement
