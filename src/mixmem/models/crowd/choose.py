"""Choosing a model without knowing a single class: which one predicts labels that it was not shown?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mixmem.models.crowd.fits import Settings, fit_labels
from mixmem.models.crowd.labels import Labels

CANDIDATES = ("community", "ds", "one_coin", "minimax")
SHARE = 0.1
"""Share of the labels held out."""
LEAST = 1e-12
"""A probability below this counts as this one: one label must not decide alone."""


def held_out_likelihood(labels: Labels, known: np.ndarray, settings: Settings, seed: np.random.SeedSequence) -> float:
    """Mean log probability of a tenth of the labels, drawn at random, under a fit to the others; higher is better."""
    drawn, fitted = (np.random.default_rng(child) for child in seed.spawn(2))
    held = drawn.random(labels.n_labels) < SHARE
    held[drawn.integers(labels.n_labels)] = True
    fit = fit_labels(labels.take(~held), known, settings, fitted)
    found = fit.predicted(labels.task_of[held], labels.workers[held], labels.labels[held])
    return float(np.log(np.maximum(found, LEAST)).mean())


def choose_model(
    labels: Labels,
    known: np.ndarray,
    settings: Settings,
    seed: np.random.SeedSequence,
    candidates: Sequence[str] = CANDIDATES,
) -> tuple[str, dict[str, float]]:
    """The candidate with the best held-out likelihood, all shown the same labels, and the likelihoods of all."""
    found = {
        model: held_out_likelihood(labels, known, replace(settings, model=model), np.random.SeedSequence(seed.entropy))
        for model in candidates
    }
    return max(candidates, key=found.__getitem__), found
