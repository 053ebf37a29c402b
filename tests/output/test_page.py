"""report.html: self-contained, escaped, small, and true to the numbers."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from mixmem.output.fit_files import FitFiles
from mixmem.output.groups import Groups
from mixmem.output.page import own_script, render_page, script_json
from mixmem.output.payload import packed, spread_places
from mixmem.results.distinctive import spread_of_variables
from mixmem.words import measured, plain_number

VOID = {"meta", "link", "br", "img", "input"}


class Tags(HTMLParser):
    """Checks that tags are closed in order, and keeps all text that is shown."""

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
        if not {"script", "style"} & set(self.open):
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


def page_of(about, names, theta, alpha, memberships, **more):
    more = {"row_ids": np.arange(len(memberships)), **more}
    return render_page(about, FitFiles(names, theta, alpha, memberships, **more))


def data_of(page):
    """What the page's scripts are given."""
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1)
    return json.loads(text)


def unpacked(text, kind="<u2"):
    return np.frombuffer(base64.b64decode(text), kind) / np.iinfo(kind).max


def test_the_page_tells_what_was_found():
    names, theta, alpha, memberships = drawn()
    text = text_of(page_of(document(), names, theta, alpha, memberships))
    headings = ["Components", "What distinguishes the components", "Memberships", "How sure", "Settings and timings"]
    below = text.index("How to cite")  # after the links to the parts
    places = [
        text.index(heading, below if heading != "Components" else 0)
        for heading in [*headings, "Use the model in Python"]
    ]
    assert places == sorted(places)
    clear = f"{100 * (memberships.max(axis=1) > 0.8).mean():.0f}%"
    for words in (
        "50 rows of 4 variables", f"{clear} of the rows have a clear component",
            "12% of the corrected third moments are negative",
        "alpha0 = 1, estimated", "+2.0%", "margin 0.25", "theorem 6", "theta stood still",
        "no pieces to match", "far below the best are cut off", 'load("model.mixmem")', "together 1.50", "n_jobs none",
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
    text = text_of(page_of(changed, names, theta, alpha, memberships))
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
    text = text_of(page_of(document(refine=climbed, start=none), names, theta, alpha, memberships))
    for words in ("The first estimate was taken", "alpha0 = 1, estimated"):
        assert words in text, words
    for words in ("Negative moments", "Matching", "moments' own alphas"):  # there were none
        assert words not in text, words
    assert (
        "memberships together: rows are long. The log-likelihood of the table, given memberships, is -12,345.7" in text
    )
    assert "Mean log-likelihood of a row before" not in text


def test_nothing_comes_from_outside():
    page = page_of(document(), *drawn())
    for text in re.findall(r"<script>.*?</script>", page, re.S):  # libraries name addresses, and use none
        page = page.replace(text, "<script></script>")
    assert not re.search(r"<link|@import|url\(|src=|https?://", page)
    assert "default-src 'none'" in page
    assert page.startswith("<!DOCTYPE html>")
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_libraries_are_those_of_their_packages():
    """As the packages ship them, with their licences; scripts/vendor/README.md says which and how to renew them."""
    vendor = Path(render_page.__globals__["HERE"]) / "scripts" / "vendor"
    said = (vendor / "README.md").read_text()
    page = page_of(document(), *drawn())
    for name in ("d3.min.js", "plot.umd.min.js"):
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() in said
        assert (vendor / name).read_text() in page
    for name in ("d3.LICENSE", "plot.LICENSE"):
        assert (vendor / name).read_text().splitlines()[0] in text_of(page)


def test_names_are_escaped():
    names, theta, alpha, memberships = drawn()
    names = [("<b>&\"'" if v == "question 0" else v, "<script>alert(1)</script>", what) for v, _, what in names]
    groups = Groups.of("</script><b>", np.array(["<i>"] * len(memberships), dtype=object))
    about = document()
    about["data"]["path"] = "a/<u>.csv"
    page = page_of(about, names, theta, alpha, memberships, groups=groups, row_ids=np.array(["<s>"] * len(memberships)))
    for tag in ("<script>alert", "<b>&amp;", "<i>", "<s>", "<u>", "</script><b>"):
        assert tag not in page.replace("<i>mixmem", "").replace("<i>Efficient", "")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;b&gt;&amp;&#34;&#39;" in page
    assert data_of(page)["variables"]["names"][0] == "<b>&\"'"
    assert data_of(page)["rows"]["group_names"] == ["<i>"]
    text_of(page)


def test_one_component_and_few_rows():
    names, theta, _, _ = drawn(k=1)
    text = text_of(page_of(document(k=1, rows=2), names, theta, np.ones(1), np.ones((2, 1))))
    assert "One component has nothing to be distinguished from" in text
    assert "mixtures of 1 component ." in text or "mixtures of 1 component." in text


@pytest.mark.parametrize(
    ("k", "rows", "variables", "levels", "kept"),
    [(5, 10_000, 10_000, 4, 800), (8, 10_000, 1_000, 4, 1_000), (40, 500, 20, 900, 5), (24, 20_000, 50, 5, 50)],
)
def test_wide_long_and_many_levels_stay_small(k, rows, variables, levels, kept):
    names, theta, alpha, memberships = drawn(k, rows, variables, levels)
    names = [(v * 30, level * 30, what) for v, level, what in names]
    page = page_of(document(k, rows, variables), names, theta, alpha, memberships, bounds=(theta, theta))
    assert len(page.encode()) < 5_000_000
    shown = data_of(page)["variables"]
    assert shown["all"] == variables
    assert kept <= len(shown["names"])
    if kept == variables:
        assert f"All {variables:,} variables." in text_of(page)
        return
    assert "that differ most between components; all are in theta.csv" in text_of(page)
    # those that are left out differ less than any that is shown
    spread = spread_of_variables(theta, names, memberships.mean(axis=0))
    np.testing.assert_allclose(min(shown["spread"]), np.sort(spread)[::-1][len(shown["names"]) - 1], atol=1e-4)


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
    text = text_of(page_of(about, NUMBERS, theta, np.ones(2), memberships))
    for words in (
        "3 rows of 3 variables (2 continuous numbers, 1 count, 11.1% of the cells missing)",
        "age: mean 62 (all rows 45.2)", "visits: mean 5 (all rows 3)",
        "the mean of a number for a row that belongs wholly",
        "a mean stands on a pale line of one standard deviation",
    ):  # fmt: skip
        assert words in text, words
    genotypes = [("rs1", "A", "probability"), ("rs1", "G", "probability")]
    about["data"] |= {
        "kinds": {"dosage": 1}, "in_words": {"genotype": 1}, "all_of": ["all genotypes"], "genotypes": True,
        "missing_cells": 0,
    }  # fmt: skip
    text = text_of(page_of(about, genotypes, np.array([[0.2, 0.9], [0.8, 0.1]]), np.ones(2), memberships))
    assert "variables (all genotypes) are described" in text
    assert "the frequency of each allele" in text


def test_weighted_shares_are_those_of_the_document():
    names, theta, alpha, memberships = drawn()
    about = document() | {"memberships": {"shares": [0.625, 0.25, 0.125]}}
    assert "62.5%" in text_of(page_of(about, names, theta, alpha, memberships))


def test_scripts_are_given_the_numbers():
    names, theta, alpha, memberships = drawn(k=4, rows=60, variables=5)
    groups = Groups.of("town", np.array(["b", "a", None] * 20, dtype=object))
    low, high = np.clip(theta - 0.1, 0, 1), np.clip(theta + 0.1, 0, 1)
    page = page_of(document(4, 60, 5), names, theta, alpha, memberships, bounds=(low, high), groups=groups)
    data = data_of(page)
    for text, values in (("theta", theta), ("lower", low), ("upper", high)):
        np.testing.assert_allclose(unpacked(data["variables"][text]).reshape(-1, 4), values, atol=1e-5)
    np.testing.assert_allclose(unpacked(data["rows"]["memberships"]).reshape(-1, 4), memberships, atol=1e-5)
    assert data["variables"]["sets"] == [["answer 0", "answer 1", "answer 2"]]
    assert data["variables"]["levels"] == [0] * 5
    spread = spread_of_variables(theta, names, memberships.mean(axis=0))
    np.testing.assert_allclose(data["variables"]["spread"], spread, atol=1e-4)
    assert (data["rows"]["by"], data["rows"]["group_names"]) == ("town", ["a", "b", "(missing)"])
    assert data["rows"]["groups"][:3] == [1, 0, 2]
    np.testing.assert_allclose(data["rows"]["means"][1], memberships[::3].mean(axis=0), rtol=1e-5)
    corners = np.array(data["rows"]["corners"])
    np.testing.assert_allclose((corners**2).sum(axis=0), 1.0, atol=1e-5)
    np.testing.assert_allclose(corners[:, 0], [0.0, 1.0])
    assert page == page_of(document(4, 60, 5), names, theta, alpha, memberships, bounds=(low, high), groups=groups)


def test_components_held_together_are_neighbours_on_the_map():
    rng = np.random.default_rng(0)
    parts = np.zeros((600, 6))
    for i, (one, other) in enumerate([(0, 3), (3, 5), (5, 1), (1, 4), (4, 2), (2, 0)] * 100):  # a ring
        parts[i, [one, other]] = rng.dirichlet([1.0, 1.0])
    names, theta, alpha, _ = drawn(k=6)
    corners = np.array(data_of(page_of(document(6, 600), names, theta, alpha, parts))["rows"]["corners"])
    near = corners.T @ corners
    for one, other in [(0, 3), (3, 5), (5, 1), (1, 4), (4, 2), (2, 0)]:
        np.testing.assert_allclose(near[one, other], 0.5, atol=1e-5)


def test_many_rows_are_spread_over_the_table():
    places = spread_places(25_000, 10_000)
    assert (len(places), places[0], places[-1]) == (10_000, 0, 24_997)
    names, theta, alpha, memberships = drawn(rows=25_000)
    data = data_of(page_of(document(rows=25_000), names, theta, alpha, memberships))
    assert data["rows"]["ids"][1] == "2"
    assert data["rows"]["all"] == 25_000
    assert len(data["rows"]["mapped"]) == 4_000


def test_names_are_never_cut_for_good():
    names, theta, alpha, memberships = drawn()
    long = "how often did you, in the last month, " * 6
    names = [(f"{long}{v}", f"{long}{level}", what) for v, level, what in names]
    page = page_of(document(), names, theta, alpha, memberships)
    assert data_of(page)["variables"]["names"][0] == f"{long}question 0"
    assert data_of(page)["variables"]["sets"][0][0] == f"{long}answer 0"
    assert f"{long}question" in " ".join(page.split()) or long.strip() in text_of(page)


def test_scripts_are_whole():
    script = own_script()
    assert script.startswith("(() => {")
    assert "</script" not in script
    assert script_json({"a": ["</script>", "\u2028", 1.5]}) == '{"a":["\\u003c/script\\u003e","\\u2028",1.5]}'
    assert unpacked(packed(np.array([0.0, 0.25, 1.0]))).round(4).tolist() == [0.0, 0.25, 1.0]


def test_shapes_that_do_not_fit_together():
    names, theta, alpha, memberships = drawn()
    with pytest.raises(ValueError, match="do not fit together"):
        page_of(document(), names[:-1], theta, alpha, memberships)
    with pytest.raises(ValueError, match="do not fit together"):
        page_of(document(), names, theta, alpha, memberships[:, :2])


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
