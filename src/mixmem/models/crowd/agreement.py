"""How far workers agree, chance taken off: Krippendorff's alpha and others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixmem.models.crowd.labels import read_labels
from mixmem.records import Record
from mixmem.typing import Array


@dataclass(frozen=True)
class Agreement(Record):
    """Agreement of a task's labels; tasks with fewer than two labels are left out.

    ``observed``: share of pairs that agree; ``alpha``: Krippendorff's, nominal; ``ordinal_alpha``: the same with
    classes in their order; ``kappa``: Fleiss', for any number of labels per task; ``ac1``: Gwet's, which stays sensible
    where one class is very common. Those are 1 for full agreement and 0 for chance; None where they are not defined.
    """

    observed: float | None
    alpha: float | None
    ordinal_alpha: float | None
    kappa: float | None
    ac1: float | None
    tasks: int


def agreement(data: Any) -> Agreement:
    """Return agreement figures of a table of task, worker and label.

    Parameters
    ----------
    data : frame, rows of three, file or Labels
        As :meth:`DawidSkene.fit` takes it.

    Examples
    --------
    >>> rows = [(1, "ann", 1), (1, "bob", 1), (2, "ann", 2), (2, "bob", 2), (3, "ann", 1), (3, "bob", 2)]
    >>> found = agreement(rows)
    >>> round(found.observed, 3), round(found.alpha, 3)
    (0.667, 0.444)
    """
    labels = read_labels(data)
    votes = np.zeros((labels.n_tasks, labels.n_classes))
    np.add.at(votes, (labels.task_of, labels.labels), 1.0)
    votes = votes[votes.sum(axis=1) >= 2.0]
    if not len(votes):
        return Agreement(None, None, None, None, None, 0)
    totals = votes.sum(axis=1, keepdims=True)
    pairs = (votes * (votes - 1.0)).sum(axis=1) / (totals[:, 0] * (totals[:, 0] - 1.0))
    observed = float(pairs.mean())
    shares = (votes / totals).mean(axis=0)
    k = max(labels.n_classes, 2)
    expected = float((shares**2).sum())
    gwet = float((shares * (1.0 - shares)).sum() / (k - 1))
    return Agreement(
        observed=observed,
        alpha=krippendorff(votes, 1.0 - np.eye(labels.n_classes)),
        ordinal_alpha=krippendorff(votes, _ordinal(votes.sum(axis=0))),
        kappa=_beyond(observed, expected),
        ac1=_beyond(observed, gwet),
        tasks=len(votes),
    )


def krippendorff(votes: Array, distance: Array) -> float | None:
    """Krippendorff's alpha of votes (n, K) with squared distances between classes (K, K).

    >>> import numpy as np
    >>> krippendorff(np.array([[2.0, 0.0], [0.0, 2.0]]), 1.0 - np.eye(2))
    1.0
    """
    totals = votes.sum(axis=1)
    coincidences = ((votes.T / (totals - 1.0)) @ votes) - np.diag((votes / (totals - 1.0)[:, None]).sum(axis=0))
    sizes = votes.sum(axis=0)
    by_chance = (np.outer(sizes, sizes) - np.diag(sizes)) / (sizes.sum() - 1.0)
    expected = float((by_chance * distance).sum())
    return None if expected <= 0.0 else 1.0 - float((coincidences * distance).sum()) / expected


def _ordinal(sizes: Array) -> Array:
    """Squared ordinal distances: labels between two classes, half of their own."""
    middle = np.cumsum(sizes) - sizes / 2.0
    return np.asarray((middle[:, None] - middle[None, :]) ** 2)


def _beyond(observed: float, chance: float) -> float | None:
    return None if chance >= 1.0 else (observed - chance) / (1.0 - chance)
