"""Sweeps, samplers and concentrations of topics."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem import simulate_documents
from mixmem.data.documents import Documents
from mixmem.progress import Progress
from mixmem.refinement.collapsed import Counts, Prior, Sampler
from mixmem.refinement.concentrations import learned_alpha, learned_beta
from mixmem.refinement.document_likelihood import maximise_documents
from mixmem.refinement.topics import TopicSettings, chosen_refinement

DRAWN = simulate_documents(300, 120, 3, length=50, random_state=0)
CORPUS = Documents.of(DRAWN.counts)
PRIOR = Prior.of(np.full(3, 0.1), 0.05)


def begun():
    rng = np.random.default_rng(0)
    topics = DRAWN.components.T + rng.random((120, 3)) / 120
    return Counts.begin(CORPUS, topics / topics.sum(axis=0), PRIOR, np.empty((CORPUS.n_nonzeros, 8), np.float32))


@pytest.mark.parametrize("push", [0.0, 0.9])
def test_sweeps_keep_all_tokens_and_become_likelier(push):
    counts = begun()
    before = counts.left_out(PRIOR)
    for _ in range(10):
        counts.sweep(PRIOR, push)
    assert counts.left_out(PRIOR) > before
    np.testing.assert_allclose(counts.documents.sum(axis=1), CORPUS.lengths, rtol=1e-4)
    np.testing.assert_allclose(counts.words.sum(axis=1), CORPUS.word_counts, rtol=1e-3, atol=1e-3)
    kept = counts.words.copy()
    counts.recount()
    np.testing.assert_allclose(counts.words, kept, atol=1e-2)
    assert counts.sweep(PRIOR) < 0.02


def test_drawn_tokens_stay_as_many():
    sampler = Sampler(begun(), seed=5)
    for _ in range(3):
        sampler.sweep(PRIOR)
    np.testing.assert_array_equal(sampler.documents.sum(axis=1), CORPUS.lengths)
    np.testing.assert_array_equal(sampler.words.sum(axis=1), CORPUS.word_counts)
    assert sampler.documents[:, 3:].max() == 0


def test_concentrations_are_found_from_whole_counts():
    rng = np.random.default_rng(0)
    alpha = np.array([0.2, 0.5, 1.0])
    counts = np.array([rng.multinomial(80, x) for x in rng.dirichlet(alpha, 3000)])
    np.testing.assert_allclose(learned_alpha(counts, np.ones(3), rounds=200), alpha, rtol=0.1)
    words = np.array([rng.multinomial(5000, x) for x in rng.dirichlet(np.full(400, 0.07), 30)]).T
    assert learned_beta(words, 0.5, rounds=200) == pytest.approx(0.07, rel=0.05)


def test_the_likelihood_never_falls():
    counts = begun()
    found = maximise_documents(CORPUS, counts.topics(PRIOR), counts.memberships(PRIOR), progress=Progress())
    assert (np.diff(found.history) >= 0).all()
    np.testing.assert_allclose(found.theta.sum(axis=0), 1)
    expected = found.memberships @ found.theta.T
    dense = DRAWN.counts.toarray()
    value = (dense * np.log(np.maximum(expected, 1e-300))).sum() / len(dense)
    assert value == pytest.approx(found.history[-1], rel=1e-9)


def test_large_counts_are_maximised_without_priors():
    large = Documents(CORPUS.indptr, CORPUS.indices, CORPUS.counts * 1000, CORPUS.n_words)
    assert chosen_refinement(large, TopicSettings(2)) == "em"
    assert chosen_refinement(CORPUS, TopicSettings(2)) == "cvb0"
