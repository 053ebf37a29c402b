"""Whether workers err together, and what that leaves of a task's certainty.

Bayes' rule multiplies what labels say, as if workers erred independently. They do not: a hard task misleads several at
once. The excess by which a task's labels are right together, or wrong together, shows it; where it is there, n labels
of a task are worth fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import exponnorm, norm

from mixmem.kernels.crowd import excess_agreement
from mixmem.models.crowd.labels import Labels
from mixmem.typing import Array

DISCOUNT = 0.6
"""Among dependent labels n are worth n to the power of one minus this; chosen on public sets, see docs/crowd.md."""
USUAL, DOUBT = 0.05, 0.25
"""Mean excess of crowds whose workers err together, and the share of crowds expected to be independent."""


NOBODY = 1.0 / 3.0
"""Weight of classes that none of a task's workers named, beside those that were: they need stronger evidence."""


@dataclass(frozen=True)
class Dependence:
    """``excess``: correlation of right and wrong among a task's labels, with its standard ``error``; ``probability``
    that workers err together; ``discount``: n labels are worth n to the power of one minus this."""

    excess: float
    error: float
    probability: float
    discount: float

    def temper(self, posterior: Array, votes: np.ndarray) -> Array:
        """Return class probabilities (n, K) as ``votes`` (n,) labels of a task justify them; their order stays."""
        power = np.maximum(votes, 1.0) ** -self.discount
        scores = power[:, None] * np.log(np.maximum(posterior, 1e-9))
        found = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(found / found.sum(axis=1, keepdims=True))


def favour_given(posterior: Array, labels: Labels) -> Array:
    """Return class probabilities (n, K) with those of classes that nobody named for the task made smaller."""
    named = np.zeros(posterior.shape, dtype=bool)
    named[labels.task_of, labels.labels] = True
    named[np.diff(labels.starts) == 0] = True
    found = np.where(named, posterior, NOBODY * posterior)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def measure(labels: Labels, confusion: Array, posterior: Array) -> Dependence:
    """Measure how far workers err together, given their confusion matrices (W, K, K) and classes (n, K)."""
    right = np.ascontiguousarray(np.einsum("wjj->wj", confusion))
    excess = np.empty((labels.n_tasks, 2))
    excess_agreement(labels.starts, labels.workers, labels.labels, right, posterior, excess)
    most = float(excess[:, 1].sum())
    if most <= 0.0:  # no task has two labels, or nobody ever errs
        return Dependence(0.0, 0.0, 1.0 - DOUBT, DISCOUNT * (1.0 - DOUBT))
    found = float(excess[:, 0].sum()) / most
    error = float(np.sqrt(((excess[:, 0] - found * excess[:, 1]) ** 2).sum())) / most
    probability = _together(found, max(error, 1e-6))
    return Dependence(found, error, probability, DISCOUNT * probability)


def _together(excess: float, error: float) -> float:
    """Probability that the excess is a dependent crowd's (exponential with mean ``USUAL``), not noise around zero."""
    dependent = np.log(1.0 - DOUBT) + exponnorm.logpdf(excess, USUAL / error, loc=0.0, scale=error)
    independent = np.log(DOUBT) + norm.logpdf(excess, 0.0, error)
    return float(1.0 / (1.0 + np.exp(np.clip(independent - dependent, -700.0, 700.0))))
