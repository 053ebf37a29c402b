"""Every kernel has its slow form: by reading the sources."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from mixmem import kernels
from mixmem.kernels import reference

FOLDER = Path(kernels.__file__).parent
DECORATORS = {"kernel", "vector_kernel"}


def decorated(path):
    """Names of a file's functions that are compiled."""
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(mark, ast.Name) and mark.id in DECORATORS for mark in node.decorator_list)
    }


def called_from_outside():
    """(kernel file, name) of everything that modules outside the folder import from kernel files, but constants."""
    found = set()
    for path in FOLDER.parent.rglob("*.py"):
        text = path.read_text()
        if FOLDER in path.parents or "mixmem.kernels." not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mixmem.kernels."):
                file = (node.module or "").removeprefix("mixmem.kernels.")
                found |= {(file, alias.name) for alias in node.names if not alias.name.isupper()}
    return found


COMPILED = {(path.stem, name) for path in FOLDER.glob("*.py") for name in decorated(path)}
PUBLIC = {(file, name) for file, name in COMPILED if not name.startswith("_")}
OUTSIDE = called_from_outside()


def test_the_kernels_are_found():
    assert {"streams", "crowd", "simplex", "passes"} <= {file for file, _ in PUBLIC}
    assert len(OUTSIDE & PUBLIC) > 15


@pytest.mark.parametrize(("file", "name"), sorted(OUTSIDE | PUBLIC))
def test_a_kernel_has_a_slow_form_of_its_name_and_arguments(file, name):
    form = getattr(reference, name)
    assert form.__module__ == f"mixmem.kernels.reference.{file}"
    assert name in reference.__all__
    kernel = getattr(__import__(f"mixmem.kernels.{file}", fromlist=[name]), name)
    assert list(inspect.signature(form).parameters) == list(inspect.signature(kernel).parameters)


@pytest.mark.parametrize("path", sorted((FOLDER / "reference").glob("*.py")), ids=lambda path: path.stem)
def test_slow_forms_do_without_numba(path):
    text = path.read_text()
    assert "import numba" not in text
    assert "_numba" not in text


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_every_kernel_file_has_its_test_file(path):
    assert (Path(__file__).parent / f"test_{path.name}").is_file()


def innermost(function):
    """Loops of a function that hold no loop."""
    loops = [node for node in ast.walk(function) if isinstance(node, ast.For | ast.While)]
    return [loop for loop in loops if sum(isinstance(node, ast.For | ast.While) for node in ast.walk(loop)) == 1]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_loops_that_sum_in_lanes_write_nothing(path):
    """Whether lanes are taken depends on where written arrays lie in memory, and lanes round differently."""
    for function in ast.parse(path.read_text()).body:
        if isinstance(function, ast.FunctionDef) and "vector_kernel" in map(ast.unparse, function.decorator_list):
            for loop in innermost(function):
                summed = [n for n in ast.walk(loop) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)]
                targets = [t for n in ast.walk(loop) if isinstance(n, ast.Assign) for t in n.targets]
                targets += [n.target for n in ast.walk(loop) if isinstance(n, ast.AugAssign)]
                written = [ast.unparse(t) for t in targets if isinstance(t, ast.Subscript)]
                assert not (summed and written), f"{function.name}, line {loop.lineno}: sums, and writes {written}"
