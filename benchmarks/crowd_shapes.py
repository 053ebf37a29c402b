"""Drawn crowds of the shapes that public sets have: hard tasks, workers who err alike, habits, spammers, rare classes.

A worker has an accuracy, more or less of it per class, and wrong labels chosen more or less as all workers choose them;
a task is more or less hard, and may have one wrong label that most of those who err on it give. Beside them stand the
public sets cut to other shapes (`crowd_cuts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.crowd_cuts import cut_sets
from benchmarks.crowd_sets import CrowdSet
from mixmem.crowd import error_rate, expected_error, read_labels
from mixmem.models.crowd.fits import Settings, fit_labels

METHODS = ("blend", "majority", "wawa", "bwa", "ds", "ibcc", "mace", "one_coin", "community")
SEEDS = 2


@dataclass(frozen=True)
class Shape:
    """How a crowd is drawn; ``classes`` are shares of the classes, or their number."""

    name: str
    tasks: int
    workers: int
    votes: float
    classes: int | tuple[float, ...] = 2
    """Shares of the classes, or how many equally common ones there are."""
    accuracy: float = 0.75
    spread: float = 0.6
    """Standard deviation of the workers' accuracies on the logit scale."""
    by_class: float = 0.0
    """Standard deviation over classes of the accuracy of all workers, logit scale."""
    own: float = 0.3
    """Standard deviation over classes of a worker's own accuracy, logit scale."""
    recall: tuple[float, ...] = ()
    """Added to the logit of all workers' accuracy, by class."""
    hard: float = 0.8
    """Standard deviation of the tasks' difficulty, logit scale."""
    together: float = 0.3
    """Share of wrong labels that are the task's own misleading one."""
    subtypes: float = 0.0
    """Standard deviation of the accuracy of all workers over the three kinds of tasks of a class, logit scale; each
    kind has one misleading label."""
    ordered: bool = False
    """Wrong labels lie near the class."""
    random: float = 0.0
    habit: float = 0.0
    against: float = 0.0
    """Shares of workers who label at random, nearly always one class, or mostly wrong."""
    one_habit: bool = False
    """Whether all workers with a habit give the same label, as a form filled in beforehand makes them do."""
    uneven: float = 1.0
    """Standard deviation of the log of how much workers do."""
    batch: int = 1
    """Tasks that the same workers label one after another."""


SHAPES = (
    Shape("smiles", 160, 20, 8, accuracy=0.66, spread=0.7, hard=0.8),
    Shape("before or after", 460, 76, 10, (0.44, 0.56), accuracy=0.82, spread=1.0, hard=0.6, batch=10),
    Shape("word senses", 177, 34, 10, (0.7, 0.25, 0.05), accuracy=0.96, hard=1.0, batch=20),
    Shape("feelings, seven grades", 100, 38, 10, (0.05, 0.1, 0.2, 0.3, 0.2, 0.1, 0.05), accuracy=0.5, ordered=True),
    Shape("feelings, five grades", 1000, 60, 5, (0.1, 0.2, 0.4, 0.2, 0.1), accuracy=0.6, ordered=True, own=0.6),
    Shape("two grades of films", 5000, 200, 5.5, accuracy=0.88, hard=1.2, uneven=1.5),
    Shape("two grades, twenty labels", 500, 143, 20, accuracy=0.86, hard=1.2, batch=20),
    Shape("links, one in five right", 2000, 78, 10, (0.8, 0.2), accuracy=0.82, own=0.8, recall=(0.2, -0.4), uneven=1.4),
    Shape("links, few workers", 2000, 25, 5, (0.8, 0.2), accuracy=0.78, own=1.0, recall=(0.1, -0.5), spread=0.9),
    Shape("ten photos, fifty labels", 2000, 600, 50, 10, accuracy=0.95, hard=1.8, together=0.6, batch=50),
    Shape("relevance, two grades", 10000, 1200, 4.8, (0.4, 0.6), accuracy=0.78, hard=1.0, uneven=1.5),
    Shape("relevance, five grades", 10000, 300, 3, (0.3, 0.15, 0.15, 0.2, 0.2), accuracy=0.7, ordered=True, own=0.6),
    Shape("relevance, two labels", 5000, 100, 2, accuracy=0.78, own=0.5),
    Shape("pairs, one in ten alike", 5000, 150, 3, (0.9, 0.1), accuracy=0.88, recall=(0.3, -0.8), own=0.7),
    Shape("pairs, three in a hundred alike", 5000, 100, 3, (0.97, 0.03), accuracy=0.92, recall=(0.3, -0.8)),
    Shape("facts, three answers", 576, 48, 10, (0.7, 0.2, 0.1), accuracy=0.8, by_class=0.4, own=0.6, hard=1.2),
    Shape("broken links, three answers", 3300, 720, 5.5, (0.45, 0.45, 0.1), accuracy=0.6, random=0.15, uneven=1.5),
    Shape("fashion, three labels", 8000, 400, 3, (0.75, 0.25), accuracy=0.85, hard=1.5, together=0.5),
    Shape("adult pages", 333, 269, 10, (0.6, 0.15, 0.1, 0.15), accuracy=0.72, ordered=True, by_class=0.5, uneven=1.4),
    Shape("leaves, six", 384, 83, 10, 6, accuracy=0.55, hard=1.0, together=0.5, own=0.5, batch=8),
    Shape("leaves, sixteen", 672, 170, 10, 16, accuracy=0.45, hard=1.0, together=0.5, own=0.6, batch=8),
    Shape("heads, four", 600, 60, 12, 4, accuracy=0.7, hard=1.2, together=0.6),
    Shape("weather, five", 5000, 800, 5, (0.25, 0.3, 0.25, 0.15, 0.05), accuracy=0.75, by_class=0.5, uneven=1.2),
    Shape("medical relations", 900, 60, 12, (0.3, 0.2, *(0.05,) * 10), accuracy=0.5, by_class=0.6, hard=1.0),
    Shape("reports, rare findings", 1500, 12, 4, (0.8, 0.1, 0.05, 0.03, 0.02), accuracy=0.85, own=0.7, by_class=0.6),
    Shape("workers of three labels", 1500, 2500, 5, 3, accuracy=0.7, uneven=0.5),
    Shape("workers of one label", 600, 3000, 5, 2, accuracy=0.75, uneven=0.2),
    Shape("workers of three labels, rare class", 1500, 2500, 5, (0.85, 0.1, 0.05), accuracy=0.75, uneven=0.5),
    Shape("half random", 1000, 80, 8, 4, accuracy=0.75, random=0.5),
    Shape("two thirds random", 1000, 90, 10, 3, accuracy=0.8, random=0.67),
    Shape("habits", 1000, 80, 6, (0.6, 0.4), accuracy=0.8, habit=0.4),
    Shape("some against", 1000, 80, 8, 2, accuracy=0.8, against=0.2),
    Shape("twenty classes", 2000, 100, 4, 20, accuracy=0.65, own=0.6, by_class=0.5),
    Shape("fifty classes, some rare", 3000, 120, 5, tuple(np.arange(50, 0, -1) / 1275), accuracy=0.6, by_class=0.6),
    Shape("a hundred classes", 3000, 60, 5, 100, accuracy=0.6, own=0.5, by_class=0.5),
    Shape("thirty tasks", 30, 12, 6, 3, accuracy=0.7),
    Shape("forty tasks, two classes", 40, 30, 10, (0.7, 0.3), accuracy=0.65),
    Shape("forty tasks, all workers", 40, 8, 8, 5, accuracy=0.6),
    Shape("three workers label all", 1000, 3, 3, 4, accuracy=0.8, spread=0.8, own=0.6),
    Shape("five workers label all, ordered", 800, 5, 5, (0.4, 0.3, 0.2, 0.1), accuracy=0.7, ordered=True, own=0.8),
    Shape("hard and misleading", 1000, 50, 7, 4, accuracy=0.65, hard=1.5, together=0.8),
    Shape("a class mistaken by most", 1000, 60, 7, 4, accuracy=0.75, recall=(0.0, 0.0, 0.0, -1.5), own=0.4),
    Shape("a rare class mistaken by most", 1500, 60, 6, (0.5, 0.3, 0.15, 0.05), accuracy=0.75, recall=(0, 0, 0, -1.5)),
    Shape("kinds of tasks, two classes", 1000, 60, 6, accuracy=0.75, subtypes=1.0, together=0.5),
    Shape("kinds of tasks, four classes", 1000, 60, 6, 4, accuracy=0.7, subtypes=1.0, together=0.7),
    Shape("kinds of tasks, six classes, uneven", 2000, 100, 4, (0.4, 0.2, 0.2, 0.1, 0.05, 0.05), accuracy=0.7,
          subtypes=1.2, together=0.7),
    Shape("kinds of tasks, one in ten", 3000, 100, 5, (0.9, 0.1), accuracy=0.85, subtypes=1.2),
    Shape("kinds of tasks, five grades", 2000, 150, 6, 5, accuracy=0.6, ordered=True, subtypes=1.0, uneven=1.4),
    Shape("kinds of tasks, twenty labels", 500, 100, 20, 5, accuracy=0.65, subtypes=1.2, together=0.7),
    Shape("kinds of tasks, few workers", 800, 6, 4, 3, accuracy=0.8, subtypes=1.0, together=0.7),
    Shape("a form filled in beforehand", 1500, 100, 5, (0.3, 0.5, 0.2), accuracy=0.8, habit=0.35, one_habit=True),
    Shape("a form filled in, two classes", 1500, 100, 5, (0.3, 0.7), accuracy=0.8, habit=0.35, one_habit=True),
    Shape("one in twenty, workers of eight labels", 1000, 400, 3, (0.95, 0.05), accuracy=0.85, uneven=0.5),
    Shape("one in twenty, workers of eight, hard", 1000, 600, 5, (0.95, 0.05), accuracy=0.75, uneven=0.5, hard=1.2),
    Shape("one in seven, workers of four labels", 2000, 2500, 5, (0.86, 0.14), accuracy=0.75, uneven=0.5),
    Shape("nearly random crowd", 1000, 60, 8, 2, accuracy=0.56, spread=0.5, hard=0.5),
    Shape("nearly random crowd, five classes", 1000, 60, 8, 5, accuracy=0.3, spread=0.5, hard=0.5),
)  # fmt: skip


def run(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """A row for every shape and cut with errors in percent, then their means; ``off``: expected less actual errors."""
    for kind, sets in (("drawn", drawn_sets), ("cut", cut_sets)):
        rows = [_errors(each) for seed in range(1 if quick else SEEDS) for each in sets(seed)]
        yield from rows
        mean = {name: float(np.mean([row[name] for row in rows])) for name in (*METHODS,)}
        off = float(np.mean([abs(row["off"]) for row in rows]))
        worse = sum(row["blend"] > row["majority"] + 1.0 for row in rows)
        yield {"data": f"mean of {len(rows)} {kind}; blend worse than majority on {worse}", **mean, "off": off}


def _errors(each: CrowdSet) -> dict[str, Any]:
    unknown = np.full(each.labels.n_tasks, -1, dtype=np.int32)
    found = {
        name: fit_labels(each.labels, unknown, Settings(model=name), np.random.default_rng(0)).posterior
        for name in METHODS
    }
    errors = {name: 100.0 * error_rate(posterior, each.known) for name, posterior in found.items()}
    expected = 100.0 * expected_error(found["blend"][each.known >= 0])
    return {"data": each.name, **errors, "off": expected - errors["blend"]}


def drawn_sets(seed: int = 0) -> Iterator[CrowdSet]:
    """One crowd of every shape."""
    for place, shape in enumerate(SHAPES):
        yield draw(shape, np.random.default_rng((seed, place)))


def draw(shape: Shape, rng: np.random.Generator) -> CrowdSet:
    """Labels of one crowd, and the class of every task."""
    shares = np.full(shape.classes, 1.0 / shape.classes) if isinstance(shape.classes, int) else np.array(shape.classes)
    k = len(shares)
    truth = rng.choice(k, size=shape.tasks, p=shares / shares.sum())
    task, worker = _who(shape, rng)
    right = _accuracies(shape, k, rng)
    common = _confusion(shape, k, rng)
    own = np.array([[rng.dirichlet(np.maximum(8.0 * row, 1e-3)) for row in common] for _ in range(shape.workers)])
    harder = shape.hard * rng.standard_normal(shape.tasks)
    misleading = np.array([rng.choice(k, p=common[c]) for c in truth])
    if shape.subtypes:
        kind = rng.integers(3, size=shape.tasks)
        harder += (shape.subtypes * rng.standard_normal((k, 3)))[truth, kind]
        misleading = np.array([[rng.choice(k, p=row) for _ in range(3)] for row in common])[truth, kind]
    chance = 1.0 / (1.0 + np.exp(harder[task] - right[worker, truth[task]]))
    wrong = _choose(own[worker, truth[task]], rng)
    wrong = np.where(rng.random(len(task)) < shape.together, misleading[task], wrong)
    label = np.where(rng.random(len(task)) < chance, truth[task], wrong)
    label = _spoil(shape, label, worker, k, rng)
    labels = read_labels(np.column_stack([task, worker, label]), classes=range(k))
    return CrowdSet(shape.name, labels, truth.astype(np.int32)[labels.tasks])


def _who(shape: Shape, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The task and the worker of every label; no worker labels a task twice."""
    activity = np.exp(shape.uneven * rng.standard_normal(shape.workers))
    pairs = []
    for begin in range(0, shape.tasks, shape.batch):
        tasks = np.arange(begin, min(begin + shape.batch, shape.tasks))
        votes = int(shape.votes) + int(rng.random() < shape.votes % 1)
        votes = min(max(votes, 1), shape.workers)
        chosen = np.argpartition(rng.exponential(size=shape.workers) / activity, votes - 1)[:votes]
        pairs.append(np.array(np.meshgrid(tasks, chosen, indexing="ij")).reshape(2, -1))
    task, worker = np.concatenate(pairs, axis=1)
    return task, worker


def _accuracies(shape: Shape, k: int, rng: np.random.Generator) -> np.ndarray:
    """Logit of the probability of the right label, (W, K)."""
    middle = np.log(shape.accuracy / (1.0 - shape.accuracy))
    common = shape.by_class * rng.standard_normal(k) + (np.array(shape.recall) if shape.recall else 0.0)
    worker = shape.spread * rng.standard_normal(shape.workers)
    return np.asarray(middle + worker[:, None] + common + shape.own * rng.standard_normal((shape.workers, k)))


def _confusion(shape: Shape, k: int, rng: np.random.Generator) -> np.ndarray:
    """Which wrong label all workers tend to give in every class, (K, K), rows sum to one."""
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    weights = np.exp(-1.5 * apart) if shape.ordered else rng.gamma(0.7, size=(k, k)) + 0.05
    weights = weights * (apart > 0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _choose(shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One label per row of shares (m, K)."""
    edges = np.cumsum(shares, axis=1)
    return np.asarray((rng.random((len(shares), 1)) * edges[:, -1:] > edges).sum(axis=1).clip(max=shares.shape[1] - 1))


def _spoil(shape: Shape, label: np.ndarray, worker: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """The labels with those of random workers, of workers with a habit, and of workers who say the wrong thing."""
    kind = rng.permutation(shape.workers) / shape.workers
    random = kind < shape.random
    habit = (kind >= shape.random) & (kind < shape.random + shape.habit)
    against = (kind >= 1.0 - shape.against) & ~random & ~habit
    usual = np.full(shape.workers, rng.integers(k)) if shape.one_habit else rng.integers(k, size=shape.workers)
    any_label = rng.integers(k, size=len(label))
    label = np.where(random[worker], any_label, label)
    label = np.where(habit[worker] & (rng.random(len(label)) < 0.9), usual[worker], label)
    return np.asarray(np.where(against[worker], (label + 1) % k, label))
