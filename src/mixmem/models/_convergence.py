"""The warning that a fit did not converge: one of ours, and scikit-learn's own, whose import takes a while."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

from mixmem.errors import FitWarning


class NotConvergedWarning(FitWarning, ConvergenceWarning):  # type: ignore[misc]
    """The fit did not converge."""
