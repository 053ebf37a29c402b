"""What to buy next: which tasks need further labels and how many, which workers to keep, what labels are worth."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

from mixmem.models.crowd.fits import Fit
from mixmem.models.crowd.labels import Labels
from mixmem.typing import Array

AHEAD = 3
"""Labels per task that are thought ahead."""
CONSIDERED = 3
"""Most probable classes of a task that further labels are thought to fall into."""
CHUNK = 50_000
"""Tasks whose futures are held at once."""
WIDTH = 1.96
"""Standard errors to either side of an interval of 95 %."""
NEAR_CHANCE = 0.05


def further_labels(labels: Labels, fit: Fit, budget: int) -> pd.DataFrame:
    """Spread ``budget`` labels over tasks by what they are expected to gain.

    Further labels are taken to come from a typical worker and to count in full. One label can often not change a task's
    class where two or three can: the best number of up to three is found for every task, and the tasks with the largest
    gain per label come first. Returns the tasks with the number of ``labels`` to buy, the ``gain`` in the probability
    of being right that all of them bring, and the ``probability`` now.
    """
    votes = np.diff(labels.starts)
    gains = expected_gains(fit.posterior, fit.typical)
    each = gains / np.arange(1, AHEAD + 1)
    number = each.argmax(axis=1) + 1
    rate = each.max(axis=1)
    order = np.argsort(-rate, kind="stable")
    spent = np.cumsum(number[order])
    chosen = order[: int(np.searchsorted(spent, budget, side="right"))]
    left = budget - int(number[chosen].sum())
    chosen = chosen[rate[chosen] > 0.0]
    bought = number[chosen].copy()
    others = order[len(chosen) :]
    if 0 < left <= AHEAD and len(others) and gains[others, left - 1].max() > 0.0:
        # What is left does not reach for the next task's best number: it goes where so many gain most.
        chosen = np.append(chosen, others[gains[others, left - 1].argmax()])
        bought = np.append(bought, left)
    return pd.DataFrame(
        {
            "labels": bought,
            "gain": gains[chosen, bought - 1],
            "probability": fit.posterior[chosen].max(axis=1),
            "votes": votes[chosen],
        },
        index=pd.Index(labels.tasks[chosen], name="task"),
    )


def expected_gains(posterior: Array, typical: Array) -> Array:
    """Expected rise of the largest class probability by one to ``AHEAD`` further labels, (n, AHEAD)."""
    gains = np.zeros((len(posterior), AHEAD))
    for begin in range(0, len(posterior), CHUNK):
        part = slice(begin, begin + CHUNK)
        gains[part] = _gains(posterior[part], typical)
    return gains


def _gains(posterior: Array, typical: Array) -> Array:
    n, k = posterior.shape
    considered = min(CONSIDERED, k)
    top = np.argsort(-posterior, axis=1, kind="stable")[:, :considered]
    now = np.take_along_axis(posterior, top, axis=1)
    # p(label is the a-th considered class | b-th one is true); labels of other classes are left out.
    table = typical[top[:, :, None], top[:, None, :]]
    table = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12)
    share = now / now.sum(axis=1, keepdims=True)
    gains = np.zeros((n, AHEAD))
    for ahead in range(1, AHEAD + 1):
        after = np.zeros(n)
        for outcome in product(range(considered), repeat=ahead):
            likelihood = np.prod([table[:, a] for a in outcome], axis=0)
            after += (share * likelihood).max(axis=1) * now.sum(axis=1)
        gains[:, ahead - 1] = np.maximum(after - posterior.max(axis=1), 0.0)
    return gains


def worker_advice(workers: pd.DataFrame, n_classes: int) -> pd.DataFrame:
    """Add intervals, what a label is worth beside a mean one, and whether to keep the worker.

    ``reliability_low`` and ``reliability_high`` bound the probability of the right label with 95 %; ``worth`` is the
    worker's information per label over the mean of all labels: what to pay by. ``advice``: "drop" where even the upper
    bound is hardly better than chance, "keep" where the lower bound is clearly better, else "see more labels".
    """
    chance = 1.0 / n_classes + NEAR_CHANCE
    low = np.clip(workers["reliability"] - WIDTH * workers["reliability_se"], 0.0, 1.0)
    high = np.clip(workers["reliability"] + WIDTH * workers["reliability_se"], 0.0, 1.0)
    mean = float(np.average(workers["information"], weights=workers["labels"])) if workers["labels"].sum() else 0.0
    found = workers.copy()
    found.insert(3, "reliability_low", low)
    found.insert(4, "reliability_high", high)
    found.insert(6, "worth", workers["information"] / mean if mean > 0.0 else 1.0)
    found.insert(7, "advice", np.where(high < chance, "drop", np.where(low > chance, "keep", "see more labels")))
    return found


def label_quality(labels: Labels, fit: Fit) -> pd.DataFrame:
    """One row per label: the probability that it is right, with and without itself among the evidence.

    ``without_it`` takes the label's own share in the task's probabilities out again; it tells a label that is right by
    others' word from one that is right by its own only.
    """
    task, worker, label = labels.task_of, labels.workers, labels.labels
    votes = np.diff(labels.starts)[task]
    discount = fit.dependence.discount if fit.dependence else 0.0
    power = np.maximum(votes, 1.0) ** -discount
    found = fit.posterior[task]
    own = np.maximum(fit.confusion[worker, label], 1e-12) ** power[:, None]
    others = np.maximum(found, 1e-12) / own
    others /= others.sum(axis=1, keepdims=True)
    places = np.arange(labels.n_labels)
    return pd.DataFrame({
        "task": labels.tasks[task], "worker": labels.worker_ids[worker], "label": labels.classes[label],
        "quality": found[places, label], "without_it": others[places, label],
    })  # fmt: skip
