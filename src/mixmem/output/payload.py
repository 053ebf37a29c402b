"""What the scripts of a page are given: numbers packed small, texts whole, as much as a page of a few megabytes holds.

Probabilities and memberships are whole numbers of 1/65535 in base64: a page of 10,000 rows, 1,000 variables and 8
components is then about one megabyte. Where a table has more than fits, the variables that differ most between
components and rows spread over the table are kept, and the page says so.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixmem.output.fit_files import FitFiles
from mixmem.plots import colour, group_colour
from mixmem.results.distinctive import Contents
from mixmem.words import short

MOST_BYTES = 2_500_000
"""Of the variables, as packed."""
SHOWN_ROWS, MAPPED_ROWS = 10_000, 4_000
"""Rows of the structure plot, and those of the map, where each is a mark of its own."""
LONGEST_NAME = 400
"""Characters of a name that a page holds."""
CLEAR = 0.8
"""A row whose largest membership exceeds this belongs clearly to one component."""
BINS = 20
DIGITS = 6


def payload(
    document: Mapping[str, Any], files: FitFiles, contents: Contents, apart: np.ndarray, shares: np.ndarray
) -> dict[str, Any]:
    """Return what the scripts know; ``apart`` (variables, k) are distances from the average row, ``shares`` (k,)."""
    k = len(files.alpha)
    return {
        "k": k,
        "stem": "mixmem",
        "colours": [colour(h) for h in range(k)],
        "variables": _variables(files, contents, apart, apart @ (shares / shares.sum())),
        "rows": _rows(files),
        "group_colours": [] if files.groups is None else [group_colour(g) for g in range(len(files.groups.names))],
        "histogram": _histogram(files.memberships),
        "alpha0": _alpha0(document["report"]),
        "history": _history(document["report"]),
    }


# --- Variables


def _variables(files: FitFiles, contents: Contents, apart: np.ndarray, spread: np.ndarray) -> dict[str, Any]:
    k = len(files.alpha)
    sets: dict[tuple[str, ...], int] = {}
    kept = _kept(files, contents, spread)
    levels, rows, numbers = [], [], {}
    for place, j in enumerate(kept.tolist()):
        names = _levels(contents, j)
        levels.append(sets.setdefault(names, len(sets)))
        rows.append(int(contents.offsets[j]) + np.arange(len(names)))
        if contents.number[j]:
            numbers[str(place)] = _number(files, contents, j)
    own = np.concatenate([np.empty(0, dtype=np.int64), *rows]).astype(np.int64)
    low, high = (None, None) if files.bounds is None else (packed(bound[own]) for bound in files.bounds)
    return {
        "names": [short(contents.names[j], LONGEST_NAME) for j in kept.tolist()],
        "levels": levels,
        "sets": [list(names) for names in sets],
        "spread": [round(float(value), 4) for value in spread[kept]],
        "apart": packed(apart[kept], np.uint8) if k > 1 else "",
        "theta": packed(files.theta[own]),
        "lower": low,
        "upper": high,
        "numbers": numbers,
        "all": len(contents.names),
    }


def _kept(files: FitFiles, contents: Contents, spread: np.ndarray) -> np.ndarray:
    """Return the variables that fit into the page, those that differ most first to be taken, in the table's order."""
    per_row = 8.0 / 3.0 * len(files.alpha) * (1 if files.bounds is None else 3)
    kept: list[int] = []
    seen: set[tuple[str, ...]] = set()
    left = float(MOST_BYTES)
    for j in np.argsort(-spread, kind="stable").tolist():
        names = _levels(contents, j)
        left -= len(contents.names[j]) + 40 + per_row * int(contents.offsets[j + 1] - contents.offsets[j])
        left -= 0 if names in seen else sum(map(len, names)) + 3 * len(names)
        if left < 0 and kept:
            break
        seen.add(names)
        kept.append(j)
    return np.sort(np.array(kept, dtype=np.int64))


def _levels(contents: Contents, j: int) -> tuple[str, ...]:
    """Return the names of a variable's levels, of a number's atoms."""
    start, end = int(contents.offsets[j]), int(contents.offsets[j + 1])
    end = start + int(contents.atoms[j]) if contents.number[j] else end
    return tuple(short(label[1], LONGEST_NAME) for label in contents.labels[start:end])


def _number(files: FitFiles, contents: Contents, j: int) -> dict[str, Any]:
    """Return a number's mean and standard deviation in every component, and the ends of the mean's interval."""
    mean, variance = contents.moments(files.theta, j)
    low, high = (None, None) if files.bounds is None else (contents.moments(bound, j)[0] for bound in files.bounds)
    return {
        "mean": rounded(mean),
        "deviation": rounded(np.sqrt(np.maximum(variance, 0.0))),
        "low": None if low is None else rounded(low),
        "high": None if high is None else rounded(high),
    }


# --- Rows


def _rows(files: FitFiles) -> dict[str, Any]:
    x, groups = files.memberships, files.groups
    shown = spread_places(len(x), SHOWN_ROWS)
    return {
        "all": len(x),
        "ids": [short(str(identity), LONGEST_NAME) for identity in files.row_ids[shown].tolist()],
        "memberships": packed(x[shown]),
        "mapped": spread_places(len(shown), MAPPED_ROWS).tolist(),
        "corners": _corners(x),
        "by": None if groups is None else groups.by,
        "groups": None if groups is None else groups.codes[shown].tolist(),
        "group_names": None if groups is None else list(groups.names),
        "counts": None if groups is None else groups.counts.tolist(),
        "means": None if groups is None else [rounded(mean) for mean in groups.means(x)],
    }


def spread_places(n: int, most: int) -> np.ndarray:
    """Return at most so many of n places, evenly spread.

    >>> spread_places(10, 4).tolist()
    [0, 2, 5, 7]
    """
    count = min(n, most)
    return np.arange(count) * n // max(count, 1)


def _corners(memberships: np.ndarray) -> list[list[float | None]]:
    """Return the components' corners (2, k) on a circle, those that rows often hold together beside each other.

    They go round as the two directions do in which memberships vary most.
    """
    k = memberships.shape[1]
    if k < 3:
        return []
    centred = memberships - memberships.mean(axis=0)
    directions = np.linalg.eigh(centred.T @ centred)[1][:, :-3:-1]  # the last two, the larger first
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)
    first, second = np.round(directions * np.sign(largest), 9).T
    turns = np.empty(k)
    turns[np.argsort(np.arctan2(second, first), kind="stable")] = np.arange(k) / k
    angle = 2.0 * np.pi * (turns - turns[0])  # the first component on top
    return [rounded(np.round(corner, 6) + 0.0) for corner in (np.sin(angle), np.cos(angle))]


def _histogram(memberships: np.ndarray) -> dict[str, Any]:
    counts, _ = np.histogram(np.clip(memberships.max(axis=1), 0.0, 1.0), bins=BINS, range=(0.0, 1.0))
    return {"tops": rounded(counts / max(len(memberships), 1)), "clear_from": CLEAR}


# --- Diagnostics


def _alpha0(report: Mapping[str, Any]) -> dict[str, Any] | None:
    tried = [point for point in report["alpha0"]["tried"] if np.isfinite(point).all()]
    if len(tried) < 2:
        return None
    return {"tried": sorted(tried), "value": report["start"].get("alpha0", report["alpha0"]["value"])}


def _history(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return how the fit came to rest, round by round, as far as it was kept."""
    climbed, sweeps = report["refine"].get("em"), report["start"].get("sweeps")
    if climbed and len(climbed.get("likelihood_given_memberships", ())) > 1:
        values, label = climbed["likelihood_given_memberships"], "mean log-likelihood of a row, given memberships"
        return {"values": values, "label": label, "rounds": "round", "first": 0, "log": False}
    if sweeps and len(sweeps.get("changes", ())) > 1 and min(sweeps["changes"]) > 0:
        return {
            "values": sweeps["changes"], "label": "change of theta (root mean square)", "rounds": "sweep", "first": 1,
            "log": True,
        }  # fmt: skip
    return None


# --- Packing


def packed(values: np.ndarray, kind: type[np.unsignedinteger] = np.uint16) -> str:
    """Return numbers between 0 and 1 as whole numbers of that kind, in base64.

    >>> base64.b64decode(packed(np.array([0.0, 0.5, 1.0]), np.uint8)).hex()
    '0080ff'
    """
    whole = np.rint(np.clip(values, 0.0, 1.0) * float(np.iinfo(kind).max))
    return base64.b64encode(whole.astype(np.dtype(kind).newbyteorder("<")).tobytes()).decode("ascii")


def rounded(values: Sequence[float] | np.ndarray) -> list[float | None]:
    """Return numbers with as many digits as anyone reads; None for what is no number.

    >>> rounded([1 / 3, np.nan])
    [0.333333, None]
    """
    found = np.asarray(values, dtype=float).tolist()
    return [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in found]
