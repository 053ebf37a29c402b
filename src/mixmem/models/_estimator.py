"""Bases of the estimators: scikit-learn's own when running, typed ones for type checkers.

scikit-learn carries no types. A class that inherits from it would be ``Any`` to a type checker, which then reports no
misspelt method or parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from mixmem.typing import Array

if TYPE_CHECKING:

    class Estimator:
        """Declare the methods of ``sklearn.base.BaseEstimator``."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set parameters by name."""

        def __sklearn_tags__(self) -> Any:
            """Return what the estimator takes and gives, in scikit-learn's words."""

    class Transformer:
        """Declare the methods of ``sklearn.base.TransformerMixin``."""

        def fit_transform(self, X: Any, y: None = None, **fit_params: Any) -> Array:
            """Fit to a table and return its rows transformed."""

        def set_output(self, *, transform: Literal["default", "pandas", "polars"] | None = None) -> Self:
            """Choose the kind of table that ``transform`` returns."""

else:
    from sklearn.base import BaseEstimator as Estimator
    from sklearn.base import TransformerMixin as Transformer

__all__ = ["Estimator", "Transformer"]
