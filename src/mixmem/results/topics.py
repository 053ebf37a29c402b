"""What topics are about: the words that stand for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from mixmem.errors import InputError
from mixmem.likelihood.topic_coherence import largest
from mixmem.typing import Array

if TYPE_CHECKING:
    import pandas as pd

Ranking = Literal["probability", "lift", "relevance", "frex"]
RANKINGS = ("probability", "lift", "relevance", "frex")
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
