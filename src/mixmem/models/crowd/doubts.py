"""What labels and a fit to them have to say against themselves, the serious things first."""

from __future__ import annotations

import numpy as np

from mixmem.models.crowd.fits import Fit
from mixmem.models.crowd.labels import Labels, plain_text
from mixmem.results.notices import Notice, Severity
from mixmem.words import listed, short

LEFT = 0.5
"""Half of the shares' sum of differences: how far shares of classes may leave those of the votes."""
ENOUGH = 50
"""Tasks from which shares of classes tell something."""
NOBODY = 0.05
"""Share of tasks whose label nobody gave, above which it is serious."""
TWICE = 0.05
"""Share of tasks with a second label from which on workers can be held against each other."""
SHUFFLED, SHUFFLES, BEYOND = 5_000, 20, 2.0
"""Labels that are shuffled to see what chance gives, how often, and standard deviations from which on more is there."""
FEW_LABELS = 5
"""Labels up to which workers are shuffled together."""
MANY_NUMBERS = 12
"""Different numbers as labels from which they look like ratings."""


def doubts(labels: Labels, fit: Fit, *, tolerance: float, rounds: int, gold: bool) -> list[Notice]:
    """Return what speaks against a fit and its labels; ``gold`` says that some tasks' classes were given."""
    found = [
        *_convergence(fit, tolerance, rounds), *_shares(labels, fit), *_usual_labels(labels, fit),
        *_nobody(labels, fit), *([] if gold else _once(labels)), *_by_chance(labels), *label_doubts(labels),
    ]  # fmt: skip
    return sorted(found, key=lambda notice: notice.severity != "serious")


def label_doubts(labels: Labels) -> list[Notice]:
    """Return what speaks against the labels as they were read."""
    found = []
    values = labels.classes.tolist()
    if looks_numeric(labels):
        found.append(Notice(
            "labels-look-numeric", "serious",
            f"the labels are {len(values)} different numbers from {min(values):g} to {max(values):g}, each taken for a "
            "class of its own",
            "if they are ratings, use mixmem.crowd.NumericRatings (mixmem crowd --ratings bias), or make them few "
            "classes",
        ))  # fmt: skip
    same: dict[object, list[str]] = {}
    for value in values:
        if isinstance(value, str):
            same.setdefault(plain_text(value), []).append(repr(short(value)))
    doubles = [names for names in same.values() if len(names) > 1]
    if doubles:
        found.append(Notice(
            "labels-alike", "serious",
            f"labels differ in case or blanks only ({listed(doubles[0])}) and were taken for different classes",
            "give clean=True (--clean) to take them for the same",
        ))  # fmt: skip
    if labels.note:
        found.append(Notice("columns-guessed", "minor", labels.note, "name others with columns= (--columns)"))
    return found


def looks_numeric(labels: Labels) -> bool:
    """Return whether the labels look like ratings: many different numbers."""
    values = labels.classes
    if values.dtype.kind in "iuf":
        numbers = len(values)
    else:
        numbers = sum(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values.tolist())
    return numbers == len(values) and (numbers >= MANY_NUMBERS)


def _convergence(fit: Fit, tolerance: float, rounds: int) -> list[Notice]:
    if fit.converged or tolerance <= 0.0:
        return []
    return [Notice(
        "not-converged", "serious",
        f"the fit did not converge: after {rounds} rounds class probabilities still change by more than {tolerance} on "
        "average",
        "give a larger n_iter (--rounds) or tol",
    )]  # fmt: skip


def _once(labels: Labels) -> list[Notice]:
    """Tasks of one label: without tasks in common nothing tells how good workers are."""
    votes = np.diff(labels.starts)
    twice = int(np.count_nonzero(votes > 1))
    if twice >= TWICE * np.count_nonzero(votes):
        return []
    said = f"only {twice:,} of {labels.n_tasks:,} tasks have" if twice else "no task has"
    return [Notice(
        "labelled-once", "serious",
        f"{said} more than one label, so that the labels do not tell how often workers are wrong: the probabilities "
        "found rest on what is usual",
        "collect a second label for some of the tasks, or give gold labels (fit(rows, gold), --gold)",
    )]  # fmt: skip


def _by_chance(labels: Labels) -> list[Notice]:
    """Workers who agree on tasks no more than their labels do when each worker's are dealt out anew."""
    tasks, who, what = labels.task_of[:SHUFFLED], labels.workers[:SHUFFLED], labels.labels[:SHUFFLED]
    sizes = np.bincount(tasks)
    if np.count_nonzero(sizes > 1) < ENOUGH or labels.n_classes < 2:
        return []
    groups = np.where(np.bincount(who)[who] <= FEW_LABELS, -1, who)

    def pairs(given: np.ndarray) -> float:
        held = np.bincount(tasks * labels.n_classes + given)
        return float((held * (held - 1)).sum())

    rng, places, dealt = np.random.default_rng(0), np.argsort(groups, kind="stable"), np.empty_like(what)
    by_chance = []
    for _ in range(SHUFFLES):
        dealt[places] = what[np.lexsort((rng.random(len(what)), groups))]
        by_chance.append(pairs(dealt))
    if pairs(what) > np.mean(by_chance) + BEYOND * np.std(by_chance, ddof=1):
        return []
    return [Notice(
        "agreement-by-chance", "serious",
        "workers agree on tasks no more than chance gives: the labels say nothing of the tasks, and the labels and "
        "probabilities found mean nothing",
        "check that the columns of task, worker and label are the right ones (columns=, --columns); if they are, "
        "collect other labels",
    )]  # fmt: skip


def _shares(labels: Labels, fit: Fit) -> list[Notice]:
    """Classes that became much rarer or more common than their votes."""
    votes = np.bincount(labels.labels, minlength=labels.n_classes) / max(labels.n_labels, 1)
    shares = fit.posterior.mean(axis=0)
    gone = [j for j in range(labels.n_classes) if votes[j] >= 0.02 and shares[j] < votes[j] / 5.0]
    left = 0.5 * float(np.abs(votes - shares).sum())
    if labels.n_tasks < ENOUGH or (not gone and left < LEFT):
        return []
    what = listed([repr(short(str(labels.classes[j]))) for j in gone]) if gone else "classes"
    return [Notice(
        "shares-left-votes", "serious",
        f"{what} {'has' if len(gone) == 1 else 'have'} quite other shares among the labels found than among the votes "
        f"(classes differ by {left:.0%} in all)",
        "look at the tasks concerned; compare with the models bwa and majority (--model bwa), or give some gold labels",
    )]  # fmt: skip


def _usual_labels(labels: Labels, fit: Fit) -> list[Notice]:
    """Classes whose tasks workers usually give another label."""
    given = fit.counts.sum(axis=0)
    enough = given.sum(axis=0) >= 20.0
    drifted = [j for j in range(labels.n_classes) if enough[j] and given[:, j].argmax() != j]
    if not drifted:
        return []
    j = drifted[0]
    usual = repr(short(str(labels.classes[int(given[:, j].argmax())])))
    others = f" ({len(drifted)} classes in all)" if len(drifted) > 1 else ""
    return [Notice(
        "class-under-another-name", "serious",
        f"tasks found to be {short(str(labels.classes[j]))!r} were mostly labelled {usual}{others}",
        "the classes may have changed places: look at these tasks, or compare with the models bwa and majority "
        "(--model bwa)",
    )]  # fmt: skip


def _nobody(labels: Labels, fit: Fit) -> list[Notice]:
    """Tasks whose label none of their workers gave."""
    best = fit.posterior.argmax(axis=1)
    agreed = np.bincount(labels.task_of, weights=labels.labels == best[labels.task_of], minlength=labels.n_tasks)
    alone = int(((agreed == 0) & (np.diff(labels.starts) > 0)).sum())
    if alone == 0:
        return []
    severity: Severity = "serious" if alone > NOBODY * labels.n_tasks else "minor"
    return [Notice(
        "labels-nobody-gave", severity,
        f"{alone:,} of {labels.n_tasks:,} tasks got a label that none of their workers gave",
        "look at them (agreement 0 in labels.csv, tasks_ in Python), or compare with the models bwa and majority "
        "(--model bwa)",
    )]  # fmt: skip
