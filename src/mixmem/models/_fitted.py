"""What a fitted model answers: memberships, likelihoods, intervals, imputed and simulated tables, files."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast, overload

import numpy as np
from numpy.typing import NDArray

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded, encode
from mixmem.data.read import read_table
from mixmem.data.schema import Schema
from mixmem.data.table_checks import check_weights
from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.likelihood.contamination import noisy_theta
from mixmem.likelihood.marginal import row_likelihood
from mixmem.likelihood.memberships import RowFit, fit_rows
from mixmem.models._announced import announced
from mixmem.models._comparing import Comparing
from mixmem.models._exporting import Exporting
from mixmem.models._intervals import Intervals
from mixmem.moments.components import alignment
from mixmem.moments.sums import FirstMoments
from mixmem.progress import Progress, in_python
from mixmem.refinement.cross_validation import cross_validation
from mixmem.results.distinctive import spread_of_variables
from mixmem.results.fit_report import FitReport, read_report
from mixmem.results.goodness import Goodness, goodness_of_fit
from mixmem.results.impute import filled_frame, fillings, imputed
from mixmem.results.simulate import draw_table
from mixmem.results.uncertainty import Uncertainty
from mixmem.storage.model_file import load_model, save_model
from mixmem.storage.model_values import check_model_values
from mixmem.storage.run_id import run_id
from mixmem.typing import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Training:
    """Hold the table that a model was fitted to, its first moments if they were taken, the rows' likeliest memberships
    if the likelihood was climbed, and their memberships once they are asked for."""

    table: Encoded
    first: FirstMoments | None
    likeliest: Array | None
    rows: RowFit | None = None

    def ordered(self, order: NDArray[np.int64]) -> Training:
        """Return the same with components in another order."""
        return Training(self.table, self.first, None if self.likeliest is None else self.likeliest[:, order])


class Fitted(Comparing, Exporting, Intervals):
    """Answer for a model after its fit, or out of a file."""

    coding_: Coding
    schema_: Schema
    alpha_: Array
    alpha0_: float
    contamination_: float
    report_: FitReport
    n_features_in_: int
    missing: Any
    handle_unknown: str
    n_jobs: int | None
    verbose: bool
    _theta: Array
    _noisy: Array
    _training: Training | None = None
    _errors: Uncertainty | None = None
    _row_name: str | None = None
    """The column that named the rows of the fit, where the command line was told of one."""

    @property
    def memberships_(self) -> Array:
        """Return memberships (n, k) of the rows the model was fitted to, as :meth:`transform` gives them."""
        return self.rows_.memberships

    @property
    def rows_(self) -> RowFit:
        """Return memberships and likelihoods of the rows the model was fitted to, computed when first asked for."""
        training = self._trained()
        if training.rows is None:
            training.rows = self._fit_rows(training.table)
        return training.rows

    def _trained(self) -> Training:
        self._check_fitted()
        if self._training is None:
            raise InputError(
                "a stored model does not hold the rows it was fitted to; expected transform(X) or fit_rows(X) with them"
            )
        return self._training

    def transform(self, X: Any) -> Array:
        """Return memberships (n, k) of rows; see the model."""
        return self.fit_rows(X).memberships.copy()

    def fit_rows(self, X: Any) -> RowFit:
        """Return memberships together with each row's likelihood and how well Newton's method ended.

        Parameters
        ----------
        X : frame, array, Arrow table or path
            Rows with the columns that the model was fitted to.
        """
        table = self._encoded(X)
        return self.rows_ if self._is_training(table) else self._fit_rows(table)

    def _is_training(self, table: Encoded) -> bool:
        return self._training is not None and table is self._training.table

    def _fit_rows(self, table: Encoded) -> RowFit:
        with threads(self.n_jobs):
            rule = self.report_.memberships
            return fit_rows(table, self._noisy, self.alpha_, memberships=rule, progress=self._progress())

    @overload
    def score_samples(self, X: Any, *, return_std: Literal[False] = False) -> Array: ...
    @overload
    def score_samples(self, X: Any, *, return_std: Literal[True]) -> tuple[Array, Array]: ...
    def score_samples(self, X: Any, *, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the log-likelihood of every row (n,), memberships integrated out under Dirichlet(alpha).

        Exact where components are few for the rows' length, else within a standard error that ``return_std=True``
        returns beside it, (n,); see :func:`mixmem.row_likelihood`. Equal rows get equal values.

        Parameters
        ----------
        X : frame, array, Arrow table or path
            Rows with the columns that the model was fitted to.
        return_std : bool
            Return standard errors (n,) of the likelihoods, too.
        """
        table = self._encoded(X)
        with threads(self.n_jobs):
            values, errors = row_likelihood(table, self._noisy, self.alpha_, return_std=True)
        return (values, errors) if return_std else values

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of a row, with weights (n,) if rows stand for several.

        Parameters
        ----------
        X : frame, array, Arrow table or path
            Rows with the columns that the model was fitted to.
        y : None
            Not used.
        sample_weight : array (n,) or None
            How many rows each row stands for.
        """
        scores = self.score_samples(X)
        weights = None if sample_weight is None else check_weights(sample_weight, len(scores))
        return float(np.average(scores, weights=weights))

    def impute(self, X: Any) -> pd.DataFrame:
        """Fill the missing cells of a table with what the row's memberships make most likely.

        Categories and genotypes get their most probable value, numbers their mean (whole ones rounded). A pandas frame
        comes back with all else as it was; anything else as a frame of the model's columns.

        Parameters
        ----------
        X : frame, array, Arrow table or path
            Table with missing cells.

        Examples
        --------
        >>> from mixmem import GDLM, simulate_mixed
        >>> drawn = simulate_mixed(300, 2, n_categorical=6, n_count=3, n_continuous=3, missing=0.1, random_state=0)
        >>> model = GDLM(2, alpha0=0.6, refine=None, random_state=0).fit(drawn.frame)
        >>> int(model.impute(drawn.frame).isna().sum().sum())
        0
        """
        source = None if isinstance(X, Encoded) else read_table(X)
        table = self._encoded(X if source is None else source, handle_unknown="error")  # what is there stays
        memberships = self.fit_rows(table).memberships
        if (pandas := sys.modules.get("pandas")) and isinstance(X, pandas.DataFrame):
            return filled_frame(X, table, self._theta, memberships)
        return imputed(table, self._theta, memberships, source)

    def fillings(self, X: Any) -> list[tuple[int, NDArray[np.int64], list[Any]]]:
        """Return position, rows and values of the missing cells of every variable, as :meth:`impute` fills them.

        Parameters
        ----------
        X : frame, array, Arrow table or path
            Table with missing cells.
        """
        table = self._encoded(X)
        return list(fillings(table, self._theta, self.fit_rows(table).memberships))

    def sample(self, n_samples: int = 1, *, random_state: int | np.random.Generator | None = None) -> pd.DataFrame:
        """Draw new rows from the fitted model, with the columns and levels of the table it was fitted to.

        Parameters
        ----------
        n_samples : int
            Rows to draw.
        random_state : int, Generator or None
            Seed; None draws other rows every time.
        """
        self._check_fitted()
        if n_samples < 1:
            raise InputError(f"n_samples must be an integer of at least 1; got {n_samples!r}")
        return draw_table(self.schema_, self._noisy, self.alpha_, n_samples, np.random.default_rng(random_state))

    def cross_validation(self, X: Any, folds: int = 5) -> float:
        """Return the error of predicting genotypes that were hidden, fold after fold, as ADMIXTURE reports it.

        For tables of diploid loci with two alleles. A fold's fit starts anew, without the genotypes hidden. The
        smaller the better: compare fits with different numbers of components to the same table.

        Parameters
        ----------
        X : frame, array, Arrow table or path
            Genotypes, as they were fitted.
        folds : int
            Parts in which genotypes are hidden, one after the other.
        """
        table = self._encoded(X)
        seed = np.random.SeedSequence([*np.random.SeedSequence(self.report_.seed).generate_state(4), 6])
        with threads(self.n_jobs):
            return cross_validation(table, len(self.alpha_), folds=folds, seed=seed, progress=self._progress())

    def _table_of(self, X: Any) -> Encoded:
        """Return the table that the model was fitted to, coded as it was then."""
        if X is not None:
            known = self.coding_ if all(len(c.values) for c in self.coding_.columns if c.is_number) else None
            return (
                X
                if isinstance(X, Encoded)
                else encode(X, None if known else self.schema_, coding=known, missing=self.missing, gather=True)
            )
        if self._training is None:
            raise InputError(
                "standard errors of a moment estimate need the table it came from, which a stored model does not hold; "
                "expected intervals(X=table), or a model fitted with refine='gibbs'"
            )
        return self._training.table

    def goodness_of_fit(self, X: Any) -> Goodness:
        """Compare pairs of answers in a table with what the components say, worst variables first.

        Parameters
        ----------
        X : frame, array, Arrow table or path
            Rows with the columns that the model was fitted to.

        Examples
        --------
        >>> from mixmem import GDLM, simulate_gdlm
        >>> table = simulate_gdlm(300, 9, 2, random_state=0).frame
        >>> GDLM(2, alpha0=0.2, random_state=0).fit(table).goodness_of_fit(table).variables.shape
        (9, 9)
        """
        table = self._encoded(X).repeated("goodness of fit")
        first = self._training.first if self._training is not None and self._is_training(table) else None
        with threads(self.n_jobs):
            return goodness_of_fit(table, self._noisy, self.alpha_, first=first)

    def align_to(self, other: Fitted) -> Self:
        """Put the components into the order of another model's, whose theta they resemble most; returns the model.

        The models may be fitted to different tables, as long as they share some variables and levels.

        Parameters
        ----------
        other : GDLM
            Fitted model whose order is taken.

        Examples
        --------
        >>> from mixmem import GDLM, simulate_gdlm
        >>> table = simulate_gdlm(500, 9, 3, random_state=0).frame
        >>> model = GDLM(3, alpha0=0.3, random_state=0).fit(table[:250])
        >>> model.align_to(GDLM(3, alpha0=0.3, random_state=1).fit(table[250:])).alpha_.shape
        (3,)
        """
        self._check_fitted()
        other._check_fitted()
        order = alignment(other.schema_, other._theta, self.schema_, self._theta).order
        self._set(self.coding_, self._theta[:, order], self.alpha_[order], self.contamination_, self.report_)
        if self._errors is not None:
            self._errors = self._errors.ordered(order)
        if self._training is not None:
            self._training = self._training.ordered(order)
        return self

    def save(self, path: str | Path) -> None:
        """Write the model to a file, atomically; ``mixmem.load`` reads it. Neither uses pickle.

        Parameters
        ----------
        path : str or Path
            File to write.
        """
        self._check_fitted()
        header = {
            "run": self.run_id, "coding": self.coding_.to_dict(), "parameters": self._parameters(),
            "report": self.report_.to_plain(), "row_name": self._row_name,
        }  # fmt: skip
        errors = self._errors.arrays() if self._errors is not None else {}
        arrays, further = self._kept()
        save_model(path, self._arrays() | errors | arrays, header | further)

    def _forget(self) -> None:
        """Forget what was kept beside the model of before; here nothing is."""

    def _kept(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return what a model keeps beside itself in its file; here nothing."""
        return {}, {}

    def _take_kept(self, path: str | Path, arrays: dict[str, Array], header: dict[str, Any]) -> None:
        """Take back what :meth:`_kept` gave."""

    @property
    def run_id(self) -> str:
        """Return the name of the fit, derived from theta, alpha, the contamination and the settings."""
        self._check_fitted()
        return run_id(self._arrays(), self._parameters())

    def _arrays(self) -> dict[str, Array]:
        return {"theta": self._theta, "alpha": self.alpha_, "contamination": np.array([self.contamination_])}

    def _parameters(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in self.get_params(deep=False).items()}

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that :meth:`save` wrote, of this version or an earlier one; what no fit gives is refused.

        Parameters
        ----------
        path : str or Path
            File to read.
        """
        arrays, header = load_model(path)
        if header.get("model") == "topics":
            raise InputError(
                f"{path} holds topics of documents, not a model that mixmem fit wrote; read it in Python with "
                "TopicModel.load, whose transform gives memberships"
            )
        if "kind" in header:
            raise InputError(
                f"{path} holds no model of a table that mixmem fit wrote; for crowd labels use mixmem crowd --update, "
                "or DawidSkene.load in Python"
            )
        try:
            if "coding" in header:
                coding = Coding.from_dict(header["coding"])
            else:  # version 0.1 kept the schema alone
                coding = Coding.of(Schema.from_dict(header["schema"]))
            theta, alpha, delta = arrays["theta"], arrays["alpha"], float(arrays["contamination"][0])
            if theta.shape != (coding.schema.n_rows, len(alpha)):
                raise KeyError(f"theta of shape {(coding.schema.n_rows, len(alpha))}")
            model = cls(**header["parameters"])
            report = read_report(header["report"])
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{path} is a mixmem file but lacks a part of a model ({error}); fit and save it again"
            ) from None
        check_model_values(path, coding.schema, theta, alpha, delta)
        model._set(coding, theta, alpha, delta, report)
        model._errors = Uncertainty.from_arrays(arrays)
        model._row_name = header.get("row_name")
        model._take_kept(path, arrays, header)
        model.n_features_in_ = coding.n_variables + len(coding.left_out)
        return model

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name: those of the constructor's signature, so that subclasses may have more.

        Where a constructor hands further ones on by keyword, those of the class above are parameters too.

        Parameters
        ----------
        deep : bool
            Not used: no parameter is an estimator.
        """
        names: dict[str, None] = {}
        for kind in type(self).__mro__:
            if "__init__" not in vars(kind):
                continue
            parameters = list(inspect.signature(vars(kind)["__init__"]).parameters.values())[1:]
            rest = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
            names |= dict.fromkeys(each.name for each in parameters if each.kind not in rest)
            if inspect.Parameter.VAR_KEYWORD not in {each.kind for each in parameters}:
                break
        return {name: getattr(self, name) for name in names}

    @property
    def theta_(self) -> pd.DataFrame:
        """Return theta as a table, the paper's theta_j stacked: variable, level, statistic, component_1..k."""
        return self.schema_.theta_frame(self._theta)

    def spread_of_variables(self) -> pd.Series:
        """Return how far each variable tells components apart, from 0 (alike) to 1, those that do most first.

        The mean over components, weighted by alpha, of the total variation distance from the average row.

        >>> from mixmem import GDLM, simulate_gdlm
        >>> model = GDLM(2, alpha0=0.2, random_state=0).fit(simulate_gdlm(300, 9, 2, random_state=0).frame)
        >>> model.spread_of_variables().is_monotonic_decreasing
        True
        """
        import pandas as pd

        self._check_fitted()
        spread = spread_of_variables(self._theta, self.schema_.labels, self.alpha_)
        return pd.Series(spread, index=self.schema_.names, name="spread").sort_values(ascending=False, kind="stable")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return component_1..component_k, the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : None
            Not used.
        """
        self._check_fitted()
        return np.array([f"component_{h + 1}" for h in range(len(self.alpha_))], dtype=object)

    def _set(self, coding: Coding, theta: Array, alpha: Array, delta: float, report: FitReport) -> None:
        self.coding_, self.schema_ = coding, coding.schema
        self.contamination_ = delta
        self._theta = np.ascontiguousarray(theta)
        self._noisy = np.ascontiguousarray(noisy_theta(theta, delta, self.schema_))  # what cells are drawn from
        self.alpha_ = alpha
        self.alpha0_ = float(alpha.sum())
        self.report_ = report

    def _encoded(self, X: Any, handle_unknown: str | None = None) -> Encoded:
        self._check_fitted()
        if not isinstance(X, Encoded):
            return encode(X, self.schema_, missing=self.missing, handle_unknown=handle_unknown or self.handle_unknown)
        if X.schema is not self.schema_ and X.schema != self.schema_:
            raise InputError("the table was encoded with other levels than the model's; use encode(X, model.schema_)")
        return X

    def _check_fitted(self) -> None:
        if not hasattr(self, "alpha_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit with a table first")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the table and its rows' memberships, which are kept only as long as the model lives."""
        state = cast(dict[str, Any], super().__getstate__())
        return {**state, "_training": None} if "_training" in state else state

    def _progress(self) -> Progress:
        return announced(in_python(self.verbose))


def _plain(value: Any) -> Any:
    """Return a parameter as JSON can hold it; a random generator has no value to keep."""
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [item if isinstance(item, str) else _plain(item) for item in value]
    return value
