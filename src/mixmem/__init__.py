"""Mixed membership models, fast: hidden components of a table and every row's memberships in them.

>>> from mixmem import GDLM, simulate_gdlm
>>> table = simulate_gdlm(300, 12, 2, random_state=0).frame
>>> GDLM(2, alpha0=0.2, random_state=0).fit(table).alpha_.shape
(2,)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public names and where they live. They are imported when first used: the command line's --help needs none of them.
_HOMES = {
    "GDLM": "model",
    "load": "model",
    "InputError": "errors",
    "Schema": "schema",
    "Variable": "schema",
    "Encoded": "encoding",
    "encode": "encoding",
    "decode": "encoding",
    "BlockMoments": "moments",
    "FirstMoments": "moments",
    "correct_second": "moments",
    "correct_third": "moments",
    "first_moments": "moments",
    "second_moment": "moments",
    "second_moments": "moments",
    "third_moment": "moments",
    "third_moments": "moments",
    "weights_of": "moments",
    "Plan": "plan",
    "make_plan": "plan",
    "Factorization": "solvers",
    "NqpResult": "solvers",
    "factorize": "solvers",
    "solve_nqp": "solvers",
    "Guarantee": "match",
    "Matching": "match",
    "match_columns": "match",
    "RowFit": "memberships",
    "fit_rows": "memberships",
    "row_likelihood": "select",
    "Simulation": "simulate",
    "simulate_gdlm": "simulate",
    "simulate_mixed": "simulate",
    "Goodness": "goodness",
    "goodness_of_fit": "goodness",
    "Alignment": "align",
    "alignment": "align",
    "common_rows": "align",
    "KChoice": "choice",
    "choose_k": "choice",
    "align_components": "scores",
    "rmse": "scores",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mixmem' has no attribute {name!r}")
    return getattr(import_module(f"mixmem.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
