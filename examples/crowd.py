"""Labels of a crowd with rare classes: what the default makes of them, beside votes, and what to buy next."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mixmem import DawidSkene

CLASSES, SHARES = ("none", "benign", "doubtful", "severe"), (0.7, 0.15, 0.1, 0.05)
TASKS, WORKERS, LABELS = 2_000, 60, 5


def main(folder: Path) -> None:
    """Draw labels of workers of different accuracy, fit them, and draw how sure the labels are."""
    rng = np.random.default_rng(0)
    truth = rng.choice(len(CLASSES), TASKS, p=SHARES)
    accuracy = rng.uniform(0.45, 0.95, WORKERS)
    rows = []
    for task in range(TASKS):
        for worker in rng.choice(WORKERS, LABELS, replace=False):
            right = rng.random() < accuracy[worker]
            label = truth[task] if right else rng.integers(len(CLASSES))
            rows.append((task, worker, CLASSES[label]))
    labels = pd.DataFrame(rows, columns=["task", "worker", "label"])
    named = np.array([CLASSES[label] for label in truth])

    model = DawidSkene(random_state=0).fit(labels)
    votes = labels.groupby("task")["label"].agg(lambda given: given.mode()[0])
    found = model.labels_.reindex(range(TASKS)).to_numpy()
    print(f"errors of votes   {(votes.to_numpy() != named).mean():.1%}")
    print(f"errors of mixmem  {(found != named).mean():.1%}")

    sure = model.probas_.reindex(range(TASKS)).max(axis=1).to_numpy()
    edges = np.linspace(0.3, 1.0, 8)
    figure = Figure(figsize=(5, 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    for low, high in pairwise(edges):
        own = (sure > low) & (sure <= high)
        if own.sum() > 10:
            axes.plot(sure[own].mean(), (found == named)[own].mean(), "o", color="#0072B2")
    axes.plot([0.3, 1], [0.3, 1], color="#6b7580", linewidth=1)
    axes.set(xlabel="probability given to the label", ylabel="share that is right")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "crowd.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
