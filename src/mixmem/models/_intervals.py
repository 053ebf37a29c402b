"""Standard errors and intervals of a fitted model's parameters, and of memberships."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.data.schema import Schema
from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.likelihood.contamination import Noise
from mixmem.moments.estimate import sweep_tolerance
from mixmem.parameters import check_level
from mixmem.progress import Progress
from mixmem.results.fit_report import FitReport
from mixmem.results.uncertainty import Uncertainty, jackknife, membership_intervals
from mixmem.typing import Array

if TYPE_CHECKING:
    import pandas as pd


class Intervals:
    """Say how sure theta, alpha, the contamination and memberships are."""

    schema_: Schema
    alpha_: Array
    contamination_: float
    report_: FitReport
    n_jobs: int | None
    _theta: Array
    _noisy: Array
    _errors: Uncertainty | None = None

    def _encoded(self, X: Any) -> Encoded:
        raise NotImplementedError

    def _table_of(self, X: Any) -> Encoded:
        raise NotImplementedError

    def _check_fitted(self) -> None:
        raise NotImplementedError

    def _progress(self) -> Progress:
        raise NotImplementedError

    def intervals(self, level: float = 0.95, X: Any = None) -> pd.DataFrame:
        """Return estimates, standard errors and intervals of theta, alpha and the contamination, as one table.

        Columns: parameter, variable, level, statistic, component, estimate, standard_error, lower, upper. After
        sampling they are those of the posterior. Otherwise rows are left out in twenty groups and the moment estimate
        is made again from there by a few sweeps, when this is first called (alpha0 is taken as known); a model read
        from a file needs the table ``X`` for it.

        Parameters
        ----------
        level : float
            Share of intervals that hold the truth.
        X : frame, array, Arrow table or path, or None
            The table that the model was fitted to; a model that was just fitted holds it.

        Examples
        --------
        >>> from mixmem import GDLM, simulate_gdlm
        >>> model = GDLM(2, alpha0=0.2, random_state=0).fit(simulate_gdlm(300, 9, 2, random_state=0).frame)
        >>> model.intervals(level=0.9).columns.tolist()[-4:]
        ['estimate', 'standard_error', 'lower', 'upper']
        """
        self._check_fitted()
        check_level(level)
        if self._errors is None or (X is not None and self._errors.alpha_draws is None):
            self._errors = self._jackknife(self._table_of(X))
        return self._errors.table(self.schema_, self._theta, self.alpha_, level)

    def membership_intervals(self, X: Any, level: float = 0.95) -> pd.DataFrame:
        """Return the posterior mean of every row's memberships with its interval; theta is taken as known.

        Columns: row, component, estimate, standard_error, lower, upper; n * k lines.

        Parameters
        ----------
        X : frame, array, Arrow table or path
            Rows with the columns that the model was fitted to.
        level : float
            Share of intervals that hold the truth.

        Examples
        --------
        >>> from mixmem import GDLM, simulate_gdlm
        >>> table = simulate_gdlm(300, 9, 2, random_state=0).frame
        >>> model = GDLM(2, alpha0=0.2, random_state=0).fit(table)
        >>> model.membership_intervals(table[:5]).shape
        (10, 6)
        """
        import pandas as pd

        table = self._encoded(X)
        check_level(level)
        with threads(self.n_jobs):
            mean, error, (low, high) = membership_intervals(
                table, self._noisy, self.alpha_, level, progress=self._progress()
            )
        n, k = mean.shape
        return pd.DataFrame(
            {
                "row": np.repeat(table.row_ids, k),
                "component": np.tile(np.arange(1, k + 1), n),
                "estimate": mean.ravel(),
                "standard_error": error.ravel(),
                "lower": low.ravel(),
                "upper": high.ravel(),
            }
        )

    def _jackknife(self, table: Encoded) -> Uncertainty:
        if table.n_rows != self.report_.rows:
            raise InputError(
                f"standard errors need the table the model was fitted to, of {self.report_.rows} rows; "
                f"this one has {table.n_rows}"
            )
        if table.n_variables < 3:
            raise InputError(
                "two variables have no third moments, and so no standard errors without sampling; expected "
                "refine='gibbs'"
            )
        if self.report_.refine.method == "em":
            raise InputError("there are no standard errors after refine='em'; expected None or 'gibbs'")
        k, seed = len(self.alpha_), np.random.SeedSequence(self.report_.seed)
        tol = sweep_tolerance(k, table.n_effective)
        noise = 1.0 - self.contamination_
        with threads(self.n_jobs):
            found = jackknife(table, self._noisy, self.alpha_, tol=tol, seed=seed, progress=self._progress())
        return replace(found, theta=np.where(Noise(self.schema_).takes_part[:, None], found.theta / noise, found.theta))
