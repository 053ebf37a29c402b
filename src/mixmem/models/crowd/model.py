"""DawidSkene: the estimator that tells the story; its names are crowd-kit's where crowd-kit has them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mixmem.engine.local import kernel_threads
from mixmem.errors import InputError
from mixmem.models._estimator import Estimator
from mixmem.models.crowd.choose import choose_model
from mixmem.models.crowd.fits import MODELS, PUBLISHED_ROUNDS, SOLVERS, STARTS, Fit, Settings, fit_labels
from mixmem.models.crowd.labels import COLUMNS, Labels, known_classes, read_labels, read_truth
from mixmem.models.crowd.results import probability_frame, task_frame, worker_frame
from mixmem.models.crowd.voices import heard
from mixmem.parameters import Allowed, check_parameters, check_values
from mixmem.seeds import seed_sequence
from mixmem.typing import Array


def _one_of(*names: str) -> Allowed:
    return Allowed(f"one of {', '.join(map(repr, names))}", lambda value: isinstance(value, str) and value in names)


def _number(least: float, words: str) -> Allowed:
    kinds = (int, float, np.number)
    return Allowed(
        words, lambda value: isinstance(value, kinds) and type(value) is not bool and least <= float(value) < np.inf
    )


def _whole(least: int) -> Allowed:
    return Allowed(
        f"an integer of at least {least}",
        lambda value: isinstance(value, (int, np.integer)) and type(value) is not bool and int(value) >= least,
    )


PARAMETERS = {
    "n_iter": _whole(1),
    "tol": Allowed(
        "a number; a negative one runs all rounds",
        lambda value: isinstance(value, (int, float, np.number)) and not np.isnan(float(value)),
    ),
    "model": _one_of("auto", *MODELS),
    "start": _one_of(*STARTS),
    "solver": _one_of(*SOLVERS),
    "smoothing": _number(1e-6, "a positive number"),
    "n_communities": _whole(2),
    "prior": _one_of("auto", "uniform", "estimate"),
    "compat": Allowed("None or 'zhang'", lambda value: value is None or value == "zhang"),
    "columns": Allowed(
        "three names of columns: of the task, the worker and the label",
        lambda value: not isinstance(value, str) and isinstance(value, Sequence) and len(value) == 3,
    ),
    "classes": Allowed(
        "None or a list of different classes",
        lambda value: (
            value is None or (isinstance(value, (list, tuple, np.ndarray)) and 0 < len(value) == len(set(value)))
        ),
    ),
}


class DawidSkene(Estimator):
    """Learn true labels from the labels of workers who err, each in their own way.

    Worker w gives label l to a task of class j with probability p_w(l | j). Classes and workers are learned from each
    other in rounds, started by majority vote or by moments.

    Parameters
    ----------
    n_iter : int
        Rounds at most.
    tol : float
        The rounds end when a task's class probabilities change by less than this on average; negative: never.
    model : str
        "community" (workers are drawn from a few communities, whose habits are learned; one labels at random), "ds"
        (one confusion matrix per worker), "one_coin" (one accuracy per worker), "minimax" (minimax conditional entropy:
        tasks mislead, too), "majority", or "auto": the one that predicts held-out labels best.
    start : str
        "majority" vote, "tensor" (moments between three groups of workers) or "ptpqp" (workers as variables around the
        most prolific ones). Models "minimax" and "majority" start from votes.
    solver : str
        How the start's tensor is factorized: "pqp", "hals", "wnmf", "tpm", "nojd0" or "nojd1".
    smoothing : float
        Labels added to every cell of a confusion matrix (models "ds" and "one_coin").
    n_communities : int
        Communities, the random one included (model "community").
    prior : str
        Class prior: "uniform" or "estimate".
    compat : None or "zhang"
        "zhang" shows the numbers of the published experiment again: no smoothing, labels never given in a class left
        out, ten rounds from majority vote, one from a tensor. Needs model="ds".
    columns : three names
        Columns of the task, the worker and the label.
    classes : list or None
        The classes, where some may never have been given as a label; None takes the labels that there are.
    random_state : None, int or numpy random generator
        Used by the starts "tensor" and "ptpqp" and by model="auto"; the others have no randomness.
    n_jobs : None or int
        Threads; the result does not depend on it.

    Attributes
    ----------
    labels_, probas_ : Series of labels and DataFrame of class probabilities, by task
    tasks_ : DataFrame with label, probability, entropy, votes and agreement, by task
    workers_ : DataFrame with labels, reliability, information, community, confusion matrix and its standard errors
    confusion_ : (W, K, K) array
        p(label | class) at [worker, class, label].
    priors_ : Series, the class prior
    classes_ : (K,) array
    encoded_ : Labels
        The table as it was understood, sorted by task.
    loss_history_ : list
        Minus the mean log-likelihood of a task's labels, by round.
    converged_ : bool
    model_, held_out_ : the model used, and each candidate's held-out log-likelihood with model="auto" (else empty)

    Examples
    --------
    >>> rows = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t1", "eve", "dog"), ("t2", "ann", "dog")]
    >>> DawidSkene().fit_predict(rows).to_dict()
    {'t1': 'cat', 't2': 'dog'}
    """

    def __init__(
        self,
        n_iter: int = 300,
        tol: float = 1e-3,
        *,
        model: str = "blend",
        start: str = "majority",
        solver: str = "pqp",
        smoothing: float = 0.5,
        n_communities: int = 3,
        prior: str = "auto",
        compat: str | None = None,
        columns: Sequence[str] = COLUMNS,
        classes: Sequence[Any] | None = None,
        random_state: int | np.random.Generator | None = None,
        n_jobs: int | None = None,
    ):
        self.n_iter = n_iter
        self.tol = tol
        self.model = model
        self.start = start
        self.solver = solver
        self.smoothing = smoothing
        self.n_communities = n_communities
        self.prior = prior
        self.compat = compat
        self.columns = columns
        self.classes = classes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, data: Any, true_labels: Any = None) -> Self:
        """Learn from a table of task, worker and label; ``true_labels`` holds the classes of tasks that are known.

        ``data``: a frame (pandas, polars, pyarrow), rows of three, or a file. ``true_labels``: a Series or dictionary
        by task, or a frame or file with the columns task and label; tasks without labels are left out.
        """
        settings = self._settings()
        seed = seed_sequence(self.random_state)
        gold = {} if true_labels is None else read_truth(true_labels, columns=(self.columns[0], self.columns[2]))
        labels = _with_classes(read_labels(data, columns=self.columns, classes=self.classes), gold, self.classes)
        known = known_classes(labels, gold)
        held_out: dict[str, float] = {}
        with kernel_threads(self.n_jobs):
            if self.model == "auto":
                chosen, held_out = choose_model(labels, known, settings, seed)
                settings = replace(settings, model=chosen)
            found = fit_labels(labels, known, settings, np.random.default_rng(seed))
        self._set(labels, found, settings.model, held_out)
        if not found.converged and self.tol > 0.0 and self.compat is None:
            warnings.warn(
                f"the fit did not converge: after {self.n_iter} rounds class probabilities still change by more than "
                f"{self.tol} on average; give a larger n_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def fit_predict(self, data: Any, true_labels: Any = None) -> pd.Series:
        """Fit, and return the most probable class of every task."""
        return self.fit(data, true_labels).labels_

    def fit_predict_proba(self, data: Any, true_labels: Any = None) -> pd.DataFrame:
        """Fit, and return the class probabilities of every task."""
        return self.fit(data, true_labels).probas_

    def predict(self, data: Any) -> pd.Series:
        """Return the most probable class of new tasks, from the labels of workers as they were fitted."""
        return _most_probable(self.predict_proba(data))

    def predict_proba(self, data: Any) -> pd.DataFrame:
        """Return class probabilities of new tasks; a worker who was not seen in the fit counts as a typical one."""
        check_is_fitted(self)
        labels = read_labels(data, columns=self.columns, classes=self.classes_)
        place = {worker: w for w, worker in enumerate(self.encoded_.worker_ids.tolist())}
        unseen = len(place)
        lookup = np.array([place.get(worker, unseen) for worker in labels.worker_ids.tolist()], dtype=np.int32)
        labels = replace(labels, workers=lookup[labels.workers], worker_ids=np.arange(unseen + 1))
        with kernel_threads(self.n_jobs):
            posterior = heard(self._fit.voices, labels, self._fit.dependence)
        return probability_frame(labels, posterior)

    @property
    def tasks_(self) -> pd.DataFrame:
        """Return one row per task: label, probability, entropy, votes, agreement."""
        check_is_fitted(self)
        return task_frame(self.encoded_, self._fit.posterior)

    @property
    def workers_(self) -> pd.DataFrame:
        """Return one row per worker: labels, reliability, information, community, confusion matrix, standard errors."""
        check_is_fitted(self)
        return worker_frame(self.encoded_, self._fit)

    @property
    def confusion_(self) -> Array:
        """Return p(label | class) at [worker, class, label], (W, K, K)."""
        check_is_fitted(self)
        return self._fit.confusion.transpose(0, 2, 1)

    def check(self) -> None:
        """Refuse parameters that are not what they may be, before any data are read."""
        self._settings()

    def _settings(self) -> Settings:
        check_parameters({"random_state": self.random_state, "n_jobs": self.n_jobs})
        check_values({name: getattr(self, name) for name in PARAMETERS}, PARAMETERS)
        published = self.compat is not None
        if published and self.model != "ds":
            raise InputError(
                f"compat='zhang' goes with the model of Dawid and Skene; got {self.model!r}: use model= 'ds'"
            )
        rounds = PUBLISHED_ROUNDS if self.start == "majority" else 1
        return Settings(
            model=self.model,
            n_iter=rounds if published else int(self.n_iter),
            tol=-1.0 if published else float(self.tol),
            start=self.start,
            solver=self.solver,
            smoothing=float(self.smoothing),
            n_communities=int(self.n_communities),
            estimate_prior=self.prior == "estimate" or (self.prior == "auto" and not published),
            published=published,
        )

    def _set(self, labels: Labels, found: Fit, model: str, held_out: dict[str, float]) -> None:
        self._fit = found
        self.model_, self.held_out_ = model, held_out
        self.encoded_ = labels
        self.classes_ = labels.classes
        self.probas_ = probability_frame(labels, found.posterior)
        self.labels_ = _most_probable(self.probas_)
        self.priors_ = pd.Series(found.prior, index=self.probas_.columns, name="prior")
        self.loss_history_ = found.history
        self.converged_ = found.converged


class MajorityVote(DawidSkene):
    """Take the class with the most votes; ties go to the first class in order.

    Parameters
    ----------
    columns : three names
        Columns of the task, the worker and the label.
    classes : list or None
        The classes, where some may never have been given as a label.

    Examples
    --------
    >>> MajorityVote().fit_predict([("t1", "ann", 1), ("t1", "bob", 1), ("t1", "eve", 0)]).to_dict()
    {'t1': 1}
    """

    def __init__(self, *, columns: Sequence[str] = COLUMNS, classes: Sequence[Any] | None = None):
        super().__init__(model="majority", columns=columns, classes=classes)


class OneCoinDawidSkene(DawidSkene):
    """Learn true labels by Dawid and Skene's model with one accuracy per worker.

    Parameters
    ----------
    n_iter : int
        Rounds at most.
    tol : float
        The rounds end when a task's class probabilities change by less than this on average; negative: never.
    columns : three names
        Columns of the task, the worker and the label.

    Examples
    --------
    >>> OneCoinDawidSkene().fit_predict([("t1", "ann", 1), ("t1", "bob", 1), ("t1", "eve", 0)]).to_dict()
    {'t1': 1}
    """

    def __init__(self, n_iter: int = 300, tol: float = 1e-3, *, columns: Sequence[str] = COLUMNS):
        super().__init__(n_iter, tol, model="one_coin", columns=columns)


def _most_probable(probabilities: pd.DataFrame) -> pd.Series:
    best = probabilities.columns.to_numpy()[probabilities.to_numpy().argmax(axis=1)]
    return pd.Series(best, index=probabilities.index, name="agg_label")


def _with_classes(labels: Labels, gold: dict[Any, Any], classes: Sequence[Any] | None) -> Labels:
    """The labels with the classes that only the gold labels have, in order."""
    new = set(gold.values()) - set(labels.classes.tolist())
    if not new:
        return labels
    if classes is not None:
        raise InputError(f"the true labels hold {sorted(map(str, new))[0]!r}, which is not in classes; add it there")
    try:
        every = sorted({*labels.classes.tolist(), *new})
    except TypeError:
        example = next(iter(new))
        raise InputError(
            f"the true labels hold {example!r} ({type(example).__name__}), the labels {labels.classes[0]!r} "
            f"({type(labels.classes[0]).__name__}); expected one type: convert one of them"
        ) from None
    place = {value: j for j, value in enumerate(every)}
    lookup = np.array([place[value] for value in labels.classes.tolist()], dtype=np.int32)
    array = np.array(every, dtype=labels.classes.dtype)
    return replace(labels, classes=array, labels=lookup[labels.labels])
