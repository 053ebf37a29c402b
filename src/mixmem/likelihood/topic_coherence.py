"""How topics hang together in documents, and how alike they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mixmem.data.documents import Documents
from mixmem.errors import InputError
from mixmem.typing import Array

MEASURES = ("npmi", "u_mass")


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
