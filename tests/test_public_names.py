"""Public names: the stub says what the package has, types reach a user's code, and every parameter is documented."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mixmem

PACKAGE = Path(mixmem.__file__).parent
STUB = ast.parse((PACKAGE / "__init__.pyi").read_text())


def test_the_stub_imports_every_public_name_from_its_home():
    imported = {
        alias.asname: (node.module, alias.name)
        for node in STUB.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {name: (f"mixmem.{home}", name) for name, home in mixmem._HOMES.items()}


def test_the_stub_lists_the_same_names():
    (names,) = [node.value for node in STUB.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"]
    assert sorted(ast.literal_eval(names)) == sorted(mixmem.__all__)


def test_the_package_says_that_it_has_types():
    assert (PACKAGE / "py.typed").exists()


def test_the_version_is_the_same_everywhere():
    root = Path(__file__).parents[1]
    assert tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"] == mixmem.__version__
    assert f"\nversion: {mixmem.__version__}\n" in (root / "CITATION.cff").read_text()


@pytest.mark.parametrize("name", sorted(mixmem._HOMES))
def test_public_names_are_found_where_they_live(name):
    found = getattr(mixmem, name)
    assert found.__module__.startswith(f"mixmem.{mixmem._HOMES[name]}")
    assert getattr(sys.modules[f"mixmem.{mixmem._HOMES[name]}"], name) is found


# --- Types, as a user's type checker sees them

TYPED = """
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import mixmem
from mixmem import GDLM, DawidSkene, KChoice, MajorityVote, choose_k, factorize

Array = NDArray[np.float64]
x = np.zeros((30, 5))
t = np.ones((2, 2, 2))
rows = [("t1", "ann", "cat"), ("t1", "bob", "dog")]

assert_type(GDLM(2).fit(x), GDLM)
assert_type(GDLM(2).fit(x).transform(x), Array)
assert_type(GDLM(2).fit_transform(x), Array)
assert_type(GDLM(2).set_params(alpha0=1.0), GDLM)
assert_type(GDLM(2).score(x), float)
assert_type(mixmem.load("model.mixmem"), GDLM)
assert_type(choose_k(x), KChoice)
assert_type(choose_k(x).k, int)
assert_type(factorize(t, 2).factors, tuple[Array, Array, Array])
assert_type(factorize(t, 2).converged, bool)
assert_type(DawidSkene().fit(rows), DawidSkene)
assert_type(MajorityVote().fit(rows), MajorityVote)
assert_type(DawidSkene().fit(rows).confusion_, Array)
assert_type(mixmem.__version__, str)
"""

MISTAKES = {
    "GDLM(2, no_such=3)": 'Unexpected keyword argument "no_such" for "GDLM"',
    "GDLM(2).fti(1)": '"GDLM" has no attribute "fti"',
    "GDLM(2).fit(x).transfrom(x)": '"GDLM" has no attribute "transfrom"',
    "choose_k(x, k_rnage=(1, 2))": 'Unexpected keyword argument "k_rnage" for "choose_k"',
    'factorize(t, 2, solvr="pqp")': 'Unexpected keyword argument "solvr" for "factorize"',
    "DawidSkene(no_such=1)": 'Unexpected keyword argument "no_such" for "DawidSkene"',
    "DawidSkene().fti(rows)": '"DawidSkene" has no attribute "fti"',
    "mixmem.no_such_name": 'Module has no attribute "no_such_name"',
}


def test_types_reach_a_users_own_file(tmp_path):
    """One run of mypy --strict over a user's file: right lines pass, and each mistake is reported on its own line."""
    pytest.importorskip("mypy")
    text = TYPED + "".join(f"{line}\n" for line in MISTAKES)
    (tmp_path / "analysis.py").write_text(text)
    first = len(TYPED.splitlines()) + 1
    cache = ["--cache-dir", str(Path(__file__).parents[1] / ".mypy_cache" / "users_file")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--hide-error-context", *cache, "analysis.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    reported: dict[int, str] = {}
    for line, message in re.findall(r"^analysis\.py:(\d+): error: (.*)$", done.stdout, flags=re.MULTILINE):
        reported[int(line)] = reported.get(int(line), "") + message
    assert set(reported) == set(range(first, first + len(MISTAKES))), done.stdout + done.stderr
    for line, (mistake, expected) in enumerate(MISTAKES.items(), first):
        assert expected in reported[line], mistake


# --- Sections of parameters


def _documented(docstring: str, title: str) -> set[str]:
    """Names in a section of a numpydoc docstring; one line may have several."""
    lines = inspect.cleandoc(docstring).splitlines()
    if title not in lines:
        return set()
    begin = lines.index(title) + 2
    ends = [i for i in range(begin, len(lines)) if lines[i] and set(lines[i]) == {"-"}]
    section = lines[begin : ends[0] - 1] if ends else lines[begin:]
    heads = [line.split(" : ")[0] for line in section if line and not line.startswith((" ", ">>>"))]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


@pytest.mark.parametrize("name", sorted(set(mixmem._HOMES) - {"FitWarning", "InputError", "TableWarning"}))
def test_every_parameter_of_a_public_name_is_documented(name):
    """By its name: of functions and estimators under Parameters, of results under Attributes."""
    found = getattr(mixmem, name)
    title = "Attributes" if dataclasses.is_dataclass(found) else "Parameters"
    assert _documented(found.__doc__, title) == set(inspect.signature(found).parameters)


ESTIMATORS = ["GDLM", "TopicModel", "DawidSkene", "MajorityVote", "OneCoinDawidSkene"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_of_an_estimators_method_is_documented(name):
    for method, text in _documented_parts(name)[1:]:
        function = getattr(getattr(mixmem, name), method.partition(".")[2])
        if inspect.isroutine(function):
            wanted = set(inspect.signature(function).parameters) - {"self"}
            assert _documented(text, "Parameters") == wanted, method


# --- Words of docstrings


def _documented_parts(name: str) -> list[tuple[str, str]]:
    """(name, docstring) of a public name, and of the public methods and properties that it has from this package."""
    found = getattr(mixmem, name)
    parts = [(name, found.__doc__ or "")]
    for own in {own for base in inspect.getmro(found) for own in vars(base)} if inspect.isclass(found) else ():
        part = inspect.getattr_static(found, own)
        function = getattr(part, "fget", None) or getattr(part, "func", None) or getattr(part, "__func__", part)
        if not own.startswith("_") and inspect.isfunction(function) and function.__module__.startswith("mixmem"):
            parts.append((f"{name}.{own}", function.__doc__ or ""))
    return parts


@pytest.mark.parametrize("name", sorted(mixmem._HOMES))
def test_docstrings_are_plain(name):
    for part, text in _documented_parts(name):
        assert not re.search(r"(^|[.:;]\s+|\n\s*\n\s*)(What|Of)\s", text), part
        if "." in part:
            assert re.match(r"[A-Z][a-z]+", text), f"{part} has no docstring that begins with a verb"
            assert text.split()[0] not in {
                "A",
                "The",
                "Whether",
                "How",
                "Where",
                "Weight",
                "Share",
                "Rows",
                "Variables",
                "Variable",
            }, part
