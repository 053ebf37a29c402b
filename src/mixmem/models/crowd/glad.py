"""GLAD (Whitehill and others 2009): workers have an ability and tasks an ease; right labels follow their product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.engine.local import in_parts
from mixmem.kernels.crowd_tasks import glad_pass
from mixmem.models.crowd.rounds import Passes, Rounds
from mixmem.typing import Array


@dataclass(frozen=True)
class Abilities:
    """``ability`` (W,) of workers, normal around 1; ``ease`` (n,) of tasks, the log of ability's factor."""

    ability: Array
    ease: Array


def run_glad(passes: Passes, posterior: Array, *, n_iter: int, tol: float) -> tuple[Rounds, Abilities]:
    """Alternate classes, tasks and workers until class probabilities change by less than ``tol`` per task."""
    labels, blocks = passes.labels, len(passes.bounds) - 1
    found = Abilities(np.ones(labels.n_workers), np.zeros(labels.n_tasks))
    partials, values, changes = np.empty((blocks, labels.n_workers, 2)), np.empty(blocks), np.empty(blocks)
    history: list[float] = []
    converged = False
    while len(history) < n_iter and not converged:
        in_parts(
            lambda first, last: glad_pass(
                labels.starts, labels.workers, labels.labels, passes.known, found.ability, found.ease, passes.bounds,
                first, last, posterior, partials, values, changes,
            ),
            blocks,
        )  # fmt: skip
        slope, curvature = partials.sum(axis=0).T
        found.ability[:] += np.clip((slope + 1.0 - found.ability) / (curvature + 1.0), -1.0, 1.0)
        history.append(-float(values.sum()) / labels.n_tasks)
        converged = bool(changes.sum() / labels.n_tasks < tol)
    flat = np.full(labels.n_classes, 1.0 / labels.n_classes)
    return Rounds(posterior, passes.counts(posterior), flat, history, converged), found


def glad_tables(ability: Array, n_classes: int) -> Array:
    """p(label l | class j) for a task of usual ease, (W, K, K)."""
    right = (1.0 / (1.0 + np.exp(-ability)))[:, None, None]
    eye = np.eye(n_classes)
    return np.asarray(right * eye + (1.0 - right) / max(n_classes - 1, 1) * (1.0 - eye))
