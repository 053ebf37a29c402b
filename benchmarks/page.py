"""The page of a fit: bytes, seconds to the first view in headless Chromium, milliseconds that its answers take.

Four fits: the demonstration, a survey of 25 items, genotypes grouped by population, and 10,000 x 1,000 simulated. Those
of public data are left out where the data are absent (MIXMEM_DATA). Needs Chromium and Playwright. ``--plot DIR`` of
the benchmarks writes the pictures of the documentation too.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.crowd_sets import DATA
from mixmem.cli import main

WINDOW = {"width": 1080, "height": 860}
OPENED = 5
"""Times a page is opened, each in a fresh context; the median counts."""
COLOURS = 64

# The picture's name, the page, where it is scrolled to, and where the pointer stands in which drawing.
PICTURES: tuple[tuple[str, str, str | None, tuple[str, float, float] | None], ...] = (
    ("page-demo", "demo", None, None),
    ("page-survey", "survey", "#variables", ("#cards .card:nth-child(2) svg", 0.4, 0.25)),
    ("page-populations", "populations", "#memberships", ("#structure svg", 0.62, 0.35)),
    ("page-large", "large", "#memberships", None),
    ("page-large-variables", "large", "#variables", None),
)


def run(quick: bool = False) -> Iterator[dict[str, Any]]:
    """One row per page."""
    with tempfile.TemporaryDirectory() as name, _chromium() as browser:
        for page, folder in _fits(Path(name), quick):
            yield {"page": page, **_measured(browser, folder / "report.html")}


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Write the pictures of the pages into the folder of ``path``."""
    with tempfile.TemporaryDirectory() as name, _chromium() as browser:
        folders = dict(_fits(Path(name), quick=False))
        for picture, page, place, pointer in PICTURES:
            if page in folders:
                _picture(browser, folders[page], path.with_name(f"{picture}.png"), place, pointer)
        if "survey" in folders:
            _picture(browser, folders["survey"], path.with_name("page-phone.png"), "#memberships", None, phone=True)


def _chromium() -> Any:
    """Return a context that gives a browser."""
    from contextlib import contextmanager

    from playwright.sync_api import sync_playwright

    @contextmanager
    def opened() -> Iterator[Any]:
        with sync_playwright() as playwright:
            found = shutil.which("chromium") or shutil.which("google-chrome")
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
            yield browser
            browser.close()

    return opened()


def _fits(folder: Path, quick: bool) -> Iterator[tuple[str, Path]]:
    """Fit what the pages are about; names and folders."""
    _run("demo", "--out", folder / "demo")
    yield "demo", folder / "demo"
    if (survey := DATA / "survey_bfi" / "bfi.csv").exists():
        ignored = [word for name in ("age", "education") for word in ("--kind", f"{name}=ignore")]
        _run("fit", survey, "-k", 5, "--id", "rownames", *ignored, "--by", "gender", "--out", folder / "survey")
        yield "survey", folder / "survey"
    if (genotypes := DATA / "popgen_hapmap3_admixture").exists():
        samples = [line.split()[1] for line in (genotypes / "hapmap3.fam").read_text().splitlines()]
        populations = (genotypes / "hapmap3.pops").read_text().split()
        labels = folder / "populations.csv"
        pl.DataFrame({"sample": samples, "population": populations}).write_csv(labels)
        grouped = ["--by", "population", "--labels", labels]
        _run("fit", genotypes / "hapmap3.bed", "-k", 3, *grouped, "--out", folder / "populations")
        yield "populations", folder / "populations"
    if not quick:
        _run("simulate", "--rows", 10_000, "--variables", 1_000, "-k", 8, "--out", folder / "drawn")
        _run("fit", folder / "drawn" / "data.csv", "-k", 8, "--out", folder / "large")
        yield "large", folder / "large"


def _run(*words: Any) -> None:
    if main([str(word) for word in words] + ["--quiet"]):
        raise RuntimeError(f"mixmem {words[0]} failed")


def _measured(browser: Any, path: Path) -> dict[str, Any]:
    """Medians over fresh contexts: first paint, ready to be used, and what single answers take until they are drawn."""
    found = []
    for _ in range(OPENED):
        page = _open(browser, path)
        times = {
            "paint_ms": page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"),
            "ready_ms": page.evaluate("performance.getEntriesByName('ready')[0].startTime"),
        }
        page.evaluate("document.querySelector('#structure').scrollIntoView()")
        page.wait_for_selector("#structure svg")
        page.wait_for_timeout(1_500)  # until what came into view beside it is drawn too
        for name, act in (
            ("sort_ms", "document.querySelector('#row-sort').selectedIndex = 1; "
             "document.querySelector('#row-sort').dispatchEvent(new Event('change'))"),
            ("zoom_ms", "document.querySelector('#zoom-in').click()"),
            ("search_ms", "document.querySelector('#search').value = '1'; "
             "document.querySelector('#search').dispatchEvent(new Event('input'))"),
        ):  # fmt: skip
            times[name] = page.evaluate(
                f"async () => {{ const began = performance.now(); {act}; "
                "await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); "
                "return performance.now() - began; }"
            )
        page.context.close()
        found.append(times)
    frame = pl.DataFrame(found).median().row(0, named=True)
    return {"megabytes": path.stat().st_size / 1e6, **{name: round(value) for name, value in frame.items()}}


def _open(browser: Any, path: Path, **settings: Any) -> Any:
    page = browser.new_context(**{"viewport": WINDOW, **settings}).new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    return page


def _picture(
    browser: Any,
    folder: Path,
    path: Path,
    place: str | None,
    pointer: tuple[str, float, float] | None,
    phone: bool = False,
) -> None:
    from PIL import Image

    small = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    page = _open(browser, folder / "report.html", **(small if phone else {}))
    if place is not None:
        page.evaluate("(place) => document.querySelector(place).scrollIntoView()", place)
    page.wait_for_timeout(1_500)  # figures are drawn as they come into view
    if pointer is not None:
        box = page.locator(pointer[0]).first.bounding_box()
        page.mouse.move(box["x"] + pointer[1] * box["width"], box["y"] + pointer[2] * box["height"])
        page.wait_for_timeout(300)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    page.context.close()
