"""Mixed membership models, fast: hidden components of a table and every row's memberships in them.

>>> from mixmem import GDLM, simulate_gdlm
>>> table = simulate_gdlm(300, 12, 2, random_state=0).frame
>>> GDLM(2, alpha0=0.2, random_state=0).fit(table).alpha_.shape
(2,)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.2.0.dev0"

# Public names and where they live. They are imported when first used: the command line's --help needs none of them.
# __init__.pyi lists the same names for editors and type checkers; tests/test_public_names.py keeps the two equal.
_HOMES = {
    "GDLM": "models.gdlm",
    "load": "models.gdlm",
    "DawidSkene": "models.crowd.model",
    "MajorityVote": "models.crowd.model",
    "OneCoinDawidSkene": "models.crowd.model",
    "TopicModel": "models.topics.model",
    "DocumentPieces": "data.document_pieces",
    "TokenMoments": "moments.documents",
    "token_moments": "moments.documents",
    "SimulatedDocuments": "results.simulate_documents",
    "simulate_documents": "results.simulate_documents",
    "TopicChoice": "selection.n_topics",
    "choose_topics": "selection.n_topics",
    "FitWarning": "errors",
    "InputError": "errors",
    "TableWarning": "errors",
    "Schema": "data.schema",
    "Variable": "data.schema",
    "Encoded": "data.encode",
    "encode": "data.encode",
    "learn_coding": "data.encode",
    "Coding": "data.coding",
    "n_stretches": "engine.rows",
    "stretch_rows": "engine.rows",
    "decode": "data.encode",
    "BlockMoments": "moments.third_moments",
    "FirstMoments": "moments.sums",
    "Moments": "models.moments",
    "MomentsPlan": "models.moments_plan",
    "correct_second": "moments.dirichlet",
    "correct_third": "moments.dirichlet",
    "first_moments": "moments.sums",
    "second_moment": "moments.dirichlet",
    "second_moments": "moments.sums",
    "third_moment": "moments.dirichlet",
    "third_moments": "moments.third_moments",
    "weights_of": "moments.dirichlet",
    "Plan": "moments.anchors",
    "make_plan": "moments.anchors",
    "Factorization": "moments.solvers",
    "NqpResult": "moments.solvers",
    "factorize": "moments.solvers",
    "solve_nqp": "moments.solvers",
    "Guarantee": "moments.matching",
    "Matching": "moments.matching",
    "match_columns": "moments.matching",
    "RowFit": "likelihood.memberships",
    "fit_rows": "likelihood.memberships",
    "row_likelihood": "likelihood.marginal",
    "Simulation": "results.simulate",
    "simulate_gdlm": "results.simulate",
    "simulate_mixed": "results.simulate",
    "Goodness": "results.goodness",
    "goodness_of_fit": "results.goodness",
    "Alignment": "moments.components",
    "alignment": "moments.components",
    "common_rows": "moments.components",
    "Comparison": "results.compare",
    "Regression": "results.compare",
    "KChoice": "selection.n_components",
    "choose_k": "selection.n_components",
    "align_components": "moments.components",
    "rmse": "moments.components",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mixmem' has no attribute {name!r}")
    return getattr(import_module(f"mixmem.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
