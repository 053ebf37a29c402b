"""Topics of documents: from a start by collapsed sweeps, alpha and beta learned in between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixmem.data.document_pieces import AnyDocuments, DocumentPieces
from mixmem.data.documents import Documents
from mixmem.errors import InputError
from mixmem.moments.documents import topics_from_moments
from mixmem.progress import Progress
from mixmem.refinement.collapsed import Counts, Prior, Sampler, Table, passed_counts, topics_of
from mixmem.refinement.concentrations import learned_alpha, learned_beta
from mixmem.refinement.document_likelihood import maximise_documents
from mixmem.refinement.online_topics import online_topics
from mixmem.typing import Array

FIRST_BETA = 0.05
TRIAL_SWEEPS, EARLY_SWEEPS, DRAWN_SWEEPS, UNLEARNED_DRAWS, LAST_SWEEPS = 2, 10, 7, 2, 3
GIBBS_SWEEPS, GIBBS_WARM_UP = 200, 50
STARTS = ("moments", "online")
LARGE_COUNT = 50.0
"""Mean of the counts that are not zero above which priors do not matter and tokens are too many to draw."""
NO_PRIOR = 1e-6
HELD_BYTES, SAMPLE_BYTES, PASSES = 1_000_000_000, 250_000_000, 3
"""Shares of nonzeros that are held at most; those of a sample where they are more; passes over all documents then."""
CALM = 5
"""Every so many sweeps one does not go further than its step: what moves then tells how far the others are."""
PUSH = 0.9
"""Sweeps go further than their step by this much: half as many lead as far; the last ones do not."""


def first_alpha(k: int) -> Array:
    """Return where alpha begins: a tenth per topic, and no more than 4 in all above 30 topics."""
    return np.full(k, 0.1 if k <= 30 else min(0.1, 4.0 / k))


@dataclass(frozen=True)
class TopicSettings:
    """What a fit of topics is told.

    alpha0 and beta: None to learn them. seeds (V, k): what is added to beta where a topic is known by some words.
    """

    n_topics: int
    alpha0: float | None = None
    beta: float | None = None
    seeds: Array | None = None
    starts: Sequence[str] = STARTS
    refine: str | None = "auto"
    max_iter: int = 30
    tol: float = 5e-4


@dataclass(frozen=True)
class TopicFit:
    """Topics (V, k) on the simplex, alpha (k,), beta, tokens by topic (k,), and how they were found."""

    topics: Array
    alpha: Array
    beta: float
    weights: Array
    start: str
    trials: dict[str, float]
    refine: str | None
    sweeps: int = 0
    converged: bool = True
    change: float = 0.0
    left_out: float = math.nan


def fit_topics(
    corpus: AnyDocuments, settings: TopicSettings, seed: np.random.SeedSequence, progress: Progress
) -> TopicFit:
    """Return the topics of documents: a start, sweeps, alpha and beta, and sweeps until they settle."""
    refine = chosen_refinement(corpus, settings)
    beyond = 4 * corpus.n_nonzeros * settings.n_topics > HELD_BYTES
    if refine == "cvb0" and beyond:
        return _from_sample(corpus, settings, seed, progress)
    if isinstance(corpus, DocumentPieces):
        if beyond:
            raise InputError(
                f"refine={refine!r} holds the shares of all documents in memory, and these are "
                f"{corpus.n_documents:,} in {len(corpus.files)} files; expected refine='cvb0', or a part of the files"
            )
        corpus = corpus.all
    return _fit_held(corpus, settings, refine, seed, progress)


def _fit_held(
    corpus: Documents, settings: TopicSettings, refine: str | None, seed: np.random.SeedSequence, progress: Progress
) -> TopicFit:
    """Return the topics of documents, the shares of all nonzeros held in memory."""
    prior, draws = first_prior(settings), seed.spawn(3)
    with progress.stage("starts"):
        counts, start, trials = _best_start(corpus, prior, settings, draws[0])
    if refine is None:
        return TopicFit(
            counts.topics(prior), *_plain(prior, settings), counts.totals[: prior.n_topics], start, trials, None
        )
    if refine == "em":
        return _maximised(counts, prior, start, trials, progress)
    with progress.stage("sweeps"):
        for _ in range(EARLY_SWEEPS - TRIAL_SWEEPS):
            counts.sweep(prior, PUSH)
    if corpus.whole:
        with progress.stage("alpha and beta"):
            prior = learned_prior(counts, prior, settings, draws[1])
    sweeps, change = _settle(counts, prior, settings, progress)
    left_out, words = counts.left_out(prior), counts.words
    if refine == "gibbs":
        words = _averaged(counts, prior, draws[2], progress)
    return TopicFit(
        topics_of(words, prior), *_plain(prior, settings), counts.totals[: prior.n_topics], start, trials, refine,
        sweeps, change <= settings.tol, change, left_out,
    )  # fmt: skip


def chosen_refinement(corpus: AnyDocuments, settings: TopicSettings) -> str | None:
    """Return the refinement: what is asked for; of "auto", maximum likelihood where counts are large."""
    if settings.refine == "auto":
        large = float(corpus.lengths.sum()) > LARGE_COUNT * max(corpus.n_nonzeros, 1)
        return "em" if large else "cvb0"
    if settings.refine == "gibbs" and not corpus.whole:
        raise InputError("refine='gibbs' draws single tokens, and some counts are fractional; expected counts of words")
    return settings.refine


def _plain(prior: Prior, settings: TopicSettings) -> tuple[Array, float]:
    """Return alpha (k,) and beta without the padding and the seeds."""
    beta = prior.beta[0, 0] - (0.0 if settings.seeds is None else settings.seeds[0, 0])
    return prior.alpha[: prior.n_topics].astype(np.float64), float(beta)


def _settle(counts: Counts, prior: Prior, settings: TopicSettings, progress: Progress) -> tuple[int, float]:
    """Sweep until few tokens move, then without going further than the steps; return the sweeps and the last change."""
    sweeps, change = 0, np.inf
    with progress.stage("settling", settings.max_iter) as done:
        counts.recount()
        while sweeps < settings.max_iter and change > settings.tol:
            sweeps += 1
            moved = counts.sweep(prior, PUSH if sweeps % CALM else 0.0)
            if sweeps % CALM == 0:
                change = moved
            done(1)
        for _ in range(LAST_SWEEPS):
            counts.sweep(prior)
        counts.recount()
    return sweeps, change


def _averaged(counts: Counts, prior: Prior, seed: np.random.SeedSequence, progress: Progress) -> Table:
    """Return the words' counts by topic, a mean over sampled ones."""
    sampler = Sampler(counts, sampler_seed(seed))
    total = np.zeros(counts.words.shape)
    with progress.stage("sampling", GIBBS_SWEEPS) as done:
        for step in range(GIBBS_SWEEPS):
            sampler.sweep(prior)
            if step >= GIBBS_WARM_UP:
                total += sampler.words
            done(1)
    return np.asarray(total / (GIBBS_SWEEPS - GIBBS_WARM_UP), dtype=np.float32)


def _maximised(counts: Counts, prior: Prior, start: str, trials: dict[str, float], progress: Progress) -> TopicFit:
    """Return the topics at the maximum of the likelihood without priors."""
    k = prior.n_topics
    found = maximise_documents(counts.corpus, counts.topics(prior), counts.memberships(prior), progress=progress)
    weights = counts.corpus.lengths @ found.memberships
    per_token = found.history[-1] * counts.corpus.n_documents / max(float(counts.corpus.lengths.sum()), 1.0)
    return TopicFit(
        found.theta, np.full(k, NO_PRIOR), NO_PRIOR, weights, start, trials, "em", len(found.history) - 1,
        found.converged, found.history[-1] - found.history[-min(2, len(found.history))], per_token,
    )  # fmt: skip


def _from_sample(
    corpus: AnyDocuments, settings: TopicSettings, seed: np.random.SeedSequence, progress: Progress
) -> TopicFit:
    """Return the topics of more documents than can be held: of a sample first, then by passes over all of them."""
    share = SAMPLE_BYTES / (4.0 * corpus.n_nonzeros * settings.n_topics)
    size = max(1, int(share * corpus.n_documents))
    rows = np.sort(np.random.default_rng(seed.spawn(1)[0]).choice(corpus.n_documents, size, replace=False))
    first = _fit_held(corpus.take(rows), settings, "cvb0", seed, progress)
    prior = prior_of(first.alpha, first.beta, settings)
    topics, words = first.topics, np.zeros((0, 0))
    with progress.stage("passes", PASSES * corpus.n_blocks) as done:
        for _ in range(PASSES):
            words = np.zeros((corpus.n_words, len(prior.alpha)))
            for block in corpus.blocks():
                words += passed_counts(block, topics, prior)
                done(1)
            topics = topics_of(words, prior)
    weights = words.sum(axis=0, dtype=np.float64)[: prior.n_topics]
    return replace(first, topics=topics, weights=weights)


def first_prior(settings: TopicSettings) -> Prior:
    """Return the concentrations with which the sweeps begin: those that are given, else the first guesses."""
    k = settings.n_topics
    alpha = first_alpha(k) if settings.alpha0 is None else np.full(k, settings.alpha0 / k)
    return prior_of(alpha, FIRST_BETA if settings.beta is None else settings.beta, settings)


def prior_of(alpha: Array, beta: float, settings: TopicSettings) -> Prior:
    """Return concentrations, the words that topics are known by included."""
    return Prior.of(alpha, beta if settings.seeds is None else beta + settings.seeds)


def _best_start(
    corpus: Documents, prior: Prior, settings: TopicSettings, seed: np.random.SeedSequence
) -> tuple[Counts, str, dict[str, float]]:
    """Return the counts of the start that is likelier after a few sweeps, its name, and the likelihoods of all."""
    trials: dict[str, float] = {}
    best: tuple[Counts, str] | None = None
    shares = np.empty((corpus.n_nonzeros, len(prior.alpha)), dtype=np.float32)  # the largest array: of one start only
    for name, one in zip(STARTS, seed.spawn(2), strict=True):
        if name not in settings.starts:
            continue
        topics = start_topics(name, corpus, prior, np.random.default_rng(one))
        counts = Counts.begin(corpus, topics, prior, shares)
        for _ in range(TRIAL_SWEEPS):
            counts.sweep(prior, PUSH)
        trials[name] = counts.left_out(prior)
        if best is None or trials[name] > trials[best[1]]:
            best = counts, name
    assert best is not None
    if best[1] != name:
        best[0].refill(best[0].topics(prior), prior)
    return best[0], best[1], trials


def start_topics(name: str, corpus: Documents, prior: Prior, rng: np.random.Generator) -> Array:
    """Return topics (V, k) from the moments of distinct tokens, or from online passes."""
    if name == "online":
        return online_topics(corpus, prior, rng)
    found = topics_from_moments(corpus, prior.n_topics, float(prior.alpha.sum()), rng).topics
    return found + 1e-3 / corpus.n_words


def learned_prior(counts: Counts, prior: Prior, settings: TopicSettings, seed: np.random.SeedSequence) -> Prior:
    """Return alpha and beta from the counts of sampled tokens: soft counts would overestimate both.

    Of alpha0 that is given, only its shares by topic are learned.
    """
    k = prior.n_topics
    sampler = Sampler(counts, sampler_seed(seed))
    alpha, beta = prior.alpha[:k].astype(np.float64), FIRST_BETA if settings.beta is None else settings.beta
    for step in range(DRAWN_SWEEPS):
        sampler.sweep(prior)
        if step < UNLEARNED_DRAWS:
            continue
        alpha = learned_alpha(sampler.documents[:, :k], alpha)
        if settings.alpha0 is not None:
            alpha = alpha * settings.alpha0 / alpha.sum()
        if settings.beta is None:
            beta = learned_beta(sampler.words[:, :k], beta)
        prior = prior_of(alpha, beta, settings)
    return prior


def sampler_seed(seed: np.random.SeedSequence) -> int:
    """Return the number that a sampler's streams begin from."""
    return int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1))
