"""The estimator that tells the story; the stages do the work."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded, check_weights, encode, encode_as
from mixmem.data.read import read_table
from mixmem.data.schema import Schema
from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.likelihood.contamination import Noise, noisy_theta
from mixmem.likelihood.marginal import log_marginal
from mixmem.likelihood.memberships import RowFit, fit_rows
from mixmem.moments.anchors import Plan, anchor_moments, make_plan
from mixmem.moments.components import alignment
from mixmem.moments.estimate import Estimate, Settings, estimate, sweep_tolerance
from mixmem.moments.sums import first_moments
from mixmem.moments.theta_from_factors import theta_of
from mixmem.parameters import PARAMETERS, check_parameters
from mixmem.progress import LineProgress, Progress, current
from mixmem.refinement.admixture import are_genotypes
from mixmem.refinement.admixture_start import genotype_start
from mixmem.refinement.choose import choose_method, refine
from mixmem.refinement.cross_validation import cross_validation
from mixmem.results.fit_report import fit_report
from mixmem.results.goodness import Goodness, goodness_of_fit
from mixmem.results.impute import filled_frame, fillings, imputed
from mixmem.results.simulate import draw_table
from mixmem.results.uncertainty import Uncertainty, from_posterior, jackknife, membership_intervals
from mixmem.seeds import seed_sequence
from mixmem.selection.alpha0 import Alpha0, choose_alpha0
from mixmem.storage.model_file import load_model, save_model
from mixmem.typing import Array

if TYPE_CHECKING:
    import pandas as pd


class Learner:
    """What :class:`mixmem.GDLM` does, without scikit-learn: importing that takes longer than many a fit.

    The parameters and attributes are those of GDLM.
    """

    def __init__(
        self,
        n_components: int = 5,
        *,
        alpha0: str | float = "auto",
        variables: Mapping[str, str] | None = None,
        anchors: str | Sequence[Sequence[str]] = "auto",
        n_partitions: str | int = "auto",
        sweeps: str | int = "auto",
        solver: str = "pqp",
        matching: str = "procrustes",
        refine: str | None = "auto",
        contamination: str | float = "auto",
        missing: Any = None,
        n_restarts: int = 10,
        random_state: int | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.n_components = n_components
        self.alpha0 = alpha0
        self.variables = variables
        self.anchors = anchors
        self.n_partitions = n_partitions
        self.sweeps = sweeps
        self.solver = solver
        self.matching = matching
        self.refine = refine
        self.contamination = contamination
        self.missing = missing
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn theta and alpha from a table: a frame, an array, or the path of a file.

        ``sample_weight`` (n,) says how many rows each stands for.
        """
        check_parameters(self.get_params(deep=False))
        seed = seed_sequence(self.random_state)
        settings = Settings(
            n_components=int(self.n_components),
            solver=self.solver,
            matching=self.matching,
            n_sweeps=None if self.sweeps == "auto" else int(self.sweeps),
            n_restarts=int(self.n_restarts),
        )
        progress = self._progress()
        with threads(self.n_jobs):
            with progress.stage("read"):
                table = encode_as(X, self.variables, self.missing, sample_weight)
            if settings.n_components > len(table.codes):
                raise InputError(
                    f"n_components={settings.n_components} is more than the {len(table.codes)} rows of the table; "
                    "expected at most as many components as rows"
                )
            method, reason = choose_method(self.refine, table, settings.n_components)
            if method == "em" and are_genotypes(table.schema) and settings.n_components > 1:
                plan, chosen, found, theta = self._start_from_genotypes(table, settings, seed, progress)
            else:
                plan, chosen, found, theta = self._estimate(table, settings, seed, progress)
            total = float(len(table.codes) if table.weights is None else table.weights.sum())
            free_alpha0 = self.alpha0 == "auto" and settings.n_components > 1
            refined = refine(
                table, theta, found.concentration.alpha, method, reason,
                memberships=found.memberships, free_alpha0=free_alpha0,
                contamination=self.contamination, seed=seed, progress=progress,
            )  # fmt: skip
        order = np.argsort(-refined.alpha, kind="stable")
        self._set(table.schema, refined.theta[:, order], refined.alpha[order], refined.delta)
        self.report_ = fit_report(
            plan,
            found,
            chosen,
            refined,
            n_rows=table.codes.shape[0],
            total=total,
            free_alpha0=free_alpha0,
            seed=seed,
            seconds=progress.seconds,
        )
        self._table: Encoded | None = table
        self._errors: Uncertainty | None = None
        self._likeliest: Array | None = None if refined.maximum is None else refined.maximum.memberships[:, order]
        if refined.posterior is not None:
            self._errors = from_posterior(refined.posterior).ordered(order)
        # so many sweeps, settled or not
        asked_for = refined.method is None and settings.n_sweeps is not None and settings.n_sweeps > 0
        if not self.report_["converged"] and not asked_for:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"the fit did not converge: {self.report_['reason']}; {self.report_['advice']}",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.n_features_in_ = table.schema.n_variables
        names = getattr(X, "columns", None) if hasattr(X, "shape") else None
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _estimate(
        self, table: Encoded, settings: Settings, seed: np.random.SeedSequence, progress: Progress
    ) -> tuple[Plan, Alpha0 | None, Estimate, Array]:
        """The moment estimate and its theta (rows, k), at the alpha0 that makes rows likeliest if none was given."""
        codes, schema, weights = table.codes, table.schema, table.weights
        with progress.stage("moments"):
            first = first_moments(codes, schema, weights)
            plan = make_plan(
                codes, schema, settings.n_components, anchors=self.anchors, n_partitions=self.n_partitions,
                rng=np.random.default_rng(seed), weights=weights,
            )  # fmt: skip
            block = anchor_moments(codes, plan, weights)
        chosen = None
        if self.alpha0 == "auto" and settings.n_components > 1 and block is not None:
            chosen = choose_alpha0(table, settings, seed=seed, progress=progress)
        # with one component alpha0 has no meaning
        alpha0 = chosen.value if chosen is not None else 1.0 if self.alpha0 == "auto" else float(self.alpha0)
        found = estimate(codes, plan, first, block, alpha0, settings, seed=seed, progress=progress, weights=weights)
        return plan, chosen, found, theta_of(schema, found.theta, first)

    def _start_from_genotypes(
        self, table: Encoded, settings: Settings, seed: np.random.SeedSequence, progress: Progress
    ) -> tuple[Plan, None, Estimate, Array]:
        """Where the likelihood of genotypes is climbed from; it needs no moments."""
        none = np.empty(0, dtype=np.int64)
        with progress.stage("start"):
            alpha0 = 1.0 if self.alpha0 == "auto" else float(self.alpha0)
            found = genotype_start(table, settings.n_components, alpha0, seed)
        return Plan(table.schema, (none, none, none), ()), None, found, found.theta

    def transform(self, X: Any) -> Array:
        """Memberships (n, k) of rows, which sum to one: the mode of the posterior in softmax coordinates."""
        return self.fit_rows(X).memberships

    def fit_rows(self, X: Any) -> RowFit:
        """Memberships together with each row's likelihood and how well Newton's method ended."""
        table = self._encoded(X)
        with threads(self.n_jobs):
            return fit_rows(table.codes, table.schema, self._noisy, self.alpha_, progress=self._progress())

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of every row (n,), memberships integrated out under Dirichlet(alpha).

        Up to 300 variables by a particle filter, whose standard error was 0.3 to 0.6 a row for 25 to 100 variables
        (equal rows get equal values); longer rows by Laplace's method.
        """
        table = self._encoded(X)
        with threads(self.n_jobs):
            return log_marginal(table.codes, table.schema, self._noisy, self.alpha_)

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of a row, with weights (n,) if rows stand for several."""
        scores = self.score_samples(X)
        weights = None if sample_weight is None else check_weights(sample_weight, len(scores))
        return float(np.average(scores, weights=weights))

    def impute(self, X: Any) -> pd.DataFrame:
        """The table with its missing cells filled by what the row's memberships make most likely.

        Categories and genotypes get their most probable value, numbers their mean (whole ones rounded). A pandas frame
        comes back with all else as it was; anything else as a frame of the model's columns.

        >>> from mixmem import GDLM, simulate_mixed
        >>> drawn = simulate_mixed(300, 2, n_categorical=6, n_count=3, n_continuous=3, missing=0.1, random_state=0)
        >>> model = GDLM(2, alpha0=0.6, refine=None, random_state=0).fit(drawn.frame)
        >>> int(model.impute(drawn.frame).isna().sum().sum())
        0
        """
        source = None if isinstance(X, Encoded) else read_table(X)
        table = self._encoded(X if source is None else source)
        memberships = self.fit_rows(table).memberships
        if (pandas := sys.modules.get("pandas")) and isinstance(X, pandas.DataFrame):
            return filled_frame(X, table, self._theta, memberships)
        return imputed(table, self._theta, memberships, source)

    def fillings(self, X: Any) -> list[tuple[int, NDArray[np.int64], list[Any]]]:
        """Of every variable with missing cells: its position, their rows, and the values that :meth:`impute` gives."""
        table = self._encoded(X)
        return list(fillings(table, self._theta, self.fit_rows(table).memberships))

    def sample(self, n_samples: int = 1, *, random_state: int | np.random.Generator | None = None) -> pd.DataFrame:
        """Draw new rows from the fitted model, with the columns and levels of the table it was fitted to."""
        self._check_fitted()
        if n_samples < 1:
            raise InputError(f"n_samples must be an integer of at least 1; got {n_samples!r}")
        return draw_table(self.schema_, self._noisy, self.alpha_, n_samples, np.random.default_rng(random_state))

    def cross_validation(self, X: Any, folds: int = 5) -> float:
        """Error of predicting genotypes that were hidden, one of the ``folds`` after the other, as ADMIXTURE says it.

        For tables of diploid loci with two alleles. The smaller the better: compare fits with different numbers of
        components to the same table.
        """
        table = self._encoded(X)
        seed = np.random.SeedSequence([*np.random.SeedSequence(self.report_["seed"]).generate_state(4), 6])
        with threads(self.n_jobs):
            start = fit_rows(table.codes, table.schema, self._noisy, self.alpha_).memberships
            return cross_validation(table, self._theta, start, folds=folds, seed=seed, progress=self._progress())

    def intervals(self, level: float = 0.95, X: Any = None) -> pd.DataFrame:
        """Estimates, standard errors and intervals of theta, alpha and the contamination, as one table.

        Columns: parameter, variable, level, statistic, component, estimate, standard_error, lower, upper. After
        sampling they are those of the posterior. Otherwise rows are left out in twenty groups and the moment estimate
        is made again from there by a few sweeps, when this is first called (alpha0 is taken as known); a model read
        from a file needs the table ``X`` for it.

        >>> from mixmem import GDLM, simulate_gdlm
        >>> model = GDLM(2, alpha0=0.2, random_state=0).fit(simulate_gdlm(300, 9, 2, random_state=0).frame)
        >>> model.intervals(level=0.9).columns.tolist()[-4:]
        ['estimate', 'standard_error', 'lower', 'upper']
        """
        self._check_fitted()
        _check_level(level)
        if self._errors is None or (X is not None and self._errors.alpha_draws is None):
            self._errors = self._jackknife(self._table if X is None else self._encoded(X, gather=True))
        return self._errors.table(self.schema_, self._theta, self.alpha_, level)

    def _jackknife(self, table: Encoded | None) -> Uncertainty:
        if table is None:
            raise InputError(
                "standard errors of a moment estimate need the table it came from, which a stored model does not hold; "
                "expected intervals(X=table), or a model fitted with refine='gibbs'"
            )
        if len(table.codes) != self.report_["rows"]:
            raise InputError(
                f"standard errors need the table the model was fitted to, of {self.report_['rows']} rows; "
                f"this one has {len(table.codes)}"
            )
        if table.schema.n_variables < 3:
            raise InputError(
                "two variables have no third moments, and so no standard errors without sampling; expected "
                "refine='gibbs'"
            )
        if self.report_["refine"]["method"] == "em":
            raise InputError("there are no standard errors after refine='em'; expected None or 'gibbs'")
        k, seed = len(self.alpha_), np.random.SeedSequence(self.report_["seed"])
        tol = sweep_tolerance(k, len(table.codes))
        noise = 1.0 - self.contamination_
        with threads(self.n_jobs):
            found = jackknife(table, self._noisy, self.alpha_, tol=tol, seed=seed, progress=self._progress())
        return replace(found, theta=np.where(Noise(self.schema_).takes_part[:, None], found.theta / noise, found.theta))

    def membership_intervals(self, X: Any, level: float = 0.95) -> pd.DataFrame:
        """Posterior mean of every row's memberships with its interval; theta is taken as known.

        Columns: row, component, estimate, standard_error, lower, upper; n * k lines.

        >>> from mixmem import GDLM, simulate_gdlm
        >>> table = simulate_gdlm(300, 9, 2, random_state=0).frame
        >>> model = GDLM(2, alpha0=0.2, random_state=0).fit(table)
        >>> model.membership_intervals(table[:5]).shape
        (10, 6)
        """
        import pandas as pd

        table = self._encoded(X)
        _check_level(level)
        with threads(self.n_jobs):
            mean, error, (low, high) = membership_intervals(
                table.codes, table.schema, self._noisy, self.alpha_, level, progress=self._progress()
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

    def goodness_of_fit(self, X: Any) -> Goodness:
        """Pairs of answers in a table against what the components say, worst variables first.

        >>> from mixmem import GDLM, simulate_gdlm
        >>> table = simulate_gdlm(300, 9, 2, random_state=0).frame
        >>> GDLM(2, alpha0=0.2, random_state=0).fit(table).goodness_of_fit(table).variables.shape
        (9, 9)
        """
        table = self._encoded(X).repeated("goodness of fit")
        with threads(self.n_jobs):
            return goodness_of_fit(table.codes, table.schema, self._noisy, self.alpha_)

    def align_to(self, other: Learner) -> Self:
        """Put the components into the order of another model's, whose theta they resemble most; returns the model.

        The models may be fitted to different tables, as long as they share some variables and levels.

        >>> from mixmem import GDLM, simulate_gdlm
        >>> table = simulate_gdlm(500, 9, 3, random_state=0).frame
        >>> model = GDLM(3, alpha0=0.3, random_state=0).fit(table[:250])
        >>> model.align_to(GDLM(3, alpha0=0.3, random_state=1).fit(table[250:])).alpha_.shape
        (3,)
        """
        self._check_fitted()
        other._check_fitted()
        order = alignment(other.schema_, other._theta, self.schema_, self._theta).order
        self._set(self.schema_, self._theta[:, order], self.alpha_[order], self.contamination_)
        if self._errors is not None:
            self._errors = self._errors.ordered(order)
        if self._likeliest is not None:
            self._likeliest = self._likeliest[:, order]
        return self

    def save(self, path: str | Path) -> None:
        """Write the model to a file, atomically; ``mixmem.load`` reads it. Neither uses pickle."""
        self._check_fitted()
        parameters = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        header = {"schema": self.schema_.to_dict(), "parameters": parameters, "report": self.report_}
        arrays = {"theta": self._theta, "alpha": self.alpha_, "contamination": np.array([self.contamination_])}
        save_model(path, arrays | (self._errors.arrays() if self._errors is not None else {}), header)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that :meth:`save` wrote."""
        arrays, header = load_model(path)
        try:
            schema = Schema.from_dict(header["schema"])
            theta, alpha, delta = arrays["theta"], arrays["alpha"], float(arrays["contamination"][0])
            if theta.shape != (schema.n_rows, len(alpha)):
                raise KeyError(f"theta of shape {(schema.n_rows, len(alpha))}")
            model = cls(**header["parameters"])
            model.report_ = header["report"]
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{path} is a mixmem file but lacks a part of a model ({error}); fit and save it again"
            ) from None
        model._set(schema, theta, alpha, delta)
        model._table, model._likeliest, model._errors = None, None, Uncertainty.from_arrays(arrays)
        model.n_features_in_ = schema.n_variables
        return model

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in PARAMETERS}

    @property
    def theta_(self) -> pd.DataFrame:
        """variable, level, statistic, component_1..component_k; the paper's theta_j stacked."""
        return self.schema_.theta_frame(self._theta)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """component_1..component_k, the columns of :meth:`transform`."""
        self._check_fitted()
        return np.array([f"component_{h + 1}" for h in range(len(self.alpha_))], dtype=object)

    def _set(self, schema: Schema, theta: Array, alpha: Array, delta: float) -> None:
        self.schema_ = schema
        self.contamination_ = delta
        self._theta = np.ascontiguousarray(theta)
        self._noisy = np.ascontiguousarray(noisy_theta(theta, delta, schema))  # what cells are drawn from
        self.alpha_ = alpha
        self.alpha0_ = float(alpha.sum())

    def _encoded(self, X: Any, gather: bool | None = None) -> Encoded:
        self._check_fitted()
        if not isinstance(X, Encoded):
            return encode(X, self.schema_, missing=self.missing, gather=gather)
        if X.schema is not self.schema_ and X.schema != self.schema_:
            raise InputError("the table was encoded with other levels than the model's; use encode(X, model.schema_)")
        return X

    def _check_fitted(self) -> None:
        if not hasattr(self, "alpha_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit with a table first")

    def __getstate__(self) -> dict[str, Any]:
        """Without the table and its rows' memberships, which are kept only as long as the model lives."""
        state = cast(dict[str, Any], super().__getstate__())
        return {**state, "_table": None, "_likeliest": None} if "_table" in state else state

    def _progress(self) -> Progress:
        return LineProgress() if self.verbose else current()


def _check_level(level: float) -> None:
    if not isinstance(level, (int, float, np.number)) or not 0.0 < level < 1.0:
        raise InputError(f"level is the share of intervals that hold the truth, between 0 and 1; got {level!r}")


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it; a random generator has no value to keep."""
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [item if isinstance(item, str) else _plain(item) for item in value]
    return value
