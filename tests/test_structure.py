"""The package's own rules: stages import only earlier stages, and everything public is documented."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import re
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import mixmem

ROOT = Path(mixmem.__file__).parent
MODULES = sorted(
    ".".join(("mixmem", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if path.name != "__main__.py"
)

# The way of the data: a folder imports only those before it in this list, itself, and the free modules.
FOLDERS = [
    "kernels", "engine", "data", "moments", "likelihood", "refinement", "selection", "results", "storage", "models",
    "output", "experiments", "cli",
]  # fmt: skip
FREE = {"errors", "extras", "parameters", "plots", "progress", "records", "seeds", "typing", "words"}
FITTING = {
    "mixmem", "mixmem.models._learner", "mixmem.models._fitted", "mixmem.models._from_moments", "mixmem.models.gdlm",
    "mixmem.selection.n_components", "mixmem.selection.n_topics",
}  # fmt: skip
"""Modules whose examples fit a model by sampling, or several models."""
FACADES = {"__init__", "__main__", "crowd"}
"""Public names only; nothing inside imports them."""


def imports_of(path: Path) -> set[str]:
    """First part of every mixmem module a file imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "mixmem" else [f"mixmem.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("mixmem.")}
    return found


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_imports_only_those_before_it(path):
    folder = path.relative_to(ROOT).parts[0].removesuffix(".py")
    imported = imports_of(path) - FREE - {folder, "__version__"}
    if folder in FREE:
        assert not imported
    elif folder in FOLDERS:
        assert imported <= set(FOLDERS[: FOLDERS.index(folder)])
    else:
        assert folder in FACADES


def test_every_folder_has_its_place_and_its_tests():
    """Tests stand in the folders of what they test."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {*FOLDERS, "plots"}
    assert {path.name for path in Path(__file__).parent.iterdir() if (path / "__init__.py").exists()} <= folders


def files_on_the_page() -> list[Path]:
    """Return the files that the tables of docs/architecture.md name, each in the folders of its section's heading."""
    page = Path(__file__).parents[1] / "docs" / "architecture.md"
    found, folders = [], [ROOT]
    for line in page.read_text().splitlines():
        if line.startswith("### "):
            folders = [*(ROOT / name for name in re.findall(r"(\w+)/", line)), ROOT]
        elif line.startswith("| `"):
            folder = None
            for name in re.findall(r"`([\w/]+\.(?:py|csv))`", line.split("|")[1]):
                places = [where / name for where in ([folder] if folder and "/" not in name else []) + folders]
                there = [path for path in places if path.is_file()]
                assert there, f"docs/architecture.md names {name}, which is not there"
                found.append(there[0])
                folder = there[0].parent
    return found


def test_the_page_of_the_architecture_names_every_file():
    named = files_on_the_page()
    files = {path for path in ROOT.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")} - {
        ROOT / "crowd.py"
    }
    assert sorted(str(path.relative_to(ROOT)) for path in files - set(named)) == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in FITTING else name for name in MODULES]
)
def test_examples_in_docstrings_run(name):
    module = import_module(name)
    assert module.__doc__
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", [name for name in mixmem.__all__ if name != "__version__"])
def test_public_names_are_documented(name):
    assert len(getattr(mixmem, name).__doc__ or "") > 30


def test_unknown_names_are_said():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mixmem.nothing


# --- Tools of the checkout


def tool(name: str) -> ModuleType:
    """Return a file of tools/ as a module."""
    path = Path(__file__).parents[1] / "tools" / f"{name}.py"
    found = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_lowest_versions_are_tested_of_every_extra():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    users = set(extras) - {"test", "dev", "docs", "bench", "all", "browser"}
    assert set(tool("lowest").EXTRAS) == users
    assert extras["all"] == [f"mixmem[{','.join(tool('lowest').EXTRAS)}]"]
    libraries = {re.split(r"[<>=!~]", line)[0].replace("-", "_") for name in users for line in extras[name]}
    assert libraries <= set(tool("check_build").EXTRAS)


def test_the_mistakes_to_be_noticed_stand_where_their_list_says():
    """A mutant whose text has moved on guards nothing; ``python -m validation.mutants`` is too long for every day."""
    from validation.mutants import MUTANTS

    times = {mutant.name: (ROOT / mutant.file).read_text().count(mutant.text) for mutant in MUTANTS}
    assert {name: count for name, count in times.items() if count != 1} == {}
    assert all((Path(__file__).parent / test).is_file() for mutant in MUTANTS for test in mutant.tests)
