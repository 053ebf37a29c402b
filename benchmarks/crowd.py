"""Crowd labels: errors and probabilities of every model on fourteen public sets, and on drawn ones.

The rows of crowd-kit are left out where it is not installed (pip install crowd-kit). The default's settings were chosen
with these sets in view: `crowd_settings` shows its errors with every set left out of that choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.crowd_sets import SHARES, CrowdSet, drawn_set, public_sets
from mixmem.crowd import calibration_error, error_rate, expected_error, log_loss
from mixmem.engine.local import threads
from mixmem.models.crowd.fits import MODELS, Settings, fit_labels

SLOW = ("minimax", "ebcc")
"""Left out of a quick run."""
DRAWS = 4
Measures = dict[str, float]


def run(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """A row for every set and method, then the means over the public sets, then the drawn sets."""
    methods = _methods(quick)
    rows: dict[str, list[Measures]] = {name: [] for name in methods}
    for each in public_sets():
        for name, fit in methods.items():
            found = _measures(each, fit)
            rows[name].append(found)
            yield {"data": each.name, "method": name, **found, "rank": float("nan"), "worse_than_votes": ""}
    yield from _summary(rows)
    for name, shares in SHARES.items():
        sets = [drawn_set(name, shares, seed) for seed in range(1 if quick else DRAWS)]
        for method in ("blend", "ds", "one_coin", "majority"):
            found = [_measures(each, methods[method]) for each in sets]
            yield {"data": name, "method": method, **_mean(found), "rank": float("nan"), "worse_than_votes": ""}


def _methods(quick: bool) -> dict[str, Callable[[CrowdSet], np.ndarray]]:
    ours = {name: _fit_ours(name) for name in MODELS if not (quick and name in SLOW)}
    return {**ours, "votes + 1/2": _half_votes, **_crowd_kit()}


def _fit_ours(model: str) -> Callable[[CrowdSet], np.ndarray]:
    def fit(each: CrowdSet) -> np.ndarray:
        with threads(None):
            unknown = np.full(each.labels.n_tasks, -1, dtype=np.int32)
            return fit_labels(each.labels, unknown, Settings(model=model), np.random.default_rng(0)).posterior

    return fit


def _half_votes(each: CrowdSet) -> np.ndarray:
    votes = np.full((each.labels.n_tasks, each.labels.n_classes), 0.5)
    np.add.at(votes, (each.labels.task_of, each.labels.labels), 1.0)
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


def _crowd_kit() -> dict[str, Callable[[CrowdSet], np.ndarray]]:
    try:
        from crowdkit import aggregation
    except ImportError:
        return {}

    def fitted(make: Callable[[], Any], most: int | None = None) -> Callable[[CrowdSet], np.ndarray]:
        def fit(each: CrowdSet) -> np.ndarray:
            if most is not None and each.labels.n_labels > most:  # it would take many minutes
                return np.full((each.labels.n_tasks, each.labels.n_classes), np.nan)
            model = make().fit(each.frame())
            places = range(each.labels.n_classes)
            return model.probas_.sort_index().reindex(columns=places, fill_value=0.0).fillna(0.0).to_numpy()

        return fit

    return {
        "crowd-kit DS": fitted(lambda: aggregation.DawidSkene(n_iter=100)),
        "crowd-kit one-coin": fitted(lambda: aggregation.OneCoinDawidSkene(n_iter=100)),
        "crowd-kit GLAD": fitted(lambda: aggregation.GLAD(n_iter=20), most=20_000),
        "crowd-kit MACE": fitted(lambda: aggregation.MACE(n_restarts=5, n_iter=30, random_state=0)),
    }


def _measures(each: CrowdSet, fit: Callable[[CrowdSet], np.ndarray]) -> Measures:
    posterior = fit(each)
    if np.isnan(posterior).any():
        return dict.fromkeys(("error", "log_loss", "calibration", "expected", "off"), float("nan"))
    error = error_rate(posterior, each.known)
    expected = expected_error(posterior[each.known >= 0])
    return {
        "error": 100.0 * error,
        "log_loss": log_loss(posterior, each.known),
        "calibration": 100.0 * calibration_error(posterior, each.known),
        "expected": 100.0 * expected,
        "off": 100.0 * abs(expected - error),
    }


def _mean(rows: list[Measures]) -> Measures:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _summary(rows: dict[str, list[Measures]]) -> Iterator[dict[str, Any]]:
    errors = np.array([[row["error"] for row in each] for each in rows.values()])
    votes = errors[list(rows).index("majority")]
    below = (errors[:, None, :] > errors[None] + 1e-9).sum(axis=1)
    ties = (np.abs(errors[:, None, :] - errors[None]) <= 1e-9).sum(axis=1)
    ranks = (below + (ties + 1) / 2).mean(axis=1)
    for place, (name, each) in enumerate(rows.items()):
        worse = int((errors[place] > votes + 1.0).sum())
        yield {
            "data": "mean",
            "method": name,
            **_mean(each),
            "rank": float(ranks[place]),
            "worse_than_votes": str(worse),
        }
