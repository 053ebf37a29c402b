"""Settings of the default crowd model, each public set (and its relatives) left out of the choice in turn.

A setting is chosen by its mean error over the sets left in, and its error on the set left out is what counts. How far
probabilities are tempered is chosen likewise, by how far expected errors are from actual ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.crowd_sets import CrowdSet, left_in, public_sets
from mixmem.crowd import calibration_error, error_rate, expected_error, log_loss
from mixmem.engine.local import threads
from mixmem.models.crowd import blend, dependence
from mixmem.models.crowd.fits import Settings, fit_labels

LOOSE = ((1.0,), (2.0,), (4.0,))
VOTES = (0.05, 0.1, 0.2)
NOBODY = (1.0, 1.0 / 3.0)
DISCOUNT = (0.4, 0.5, 0.6, 0.7, 0.8)


def run(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Mean error of every setting; then, for every set, what the others choose and what that gives."""
    sets = list(public_sets())
    names = [each.name for each in sets]
    each_way = product(LOOSE[:1] if quick else LOOSE, VOTES[:2] if quick else VOTES, NOBODY)
    grid = [dict(zip(("LOOSE", "VOTES", "NOBODY"), values, strict=True)) for values in each_way]
    errors = []
    for setting in grid:
        errors.append([_measures(each, {**setting, "DISCOUNT": dependence.DISCOUNT})[0] for each in sets])
        yield _row(_words(setting), np.mean(errors[-1]))
    picked = [int(np.mean(np.array(errors)[:, left_in(names, name)], axis=1).argmin()) for name in names]
    best = int(np.mean(errors, axis=1).argmin())
    found = np.array([[_measures(each, {**grid[best], "DISCOUNT": d}) for each in sets] for d in DISCOUNT])
    for place, name in enumerate(names):
        tempered = int(found[:, left_in(names, name), 1].mean(axis=1).argmin())
        yield _row(
            f"{name} left out: {_words(grid[picked[place]])} DISCOUNT {DISCOUNT[tempered]}",
            errors[picked[place]][place], *found[tempered, place, 1:],
        )  # fmt: skip
    tempered = [int(found[:, left_in(names, name), 1].mean(axis=1).argmin()) for name in names]
    places = np.arange(len(names))
    yield _row(
        "mean of the sets left out", np.mean([errors[c][i] for i, c in enumerate(picked)]),
        *found[tempered, places, 1:].mean(axis=0),
    )  # fmt: skip
    yield _row(
        f"best over all: {_words(grid[best])} DISCOUNT {DISCOUNT[int(found[:, :, 1].mean(axis=1).argmin())]}",
        np.mean(errors[best]),
    )


def _words(setting: dict[str, Any]) -> str:
    return f"loose strength {setting['LOOSE'][0]:g} votes {setting['VOTES']:g} nobody {setting['NOBODY']:.2g}"


def _row(what: str, error: float, off: float = np.nan, loss: float = np.nan, gap: float = np.nan) -> dict[str, Any]:
    return {
        "setting": what,
        "error": float(error),
        "off": float(off),
        "log_loss": float(loss),
        "calibration": float(gap),
    }


def _measures(each: CrowdSet, constants: dict[str, Any]) -> tuple[float, float, float, float]:
    """Error, distance of the expected from it, log-loss and calibration error, with constants set meanwhile."""
    owners = {"LOOSE": blend, "VOTES": blend, "NOBODY": dependence, "DISCOUNT": dependence}
    with ExitStack() as stack:
        stack.enter_context(threads(None))
        for name, value in constants.items():
            stack.enter_context(patch.object(owners[name], name, value))
        unknown = np.full(each.labels.n_tasks, -1, dtype=np.int32)
        posterior = fit_labels(each.labels, unknown, Settings(), np.random.default_rng(0)).posterior
    error, expected = error_rate(posterior, each.known), expected_error(posterior[each.known >= 0])
    return (
        100.0 * error, 100.0 * abs(expected - error), log_loss(posterior, each.known),
        100.0 * calibration_error(posterior, each.known),
    )  # fmt: skip
