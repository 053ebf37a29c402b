"""Tables about tasks and workers, made from a fit."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mixmem.models.crowd.fits import Fit
from mixmem.models.crowd.labels import Labels
from mixmem.typing import Array

RANDOM = "random"
"""Name of the community whose labels do not depend on the class."""


def probability_frame(labels: Labels, posterior: Array) -> pd.DataFrame:
    """Class probabilities, a row a task and a column a class."""
    columns = pd.Index(labels.classes, name="label")
    return pd.DataFrame(posterior, index=pd.Index(labels.tasks, name="task"), columns=columns)


def task_frame(labels: Labels, posterior: Array) -> pd.DataFrame:
    """A row a task: its label, the probability of that, the entropy of the classes (bits), votes, and their agreement.

    ``agreement`` is the share of the votes that say the label.
    """
    best = posterior.argmax(axis=1)
    votes = np.diff(labels.starts)
    same = np.concatenate([[0], np.cumsum(labels.labels == best[labels.task_of])])
    agreeing = same[labels.starts[1:]] - same[labels.starts[:-1]]
    columns = {
        "label": labels.classes[best],
        "probability": posterior.max(axis=1),
        "entropy": _bits(posterior).sum(axis=1),
        "votes": votes,
        "agreement": agreeing / np.maximum(votes, 1),
    }
    return pd.DataFrame(columns, index=pd.Index(labels.tasks, name="task"))


def worker_frame(labels: Labels, fit: Fit) -> pd.DataFrame:
    """A row a worker: labels given, reliability, information, community, and the confusion matrix with standard errors.

    ``reliability`` is the probability of the right label, mean over the classes, with its standard error, which is no
    less than if the right labels were known and nothing of other workers;
    ``information`` what a label tells of the class when all classes are equally likely, from 0 (random) to 1 (all);
    ``p(l|j)`` and ``se(l|j)`` the probability of label l in class j.
    """
    k = labels.n_classes
    given = np.bincount(labels.workers, minlength=labels.n_workers)
    reliability = np.trace(fit.confusion, axis1=1, axis2=2) / k
    alone = reliability * (1.0 - reliability) / (given + 1.0)
    columns: dict[str, np.ndarray] = {
        "labels": given,
        "reliability": reliability,
        "reliability_se": np.sqrt(np.maximum(np.einsum("wjj->w", fit.errors**2) / k**2, alone)),
        "information": information(fit.confusion),
    }
    if fit.memberships is not None:
        names = community_names(fit)
        columns["community"] = names[fit.memberships.argmax(axis=1)]
        columns["community_probability"] = fit.memberships.max(axis=1)
    for word, values in (("p", fit.confusion), ("se", fit.errors)):
        for j in range(k):
            for label in range(k):
                columns[f"{word}({labels.classes[label]}|{labels.classes[j]})"] = values[:, label, j]
    return pd.DataFrame(columns, index=pd.Index(labels.worker_ids, name="worker"))


def community_names(fit: Fit) -> np.ndarray:
    """1, 2, ... from the most to the least reliable, and the one that labels at random."""
    assert fit.memberships is not None
    right = np.trace(fit.confusion, axis1=1, axis2=2) @ fit.memberships / np.maximum(fit.memberships.sum(axis=0), 1e-12)
    names = np.empty(len(right), dtype=object)
    names[np.argsort(-right[:-1], kind="stable")] = [str(g + 1) for g in range(len(right) - 1)]
    names[-1] = RANDOM
    return names


def information(confusion: Array) -> Array:
    """Mutual information of label and class as a share of the class's entropy, classes equally likely, (W,).

    >>> import numpy as np
    >>> information(np.array([np.eye(2), np.full((2, 2), 0.5)])).round(6)
    array([1., 0.])
    """
    k = confusion.shape[1]
    if k == 1:
        return np.zeros(len(confusion))
    overall = _bits(confusion.mean(axis=2)).sum(axis=1)
    within = _bits(confusion).sum(axis=1).mean(axis=1)
    return np.clip((overall - within) / np.log2(k), 0.0, 1.0)


def _bits(p: Array) -> Array:
    return -p * np.log2(np.where(p > 0.0, p, 1.0))
