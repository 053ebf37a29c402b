"""Every command and snippet of the README, the tutorial and how-to pages runs, in its order, in one fresh folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import mixmem

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "mixmem"
README = (ROOT / "README.md").read_text()
RUN = ["docs/tutorial.md", "docs/survey.md", "docs/page.md"]
"""Pages whose snippets are run, beside the README's."""


def snippets(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in text.splitlines() if line.strip()]


def run_all(page: str, name: str, capsys) -> int:
    """Run a page's snippets in the working folder; returns how many there were."""
    from mixmem.cli import main

    ran = 0
    for language, text in snippets(page):
        if language == "python":
            exec(compile(text, name, "exec"), {})
            ran += 1
            continue
        assert language == "sh"
        for words in commands(text):
            if words[0] == "make":
                assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
                continue
            assert words[0] == "mixmem", words
            assert main(words[1:]) in (0, None), capsys.readouterr().err
            ran += 1
    return ran


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_pages_run_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_all((ROOT / page).read_text(), page, capsys) >= 3


@pytest.mark.slow
def test_readme_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    notes = "text,desk\n" + "late goal won match,sport\nvote on new law,politics\n" * 10
    (tmp_path / "notes.csv").write_text(notes)
    ran = run_all(README, "README.md", capsys)
    assert ran >= 15
    for written in (
        "survey/data.csv", "result/report.html", "rows.csv", "answers.mixmem", "filled.csv", "samples.2.Q",
        "samples.2.P", "projected.csv", "crowd/report.html", "topics/report.html",
    ):  # fmt: skip
        assert (tmp_path / written).stat().st_size > 0, written


def test_make_demo_runs_the_demo_command():
    """The recipe's command itself is run by test_cli; here only that the target runs it."""
    assert re.search(
        r"^demo:.*\n\t\.venv/bin/mixmem demo --out demo$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE
    )


PAPERS = ["README.md", "CONTRIBUTING.md", "RELEASING.md"]


@pytest.mark.parametrize("page", [*PAPERS, *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)", text):
        if "://" in target:
            continue
        place = ((ROOT / page).parent / target).resolve()
        if place.is_relative_to(SOURCE):  # the package may be installed elsewhere
            place = Path(mixmem.__file__).parent / place.relative_to(SOURCE)
        assert place.exists(), f"{page} links to {target}"
