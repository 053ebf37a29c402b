"""Public sets of crowd labels cut to other shapes: errors as real workers make them, in crowds that are not these.

Fewer labels per task, fewer tasks, a class made rare, one class against the rest, workers split into workers of four
labels, workers made random or lazy, six workers only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.crowd_sets import CrowdSet, public_sets
from mixmem.crowd import read_labels
from mixmem.models.crowd.labels import known_classes

LARGE, WITH_GOLD, WITHOUT = 4000, 3000, 1000
"""Tasks of a set from which only some are taken: so many with a known class, and so many without."""
RARE = 0.07
LEAST_GOLD = 20


def cut_sets(seed: int = 0) -> Iterator[CrowdSet]:
    """All cuts of all public sets."""
    for place, each in enumerate(public_sets()):
        for name, cut in _Cuts(each, np.random.default_rng((seed, place))).all():
            if (cut.known >= 0).sum() >= LEAST_GOLD:
                yield CrowdSet(f"{each.name}: {name}", cut.labels, cut.known)


class _Cuts:
    """The labels of a set as long columns, and the cuts of them."""

    def __init__(self, each: CrowdSet, rng: np.random.Generator):
        labels, self.known, self.rng = each.labels, each.known, rng
        self.n_classes, self.n_workers = labels.n_classes, labels.n_workers
        kept = np.ones(labels.n_tasks, dtype=bool)
        if labels.n_tasks > LARGE:
            kept = np.zeros(labels.n_tasks, dtype=bool)
            kept[rng.permutation(np.flatnonzero(self.known >= 0))[:WITH_GOLD]] = True
            kept[rng.permutation(np.flatnonzero(self.known < 0))[:WITHOUT]] = True
        kept = kept[labels.task_of]
        self.task, self.worker, self.label = labels.task_of[kept], labels.workers[kept], labels.labels[kept]

    def all(self) -> Iterator[tuple[str, CrowdSet]]:
        """Every cut with its name."""
        turn = self._turn(self.task)
        votes = len(self.task) / len(np.unique(self.task))
        for most, from_votes, name in ((3, 4, "three labels"), (5, 7, "five labels"), (2, 7, "two labels")):
            if votes > from_votes:
                yield name, self._only(turn < most)
        gold = np.flatnonzero(self.known >= 0)
        for number in (50, 200):
            yield f"{number} tasks", self._only(np.isin(self.task, self.rng.permutation(gold)[:number]))
        common = [c for c in range(self.n_classes) if (self.known == c).sum() >= LEAST_GOLD]
        for c in self.rng.permutation(common)[:2].tolist():
            have, others = np.flatnonzero(self.known == c), int(((self.known >= 0) & (self.known != c)).sum())
            number = max(8, int(RARE * others))
            if number < 0.8 * len(have):
                gone = np.isin(self.task, self.rng.permutation(have)[number:]) | (self.known < 0)[self.task]
                yield f"class {c} rare", self._only(~gone)
        if self.n_classes > 2:
            for c in self.rng.permutation(common)[:2].tolist():
                known = np.where(self.known < 0, -1, self.known == c)
                yield f"{c} or not", _built(self.task, self.worker, self.label == c, known)
        split = self.worker.astype(np.int64) * len(self.task) + self._turn(self.worker) // 4
        yield "workers of four labels", _built(self.task, split, self.label, self.known)
        any_label = self.rng.integers(self.n_classes, size=len(self.task))
        yield "40 % random", self._replaced(0.4, any_label, 1.0)
        yield "30 % lazy", self._replaced(0.3, np.full(len(self.task), np.bincount(self.label).argmax()), 0.9)
        busy = np.argsort(-np.bincount(self.worker, minlength=self.n_workers), kind="stable")[:6]
        yield "six workers", self._only(np.isin(self.worker, busy))

    def _turn(self, of: np.ndarray) -> np.ndarray:
        """The place of every label among those of its task or worker, in random order."""
        order = np.lexsort((self.rng.random(len(of)), of))
        first = np.searchsorted(of[order], of[order])
        turn = np.empty(len(of), dtype=int)
        turn[order] = np.arange(len(of)) - first
        return turn

    def _only(self, kept: np.ndarray) -> CrowdSet:
        return _built(self.task[kept], self.worker[kept], self.label[kept], self.known)

    def _replaced(self, share: float, by: np.ndarray, how_often: float) -> CrowdSet:
        """The labels of a share of the workers replaced."""
        spoiled = (self.rng.random(self.n_workers) < share)[self.worker]
        spoiled &= self.rng.random(len(self.task)) < how_often
        return _built(self.task, self.worker, np.where(spoiled, by, self.label), self.known)


def _built(task: np.ndarray, worker: np.ndarray, label: np.ndarray, known: np.ndarray) -> CrowdSet:
    labels = read_labels(np.column_stack([task, worker, label]).astype(np.int64))
    truth = {task: int(known[task]) for task in labels.tasks.tolist() if known[task] >= 0}
    return CrowdSet("", labels, known_classes(labels, truth))
