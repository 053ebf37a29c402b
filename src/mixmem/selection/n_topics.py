"""How many topics documents show: those that complete other documents better, and are found in them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mixmem.data.documents import Documents
from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.likelihood.documents import document_memberships, halves, log_likelihoods
from mixmem.likelihood.topic_coherence import coherence_of, similarity_of
from mixmem.progress import Progress, current
from mixmem.refinement.topics import TopicFit, TopicSettings, fit_topics
from mixmem.seeds import seed_sequence
from mixmem.typing import Array

if TYPE_CHECKING:
    import pandas as pd

SURE = 2.0
"""Standard errors by which completion must rise."""
STABLE = 0.8
"""Share of tokens in topics that must be found again."""
FEWEST = 20


@dataclass(frozen=True)
class TopicChoice:
    """Hold a recommended number of topics with its reason and the figures of every number tried.

    Attributes
    ----------
    n_components : int
        The number recommended.
    reason : str
    table : DataFrame
        A row per number tried: n_components, completion (log-likelihood per token of documents that were not fitted,
        one half of each given), gain (over the best smaller number) and its standard_error, npmi (mean coherence in
        documents that were not fitted), found_again (share of tokens in topics that come out of other documents too),
        holds, and why.
    """

    n_components: int
    reason: str
    table: pd.DataFrame


@dataclass(frozen=True)
class Tried:
    """One number of topics: per document completion (n,) with its tokens (n,), coherence, share found again."""

    k: int
    scores: Array
    tokens: Array
    npmi: float
    found_again: float


def choose_topics(
    X: Any,
    k_range: Iterable[int] = (2, 5, 10, 20, 40),
    *,
    n_splits: int = 2,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
) -> TopicChoice:
    """Recommend the number of topics of documents: the largest that holds.

    Documents are split in halves, and each half is fitted alone. A number holds if its topics complete the documents
    of the other half better than every smaller number does, by two standard errors, and if topics with 80 % of the
    tokens are found again: a topic of one half and one of the other that are each other's nearest.

    Parameters
    ----------
    X : sparse matrix or array (documents, words)
        Counts of words.
    k_range : list of int
        Numbers to try.
    n_splits : int
        Times the documents are split in halves.
    random_state : None, int or numpy random generator
        Source of the splits and the fits.
    n_jobs : None or int
        Threads; None for all cores.

    Returns
    -------
    TopicChoice

    Examples
    --------
    >>> from mixmem import choose_topics, simulate_documents
    >>> drawn = simulate_documents(400, 150, 3, random_state=0)
    >>> choose_topics(drawn.counts, [1, 3, 6], random_state=0).n_components
    3
    """
    corpus = X if isinstance(X, Documents) else Documents.of(sparse.csr_matrix(X))
    asked = sorted({int(k) for k in k_range})
    if not asked or asked[0] < 1:
        raise InputError(f"k_range must hold numbers of topics of at least 1; got {asked}")
    if corpus.n_documents < FEWEST:
        raise InputError(f"choosing needs at least {FEWEST} documents to split; got {corpus.n_documents}")
    seed, progress = seed_sequence(random_state), current()
    splits = [_split(corpus, np.random.default_rng(one)) for one in seed.spawn(n_splits)]
    with threads(n_jobs), progress.stage("numbers of topics", len(asked)) as done:
        tried = []
        for k, one in zip(asked, seed.spawn(len(asked)), strict=True):
            tried.append(_try(k, splits, one))
            done(1)
    return recommend(tried)


def _split(corpus: Documents, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the two halves of the documents, each with its tokens halved."""
    order = rng.permutation(corpus.n_documents)
    middle = corpus.n_documents // 2
    parts = [corpus.take(np.sort(part)) for part in (order[:middle], order[middle:])]
    return tuple((part, *halves(part, rng)) for part in parts)  # type: ignore[return-value]


def _try(k: int, splits: Sequence[tuple[Any, Any]], seed: np.random.SeedSequence) -> Tried:
    scores, tokens, npmi, again = [], [], [], []
    for (one, two), child in zip(splits, seed.spawn(len(splits)), strict=True):
        both = zip((one, two), child.spawn(2), strict=True)
        fits = [fit_topics(part[0], TopicSettings(k), own, Progress()) for part, own in both]
        for fit, (other, known, hidden) in zip(fits, (two, one), strict=True):
            memberships = document_memberships(known, fit.topics, fit.alpha).memberships
            scores.append(log_likelihoods(hidden, fit.topics, memberships))
            tokens.append(hidden.lengths)
            npmi.append(float(np.nanmean(coherence_of(fit.topics.T, other, "npmi", 10))) if fit.topics.size else 0.0)
        again.append(found_again(*fits))
    return Tried(k, np.concatenate(scores), np.concatenate(tokens), float(np.mean(npmi)), float(np.mean(again)))


def found_again(one: TopicFit, two: TopicFit) -> float:
    """Return the share of tokens in topics of one fit whose nearest in the other has it as its own nearest."""
    k = one.topics.shape[1]
    across = similarity_of(np.vstack([one.topics.T, two.topics.T]))[:k, k:]
    there, back = across.argmax(axis=1), across.argmax(axis=0)
    mutual: NDArray[np.bool_] = back[there] == np.arange(k)
    return float((one.weights * mutual).sum() / max(float(one.weights.sum()), 1e-300))


def recommend(tried: Sequence[Tried]) -> TopicChoice:
    """Return the largest number that holds, and why the others do not."""
    import pandas as pd

    rows, best, chosen = [], None, tried[0]
    for one in tried:
        gain, error, why = np.nan, np.nan, "the smallest number tried"
        if best is not None:
            gain, error = _gain(best, one)
            why = "completes other documents better, and its topics are found again"
            if gain <= SURE * error:
                why = "does not complete other documents better than a smaller number"
            elif one.found_again < STABLE:
                why = f"only {one.found_again:.0%} of the tokens are in topics that are found again"
        holds = best is None or why.startswith("completes")
        chosen = one if holds else chosen
        if best is None or one.scores.sum() > best.scores.sum():
            best = one
        per_token = float(one.scores.sum() / max(float(one.tokens.sum()), 1.0))
        rows.append((one.k, per_token, gain, error, one.npmi, one.found_again, holds, why))
    names = ["n_components", "completion", "gain", "standard_error", "npmi", "found_again", "holds", "why"]
    larger = [one.k for one in tried if one.k > chosen.k]
    reason = f"{chosen.k} topics is the largest number tried that holds"
    if not larger:
        reason += "; none larger was tried, so that more may hold"
    return TopicChoice(chosen.k, reason, pd.DataFrame(rows, columns=names))


def _gain(best: Tried, one: Tried) -> tuple[float, float]:
    """Return how much better a number completes, per token, and the standard error over documents."""
    change = one.scores - best.scores
    total = max(float(one.tokens.sum()), 1.0)
    return float(change.sum() / total), float(np.sqrt(((change - change.mean()) ** 2).sum()) / total)
