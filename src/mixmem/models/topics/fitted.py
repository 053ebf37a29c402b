"""What a fitted topic model answers: memberships, scores, words that stand for topics, intervals, topics merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from mixmem.data.documents import Documents
from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.likelihood.documents import completion
from mixmem.likelihood.topic_coherence import coherence_of, similarity_of
from mixmem.models.topics.counts_input import documents_of, word_names
from mixmem.moments.components import best_assignment
from mixmem.parameters import check_level
from mixmem.results.topic_report import TopicReport
from mixmem.results.topic_uncertainty import difference_table, interval_table, word_covariances
from mixmem.results.topics import top_word_table
from mixmem.typing import Array

if TYPE_CHECKING:
    import pandas as pd


class FittedTopics:
    """Answer for topics after their fit, or out of a file."""

    n_components: int
    random_state: int | np.random.Generator | None
    n_jobs: int | None
    components_: Array
    alpha_: Array
    alpha0_: float
    beta_: float
    topic_prevalence_: Array
    words_: list[str]
    word_shares_: Array
    report_: TopicReport
    n_features_in_: int
    _training: Documents | None = None

    def transform(self, X: Any) -> Array:
        """Return memberships (n, k) of documents; see the model."""
        raise NotImplementedError

    @property
    def memberships_(self) -> Array:
        """Return memberships (n, k) of the documents the model was fitted to."""
        return self.transform(self._documents(None))

    def score(self, X: Any, y: None = None) -> float:
        """Return how well topics complete documents: the log-likelihood per token of one half of every document.

        Tokens are halved at random, by ``random_state`` if that is a number; memberships come from the other half.

        Parameters
        ----------
        X : sparse matrix, array or frame (documents, words)
            Counts, with the words that the model was fitted to.
        y : None
            Not used.
        """
        self._check_fitted()
        corpus = documents_of(self, X, reset=False)
        seed = self.random_state if isinstance(self.random_state, (int, np.integer)) else 0
        with threads(self.n_jobs):
            return completion(corpus, self.components_.T, self.alpha_, np.random.default_rng([int(seed), 17]))

    def perplexity(self, X: Any) -> float:
        """Return exp(-score): how many words a token is as uncertain as.

        Parameters
        ----------
        X : sparse matrix, array or frame (documents, words)
            Counts, with the words that the model was fitted to.
        """
        return float(np.exp(-self.score(X)))

    def top_words(
        self, n: int = 10, *, by: str = "probability", weight: float = 0.6, words: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the words that stand for topics, as a table: topic (from 1), rank, word, probability, lift, score.

        Parameters
        ----------
        n : int
            Words per topic.
        by : str
            "probability"; "lift", how much likelier a word is in the topic than in the corpus; "relevance", between the
            two; or "frex", words both frequent in the topic and exclusive to it.
        weight : float
            Of "relevance": the weight of probability against lift; of "frex": that of exclusivity.
        words : list of str or None
            Names of the words; None for those known from the fit.
        """
        self._check_fitted()
        names = self.words_ if words is None else word_names(None, words, len(self.words_))
        tokens = self.report_.tokens if hasattr(self, "report_") else np.inf
        expected = self.topic_prevalence_[:, None] * tokens
        return top_word_table(self.components_, self.word_shares_, expected, names, n, by, weight)

    def coherence(self, X: Any = None, *, measure: str = "npmi", n: int = 10) -> Array:
        """Return how each topic's n likeliest words go together (k,): "npmi" (-1 to 1) or "u_mass".

        They are counted by documents: those the model was fitted to, or other ones ``X``.

        Parameters
        ----------
        X : sparse matrix, array or frame (documents, words), or None
            Counts; None for the documents that the model was fitted to, which a model from a file does not hold.
        measure : str
            "npmi" or "u_mass".
        n : int
            Words per topic.
        """
        self._check_fitted()
        return coherence_of(self.components_, self._documents(X), measure, n)

    def topic_similarity(self) -> Array:
        """Return how alike topics are (k, k): one less the Jensen-Shannon divergence in bits."""
        self._check_fitted()
        return similarity_of(self.components_)

    def intervals(self, level: float = 0.95, X: Any = None) -> pd.DataFrame:
        """Return estimates, standard errors and intervals of the words' probabilities, as one table.

        Columns: topic (from 1), word, estimate, standard_error, lower, upper. They stand on the documents that the
        model was fitted to, or ``X``, with memberships taken as known: short documents make them somewhat too narrow.

        Parameters
        ----------
        level : float
            Share of intervals that hold the truth.
        X : sparse matrix, array or frame (documents, words), or None
            Counts; None for the documents that the model was fitted to, which a model from a file does not hold.
        """
        topics, covariances = self._covariances(level, X)
        return interval_table(topics, covariances, self.words_, level)

    def differences(self, level: float = 0.95, X: Any = None) -> pd.DataFrame:
        """Return how each word differs between a topic and the other topic that is nearest in it, as one table.

        Columns: topic (from 1), word, probability, versus, log2_fold_change, lower, upper, z. With cells this is
        differential expression. A word whose interval lies above zero is more frequent in the topic than in any other.
        Intervals count tokens as independent draws: where counts vary more than that, as those of tissues do, they are
        too narrow, and serve to rank words.

        Parameters
        ----------
        level : float
            Share of intervals that hold the truth.
        X : sparse matrix, array or frame (documents, words), or None
            Counts; None for the documents that the model was fitted to, which a model from a file does not hold.
        """
        if self.n_components < 2:
            raise InputError("there is one topic, which differs from no other; expected n_components of at least 2")
        topics, covariances = self._covariances(level, X)
        return difference_table(topics, covariances, self.words_, level)

    def _covariances(self, level: float, X: Any) -> tuple[Array, Array]:
        self._check_fitted()
        check_level(level)
        corpus = self._documents(X)
        topics = np.ascontiguousarray(self.components_.T)
        return topics, word_covariances(corpus, topics, self.transform(corpus), self.beta_)

    def merge(self, groups: Sequence[Sequence[int]]) -> Self:
        """Return a model in which groups of topics, counted from 1, are one topic each; the others stay.

        A merged topic is the mean of its parts, weighted by their tokens, and has the sum of their alphas.

        Parameters
        ----------
        groups : sequence of sequences of int
            Topics that become one, from 1: [[1, 3], [2, 5]].

        Examples
        --------
        >>> from mixmem import TopicModel, simulate_documents
        >>> model = TopicModel(3, random_state=0).fit(simulate_documents(300, 100, 3, random_state=0).counts)
        >>> model.merge([[1, 3]]).components_.shape
        (2, 100)
        """
        self._check_fitted()
        k = len(self.alpha_)
        named = [h for group in groups for h in group]
        if sorted(set(named)) != sorted(named) or not all(1 <= h <= k for h in named):
            raise InputError(f"groups must name topics from 1 to {k}, each once at most; got {list(map(list, groups))}")
        sets = [[h - 1 for h in group] for group in groups if len(group)]
        sets += [[h] for h in range(k) if h + 1 not in named]
        sets.sort(key=lambda group: -float(self.topic_prevalence_[group].sum()))
        to = np.zeros((len(sets), k))
        for row, group in enumerate(sets):
            to[row, group] = 1.0
        weights = to * self.topic_prevalence_
        shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        return self._changed(shares @ self.components_, to @ self.alpha_, weights.sum(axis=1))

    def align_to(self, other: FittedTopics) -> Self:
        """Return this model with its topics in the order of another's that they are most alike.

        Parameters
        ----------
        other : TopicModel
            Fitted model of as many topics and words, whose order is taken.
        """
        self._check_fitted()
        other._check_fitted()
        if self.components_.shape != other.components_.shape:
            raise InputError(
                f"expected two models of one size; got {self.components_.shape} and {other.components_.shape} (topics, "
                "words)"
            )
        both = similarity_of(np.vstack([other.components_, self.components_]))
        k = len(self.alpha_)
        order = best_assignment(1.0 - both[:k, k:])
        return self._changed(self.components_[order], self.alpha_[order], self.topic_prevalence_[order])

    def _changed(self, components: Array, alpha: Array, prevalence: Array) -> Self:
        """Return the same model with other topics."""
        made = cast(Any, type(self))
        model = cast(Self, made(**{**cast(Any, self).get_params(deep=False), "n_components": len(alpha)}))
        vars(model).update({name: value for name, value in vars(self).items() if name.endswith("_")})
        model.components_, model.alpha_, model.topic_prevalence_ = components, alpha, prevalence
        model._training = self._training
        return model

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return topic_1 … topic_k, the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : None
            Not used.
        """
        self._check_fitted()
        return np.array([f"topic_{h + 1}" for h in range(len(self.alpha_))], dtype=object)

    def _documents(self, X: Any) -> Documents:
        if X is not None:
            return documents_of(self, X, reset=False)
        if self._training is None:
            raise InputError("the model does not hold the documents it was fitted to; expected them as X")
        return self._training

    def _check_fitted(self) -> None:
        if not hasattr(self, "components_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this TopicModel is not fitted yet; call fit with counts of words first")
