"""Settings of the crowd models by held-out label likelihood: no gold label is looked at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from mixmem.crowd import Labels, read_labels
from mixmem.engine.local import threads
from mixmem.experiments.crowd import SETS, read_set
from mixmem.models.crowd import minimax
from mixmem.models.crowd.choose import held_out_likelihood
from mixmem.models.crowd.fits import Settings
from mixmem.models.crowd.workers import Communities

DATA = Path(os.environ.get("MIXMEM_DATA", Path(__file__).parents[2] / "shared" / "data"))
SPLITS, QUICK_SPLITS = 5, 1


def run(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Mean held-out log-likelihood of a label by set, and their sum, for every candidate."""
    sets = {name: read_set(DATA, name)[0] for name in SETS}
    anesthesia = DATA / "crowd_anesthesia" / "anesthesia.csv"
    sets["Anesthesia"] = read_labels(anesthesia, columns=("item", "rater", "rating"))
    for name, settings, constants in candidates():
        scores = {}
        for dataset, labels in sets.items():
            splits = QUICK_SPLITS if quick else SPLITS
            scores[dataset] = np.mean([_score(labels, settings, constants, split) for split in range(splits)])
        yield {
            "candidate": name,
            **{key: float(value) for key, value in scores.items()},
            "sum": float(sum(scores.values())),
        }


def candidates() -> Iterator[tuple[str, Settings, dict[tuple[Any, str], float]]]:
    """Name, settings, and constants to set meanwhile."""
    for communities in (2, 3, 4, 5):
        for strength in (5.0, 10.0, 20.0):
            yield (
                f"community G={communities} S={strength:g}",
                Settings(n_communities=communities),
                {(Communities, "STRENGTH"): strength},
            )
    for smoothing in (0.1, 0.5, 1.0):
        yield f"ds {smoothing:g}", Settings(model="ds", smoothing=smoothing), {}
    yield "one_coin", Settings(model="one_coin"), {}
    for gamma in (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4):
        yield f"minimax {gamma:g}", replace(Settings(model="minimax"), n_iter=50), {(minimax, "GAMMA"): gamma}


def _score(labels: Labels, settings: Settings, constants: dict[tuple[Any, str], float], split: int) -> float:
    unknown = np.full(labels.n_tasks, -1, dtype=np.int32)
    patches = [patch.object(owner, name, value) for (owner, name), value in constants.items()]
    with threads(1):
        for each in patches:
            each.start()
        try:
            return held_out_likelihood(labels, unknown, settings, np.random.SeedSequence(split))
        finally:
            for each in patches:
                each.stop()
