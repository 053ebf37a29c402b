"""What a fit keeps to label new tasks: workers as they were fitted, by confusion matrices or by the weight of votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixmem.kernels.crowd import vote_pass
from mixmem.models.crowd.dependence import Dependence, favour_given
from mixmem.models.crowd.labels import Labels
from mixmem.models.crowd.rounds import Passes
from mixmem.typing import Array


@dataclass(frozen=True)
class TableVoice:
    """Bayes' rule with ``tables`` (W + 1, K, C), the last of a typical worker, and ``prior`` (C,)."""

    share: float
    tables: Array
    prior: Array

    def classify(self, labels: Labels) -> Array:
        """Class probabilities (n, K) of tasks whose workers are places among the tables."""
        width = len(self.prior) // labels.n_classes
        passes = Passes(labels, np.full(labels.n_tasks, -1, dtype=np.int32), width)
        posterior = np.zeros((labels.n_tasks, len(self.prior)))
        passes.classify(np.log(np.maximum(self.tables, 1e-300)), np.log(np.maximum(self.prior, 1e-300)), posterior)
        return np.asarray(posterior.reshape(labels.n_tasks, -1, width).sum(axis=2))


@dataclass(frozen=True)
class VoteVoice:
    """Votes that count ``weights`` (W + 1,), the last a typical worker's, beside ``pull`` votes split as ``mean``."""

    share: float
    weights: Array
    mean: Array
    pull: float

    def classify(self, labels: Labels) -> Array:
        """Class probabilities (n, K) of tasks whose workers are places among the weights."""
        shares, off = np.zeros((labels.n_tasks, labels.n_classes)), np.empty((1, len(self.weights)))
        vote_pass(
            labels.starts, labels.workers, labels.labels, np.full(labels.n_tasks, -1, dtype=np.int32), self.weights,
            self.mean, self.pull, np.array([0, labels.n_tasks]), 0, 1, shares, off, np.empty(1),
        )  # fmt: skip
        return shares


Voice = TableVoice | VoteVoice


def heard(voices: Sequence[Voice], labels: Labels, dependence: Dependence | None = None) -> Array:
    """Return the mean of what the voices say, by their shares, (n, K); matrices tempered for dependent workers."""
    total = np.zeros((labels.n_tasks, labels.n_classes))
    tables = [voice for voice in voices if isinstance(voice, TableVoice)]
    for voice in tables:
        total += voice.share * voice.classify(labels)
    if dependence is not None and tables:
        share = sum(voice.share for voice in tables)
        total = share * dependence.temper(total / share, np.diff(labels.starts))
    for votes in voices:
        if isinstance(votes, VoteVoice):
            total += votes.share * votes.classify(labels)
    mean = np.asarray(total / sum(voice.share for voice in voices))
    return mean if dependence is None else favour_given(mean, labels)
