"""What a fitted model says of groups of rows and of covariates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.data.read import read_table
from mixmem.data.schema import Schema
from mixmem.data.table import Table, plain_values
from mixmem.data.table_checks import check_weights
from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.likelihood.memberships import RowFit
from mixmem.typing import Array
from mixmem.words import suggestion

if TYPE_CHECKING:  # they bring SciPy, which no fit needs
    from mixmem.results.compare import Comparison, Regression, Sampled
    from mixmem.results.fit_report import FitReport


class Comparing:
    """Compare groups of rows, and regress memberships on covariates."""

    n_jobs: int | None
    alpha_: Array
    schema_: Schema
    report_: FitReport
    _noisy: Array

    def _encoded(self, X: Any) -> Encoded:
        raise NotImplementedError

    def fit_rows(self, X: Any) -> RowFit:
        """Return memberships of rows; see the model."""
        raise NotImplementedError

    def compare(
        self,
        X: Any,
        by: str | Sequence[Any] | np.ndarray,
        *,
        level: float = 0.95,
        sample_weight: Any = None,
        clusters: Any = None,
        strata: Any = None,
        name: str | None = None,
    ) -> Comparison:
        """Compare groups of rows by their mean memberships, which are found without estimating any row's.

        Averages of estimated memberships make groups look too much alike: each is drawn towards the mean of all rows.
        Here a group's mean membership is the one that makes the group's cells likeliest, with standard errors from how
        rows differ; theta is taken as known.

        Parameters
        ----------
        X
            A table that :meth:`transform` takes, with the column of groups beside its variables or among them.
        by : str or sequence (n,)
            That column, or the group of every row; rows without one are left out.
        level : float
            Share of intervals that hold the truth.
        sample_weight, clusters, strata : str, sequence (n,) or None
            How the rows were sampled: their weights, which need not be whole numbers, the cluster within which rows are
            alike, and the stratum; columns of X, or values.
        name : str or None
            What the groups go by, in words; the column's name unless it is given.

        Returns
        -------
        Comparison
            Means and differences with intervals, and a test that all groups are alike.

        Examples
        --------
        >>> from mixmem import GDLM, simulate_gdlm
        >>> drawn = simulate_gdlm(400, 9, 2, random_state=0)
        >>> model = GDLM(2, alpha0=0.2, random_state=0).fit(drawn.frame)
        >>> found = model.compare(drawn.frame, by=drawn.memberships[:, 0] > 0.5)
        >>> bool(found.p_value < 1e-6), found.means.shape
        (True, (4, 8))
        """
        from mixmem.results.compare import compare_groups

        table, source = self._with_source(X)
        groups = self._of(source, by, table, "by")
        sampled = self._sampled(source, table, sample_weight, clusters, strata)
        name = name or (by if isinstance(by, str) else "group")
        self._refuse_one("compare")
        with threads(self.n_jobs):
            rows = self.fit_rows(table).memberships
            found = compare_groups(table, self._noisy, float(self.alpha_.sum()), rows, groups, name, level, sampled)
        return replace(found, notes=(*self._doubts_of_groups(name), *found.notes))

    def _doubts_of_groups(self, name: str) -> Iterator[str]:
        """Say what speaks against a comparison by groups of that name before rows are looked at."""
        if name in self.schema_.names:
            yield f"the fit had {name!r} among its columns, so groups by it differ by what the components were made of"
        for notice in self.report_.warnings:
            if notice.severity == "serious":
                yield f"the fit is to be doubted: {notice.text}"

    def regress(
        self,
        X: Any,
        on: str | Sequence[str],
        *,
        level: float = 0.95,
        sample_weight: Any = None,
        clusters: Any = None,
        strata: Any = None,
    ) -> Regression:
        """Regress memberships on columns of a table, corrected for the error of memberships.

        Mean memberships are softmax(B c) of the covariates c; effects are how much the mean membership of all rows
        would change with a covariate, others as they are. The answer of least squares on estimated memberships stands
        beside them.

        Parameters
        ----------
        X
            A table that :meth:`transform` takes, with the covariates beside its variables or among them.
        on : str or list of str
            Columns: numbers, or categories with the first level for comparison.
        level, sample_weight, clusters, strata
            As in :meth:`compare`.

        Returns
        -------
        Regression

        Examples
        --------
        >>> from mixmem import GDLM, simulate_gdlm
        >>> drawn = simulate_gdlm(400, 9, 2, random_state=0)
        >>> model = GDLM(2, alpha0=0.2, random_state=0).fit(drawn.frame)
        >>> frame = drawn.frame.assign(age=20 + 60 * drawn.memberships[:, 0])
        >>> model.regress(frame, on="age").effects.shape
        (2, 9)
        """
        from mixmem.results.compare import regress

        names = [on] if isinstance(on, str) else list(on)
        if not names or not all(isinstance(name, str) for name in names):
            raise InputError("on is the name of a column, or a list of names; add covariates to the table as columns")
        table, source = self._with_source(X)
        covariates = {name: self._of(source, name, table, "on") for name in names}
        sampled = self._sampled(source, table, sample_weight, clusters, strata)
        self._refuse_one("regress")
        with threads(self.n_jobs):
            rows = self.fit_rows(table).memberships
            return regress(table, self._noisy, rows, covariates, level, sampled)

    def _refuse_one(self, what: str) -> None:
        if len(self.alpha_) < 2:
            raise InputError(f"a model of one component has nothing to {what}; fit at least two")

    def _with_source(self, X: Any) -> tuple[Encoded, Table | None]:
        if isinstance(X, Encoded):
            return self._encoded(X), None
        source = read_table(X)
        return self._encoded(source), source

    @staticmethod
    def _of(source: Table | None, given: Any, table: Encoded, what: str) -> list[Any]:
        """Values (n,) that were given, or those of the column that was named."""
        if isinstance(given, str):
            if source is None or given not in source.names:
                known = () if source is None else source.names
                raise InputError(f"{what}: there is no column {given!r}{suggestion(given, known)}")
            return list(plain_values(source.column(source.names.index(given))).tolist())
        values = list(np.asarray(given).tolist())
        if len(values) != table.n_rows:
            raise InputError(f"{what} has {len(values)} values; expected one for each of the {table.n_rows} rows")
        return values

    def _sampled(self, source: Table | None, table: Encoded, weight: Any, clusters: Any, strata: Any) -> Sampled:
        from mixmem.results.compare import Sampled

        weights = table.weights
        if weight is not None:
            weights = check_weights(self._of(source, weight, table, "sample_weight"), table.n_rows)
        parts = [
            None if part is None else np.array(self._of(source, part, table, what), dtype=object).astype(str)
            for part, what in ((clusters, "clusters"), (strata, "strata"))
        ]
        return Sampled(weights, *parts)
