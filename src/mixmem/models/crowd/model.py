"""DawidSkene: the estimator that tells the story; its names are crowd-kit's where crowd-kit has them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from mixmem.engine.local import kernel_threads
from mixmem.errors import FitWarning, InputError
from mixmem.models._convergence import NotConvergedWarning
from mixmem.models._estimator import Estimator
from mixmem.models.crowd.advice import further_labels, label_quality, worker_advice
from mixmem.models.crowd.choose import choose_model
from mixmem.models.crowd.classifier import hear_classifier, read_probabilities
from mixmem.models.crowd.columns import COLUMNS
from mixmem.models.crowd.dependence import Dependence
from mixmem.models.crowd.doubts import doubts
from mixmem.models.crowd.fits import PUBLISHED_ROUNDS, Fit, Settings, fit_labels
from mixmem.models.crowd.gold import expected_beside_gold
from mixmem.models.crowd.labels import (
    Labels,
    joined,
    known_classes,
    read_labels,
    read_truth,
    spelled_alike,
    with_classes,
)
from mixmem.models.crowd.parameters import PARAMETERS
from mixmem.models.crowd.results import probability_frame, task_frame, worker_frame
from mixmem.models.crowd.scoring import expected_error
from mixmem.models.crowd.stored import from_stored, to_stored
from mixmem.models.crowd.voices import heard
from mixmem.parameters import check_parameters, check_values
from mixmem.results.notices import Notice
from mixmem.seeds import seed_sequence
from mixmem.storage.model_file import load_model, save_model
from mixmem.typing import Array


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
        "blend" (three models heard together, the default), "community" (workers are drawn from a few communities, whose
        habits are learned; one labels at random), "ds" (one confusion matrix per worker), "ibcc" (the same by
        variational Bayes), "ebcc" (classes have subtypes), "one_coin" (one accuracy per worker), "mace" (workers know
        the class or follow a habit), "glad" (abilities and easy tasks), "minimax" (minimax conditional entropy: tasks
        mislead, too), "bwa" (Bayesian weighted votes), "wawa" (votes by agreement with the majority), "majority"; or
        "auto": the one of a few that predicts held-out labels best, which need not be the one that labels best.
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
        Class prior: "uniform", "estimate", or "auto": as the model has it, which is "estimate" but for compat.
    compat : None or "zhang"
        "zhang" shows the numbers of the published experiment again: no smoothing, labels never given in a class left
        out, ten rounds from majority vote, one from a tensor. Needs model="ds".
    columns : three names
        Columns of the task, the worker and the label.
    classes : list or None
        The classes, where some may never have been given as a label; None takes the labels that there are.
    clean : bool
        Take labels that differ in case or blanks only for the same.
    random_state : None, int or numpy random generator
        Used by model="ebcc", by the starts "tensor" and "ptpqp" and by model="auto"; the others have no randomness.
    n_jobs : None or int
        Threads; the result does not depend on it.

    Attributes
    ----------
    labels_, probas_ : Series of labels and DataFrame of class probabilities, by task
    tasks_ : DataFrame with label, probability, entropy, votes and agreement, by task
    workers_ : DataFrame with labels, reliability and its interval, information, worth, advice, community, confusion
        matrix and its standard errors, by worker
    label_quality_ : DataFrame with the probability that it is right, by label
    notices_ : list of Notice
        What speaks against the result, the serious things first; these are warnings (FitWarning), too.
    confusion_ : (W, K, K) array
        p(label | class) at [worker, class, label].
    priors_ : Series, the class prior
    classes_ : (K,) array
    encoded_ : Labels
        The table as it was understood, sorted by task.
    loss_history_ : list
        Minus the mean log-likelihood of a task's labels, by round.
    converged_ : bool
    expected_error_ : float
        Share of the labels found that are expected to be wrong, tasks with gold left out; gold labels correct it.
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
        clean: bool = False,
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
        self.clean = clean
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, data: Any, true_labels: Any = None, probabilities: pd.DataFrame | None = None) -> Self:
        """Learn from a table of task, worker and label.

        Parameters
        ----------
        data : frame (pandas, polars, pyarrow), rows of three, or path
            Labels; columns of other usual names and tables with a column per worker are understood.
        true_labels : Series, dictionary, frame, path or None
            Classes of tasks that are known: by task, or in the columns task and label. Tasks without labels are left
            out.
        probabilities : frame or None
            A classifier's probabilities, a row per task and a column per class, from a model that did not learn from
            these labels; they are heard as far as workers confirm them.
        """
        self.check()
        gold = self._gold(true_labels)
        labels = read_labels(data, columns=self.columns, classes=self.classes, clean=self.clean)
        if self.clean:
            gold = spelled_alike(gold, labels.classes)
        return self._fit_to(with_classes(labels, gold, self.classes), gold, probabilities, None)

    def partial_fit(self, data: Any, true_labels: Any = None) -> Self:
        """Add labels, and gold labels, to those fitted before; the rounds begin where they ended.

        A table that is not fitted yet is fitted as by :meth:`fit`.

        Parameters
        ----------
        data : frame, rows or path
            Labels, as :meth:`fit` takes them.
        true_labels : Series, dictionary, frame, path or None
            Classes of tasks that are known.
        """
        if not hasattr(self, "encoded_"):
            return self.fit(data, true_labels)
        self.check()
        gold = {**self.gold_, **self._gold(true_labels)}
        labels = joined(self.encoded_, read_labels(data, columns=self.columns, clean=self.clean))
        if self.clean:
            gold = spelled_alike(gold, labels.classes)
        labels = with_classes(labels, gold, self.classes)
        return self._fit_to(labels, gold, None, self._start_from(labels))

    def fit_predict(self, data: Any, true_labels: Any = None) -> pd.Series:
        """Fit, and return the most probable class of every task.

        Parameters
        ----------
        data : frame, rows or path
            Labels, as :meth:`fit` takes them.
        true_labels : Series, dictionary, frame, path or None
            Classes of tasks that are known.
        """
        return self.fit(data, true_labels).labels_

    def fit_predict_proba(self, data: Any, true_labels: Any = None) -> pd.DataFrame:
        """Fit, and return the class probabilities of every task.

        Parameters
        ----------
        data : frame, rows or path
            Labels, as :meth:`fit` takes them.
        true_labels : Series, dictionary, frame, path or None
            Classes of tasks that are known.
        """
        return self.fit(data, true_labels).probas_

    def predict(self, data: Any) -> pd.Series:
        """Return the most probable class of new tasks, from the labels of workers as they were fitted.

        Parameters
        ----------
        data : frame, rows or path
            Labels, as :meth:`fit` takes them.
        """
        return _most_probable(self.predict_proba(data))

    def predict_proba(self, data: Any) -> pd.DataFrame:
        """Return class probabilities of new tasks; a worker who was not seen in the fit counts as a typical one.

        Parameters
        ----------
        data : frame, rows or path
            Labels, as :meth:`fit` takes them.
        """
        check_is_fitted(self)
        return self._predicted(read_labels(data, columns=self.columns, classes=self.classes_, clean=self.clean))

    def _predicted(self, labels: Labels) -> pd.DataFrame:
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
        """Return one row per worker: labels, reliability and interval, information, worth, advice, confusion matrix."""
        check_is_fitted(self)
        return worker_advice(worker_frame(self.encoded_, self._fit), self.encoded_.n_classes)

    @property
    def label_quality_(self) -> pd.DataFrame:
        """Return one row per label: the probability that it is right, with and without itself as evidence."""
        check_is_fitted(self)
        return label_quality(self.encoded_, self._fit)

    @property
    def confusion_(self) -> Array:
        """Return p(label | class) at [worker, class, label], (W, K, K)."""
        check_is_fitted(self)
        return self._fit.confusion.transpose(0, 2, 1)

    @property
    def errors_(self) -> pd.DataFrame:
        """Return p(label | class) as crowd-kit has it: rows by worker and label, a column per true class."""
        check_is_fitted(self)
        labels = self.encoded_
        rows = pd.MultiIndex.from_product([labels.worker_ids, labels.classes], names=["worker", "label"])
        return pd.DataFrame(self._fit.confusion.reshape(len(rows), -1), index=rows, columns=labels.classes)

    @property
    def skills_(self) -> pd.Series:
        """Return one number per worker: the weight of votes, trust (MACE), ability (GLAD), else the reliability."""
        check_is_fitted(self)
        names = [name for name in ("weight", "trust", "ability") if name in self._fit.further]
        values = self._fit.further[names[0]] if names else np.einsum("wjj->w", self._fit.confusion) / len(self.classes_)
        return pd.Series(values, index=pd.Index(self.encoded_.worker_ids, name="worker"), name="skill")

    @property
    def dependence_(self) -> Dependence | None:
        """Return how far workers err together, and what that takes from certainty (model "blend" only)."""
        check_is_fitted(self)
        return self._fit.dependence

    def advise(self, budget: int) -> pd.DataFrame:
        """Return the tasks that ``budget`` further labels are best spent on, with the number of labels for each.

        Columns: ``labels`` to buy, the expected ``gain`` in the probability of being right, ``probability`` and
        ``votes`` now; the largest gain per label first. Fit again (:meth:`partial_fit`) before buying more.

        Parameters
        ----------
        budget : int
            Number of further labels.
        """
        check_is_fitted(self)
        if isinstance(budget, bool) or not isinstance(budget, (int, np.integer)) or budget < 1:
            raise InputError(f"budget must be a number of labels of at least 1; got {budget!r}")
        return further_labels(self.encoded_, self._fit, int(budget))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model with its labels to a file that :meth:`load` reads; nothing in it can run code.

        Parameters
        ----------
        path : str or Path
            File to write.
        """
        check_is_fitted(self)
        arrays, header = to_stored(self.encoded_, self._fit)
        kept = {name: value for name, value in self.get_params(deep=False).items() if name != "n_jobs"}
        if not isinstance(self.random_state, (int, type(None))):
            kept["random_state"] = None  # a generator's state is not worth keeping
        kept["columns"] = list(kept["columns"])
        kept["classes"] = None if kept["classes"] is None else list(kept["classes"])
        more = {"parameters": kept, "model": self.model_, "held_out": self.held_out_, "gold": list(self.gold_.items())}
        save_model(path, arrays, {**header, **more, "expected_error": self.expected_error_})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DawidSkene:
        """Read a model that :meth:`save` wrote.

        Parameters
        ----------
        path : str or Path
            File to read.
        """
        arrays, header = load_model(path)
        labels, fit = from_stored(arrays, header, path)
        model = DawidSkene(**header["parameters"])
        model.gold_ = dict(header["gold"])
        model.expected_error_ = header.get("expected_error", expected_error(fit.posterior))  # files of earlier versions
        model._set(labels, fit, header["model"], header["held_out"])
        return model

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

    def _gold(self, true_labels: Any) -> dict[Any, Any]:
        return {} if true_labels is None else read_truth(true_labels, like=(self.columns[0], self.columns[2]))

    def _start_from(self, labels: Labels) -> Array:
        """Class probabilities of the tasks by the fit so far, as a start with further labels."""
        place = {value: j for j, value in enumerate(labels.classes.tolist())}
        columns = [place[value] for value in self.classes_.tolist()]
        lookup = np.full(labels.n_classes, -1, dtype=np.int32)
        lookup[columns] = np.arange(len(columns))
        known = labels.take(lookup[labels.labels] >= 0)  # labels of classes that the fit knows
        found = self._predicted(replace(known, classes=self.classes_, labels=lookup[known.labels]))
        start = np.full((labels.n_tasks, labels.n_classes), 1e-3)
        start[:, columns] += found.to_numpy()
        fresh = np.unique(labels.task_of[lookup[labels.labels] < 0])  # tasks with labels of other classes: by votes
        start[fresh] = 1e-3
        votes = np.isin(labels.task_of, fresh)
        np.add.at(start, (labels.task_of[votes], labels.labels[votes]), 1.0)
        return np.asarray(start / start.sum(axis=1, keepdims=True))

    def _fit_to(
        self, labels: Labels, gold: dict[Any, Any], probabilities: pd.DataFrame | None, start: Array | None
    ) -> Self:
        settings, seed = self._settings(), seed_sequence(self.random_state)
        known = known_classes(labels, gold)
        voice = None if probabilities is None else read_probabilities(probabilities, labels)
        held_out: dict[str, float] = {}
        with kernel_threads(self.n_jobs):
            if self.model == "auto":
                chosen, held_out = choose_model(labels, known, settings, seed)
                settings = replace(settings, model=chosen)
            found = fit_labels(labels, known, settings, np.random.default_rng(seed), start)
            unaware = found.posterior
            if gold:
                unaware = fit_labels(labels, np.full_like(known, -1), settings, np.random.default_rng(seed)).posterior
        if voice is not None:
            posterior, power = hear_classifier(found.posterior, voice, found.prior)
            posterior[known >= 0] = found.posterior[known >= 0]
            found = replace(found, posterior=posterior, further={**found.further, "classifier_power": power})
            unaware = hear_classifier(unaware, voice, found.prior)[0]
        self.expected_error_ = expected_beside_gold(found.posterior, known, unaware)
        self.gold_ = gold
        self._set(labels, found, settings.model, held_out)
        self._warn()
        return self

    def _set(self, labels: Labels, found: Fit, model: str, held_out: dict[str, float]) -> None:
        self._fit = found
        self.model_, self.held_out_ = model, held_out
        self.encoded_ = labels
        self.classes_ = labels.classes
        self.probas_ = probability_frame(labels, found.posterior)
        self.labels_ = _most_probable(self.probas_, np.bincount(labels.labels, minlength=labels.n_classes))
        self.priors_ = pd.Series(found.prior, index=self.probas_.columns, name="prior")
        self.loss_history_ = found.history
        self.converged_ = found.converged
        tolerance = -1.0 if self.compat is not None else float(self.tol)
        self.notices_: list[Notice] = doubts(
            labels, found, tolerance=tolerance, rounds=self.n_iter, gold=bool(self.gold_)
        )  # fmt: skip

    def _warn(self) -> None:
        for notice in self.notices_:
            if notice.severity == "serious":
                category = NotConvergedWarning if notice.code == "not-converged" else FitWarning
                warnings.warn(notice.text, category, stacklevel=4)


class MajorityVote(DawidSkene):
    """Take the class with the most votes; of equal ones the class with more votes in the whole table.

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


def _most_probable(probabilities: pd.DataFrame, votes: np.ndarray | None = None) -> pd.Series:
    """The most probable class of every task; of equal ones the one with more ``votes`` (K,) in all."""
    found = probabilities.to_numpy()
    if votes is not None:
        leading = found >= found.max(axis=1, keepdims=True) - 1e-12
        found = np.where(leading, 1.0 + votes / max(votes.sum(), 1), 0.0)
    best = probabilities.columns.to_numpy()[found.argmax(axis=1)]
    return pd.Series(best, index=probabilities.index, name="agg_label")
