"""Moments of distinct tokens against all ordered triples of tokens, and topics from exact moments."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

from mixmem import align_components, simulate_documents, token_moments
from mixmem.data.documents import Documents
from mixmem.moments.documents import TokenMoments, orthogonal_terms, topics_from_moments, topics_of_moments


def slow_moments(counts, features):
    """Means over documents of the means over ordered pairs and triples of distinct tokens, one by one."""
    first, second, third, n = 0.0, 0.0, 0.0, 0
    for row in np.asarray(counts):
        tokens = [features[w] for w, count in enumerate(row) for _ in range(int(count))]
        if len(tokens) < 3:
            continue
        first = first + np.mean(tokens, axis=0)
        second = second + np.mean([np.outer(a, b) for a, b in permutations(tokens, 2)], axis=0)
        third = third + np.mean([np.einsum("a,b,c", *three) for three in permutations(tokens, 3)], axis=0)
        n += 1
    return first / n, second / n, third / n, n


@pytest.mark.parametrize("features", [None, "random"])
def test_moments_are_means_over_distinct_tokens(features):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, (6, 5))
    counts[2] = [1, 0, 1, 0, 0]  # too short for three
    f = np.eye(5) if features is None else rng.standard_normal((5, 3))
    found = token_moments(sparse.csr_matrix(counts), None if features is None else f)
    first, second, third, n = slow_moments(counts, f)
    np.testing.assert_allclose(found.first, first)
    np.testing.assert_allclose(found.second, second)
    np.testing.assert_allclose(found.third, third, atol=1e-14)
    assert found.n_documents == n


def test_moments_of_parts_add_up():
    counts = simulate_documents(60, 8, 2, length=10, random_state=0).counts
    whole, parts = token_moments(counts), token_moments(counts[:20]) + token_moments(counts[20:])
    assert whole.n_documents == parts.n_documents
    np.testing.assert_allclose(whole.third, parts.third, atol=1e-15)


def exact(topics, alpha):
    """Moments of one, two and three tokens of documents whose memberships are Dirichlet(alpha); topics (V, k)."""
    k, alpha0 = len(alpha), alpha.sum()
    e1 = alpha / alpha0
    e2 = (np.outer(alpha, alpha) + np.diag(alpha)) / (alpha0 * (alpha0 + 1))
    e3 = np.einsum("a,b,c->abc", alpha, alpha, alpha)
    for a in range(k):
        for b in range(k):
            e3[a, a, b] += alpha[a] * alpha[b]
            e3[a, b, a] += alpha[a] * alpha[b]
            e3[b, a, a] += alpha[a] * alpha[b]
        e3[a, a, a] += 2 * alpha[a]
    e3 /= alpha0 * (alpha0 + 1) * (alpha0 + 2)
    third = np.einsum("abc,ua,vb,wc->uvw", e3, topics, topics, topics, optimize=True)
    return TokenMoments(topics @ e1, topics @ e2 @ topics.T, third, 1)


@pytest.mark.parametrize("k", [2, 5, 10])
def test_exact_moments_in_topics_out(k):
    rng = np.random.default_rng(k)
    topics, alpha = rng.dirichlet(np.full(40, 0.2), k).T, rng.uniform(0.05, 0.5, k)
    found = topics_of_moments(exact(topics, alpha), k, alpha.sum(), np.random.default_rng(0))
    order = align_components(topics, found.topics)
    assert np.abs(found.topics[:, order] - topics).sum(axis=0).max() < 1e-4
    np.testing.assert_allclose(found.alpha[order], alpha, rtol=1e-4)


def test_topics_come_near_with_many_documents():
    drawn = simulate_documents(3000, 200, 4, length=60, random_state=0)
    found = topics_from_moments(Documents.of(drawn.counts), 4, 0.4, np.random.default_rng(0))
    order = align_components(drawn.components.T, found.topics)
    assert np.abs(found.topics[:, order] - drawn.components.T).sum(axis=0).mean() < 0.1


def test_orthogonal_terms_are_found_again():
    rng = np.random.default_rng(0)
    v = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    found = orthogonal_terms(np.einsum("h,ah,bh,ch->abc", np.arange(1.0, 7.0), v, v, v), rng)
    np.testing.assert_allclose(np.abs(v.T @ found).max(axis=1), 1.0, atol=1e-6)
