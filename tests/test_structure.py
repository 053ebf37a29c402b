"""The package's own rules: stages import only earlier stages, and everything public is documented."""

from __future__ import annotations

import ast
import doctest
from importlib import import_module
from pathlib import Path

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
FITTING = {"mixmem", "mixmem.models._learner", "mixmem.models._fitted", "mixmem.models.gdlm"}
"""Modules whose examples fit a model by sampling."""
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
