"""EBCC (Li, Rubinstein, Cohn 2019): classes have subtypes, on which workers err alike."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from mixmem.models.crowd.rounds import LogPrior, Passes, Rounds, run_rounds
from mixmem.models.crowd.workers import Variational
from mixmem.typing import Array

SUBTYPES = 10
SPREAD = 0.1
"""Tasks imagined in a class, evenly over its subtypes: a small number leaves subtypes empty."""
STARTS = 3


def run_ebcc(passes: Passes, rng: np.random.Generator, *, n_iter: int, tol: float) -> tuple[Rounds, Variational]:
    """The best of a few random starts by the bound on the labels' likelihood; ``passes`` has ``SUBTYPES`` columns."""
    k, width = passes.labels.n_classes, passes.width
    found = []
    for _ in range(STARTS):
        parts = rng.dirichlet(np.ones(width), size=(passes.labels.n_tasks, k))
        posterior = (passes.shares()[:, :, None] * parts).reshape(-1, k * width)
        workers = Variational(k, width=width)
        rounds = run_rounds(
            passes, workers, posterior, passes.counts(posterior), n_iter=n_iter, tol=tol, log_prior=_log_prior(width)
        )
        found.append((_bound(rounds, workers, width), rounds, workers))
    return max(found, key=lambda each: each[0])[1:]


def class_tables(tables: Array, prior: Array, width: int) -> Array:
    """Tables by subtype (..., K width) averaged into tables by class (..., K), subtypes by their prior."""
    weights = prior.reshape(-1, width) / prior.reshape(-1, width).sum(axis=1, keepdims=True)
    split = tables.reshape(*tables.shape[:-1], -1, width)
    return np.asarray((split * weights).sum(axis=-1))


def _log_prior(width: int) -> LogPrior:
    def log_prior(sizes: Array) -> Array:
        each = sizes.reshape(-1, width)
        total = each.sum(axis=1, keepdims=True)
        shares = digamma(total + 1.0) - digamma((total + 1.0).sum())
        inside = digamma(each + SPREAD / width) - digamma(total + SPREAD)
        return np.asarray((shares + inside).ravel())

    return log_prior


def _bound(rounds: Rounds, workers: Variational, width: int) -> float:
    """The evidence lower bound, up to what is the same for all starts."""
    each = rounds.posterior.sum(axis=0).reshape(-1, width)
    total = each.sum(axis=1)
    value = gammaln(total + 1.0).sum() - gammaln(total + SPREAD).sum() + gammaln(each + SPREAD / width).sum()
    known = rounds.counts + workers.imagined
    value += gammaln(known).sum() - gammaln(known.sum(axis=1)).sum()
    found = rounds.posterior
    return float(value - (found * np.log(np.where(found > 0.0, found, 1.0))).sum())
