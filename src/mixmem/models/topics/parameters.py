"""What the parameters of TopicModel may be, declared as data."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixmem.parameters import PARAMETERS as COMMON
from mixmem.parameters import Allowed

STARTS = ("auto", "moments", "online")
REFINEMENTS = (None, "auto", "cvb0", "gibbs", "em")


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and type(value) is not bool and 0.0 < float(value) < 1e6


PARAMETERS = {
    "n_components": COMMON["n_components"],
    "alpha0": COMMON["alpha0"],
    "beta": Allowed(
        "'auto' or a positive number", lambda value: value == "auto" if isinstance(value, str) else _positive(value)
    ),
    "start": Allowed(
        f"one of {', '.join(map(repr, STARTS))}", lambda value: isinstance(value, str) and value in STARTS
    ),
    "refine": Allowed(
        "None, 'auto', 'cvb0', 'gibbs' or 'em'",
        lambda value: value is None or (isinstance(value, str) and value in REFINEMENTS),
    ),
    "max_iter": Allowed("an integer of at least 1", COMMON["n_restarts"].test),
    "tol": Allowed("a positive number", _positive),
    "seed_words": Allowed(
        "None, a dictionary from topic to words, or a list of lists of words",
        lambda value: value is None or isinstance(value, (dict, list, tuple)),
    ),
    "random_state": COMMON["random_state"],
    "n_jobs": COMMON["n_jobs"],
    "verbose": COMMON["verbose"],
}
