"""What the parameters of the crowd's estimators may be, declared as data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixmem.models.crowd.fits import MODELS, SOLVERS, STARTS
from mixmem.parameters import Allowed


def one_of(*names: str) -> Allowed:
    """Allow one of some names."""
    return Allowed(f"one of {', '.join(map(repr, names))}", lambda value: isinstance(value, str) and value in names)


def number(least: float, words: str) -> Allowed:
    """Allow finite numbers from ``least`` on."""
    kinds = (int, float, np.number)
    return Allowed(
        words, lambda value: isinstance(value, kinds) and type(value) is not bool and least <= float(value) < np.inf
    )


def whole(least: int) -> Allowed:
    """Allow integers from ``least`` on."""
    return Allowed(
        f"an integer of at least {least}",
        lambda value: isinstance(value, (int, np.integer)) and type(value) is not bool and int(value) >= least,
    )


def three_names() -> Allowed:
    """Allow names of the columns of the task, the worker and the label."""
    return Allowed(
        "three names of columns: of the task, the worker and the label",
        lambda value: not isinstance(value, str) and isinstance(value, Sequence) and len(value) == 3,
    )


PARAMETERS = {
    "n_iter": whole(1),
    "tol": Allowed(
        "a number; a negative one runs all rounds",
        lambda value: isinstance(value, (int, float, np.number)) and not np.isnan(float(value)),
    ),
    "model": one_of("auto", *MODELS),
    "start": one_of(*STARTS),
    "solver": one_of(*SOLVERS),
    "smoothing": number(1e-6, "a positive number"),
    "n_communities": whole(2),
    "prior": one_of("auto", "uniform", "estimate"),
    "compat": Allowed("None or 'zhang'", lambda value: value is None or value == "zhang"),
    "columns": three_names(),
    "classes": Allowed(
        "None or a list of different classes",
        lambda value: (
            value is None or (isinstance(value, (list, tuple, np.ndarray)) and 0 < len(value) == len(set(value)))
        ),
    ),
    "clean": Allowed("True or False", lambda value: isinstance(value, (bool, np.bool_))),
}
