"""The page in a real browser: it draws, answers, and asks for nothing from outside.

Needs Chromium (`apt install chromium`) and Playwright (`pip install "mixmem[browser]"`); skipped where one is absent.
"""

import csv
import io
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest

from mixmem.cli import main
from mixmem.output.groups import Groups
from tests.output.test_page import document, drawn, page_of

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'mixmem[browser]'")
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")

LONG = "How often in the last twelve months did you, alone or with others, take part in anything of this kind?"


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Pages by name, as files."""
    folder = tmp_path_factory.mktemp("pages")

    def write(name, k, rows=200, variables=40, levels=3, grouped=False, bounds=True):
        names, theta, alpha, memberships = drawn(k, rows, variables, levels)
        names = [(LONG if v == "question 3" else v, level, what) for v, level, what in names]
        names += [("age", "", "mean"), ("age", "", "variance")]
        theta = np.vstack([theta, np.linspace(20, 60, k), np.full(k, 25.0)])
        low, high = 0.9 * theta, np.where(theta < 1, np.minimum(1.1 * theta + 0.01, 1.0), 1.05 * theta)
        groups = Groups.of("town", np.array([["Ulm", "Bath", "Nice"][i % 3] for i in range(rows)], dtype=object))
        page = page_of(
            document(k, rows, variables + 1), names, theta, alpha, memberships, groups=groups if grouped else None,
            bounds=(low, high) if bounds else None,
        )  # fmt: skip
        path = folder / f"{name}.html"
        path.write_text(page, encoding="utf-8")
        return path.as_uri()

    return write


@pytest.fixture
def opened(browser):
    """Open an address, and in the end hold against it whatever it complained of or asked the network for."""
    complaints, contexts = [], []

    def opened(address, ready="html[data-ready=yes]", **settings):
        context = browser.new_context(**{"viewport": {"width": 1180, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "data:", "blob:")) else complaints.append(request.url)
            ),
        )
        page.goto(address)
        page.wait_for_selector(ready)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def see(page, selector):
    """Scroll to a drawing and wait until it is there."""
    page.locator(selector).first.scroll_into_view_if_needed()
    page.wait_for_selector(f"{selector} svg")
    return page.locator(f"{selector} .drawing svg").first


def downloaded(page, selector, kind):
    with page.expect_download() as waiting:
        page.locator(f"{selector} .tools button", has_text=kind).first.click()
    download = waiting.value
    with open(download.path(), "rb") as file:
        return download.suggested_filename, file.read()


def tip(page):
    return " ".join(page.locator('[aria-label="tip"] text').all_text_contents())


def group_names(page):
    texts = page.locator('#structure .drawing svg [aria-label="text"] text')
    return texts.evaluate_all("every => every.map(each => each.firstChild.textContent)")


def test_search_and_sort(written, opened):
    page = opened(written("five", 5))
    assert page.locator("#count").text_content() == "30 of 41 variables shown"
    spreads = [float(text.split()[-1]) for text in page.locator("#cards h3 small").all_text_contents()]
    assert spreads == sorted(spreads, reverse=True)
    page.fill("#search", "TWELVE months")
    assert page.locator("#cards .card").count() == 1
    assert page.locator("#cards h3").text_content().startswith(LONG)  # whole, however long
    page.fill("#search", "no such thing")
    assert page.locator("#count").text_content() == "0 of 0 variables found shown"
    page.fill("#search", "")
    page.select_option("#sort", "name")
    assert page.locator("#cards .card").first.get_attribute("data-variable") == "age"
    page.select_option("#sort", "table")
    assert page.locator("#cards .card").first.get_attribute("data-variable") == "question 0"
    page.select_option("#sort", "component-2")
    page.focus("#more")  # cards above are still being drawn, so that a pointer might miss it
    page.keyboard.press("Enter")
    assert page.locator("#cards .card").count() == 41


def test_profiles_tell_their_numbers(written, opened):
    page = opened(written("five", 5))
    page.select_option("#sort", "table")
    svg = see(page, "#cards .card")
    box = svg.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 15)
    assert "answer 0" in tip(page)
    assert "95% interval" in tip(page)
    page.select_option("#style", "heat")
    assert see(page, "#cards .card").locator('[aria-label="cell"] rect').count() == 15
    page.fill("#search", "age")
    box = see(page, "#cards .card").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    assert "mean 40 (95% interval" in tip(page)


def test_rows_zoom_sort_and_group(written, opened):
    page = opened(written("grouped", 3, rows=300, grouped=True))
    svg = see(page, "#structure")
    assert group_names(page) == ["Bath", "Nice", "Ulm"]
    box = svg.bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 100)
    assert "row " in tip(page)
    assert "town: Nice" in tip(page)
    assert "component" in tip(page)
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 100, steps=4)
    page.mouse.up()
    assert page.locator("#seen").text_content().startswith("Rows 6")
    page.click("#zoom-in")
    page.click("#zoom-right")
    page.click("#zoom-all")
    assert page.locator("#seen").text_content() == "All 300 rows of this page."
    page.uncheck("#row-group")
    assert group_names(page) == []
    page.select_option("#row-sort", "component-2")
    name, content = downloaded(page, "#structure", "CSV")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert name == "mixmem-structure.csv"
    second = [float(row["component_2"]) for row in rows]
    assert second == sorted(second, reverse=True)
    assert len(rows) == 300


def test_every_figure_and_table_can_be_had(written, opened):
    page = opened(written("grouped", 3, rows=300, grouped=True))
    for selector in ("#cards .card", "#structure", "#groups", "#map", "#histogram", "#alpha0"):
        see(page, selector)
        name, content = downloaded(page, selector, "SVG")
        assert name.endswith(".svg")
        root = ElementTree.fromstring(content)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(list(root.iter())) > 10
        _, content = downloaded(page, selector, "CSV")
        assert content.count(b"\n") > 3
    for selector in ("#structure", "#histogram"):
        name, content = downloaded(page, selector, "PNG")
        assert name.endswith(".png")
        assert content.startswith(b"\x89PNG")
        assert len(content) > 2_000  # something is drawn
    tables = page.locator("table[data-name]").count()
    assert page.locator(".tools + .scroll > table[data-name]").count() == tables == 4
    with page.expect_download() as waiting:
        page.click("#all-profiles")
    assert waiting.value.suggested_filename == "mixmem-profiles.csv"


@pytest.mark.parametrize(("k", "width"), [(24, 390), (24, 1180), (2, 390), (7, 800), (1, 390)])
def test_every_component_is_seen_at_any_width(written, opened, k, width):
    page = opened(written(f"k{k}", k, grouped=k > 1), viewport={"width": width, "height": 800}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".components tbody tr").count() == k
    if k == 1:
        return
    page.select_option("#sort", "table")
    page.select_option("#style", "heat")
    svg = see(page, "#cards .card")
    cells = svg.locator('[aria-label="cell"] rect')
    assert cells.count() == 3 * k
    right = max(box["x"] + box["width"] for box in (cells.nth(i).bounding_box() for i in range(k)))
    assert right <= width
    for selector in ("#structure", "#map", "#histogram", "#groups"):
        box = see(page, selector).bounding_box()
        assert box["x"] + box["width"] <= width + 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_prints_whole(written, opened):
    page = opened(written("five", 5))
    page.emulate_media(media="print")
    assert not page.locator(".controls").first.is_visible()
    assert len(page.pdf()) > 50_000
    assert page.locator("#cards .card svg").count() == 31 - 1  # those listed, seen or not


def test_the_map_of_topics_answers_offline(opened, tmp_path):
    """A circle per topic; a click shows its words, and the slider puts others first."""
    sports, laws = "goal goal goal match late team", "vote vote vote law new party"
    (tmp_path / "notes.csv").write_text("text\n" + f"{sports} day\n{laws} day\n{sports} cup\n{laws} act\n" * 10)
    words = ["topics", str(tmp_path / "notes.csv"), "-k", "2", "--out", str(tmp_path / "out"), "--quiet"]
    assert main(words) == 0
    page = opened((tmp_path / "out" / "report.html").as_uri(), ready="#map circle")
    assert page.locator("#map circle").count() == 2
    first = []
    for h in range(2):
        page.locator("#map circle").nth(h).click()
        first.append(page.locator("#words tr").first.inner_text().split()[0])
    assert sorted(first) == ["goal", "vote"]
    before = page.inner_text("#words")
    page.locator("#slider").evaluate("e => { e.value = 0; e.dispatchEvent(new Event('input', {bubbles: true})); }")
    assert page.inner_text("#words") != before
