"""report.html: self-contained, escaped, small, and true to the numbers."""

import re
import time
from html.parser import HTMLParser

import numpy as np
import pytest

from mixmem.output.page import render_page, stacked_areas
from mixmem.results.distinctive import spread_of_variables
from mixmem.words import measured, plain_number

VOID = {"meta", "link", "br", "img", "line", "rect", "circle", "path", "polyline"}


class Tags(HTMLParser):
    """Checks that tags are closed in order, and keeps all text."""

    def __init__(self):
        super().__init__()
        self.open, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def text_of(page):
    parser = Tags()
    parser.feed(page)
    assert parser.open == []
    return " ".join(" ".join(parser.texts).split())


def document(k=3, rows=50, variables=4, **changes):
    matching = {
        "method": "procrustes", "permutation": list(range(k)), "assigned": False, "guaranteed": True,
        "conditions": [
            {"theorem": "theorem 5 (smallest angle)", "holds": False, "margin": -0.1},
            {"theorem": "theorem 6 (orthogonal Procrustes)", "holds": True, "margin": 0.25},
        ],
    }  # fmt: skip
    report = {
        "rows": rows, "variables": variables, "theta_rows": 3 * variables, "converged": True,
        "reason": "theta stood still",
        "contamination": {"value": 0.07, "estimated": True, "standard_error": 0.01},
        "refine": {
            "method": "gibbs", "reason": "rows are short", "likelihood_before": -5.1, "likelihood_after": -5.0,
            "gibbs": {"rhat": {"median": 1.01, "most": 1.2}}, "em": None,
        },
        "alpha0": {
            "value": 1.0, "estimated": True, "at_bound": False, "standard_error_of_log": 0.1,
            "tried": [[0.1, -9.0], [0.5, -5.0], [1.0, -4.0], [2.0, -4.5], [9.0, -80.0]],
        },
        "start": {
            "way": "moments", "converged": True, "reason": "theta stood still", "alpha0": 1.0, "discrepancy": 0.02,
            "blocks": {"count": 1, "negative_fraction": 0.12, "converged": 1, "each": [{"reason": "block done"}]},
            "matching": {"blocks": 0, "guaranteed": 0, "assigned": 0, "each": [], "anchors_kept": matching},
            "sweeps": {"count": 2, "reason": "theta stood still"},
        },
    }  # fmt: skip
    report.update(changes)
    return {
        "mixmem": "0.1.0", "versions": {"python": "3.11", "numpy": "2"}, "report": report, "seed": 0,
        "data": {"path": "somewhere/data.csv", "rows": rows, "variables": variables, "id": None},
        "settings": {"alpha0": "auto", "n_jobs": None, "verbose": False},
        "log_likelihood": {"mean_of_rows": -5.0, "mean_of_rows_given_memberships": -4.0},
        "seconds": {"reading": 0.5, "sweeps": 1.0},
        "goodness": {
            "misfit": 1.5, "summary": "One pair goes together.",
            "worst": [
                {
                    "variable": "question 1", "misfit": 2.5, "worst_partner": "question 2", "level": "answer 0",
                    "partner_level": "answer 1", "observed": 0.25, "fitted": 0.125,
                }
            ],
        },
    }  # fmt: skip


def drawn(k=3, rows=50, variables=4, levels=3, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(levels), (variables, k)).transpose(0, 2, 1).reshape(-1, k)
    names = [(f"question {j}", f"answer {level}", "probability") for j in range(variables) for level in range(levels)]
    return names, theta, np.full(k, 1.0 / k), rng.dirichlet(np.full(k, 0.3), rows)


def test_the_page_tells_what_was_found():
    names, theta, alpha, memberships = drawn()
    text = text_of(render_page(document(), names, theta, alpha, memberships))
    headings = ["Components", "What distinguishes the components", "Memberships", "How sure", "Settings and timings"]
    places = [text.index(heading) for heading in [*headings, "Use the model in Python"]]
    assert places == sorted(places)
    clear = f"{100 * (memberships.max(axis=1) > 0.8).mean():.0f}%"
    for words in (
        "50 rows of 4 variables", f"{clear} of the rows have a clear component",
            "12% of the corrected third moments are negative",
        "alpha0 = 1, estimated", "+2.0%", "margin 0.25", "theorem 6", "theta stood still",
        "no pieces to match", "1 point far below is cut off", 'load("model.mixmem")', "together 1.50", "n_jobs none",
        "refined by sampling", "before -5.100, after -5.000", "largest 1.20", "7.0% of the cells (standard error 1.0%)",
        "One pair goes together.", "answer 0 with question 2: answer 1 25.0% 12.5%",
    ):  # fmt: skip
        assert words in text, words
    for share in memberships.mean(axis=0):
        assert f"{100 * share:.1f}%" in text


def test_other_outcomes_are_said():
    names, theta, alpha, memberships = drawn()
    start = document()["report"]["start"]
    match = start["matching"]["anchors_kept"]
    blocks = {"blocks": 2, "guaranteed": 1, "assigned": 1, "each": [match, match], "anchors_kept": match}
    alpha0 = {"value": 0.3, "estimated": False, "at_bound": False, "standard_error_of_log": None, "tried": []}
    start |= {"alpha0": 0.3, "discrepancy": -0.1, "sweeps": None, "matching": blocks}
    changed = document(converged=False, reason="block done", alpha0=alpha0, start=start)
    changed["settings"]["alpha0"] = 0.3
    changed["warnings"] = [
        {"code": "not-converged", "severity": "serious", "message": "the fit did not converge", "remedy": "look again"},
        {"code": "idle-variables", "severity": "minor", "message": "'x' is idle", "remedy": "leave it out"},
    ]
    text = text_of(render_page(changed, names, theta, alpha, memberships))
    for words in (
        "Read this first. The fit did not converge. Look again.", "Note: 'x' is idle; leave it out.",
        "Not reached: block done", "as given", "is met at the order found in 1 of 2 (smallest margin 0.25)",
        "1 needed an assignment",
    ):  # fmt: skip
        assert words in text, words
    assert "values of alpha0 tried" not in text
    climbed = {
        "method": "em", "reason": "rows are long", "likelihood_before": None, "likelihood_after": None, "gibbs": None,
        "em": {"rounds": 7, "log_likelihood": -12345.67},
    }  # fmt: skip
    none = {"way": "genotypes", "converged": True, "reason": "least squares", "directions": 2, "rounds": 9}
    text = text_of(render_page(document(refine=climbed, start=none), names, theta, alpha, memberships))
    for words in ("The first estimate was taken", "alpha0 = 1, estimated"):
        assert words in text, words
    for words in ("Negative moments", "Matching", "moments' own alphas"):  # there were none
        assert words not in text, words
    assert (
        "memberships together: rows are long. The log-likelihood of the table, given memberships, is -12,345.7" in text
    )
    assert "Mean log-likelihood of a row before" not in text


def test_nothing_comes_from_outside_and_nothing_runs():
    page = render_page(document(), *drawn())
    assert not re.search(r"<script|<link|@import|url\((?!#)|src=|https?://", page)
    assert page.startswith("<!DOCTYPE html>")
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_names_are_escaped():
    names, theta, alpha, memberships = drawn()
    names = [("<b>&\"'" if v == "question 0" else v, "<script>alert(1)</script>", what) for v, _, what in names]
    page = render_page(document(), names, theta, alpha, memberships)
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;b&gt;&amp;&#34;&#39;" in page
    assert "<b>&amp;" not in page
    text_of(page)


def test_one_component_and_few_rows():
    names, theta, _, _ = drawn(k=1)
    text = text_of(render_page(document(k=1, rows=2), names, theta, np.ones(1), np.ones((2, 1))))
    assert "One component has nothing to be distinguished from" in text
    assert "mixtures of 1 component ." in text or "mixtures of 1 component." in text


def test_wide_long_and_many_levels_stay_small():
    for k, rows, variables, levels in ((5, 10_000, 10_000, 4), (40, 500, 20, 900)):
        names, theta, alpha, memberships = drawn(k, rows, variables, levels)
        names = [(v * 30, level * 30, what) for v, level, what in names]
        began = time.perf_counter()
        page = render_page(document(k, rows, variables), names, theta, alpha, memberships)
        assert time.perf_counter() - began < 1.0
        assert len(page.encode()) < 1_000_000


def test_spread_of_variables():
    theta = np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.3], [0.7, 0.7]])
    labels = [(v, level, "probability") for v in "ab" for level in "xy"]
    np.testing.assert_allclose(spread_of_variables(theta, labels, np.array([1.0, 1.0])), [0.5, 0.0])
    np.testing.assert_allclose(spread_of_variables(theta, labels, np.array([3.0, 1.0])), [0.375, 0.0])


NUMBERS = [(name, "", statistic) for name in ("age", "visits", "size") for statistic in ("mean", "variance")]


def test_spread_of_numbers_is_that_of_their_distributions():
    # age: two normals far apart have nothing in common; size: the same in both.
    theta = np.array([[0.0, 100.0], [1.0, 1.0], [9.0, 25.0], [9.0, 25.0], [7.0, 7.0], [4.0, 4.0]])
    spread = spread_of_variables(theta, NUMBERS, np.array([1.0, 1.0]))
    from scipy.stats import poisson

    y = np.arange(90)
    expected = 0.5 * 0.5 * np.abs(poisson.pmf(y, 9.0) - poisson.pmf(y, 25.0)).sum()
    np.testing.assert_allclose(spread[[0, 2]], [0.5, 0.0], atol=1e-3)
    np.testing.assert_allclose(spread[1], expected, rtol=0.05)  # a count is compared as a normal distribution
    # Two normals d standard deviations apart: their distance is 2 Phi(d / 2) - 1, each is half of it from the average.
    theta[0] = [0.0, 1.0]
    near = spread_of_variables(theta, NUMBERS, np.array([1.0, 1.0]))[0]
    np.testing.assert_allclose(near, 0.5 * 0.38292, rtol=0.02)
    # The unit of a column makes no difference.
    theta[0] *= 1000.0
    theta[1] *= 1e6
    np.testing.assert_allclose(spread_of_variables(theta, NUMBERS, np.array([1.0, 1.0]))[0], near, rtol=1e-9)


def test_numbers_are_shown_as_means():
    theta = np.array([[30.0, 62.0], [25.0, 100.0], [1.5, 5.0], [2.25, 16.0], [7.0, 7.0], [4.0, 4.0]])
    memberships = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    about = document(k=2, rows=3, variables=3)
    about["data"] |= {
        "kinds": {"continuous": 2, "count": 1}, "in_words": {"continuous numbers": 2, "count": 1}, "all_of": [],
        "genotypes": False, "missing_cells": 1, "means": {"age": 45.25, "visits": 3},
    }  # fmt: skip
    text = text_of(render_page(about, NUMBERS, theta, np.ones(2), memberships))
    for words in (
        "3 rows of 3 variables (2 continuous numbers, 1 count, 11.1% of the cells missing)",
        "age: mean 62 (all rows 45.2)", "visits: mean 5 (all rows 3)", "mean 30 62 standard deviation 5 10",
        "mean 1.5 5 standard deviation 1.5 4",
        "Each cell is the mean for a row that belongs wholly to the component; the shade of a mean",
    ):  # fmt: skip
        assert words in text, words
    genotypes = [("rs1", "A", "probability"), ("rs1", "G", "probability")]
    about["data"] |= {
        "kinds": {"dosage": 1}, "in_words": {"genotype": 1}, "all_of": ["all genotypes"], "genotypes": True,
        "missing_cells": 0,
    }  # fmt: skip
    text = text_of(render_page(about, genotypes, np.array([[0.2, 0.9], [0.8, 0.1]]), np.ones(2), memberships))
    assert "variables (all genotypes) are described" in text
    assert "the frequency of an allele" in text


def test_weighted_shares_are_those_of_the_document():
    names, theta, alpha, memberships = drawn()
    about = document() | {"memberships": {"shares": [0.625, 0.25, 0.125]}}
    assert "62.5%" in text_of(render_page(about, names, theta, alpha, memberships))


def test_stacked_areas_hold_the_memberships():
    memberships = np.array([[0.2, 0.8], [0.9, 0.1], [0.6, 0.4]])
    areas = stacked_areas(memberships)
    # Rows sorted by leading component and then by its membership: 1, 2, 0. Component 1 is drawn last, on top.
    assert areas == [(1, "M0 100V0.0H1V0.0H2V0.0H3V100Z"), (0, "M0 100V10.0H1V40.0H2V80.0H3V100Z")]


def test_shapes_that_do_not_fit_together():
    names, theta, alpha, memberships = drawn()
    with pytest.raises(ValueError, match="do not fit together"):
        render_page(document(), names[:-1], theta, alpha, memberships)
    with pytest.raises(ValueError, match="do not fit together"):
        render_page(document(), names, theta, alpha, memberships[:, :2])


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (1234.5, "1234"), (123456.0, "123,456"), (1e-7, "1e-07")])
def test_plain_numbers(value, text):
    assert plain_number(value) == text


@pytest.mark.parametrize(
    ("value", "scale", "text"),
    [
        (4207.3, 800.0, "4,207"),
        (0.01234, 0.01, "0.0123"),
        (62.04, 9.0, "62"),
        (-3.456, 1.0, "-3.46"),
        (-1e-9, 1.0, "0"),
    ],
)
def test_measurements(value, scale, text):
    assert measured(value, scale) == text
