"""What topics are about: words that stand for them, how they hang together, how alike they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mixmem.data.documents import Documents
from mixmem.errors import InputError
from mixmem.typing import Array

if TYPE_CHECKING:
    import pandas as pd

Ranking = Literal["probability", "lift", "relevance", "frex"]
RANKINGS = ("probability", "lift", "relevance", "frex")
MEASURES = ("npmi", "u_mass")
RARE = 5.0
"""Expected tokens of a word in a topic below which its lift is not taken seriously."""


def word_scores(components: Array, shares: Array, by: str, weight: float) -> Array:
    """Return the scores (k, V) by which words are ranked in topics.

    Parameters
    ----------
    components : (k, V) array
        Topics.
    shares : (V,) array
        Shares of the words in the corpus.
    by : str
        "probability"; "lift": probability over share; "relevance": weight log probability + (1 - weight) log lift
        (Sievert and Shirley); "frex": the harmonic mean of a word's ranks by frequency in the topic and by
        exclusivity to it (Bischof and Airoldi), ``weight`` on exclusivity.
    weight : float
        From 0 to 1.
    """
    if by not in RANKINGS:
        raise InputError(f"by must be one of {', '.join(map(repr, RANKINGS))}; got {by!r}")
    if not 0.0 <= weight <= 1.0:
        raise InputError(f"weight must be a number from 0 to 1; got {weight!r}")
    logs = np.log(np.maximum(components, 1e-300))
    lift = logs - np.log(np.maximum(shares, 1e-300))
    if by == "probability":
        return components
    if by == "lift":
        return np.where(shares > 0.0, lift, -np.inf)
    if by == "relevance":
        return np.where(shares > 0.0, weight * logs + (1.0 - weight) * lift, -np.inf)
    exclusive = components / np.maximum(components.sum(axis=0), 1e-300)
    return np.asarray(1.0 / (weight / _ranks(exclusive) + (1.0 - weight) / _ranks(components)))


def _ranks(values: Array) -> Array:
    """Return the share of a row's entries that are no larger, (k, V)."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=1, method="max") / values.shape[1])


def top_word_table(
    components: Array, shares: Array, tokens: Array, words: Sequence[str], n: int, by: str, weight: float
) -> pd.DataFrame:
    """Return the n words that stand for each topic (from 1), with rank, probability, lift and score.

    tokens (k, 1) are those of the topics.
    """
    import pandas as pd

    scores = word_scores(components, shares, by, weight)
    if by in ("lift", "frex"):  # a word seen twice is exclusive to a topic by chance
        scores = np.where(components * tokens >= RARE, scores, -np.inf)
    rows = []
    for h, score in enumerate(scores):
        for rank, w in enumerate(largest(score, n), start=1):
            lift = components[h, w] / max(shares[w], 1e-300)
            rows.append((h + 1, rank, words[w], components[h, w], lift, score[w]))
    return pd.DataFrame(rows, columns=["topic", "rank", "word", "probability", "lift", "score"])


def largest(values: Array, n: int) -> NDArray[np.int64]:
    """Return the places of the n largest values that are finite, the largest first, ties by place."""
    order = np.argsort(-values, kind="stable")[:n]
    return order[np.isfinite(values[order])]


def coherence_of(components: Array, corpus: Documents, measure: str, n: int) -> Array:
    """Return the coherence of each topic (k,): how often its n likeliest words share documents.

    "npmi" is the mean over pairs of log(p_ij / (p_i p_j)) / -log p_ij, from -1 to 1, with shares of documents; a pair
    that never meets counts -1. "u_mass" is the mean of log((d_ij + 1) / d_i), d counting documents, i being likelier.
    """
    if measure not in MEASURES:
        raise InputError(f"measure must be one of {', '.join(map(repr, MEASURES))}; got {measure!r}")
    tops = [largest(row, n) for row in components]
    used = np.unique(np.concatenate(tops))
    ones = np.ones(corpus.n_nonzeros, dtype=np.int64)
    shape = (corpus.n_documents, corpus.n_words)
    held = sparse.csr_matrix((ones, corpus.indices, corpus.indptr), shape=shape)[:, used]
    together = np.asarray((held.T @ held).todense(), dtype=np.float64)
    return np.array([_coherence(together, np.searchsorted(used, top), corpus.n_documents, measure) for top in tops])


def _coherence(together: Array, top: NDArray[np.int64], n_documents: int, measure: str) -> float:
    i, j = np.triu_indices(len(top), 1)
    if len(i) == 0:
        return float("nan")
    pair, single = together[np.ix_(top, top)], together[top, top]
    both = pair[i, j]
    if measure == "u_mass":
        return float(np.mean(np.log((both + 1.0) / np.maximum(single[i], 1.0))))
    share, alone = both / n_documents, single / n_documents
    met = (both > 0.0) & (both < n_documents)
    safe = np.where(met, share, 0.5)
    value = np.log(safe / np.where(met, alone[i] * alone[j], 0.5)) / -np.log(safe)
    return float(np.mean(np.where(met, value, np.where(both > 0.0, 1.0, -1.0))))


def similarity_of(components: Array) -> Array:
    """Return how alike topics are (k, k): one less the Jensen-Shannon divergence in bits, 1 for equal ones."""
    k = len(components)
    own = _entropy(components)
    out = np.ones((k, k))
    for h in range(k):
        mixed = _entropy(0.5 * (components[h] + components[h + 1 :]))
        out[h, h + 1 :] = out[h + 1 :, h] = 1.0 - (mixed - 0.5 * (own[h] + own[h + 1 :]))
    return out


def _entropy(rows: Array) -> Array:
    return np.asarray(-(rows * np.log2(np.maximum(rows, 1e-300))).sum(axis=1))
