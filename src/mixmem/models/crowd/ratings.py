"""Numeric ratings: their mean, median, or the value behind workers of different bias and noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from mixmem.data.read import read_table
from mixmem.errors import InputError
from mixmem.models._estimator import Estimator
from mixmem.models.crowd.columns import COLUMNS, coded, label_columns
from mixmem.models.crowd.parameters import one_of, three_names, whole
from mixmem.parameters import check_values
from mixmem.typing import Array

MODELS = ("bias", "mean", "median")
PULL = 2.0
"""Ratings by which a worker's bias is drawn to none, and a worker's noise to that of all workers."""
PARAMETERS = {"model": one_of(*MODELS), "n_iter": whole(1), "columns": three_names()}


class NumericRatings(Estimator):
    """Learn the value of every task from ratings by workers who are too high, too low, or noisy.

    Worker w's rating of task i is value_i + bias_w + noise of variance v_w. Values, biases and variances are taken in
    turn; biases and variances of workers with few ratings are drawn to those of all.

    Parameters
    ----------
    model : {"bias", "mean", "median"}
        "bias" is the model above; the others take a task's ratings as they are.
    n_iter : int
        Rounds at most.
    tol : float
        The rounds end when values change by less than this, in standard deviations of the ratings.
    columns : three names
        Columns of the task, the worker and the rating.

    Attributes
    ----------
    ratings_ : Series of values, by task
    tasks_ : DataFrame with rating, its standard error, and the number of ratings, by task
    workers_ : DataFrame with ratings, bias and noise (a standard deviation), by worker
    converged_ : bool

    Examples
    --------
    >>> rows = [(t, w, t + b) for t in range(5) for w, b in (("low", -1.0), ("mid", 0.0), ("high", 1.0))]
    >>> NumericRatings().fit(rows).ratings_.round(3).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """

    def __init__(self, model: str = "bias", n_iter: int = 200, tol: float = 1e-6, *, columns: Sequence[str] = COLUMNS):
        self.model = model
        self.n_iter = n_iter
        self.tol = tol
        self.columns = columns

    def fit(self, data: Any) -> Self:
        """Learn from a table of task, worker and rating: a frame, rows of three, or a file."""
        check_values({name: getattr(self, name) for name in PARAMETERS}, PARAMETERS)
        tasks, workers, values = _read(data, self.columns)
        task, worker = tasks.codes, workers.codes
        n, n_workers = len(tasks.values), len(workers.values)
        count = np.bincount(task, minlength=n)
        bias, variance, self.converged_ = np.zeros(n_workers), np.ones(n_workers), True
        if self.model == "median":
            found = pd.Series(values).groupby(task).median().to_numpy()
        else:
            found = np.bincount(task, values, n) / count
        if self.model == "bias":
            found, bias, variance, self.converged_ = _alternate(task, worker, values, found, self.n_iter, self.tol)
        off = values - bias[worker] - found[task]
        if self.model != "bias":
            variance = _variances(off, worker, n_workers)
        weights = 1.0 / np.maximum(variance, 1e-300)
        index = pd.Index(tasks.values, name="task")
        self.ratings_ = pd.Series(found, index=index, name="rating")
        error = 1.0 / np.sqrt(np.bincount(task, weights[worker], n))
        self.tasks_ = pd.DataFrame({"rating": found, "error": error, "ratings": count}, index=index)
        self.workers_ = pd.DataFrame(
            {"ratings": np.bincount(worker, minlength=n_workers), "bias": bias, "noise": np.sqrt(variance)},
            index=pd.Index(workers.values, name="worker"),
        )
        return self

    def fit_predict(self, data: Any) -> pd.Series:
        """Fit, and return the value of every task."""
        return self.fit(data).ratings_

    def predict(self, data: Any) -> pd.Series:
        """Return values of new tasks, with the workers' biases and noise as fitted; unknown workers have none."""
        check_is_fitted(self)
        tasks, workers, values = _read(data, self.columns)
        known = self.workers_.reindex(workers.values)
        bias = known["bias"].fillna(0.0).to_numpy()[workers.codes]
        usual = float(self.workers_["noise"].mean())
        weight = 1.0 / np.maximum(known["noise"].fillna(usual).to_numpy()[workers.codes] ** 2, 1e-12)
        n = len(tasks.values)
        found = np.bincount(tasks.codes, weight * (values - bias), n) / np.bincount(tasks.codes, weight, n)
        return pd.Series(found, index=pd.Index(tasks.values, name="task"), name="rating")


def _read(data: Any, columns: Sequence[str]) -> tuple[Any, Any, Array]:
    found = label_columns(read_table(data), columns)
    tasks, workers, ratings = (coded(*column) for column in found.columns)
    try:
        values = np.array([float(value) for value in ratings.values.tolist()])
    except (TypeError, ValueError):
        raise InputError(
            f"column {found.columns[2][1]!r} holds what is no number; expected ratings: for classes use DawidSkene "
            "(mixmem crowd without --ratings)"
        ) from None
    if not np.isfinite(values).all():
        raise InputError(f"column {found.columns[2][1]!r} holds infinite ratings; expected finite numbers: drop them")
    return tasks, workers, values[ratings.codes]


def _alternate(
    task: np.ndarray, worker: np.ndarray, values: Array, found: Array, n_iter: int, tol: float
) -> tuple[Array, Array, Array, bool]:
    """Values of tasks, biases and variances of workers in turn, from the means."""
    n, n_workers = len(found), int(worker.max()) + 1
    scale = max(float(values.std()), 1e-12)
    given = np.bincount(worker, minlength=n_workers)
    for _ in range(n_iter):
        bias = np.bincount(worker, values - found[task], n_workers) / (given + PULL)
        bias -= np.average(bias, weights=given)  # a bias that all share cannot be told from the values
        variance = _variances(values - bias[worker] - found[task], worker, n_workers)
        weight = 1.0 / variance[worker]
        new = np.bincount(task, weight * (values - bias[worker]), n) / np.bincount(task, weight, n)
        change = float(np.abs(new - found).max()) / scale
        found = new
        if change < tol:
            return found, bias, variance, True
    return found, bias, variance, False


def _variances(off: Array, worker: np.ndarray, n_workers: int) -> Array:
    """Variances of workers' ratings around the values, drawn to that of all workers."""
    usual = max(float((off**2).mean()), 1e-9)
    given = np.bincount(worker, minlength=n_workers)
    return np.asarray((np.bincount(worker, off**2, n_workers) + PULL * usual) / (given + PULL))
