"""Every command and snippet of the README runs, in its order, in one fresh folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import mixmem

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "mixmem"
README = (ROOT / "README.md").read_text()
SNIPPETS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in text.splitlines() if line.strip()]


@pytest.mark.slow
def test_readme_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    from mixmem.cli import main

    monkeypatch.chdir(tmp_path)
    ran = 0
    for language, text in SNIPPETS:
        if language == "python":
            exec(compile(text, "README.md", "exec"), {})
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
