"""TopicModel: topics of documents, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from mixmem.data.document_pieces import AnyDocuments, DocumentPieces
from mixmem.data.documents import Documents
from mixmem.engine.local import threads
from mixmem.errors import FitWarning, InputError
from mixmem.likelihood.documents import document_memberships
from mixmem.models._announced import announced
from mixmem.models._estimator import Estimator, Transformer
from mixmem.models.topics.counts_input import documents_of, refuse_unfit, seeds_of, word_names
from mixmem.models.topics.fitted import FittedTopics
from mixmem.models.topics.parameters import PARAMETERS
from mixmem.parameters import check_values
from mixmem.progress import Progress, in_python
from mixmem.refinement.online_topics import OnlineTopics
from mixmem.refinement.topics import TopicFit, TopicSettings, first_prior, fit_topics
from mixmem.results.topic_report import TopicReport, topic_doubts
from mixmem.seeds import seed_sequence
from mixmem.storage.model_file import load_model, save_model
from mixmem.typing import Array

KIND = "topics"
"""What a model file says it holds."""


class TopicModel(FittedTopics, Transformer, Estimator):
    """Learn topics of documents: latent Dirichlet allocation, from moments or online passes, by collapsed sweeps.

    Document i has memberships x_i ~ Dirichlet(alpha) in k topics. Each of its tokens is drawn from a topic that is
    drawn from x_i; topic h has word w with probability theta_wh, ``components_[h, w]``, under a Dirichlet(beta) prior.

    Parameters
    ----------
    n_components : int
        Number of topics k.
    alpha0 : "auto" or float
        Sum of alpha: small where a document is about few topics. "auto" learns it; a number is kept, and only its
        shares by topic are learned.
    beta : "auto" or float
        Concentration of words in topics: small where a topic has few words. "auto" learns it.
    start : "auto", "moments" or "online"
        Where sweeps begin: moments of distinct tokens, passes over batches of documents from random topics, or the one
        of the two that is likelier after two sweeps.
    refine : "auto", "cvb0", "gibbs", "em" or None
        After the start: "cvb0" sweeps to convergence (collapsed variational Bayes of order zero), "gibbs" averages
        sampled topics after that, "em" maximises the likelihood without priors (counts of molecules in cells, such as
        fastTopics fits), None leaves the start. "auto" is "em" where a count is above 50 on average, else "cvb0".
    max_iter : int
        Sweeps at most after alpha and beta were learned.
    tol : float
        Sweeps end when one moves less than this share of the tokens.
    seed_words : None, dict or list
        Words that topics are known by: {1: ["goal", "match"], 2: ["vote"]}, topics counted from 1, or a list of lists.
        They pull, and do not force. Topics then keep their order.
    random_state : None, int or numpy random generator
        The result is the same to the last bit for the same integer, at any number of threads.
    n_jobs : None or int
        Threads; None for all cores.
    verbose : bool
        Say on standard error what is done and how long it took.

    Attributes
    ----------
    components_ : (k, words) array
        Topics; rows sum to one. The topic with the most tokens comes first.
    alpha_, alpha0_ : (k,) array and its sum.
    beta_ : float
    topic_prevalence_ : (k,) array
        Shares of the tokens.
    words_ : list of str
        Names of the words.
    word_shares_ : (words,) array
        Shares of the words in the corpus.
    n_iter_ : int
        Sweeps after alpha and beta were learned.
    report_ : TopicReport

    Examples
    --------
    >>> from mixmem import TopicModel, simulate_documents
    >>> drawn = simulate_documents(300, 100, 3, random_state=0)
    >>> model = TopicModel(3, random_state=0).fit(drawn.counts)
    >>> model.transform(drawn.counts).shape
    (300, 3)
    """

    n_iter_: int
    _online: OnlineTopics | None = None

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha0: float | str = "auto",
        beta: float | str = "auto",
        start: str = "auto",
        refine: str | None = "auto",
        max_iter: int = 30,
        tol: float = 5e-4,
        seed_words: Any = None,
        random_state: int | np.random.Generator | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.n_components = n_components
        self.alpha0 = alpha0
        self.beta = beta
        self.start = start
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.seed_words = seed_words
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: None = None, *, words: Iterable[str] | None = None) -> Self:
        """Learn topics from counts of words.

        Parameters
        ----------
        X : sparse matrix, array or frame (documents, words), or DocumentPieces
            Counts; the columns of a frame name the words. Documents in several files
            (:class:`mixmem.DocumentPieces`) are read one file at a time, where they are too many to be held.
        y : None
            Not used.
        words : list of str or None
            Names of the words, such as a vectorizer's ``get_feature_names_out()``.
        """
        check_values(self.get_params(deep=False), PARAMETERS)
        corpus = X if isinstance(X, DocumentPieces) else documents_of(self, X, reset=True)
        self.n_features_in_ = corpus.n_words
        names = word_names(X, words, corpus.n_words)
        refuse_unfit(corpus, self.n_components)
        settings = self._settings(corpus, names)
        progress, seed = self._progress(), seed_sequence(self.random_state)
        with threads(self.n_jobs):
            found = fit_topics(corpus, settings, seed, progress)
        self._set(found, names, corpus.word_counts, ordered=settings.seeds is None)
        self._training, self._online = None if isinstance(corpus, DocumentPieces) else corpus, None
        self.report_ = self._reported(corpus, found, progress)
        for notice in self.report_.warnings:
            if notice.severity == "serious":
                warnings.warn(notice.text, FitWarning, stacklevel=2)
        return self

    def _settings(self, corpus: AnyDocuments, names: Sequence[str]) -> TopicSettings:
        starts = ("moments", "online") if self.start == "auto" else (self.start,)
        seeds = seeds_of(self.seed_words, names, corpus, self.n_components)
        return TopicSettings(
            n_topics=self.n_components,
            alpha0=None if self.alpha0 == "auto" else float(self.alpha0),
            beta=None if self.beta == "auto" else float(self.beta),
            seeds=seeds,
            starts=starts,
            refine=self.refine,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _set(self, found: TopicFit, names: list[str], word_counts: Array, *, ordered: bool) -> None:
        weights = found.weights
        order = np.argsort(-weights, kind="stable") if ordered else np.arange(len(weights))
        self.components_ = np.ascontiguousarray(found.topics.T[order])
        self.alpha_ = found.alpha[order]
        self.alpha0_ = float(self.alpha_.sum())
        self.beta_, self.n_iter_ = found.beta, max(1, found.sweeps)
        self.topic_prevalence_ = weights[order] / max(float(weights.sum()), 1e-300)
        self.words_ = names
        self.word_shares_ = word_counts / max(float(word_counts.sum()), 1e-300)

    def _reported(self, corpus: AnyDocuments, found: TopicFit, progress: Progress) -> TopicReport:
        doubts = topic_doubts(
            corpus, self.components_.T, self.topic_prevalence_, found.converged, found.change
        )  # fmt: skip
        return TopicReport(
            documents=corpus.n_documents,
            words=int((corpus.word_counts > 0.0).sum()),
            tokens=float(corpus.lengths.sum()),
            empty_documents=int((corpus.lengths == 0.0).sum()),
            short_documents=int((corpus.lengths < 3.0).sum()),
            start=found.start,
            trials=found.trials,
            refine=found.refine,
            sweeps=found.sweeps,
            converged=found.converged,
            change=found.change,
            left_out=found.left_out,
            seconds=dict(progress.seconds),
            warnings=doubts,
        )

    def partial_fit(self, X: Any, y: None = None, *, words: Iterable[str] | None = None) -> Self:
        """Take another batch of documents into the topics, as an online pass does; the first call begins.

        Alpha and beta are those given, or the first guesses: they are learned by :meth:`fit` only. After a fit, the
        topics go on from there. Memory is bounded by the batch.

        Parameters
        ----------
        X : sparse matrix, array or frame (documents, words)
            Counts of a further batch.
        y : None
            Not used.
        words : list of str or None
            Names of the words, at the first call.
        """
        first = not hasattr(self, "components_")
        if first:
            check_values(self.get_params(deep=False), PARAMETERS)
        corpus = documents_of(self, X, reset=first)
        if first:
            names = word_names(X, words, corpus.n_words)
            prior = first_prior(self._settings(corpus, names))
            rng = np.random.default_rng(seed_sequence(self.random_state))
            self._online = OnlineTopics.begin(corpus, prior, rng)
            self.words_, self.word_shares_ = names, np.zeros(corpus.n_words)
            seen = 0.0
        else:
            if self._online is None:
                self._online = self._resumed()
            seen = self._online.tokens
        tokens = float(corpus.lengths.sum())
        with threads(self.n_jobs):
            self._online.take(corpus, seen + tokens)
        self._take_online(corpus, seen, tokens)
        return self

    def _resumed(self) -> OnlineTopics:
        """Return online topics that go on from a finished fit: its tokens count as seen."""
        from mixmem.refinement.collapsed import Prior, padded

        if self._training is not None:
            tokens, batches = float(self._training.lengths.sum()), len(self._training.batches)
        else:
            tokens, batches = 1e6, 64
        words = padded(self.components_.T * self.topic_prevalence_ * tokens)
        return OnlineTopics(words, Prior.of(self.alpha_, self.beta_), batches)

    def _take_online(self, corpus: Documents, seen: float, tokens: float) -> None:
        assert self._online is not None
        online, k = self._online, self.n_components
        self.components_ = np.ascontiguousarray(online.topics.T)
        self.alpha_ = online.prior.alpha[:k].astype(np.float64)
        self.alpha0_, self.beta_ = float(self.alpha_.sum()), float(online.prior.beta[0, 0])
        totals = online.words[:, :k].sum(axis=0, dtype=np.float64)
        self.topic_prevalence_ = totals / max(float(totals.sum()), 1e-300)
        counts = self.word_shares_ * seen + corpus.word_counts
        self.word_shares_ = counts / max(seen + tokens, 1e-300)
        self._training = None

    def transform(self, X: Any) -> Array:
        """Return memberships (n, k) of documents in topics, which sum to one.

        Parameters
        ----------
        X : sparse matrix, array or frame (documents, words)
            Counts, with the words that the model was fitted to.
        """
        self._check_fitted()  # here and not with the other answers: scikit-learn's set_output looks in this class
        corpus = documents_of(self, X, reset=False)
        with threads(self.n_jobs):
            return document_memberships(corpus, self.components_.T, self.alpha_).memberships

    def save(self, path: str | Path) -> None:
        """Write the model to a file, without the documents it was fitted to; no pickle.

        Parameters
        ----------
        path : str or Path
            File to write.
        """
        self._check_fitted()
        arrays = {
            "components": self.components_,
            "alpha": self.alpha_,
            "prevalence": self.topic_prevalence_,
            "word_shares": self.word_shares_,
        }
        parameters = self.get_params(deep=False)
        if not isinstance(self.random_state, (int, np.integer)):
            parameters["random_state"] = None
        header = {
            "model": KIND,
            "parameters": {name: _plain(value) for name, value in parameters.items()},
            "words": self.words_,
            "beta": self.beta_,
            "report": self.report_.to_plain() if hasattr(self, "report_") else None,
            "named": hasattr(self, "feature_names_in_"),
        }
        save_model(path, arrays, header)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that :meth:`save` wrote.

        Parameters
        ----------
        path : str or Path
            File to read.
        """
        arrays, header = load_model(path)
        if header.get("model") != KIND:
            raise InputError(f"{path} holds no topic model; expected what TopicModel.save or `mixmem topics` wrote")
        try:
            model = cls(**header["parameters"])
            components, alpha = arrays["components"], arrays["alpha"]
            _check_topics(path, components, alpha, header["words"])
            model.components_, model.alpha_ = components, alpha
            model.topic_prevalence_, model.word_shares_ = arrays["prevalence"], arrays["word_shares"]
            model.alpha0_, model.beta_, model.words_ = float(alpha.sum()), float(header["beta"]), header["words"]
            if header["report"] is not None:
                model.report_ = TopicReport.from_plain(header["report"])
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{path} is a mixmem file but lacks a part of a topic model ({error}); fit and save it again"
            ) from None
        model.n_features_in_ = components.shape[1]
        if header.get("named"):
            model.feature_names_in_ = np.array(model.words_, dtype=object)
        return model

    feature_names_in_: Any

    def _progress(self) -> Progress:
        return announced(in_python(self.verbose))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the documents, which are kept only as long as the model lives."""
        state = cast(dict[str, Any], super().__getstate__())
        return {name: value for name, value in state.items() if name != "_training"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = False
        return tags


def _check_topics(path: str | Path, components: Array, alpha: Array, words: list[str]) -> None:
    whole = components.ndim == 2 and components.shape == (len(alpha), len(words))
    if not whole or not np.isfinite(components).all() or components.min() < 0.0 or alpha.min() < 0.0:
        raise InputError(f"{path} holds topics that no fit gives; copy it again or fit again")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {int(topic): list(own) for topic, own in value.items()}
    return value
