"""Documents drawn from the model, with their truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mixmem.errors import InputError
from mixmem.typing import Array


@dataclass(frozen=True)
class SimulatedDocuments:
    """Hold drawn documents and their truth.

    Attributes
    ----------
    counts : sparse matrix (documents, words)
    components : (k, words) array
        Topics.
    memberships : (documents, k) array
    alpha : (k,) array
    """

    counts: Any
    components: Array
    memberships: Array
    alpha: Array


def simulate_documents(
    n_documents: int,
    n_words: int,
    n_components: int,
    *,
    length: float = 100.0,
    alpha: float = 0.1,
    beta: float = 0.05,
    random_state: int | np.random.Generator | None = None,
) -> SimulatedDocuments:
    """Draw documents from latent Dirichlet allocation.

    Parameters
    ----------
    n_documents, n_words, n_components : int
        Sizes.
    length : float
        Mean number of tokens of a document, which is Poisson.
    alpha, beta : float
        Concentrations of memberships, per topic, and of topics, per word.
    random_state : None, int or numpy random generator
        Source of randomness.

    Returns
    -------
    SimulatedDocuments

    Examples
    --------
    >>> simulate_documents(5, 20, 2, random_state=0).counts.shape
    (5, 20)
    """
    if min(n_documents, n_words, n_components) < 1 or min(length, alpha, beta) <= 0.0:
        raise InputError("sizes must be at least 1, and length, alpha and beta positive")
    rng = np.random.default_rng(random_state)
    topics = _simplex(rng, np.full(n_words, beta), n_components)
    memberships = _simplex(rng, np.full(n_components, alpha), n_documents)
    documents, words = [], []
    edges = np.cumsum(topics, axis=1)
    for at in range(0, n_documents, 10_000):
        part = memberships[at : at + 10_000]
        held = rng.multinomial(rng.poisson(length, len(part)), part)  # tokens by topic
        for h in range(n_components):
            owner = np.repeat(np.arange(at, at + len(part)), held[:, h])
            found = np.searchsorted(edges[h], rng.random(len(owner)) * edges[h, -1], side="right")
            documents.append(owner)
            words.append(np.minimum(found, n_words - 1))
    rows, columns = np.concatenate(documents), np.concatenate(words)
    counts = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n_documents, n_words))
    return SimulatedDocuments(counts, topics, memberships, np.full(n_components, alpha))


def _simplex(rng: np.random.Generator, concentrations: Array, rows: int) -> Array:
    """Return draws of a Dirichlet distribution; small concentrations give no zero sums."""
    draws = np.maximum(rng.gamma(concentrations, size=(rows, len(concentrations))), 1e-300)
    return np.asarray(draws / draws.sum(axis=1, keepdims=True))
