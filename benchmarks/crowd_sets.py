"""Fourteen public sets of crowd labels with gold, and drawn ones with known class shares."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from mixmem.crowd import Labels, read_labels
from mixmem.experiments.crowd import SETS, read_set
from mixmem.models.crowd.labels import known_classes

DATA = Path(os.environ.get("MIXMEM_DATA", Path(__file__).parents[2] / "shared" / "data"))
MORE = (
    "adult", "face", "labelme", "music", "product", "reuters_crowd", "sentiment1k", "weather_amt", "weather_cf",
)  # fmt: skip
RELATIVES = ({"weather_amt", "weather_cf"},)
"""Sets with the same tasks: left out together."""
SHARES = {
    "20/20/20/20/20": (0.2,) * 5,
    "40/25/20/10/5": (0.4, 0.25, 0.2, 0.1, 0.05),
    "70/10/10/5/5": (0.7, 0.1, 0.1, 0.05, 0.05),
}


@dataclass(frozen=True)
class CrowdSet:
    """Labels, and the known class of every task, (n,): -1 where there is none, K where no worker ever gave it."""

    name: str
    labels: Labels
    known: np.ndarray

    def frame(self) -> pd.DataFrame:
        """The labels as crowd-kit takes them, classes as places among them."""
        return pd.DataFrame({"task": self.labels.task_of, "worker": self.labels.workers, "label": self.labels.labels})


def public_sets() -> Iterator[CrowdSet]:
    """The five sets of the paper and nine more."""
    for name in SETS:
        yield CrowdSet(name, *read_set(DATA, name))
    for name in MORE:
        folder = DATA / "crowd_more" / name
        labels = read_labels(pd.read_csv(folder / "label.csv"), columns=("item", "worker", "label"))
        truth = pd.read_csv(folder / "truth.csv")
        known = known_classes(labels, dict(zip(truth["item"].tolist(), truth["truth"].tolist(), strict=True)))
        yield CrowdSet(name, labels, known)


def left_in(names: Sequence[str], left_out: str) -> list[int]:
    """Places of the sets that are no relatives of the one left out."""
    family = next((each for each in RELATIVES if left_out in each), {left_out})
    return [place for place, name in enumerate(names) if name not in family]


def drawn_set(name: str, shares: Sequence[float], seed: int = 0, n_tasks: int = 5000, votes: int = 5) -> CrowdSet:
    """Labels of 100 workers of one accuracy each, 0.415 to 0.945: majority vote errs in about 8.1 %."""
    rng = np.random.default_rng(seed)
    k, n_workers = len(shares), 100
    truth = rng.choice(k, size=n_tasks, p=shares)
    accuracy = rng.uniform(0.415, 0.945, size=n_workers)
    task = np.repeat(np.arange(n_tasks), votes)
    worker = np.concatenate([rng.choice(n_workers, votes, replace=False) for _ in range(n_tasks)])
    wrong = (truth[task] + rng.integers(1, k, size=len(task))) % k
    label = np.where(rng.random(len(task)) < accuracy[worker], truth[task], wrong)
    return CrowdSet(name, read_labels(np.column_stack([task, worker, label])), truth.astype(np.int32))
