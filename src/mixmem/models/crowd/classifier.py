"""A classifier's probabilities as one more voice beside the workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from mixmem.errors import InputError
from mixmem.models.crowd.labels import Labels
from mixmem.typing import Array
from mixmem.words import listing

MOST = 3.0
"""Power of the classifier's probabilities, at most."""


def read_probabilities(source: Any, labels: Labels) -> Array:
    """A frame by task with a column per class as (n, K); tasks that it lacks get nan.

    Refused: a class without a column, negative numbers, rows without any probability.
    """
    if not isinstance(source, pd.DataFrame):
        raise InputError("the classifier's probabilities must be a DataFrame by task with a column for every class")
    missing = [str(name) for name in labels.classes.tolist() if name not in source.columns]
    if missing:
        raise InputError(
            f"the classifier's probabilities lack a column for the class {missing[0]!r}; expected "
            f"{listing(map(str, labels.classes.tolist()))}: name the columns as the labels are"
        )
    found = source.reindex(index=labels.tasks, columns=labels.classes).to_numpy(dtype=float, copy=True)
    here = ~np.isnan(found).any(axis=1)
    if not here.any():
        raise InputError("none of the tasks has a classifier's probabilities; expected a DataFrame indexed by task id")
    if (found[here] < 0.0).any() or (found[here].sum(axis=1) <= 0.0).any():
        raise InputError("a classifier's probabilities must not be negative, and each task needs a positive one")
    found[here] /= found[here].sum(axis=1, keepdims=True)
    return found


def hear_classifier(posterior: Array, probabilities: Array, prior: Array) -> tuple[Array, float]:
    """Return class probabilities (n, K) with the classifier's voice, and the power that its probabilities got.

    The power is the one with which the classifier best predicts what the workers say of the same tasks: 0 for one that
    tells nothing, below 1 for one that is too sure. Its probabilities, so calibrated, are one more conditionally
    independent witness: they multiply the workers', divided by the class prior. They must not have been learned from
    the same tasks' labels; use out-of-sample ones.
    """
    here = ~np.isnan(probabilities).any(axis=1)
    logs = np.log(np.maximum(probabilities[here], 1e-6))
    crowd = posterior[here]

    def loss(power: float) -> float:
        return float(-(crowd * _log_softmax(power * logs)).sum() / len(crowd))

    power = float(minimize_scalar(loss, bounds=(0.0, MOST), method="bounded", options={"xatol": 1e-3}).x)
    found = posterior.copy()
    joint = np.log(np.maximum(crowd, 1e-12)) + _log_softmax(power * logs)
    if power > 1e-2:
        joint -= np.log(np.maximum(prior, 1e-12))
    found[here] = np.exp(_log_softmax(joint))
    return found, power


def _log_softmax(scores: Array) -> Array:
    scores = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))
