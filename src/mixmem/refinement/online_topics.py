"""Topics from passes over batches of documents, each weighed less than the one before: a start, and streams."""

from __future__ import annotations

import numpy as np

from mixmem.data.documents import Documents
from mixmem.kernels.document_memberships import document_rounds, spread_counts
from mixmem.refinement.collapsed import Prior, Table, batches, csr, even_counts, in_documents, padded, to_words
from mixmem.typing import Array

PASSES, DELAY, FORGETTING, ROUNDS = 2, 4.0, 0.7, 5


class OnlineTopics:
    """Counts of words by topic (V, k), as many as tokens were seen, from batches of documents."""

    def __init__(self, words: Table, prior: Prior, step: int = 0):
        self.words, self.prior, self.step = words, prior, step

    @classmethod
    def begin(cls, corpus: Documents, prior: Prior, rng: np.random.Generator) -> OnlineTopics:
        """Return topics that all begin near the shares of words in the corpus."""
        noise = rng.gamma(10.0, 0.1, (corpus.n_words, prior.n_topics))
        return cls(padded(noise * corpus.word_counts[:, None] / prior.n_topics), prior)

    @property
    def tokens(self) -> float:
        """Return the number of tokens that the counts stand for."""
        return float(self.words.sum(dtype=np.float64))

    @property
    def topics(self) -> Array:
        """Return the topics (V, k), columns on the simplex."""
        values = (self.words.astype(np.float64) + self.prior.beta)[:, : self.prior.n_topics]
        return np.asarray(values / values.sum(axis=0))

    def take(self, part: Documents, tokens: float) -> None:
        """Take a batch of documents into the counts, which then stand for so many tokens."""
        prior, n = self.prior, part.n_documents
        topics = (self.words + prior.beta) * prior.inverse(self.words.sum(axis=0, dtype=np.float64), part.n_words)
        documents = even_counts(part, prior)
        moved = np.empty((part.n_nonzeros, len(prior.alpha)), dtype=np.float32)

        def run(first: int, last: int) -> None:
            document_rounds(*csr(part), first, last, prior.alpha, topics, ROUNDS, 1e-2, documents)
            own = moved[part.indptr[first] : part.indptr[last]]
            spread_counts(*csr(part), first, last, prior.alpha, topics, documents, own)

        in_documents(part, run, ROUNDS * prior.n_topics)
        weight = (self.step + DELAY) ** -FORGETTING
        self.words *= np.float32((1.0 - weight) * tokens / max(self.tokens, 1e-9))
        moved *= np.float32(weight * tokens / max(float(part.lengths.sum()), 1e-9))
        to_words(part, 0, part.n_nonzeros, moved, self.words)
        self.step += 1 if n else 0


def online_topics(corpus: Documents, prior: Prior, rng: np.random.Generator, passes: int = PASSES) -> Array:
    """Return topics (V, k) from passes over the batches of a corpus."""
    online, tokens = OnlineTopics.begin(corpus, prior, rng), float(corpus.lengths.sum())
    for _ in range(passes):
        for first, last in batches(corpus):
            online.take(corpus.take(np.arange(first, last)), tokens)
    return online.topics
