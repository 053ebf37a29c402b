"""What the estimator's parameters may be: declared here, checked in one place."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from mixmem.errors import InputError
from mixmem.typing import MatchingName, RefineName, SolverName

BLOCK_STARTS = ("random", "anchors")
SOLVERS, METHODS, REFINE = get_args(SolverName), get_args(MatchingName), (None, *get_args(RefineName))


@dataclass(frozen=True)
class Allowed:
    """What a parameter may be, in words and as a test."""

    words: str
    test: Callable[[Any], bool]


def _integer(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (int, np.integer)) and type(value) is not bool and int(value) >= least


def _concentration(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and type(value) is not bool and 1e-6 <= float(value) <= 1e6


def _share(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and type(value) is not bool and 0.0 <= float(value) < 1.0


UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def bytes_of(value: Any) -> int | None:
    """Return the bytes of a limit: a number of them, or a text with a unit; None if it is neither, or nothing.

    >>> bytes_of("2GB"), bytes_of("500 mb"), bytes_of("1.5GiB"), bytes_of(4096), bytes_of("much")
    (2000000000, 500000000, 1610612736, 4096, None)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", str(value).lower())
    if found is None or type(value) is bool:
        return None
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** UNITS[unit]) or None


def _auto_or(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value == "auto" if isinstance(value, str) else test(value)


PARAMETERS: dict[str, Allowed] = {
    "n_components": Allowed("an integer of at least 1", _integer(1)),
    "alpha0": Allowed("'auto' or a positive number from 1e-6 to 1e6", _auto_or(_concentration)),
    "variables": Allowed(
        "None or a dictionary from column name to kind", lambda value: value is None or isinstance(value, Mapping)
    ),
    "anchors": Allowed(
        "'auto' or three lists of variable names", _auto_or(lambda value: isinstance(value, (list, tuple)))
    ),
    "n_partitions": Allowed("'auto' or an integer of at least 1", _auto_or(_integer(1))),
    "sweeps": Allowed("'auto' or an integer of at least 0", _auto_or(_integer(0))),
    "solver": Allowed(
        f"one of {', '.join(map(repr, SOLVERS))}", lambda value: isinstance(value, str) and value in SOLVERS
    ),
    "matching": Allowed(
        f"one of {', '.join(map(repr, METHODS))}", lambda value: isinstance(value, str) and value in METHODS
    ),
    "block_start": Allowed(
        f"one of {', '.join(map(repr, BLOCK_STARTS))}", lambda value: isinstance(value, str) and value in BLOCK_STARTS
    ),
    "max_rounds": Allowed("an integer of at least 1", _integer(1)),
    "tol": Allowed("'auto' or a number from 0 to less than 1", _auto_or(_share)),
    "check_alpha0": Allowed("True or False", lambda value: isinstance(value, (bool, np.bool_))),
    "refine": Allowed(
        "None, 'auto', 'gibbs', 'integrated' or 'em'",
        lambda value: value is None or (isinstance(value, str) and value in REFINE),
    ),
    "contamination": Allowed("'auto' or a share from 0 to less than 1", _auto_or(_share)),
    "memberships": Allowed("'mean' or 'mode'", lambda value: isinstance(value, str) and value in ("mean", "mode")),
    "missing": Allowed(
        "None, a list of values that mean a missing cell, or a dictionary from column to such a list",
        lambda value: value is None or isinstance(value, (list, tuple, set, Mapping, str, int, float)),
    ),
    "handle_unknown": Allowed(
        "'missing' or 'error'", lambda value: isinstance(value, str) and value in ("missing", "error")
    ),
    "n_restarts": Allowed("an integer of at least 1", _integer(1)),
    "random_state": Allowed(
        "None, an integer of at least 0, or a numpy random generator",
        lambda value: (
            value is None or _integer(0)(value) or isinstance(value, (np.random.Generator, np.random.RandomState))
        ),
    ),
    "n_jobs": Allowed(
        "None (all cores), -1 (all cores) or an integer of at least 1",
        lambda value: value is None or value == -1 or _integer(1)(value),
    ),
    "memory_limit": Allowed(
        "None or a number of bytes, such as 2000000000 or '2GB'",
        lambda value: value is None or bytes_of(value) is not None,
    ),
    "passes": Allowed(
        "'auto', 'few' (a sample, corrected by all rows) or 'all' (sweeps over all rows)",
        lambda value: isinstance(value, str) and value in ("auto", "few", "all"),
    ),
    "scratch": Allowed(
        "None or the path of a folder", lambda value: value is None or isinstance(value, (str, os.PathLike))
    ),
    "verbose": Allowed("True or False", lambda value: isinstance(value, (bool, np.bool_, int))),
}


def check_parameters(values: Mapping[str, Any]) -> None:
    """Refuse the first parameter of GDLM that is not what it may be."""
    check_values(values, PARAMETERS)


def check_values(values: Mapping[str, Any], allowed: Mapping[str, Allowed]) -> None:
    """Refuse the first value that is not what it may be."""
    for name, value in values.items():
        if not allowed[name].test(value):
            raise InputError(f"{name} must be {allowed[name].words}; got {value!r}")


def check_level(level: Any) -> None:
    """Refuse a level of intervals that is no share.

    >>> check_level(0.95)
    """
    if not isinstance(level, (int, float, np.number)) or not 0.0 < level < 1.0:
        raise InputError(f"level is the share of intervals that hold the truth, between 0 and 1; got {level!r}")
