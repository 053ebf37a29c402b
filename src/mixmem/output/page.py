"""report.html: one self-contained page about a fit.

Here numbers become what the template shows (texts, shares, coordinates of small drawings); the template holds all
markup and escapes every name. Only as much of a wide or long table is shown as a reader can take in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixmem.plots import colour
from mixmem.results.distinctive import Contents, Label, distances
from mixmem.words import measured, plain_number, short

SHOWN_VARIABLES, SHOWN_LEVELS, SHOWN_COMPONENTS, SHOWN_ROWS = 12, 10, 24, 200
TYPICAL = 3
"""Levels named as typical of a component."""
ATOM_LIFT = 0.1
"""Of a number with atoms one is named as typical of a component that has it so much more often than all rows."""
CLEAR = 0.8
"""A row whose largest membership exceeds this belongs clearly to one component."""
BINS = 20


def render_page(
    document: Mapping[str, Any],
    labels: Sequence[Label],
    theta: np.ndarray,
    alpha: np.ndarray,
    memberships: np.ndarray,
) -> str:
    """The page, from what fit.json holds, (variable, level, statistic) of each row of theta (rows, k), alpha and
    memberships."""
    theta, memberships = np.asarray(theta, dtype=float), np.asarray(memberships, dtype=float)
    k = len(alpha)
    if theta.shape != (len(labels), k) or memberships.ndim != 2 or memberships.shape[1] != k:
        raise ValueError(f"theta {theta.shape}, alpha ({k},) and memberships {memberships.shape} do not fit together")
    path = document["data"]["path"]
    shares = np.asarray(document.get("memberships", {}).get("shares", memberships.mean(axis=0)), dtype=float)
    contents = Contents.of(labels)
    apart = distances(theta, contents, shares / shares.sum())
    return template("report.html.jinja").render(
        fit=document,
        report=document["report"],
        k=k,
        source=shown_source(path),
        about=_about(document),
        genotypes=document["data"].get("genotypes", False),
        components=_components(contents, theta, alpha, shares, apart, document["data"].get("means", {})),
        variables=_variables(contents, theta, shares, apart),
        shown_components=_shown_components(shares),
        rows=_rows(memberships),
        sure=_sure(document),
        settings=[(name, short(_said(value), 200)) for name, value in document["settings"].items()],
        seconds=_seconds(document["seconds"]),
        number=plain_number,
        log_likelihood=lambda value: "unknown" if value is None else f"{value:.3f}",
        short=short,
        colour=colour,
    )


def template(name: str) -> Any:
    """A template of this package, which escapes every name it is given and refuses what it was not given."""
    from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        bytecode_cache=FileSystemBytecodeCache(),  # compiling a template takes longer than filling it in
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def shown_source(path: str) -> str:
    """What a page calls the data it is about."""
    return "standard input" if path == "-" else short(Path(path).name or path)


# --- Components and variables


def _components(
    contents: Contents,
    theta: np.ndarray,
    alpha: np.ndarray,
    shares: np.ndarray,
    distances: np.ndarray,
    means: Mapping[str, float],
) -> list[dict[str, Any]]:
    """A line a component; ``means`` of the table's numbers, by name."""
    average = theta @ (shares / shares.sum())
    lift = theta - average[:, None]
    offsets = contents.offsets
    # The level of every variable that a component favours most: one variable is named once.
    best = np.where(contents.number[:, None], distances, np.maximum.reduceat(lift, offsets[:-1], axis=0))
    largest = max(float(shares.max()), 1e-12)
    found = []
    for h in range(len(alpha)):
        typical = []
        for j in np.argsort(-best[:, h], kind="stable")[:TYPICAL]:
            row, atoms = offsets[j], int(contents.atoms[j])
            if atoms and lift[row : row + atoms - 1, h].max() > ATOM_LIFT:
                row += int(lift[row : row + atoms - 1, h].argmax())
                level, note = short(contents.labels[row][1]), f"{100 * theta[row, h]:.0f}%"
            elif contents.number[j]:
                own = contents.moments(theta, int(j))
                _, scale = _centre(own, shares / shares.sum())
                # of atoms a table's mean says nothing to compare the others' with
                whole = own[0] @ (shares / shares.sum())
                whole = whole if atoms else means.get(contents.names[j], whole)
                level = f"{'others ' if atoms else ''}mean {measured(own[0, h], scale)}"
                note = f"all rows {measured(whole, scale)}"
            else:
                row += int(lift[row : offsets[j + 1], h].argmax())
                level, note = short(contents.labels[row][1]), f"{100 * theta[row, h]:.0f}%"
            typical.append({"variable": short(contents.names[j]), "level": level, "note": note})
        found.append(
            {
                "number": h + 1,
                "alpha": plain_number(float(alpha[h])),
                "share": float(shares[h]),
                "width": 100.0 * float(shares[h]) / largest,
                "typical": typical if len(alpha) > 1 else [],
            }
        )
    return found


def _shown_components(shares: np.ndarray) -> list[int]:
    """The largest components, in their own order: more columns than these nobody can compare."""
    return sorted(np.argsort(-shares, kind="stable")[:SHOWN_COMPONENTS].tolist())


def _variables(
    contents: Contents, theta: np.ndarray, shares: np.ndarray, distances: np.ndarray
) -> list[dict[str, Any]]:
    if theta.shape[1] < 2:
        return []
    weights = shares / shares.sum()
    spread = distances @ weights
    columns = _shown_components(shares)
    found = []
    for j in np.argsort(-spread, kind="stable")[:SHOWN_VARIABLES]:
        rows = np.arange(contents.offsets[j], contents.offsets[j + 1])
        own = theta[rows][:, columns]
        size = len(rows)
        if contents.number[j]:
            atoms = int(contents.atoms[j])
            levels = _level_lines(contents, rows[:atoms], own[:atoms])
            levels += _number_lines(contents.moments(theta, int(j)), weights, columns, "others' " if atoms else "")
        else:
            if size > SHOWN_LEVELS:  # those that differ most, in the order of the levels
                kept = np.sort(np.argsort(-np.ptp(theta[rows], axis=1), kind="stable")[:SHOWN_LEVELS])
                rows, own = rows[kept], own[kept]
            levels = _level_lines(contents, rows, own)
        found.append(
            {
                "name": short(contents.names[j]),
                "number": bool(contents.number[j]),
                "spread": float(spread[j]),
                "left_out": 0 if contents.number[j] else size - len(rows),
                "levels": levels,
            }
        )
    return found


def _level_lines(contents: Contents, rows: np.ndarray, own: np.ndarray) -> list[dict[str, Any]]:
    """Probabilities of levels: these rows of theta, own (rows, components)."""
    return [
        {"name": short(contents.labels[row][1]), "cells": [(f"{100 * p:.0f}%", float(p)) for p in cells]}
        for row, cells in zip(rows, own, strict=True)
    ]


def _number_lines(own: np.ndarray, weights: np.ndarray, columns: list[int], whose: str) -> list[dict[str, Any]]:
    """Means, with a shade for where they stand among all rows, and standard deviations; ``whose`` stands before."""
    middle, scale = _centre(own, weights)
    means: list[tuple[str, float | None]] = []
    for h in columns:
        shade = 0.5 * (1.0 + math.erf((own[0, h] - middle) / scale / math.sqrt(2.0)))
        means.append((measured(own[0, h], scale), shade))
    deviations = [(measured(math.sqrt(own[1, h]), scale), None) for h in columns]
    return [{"name": f"{whose}mean", "cells": means}, {"name": f"{whose}standard deviation", "cells": deviations}]


def _centre(own: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of a number over all rows, from its theta (rows, k)."""
    mean, variance = own
    middle = float(mean @ weights)
    return middle, math.sqrt(max(float((variance + (mean - middle) ** 2) @ weights), 1e-300))


# --- Memberships


def _rows(memberships: np.ndarray) -> dict[str, Any]:
    n = len(memberships)
    largest = memberships.max(axis=1)
    counts, _ = np.histogram(np.clip(largest, 0.0, 1.0), bins=BINS, range=(0.0, 1.0))
    sample = memberships[np.arange(min(n, SHOWN_ROWS)) * n // min(n, SHOWN_ROWS)]
    return {
        "clear_share": float((largest > CLEAR).mean()),
        "clear_from": CLEAR,
        "median": min(math.floor(100.0 * float(np.median(largest))) / 100.0, 0.99) if memberships.shape[1] > 1 else 1.0,
        "histogram": {"tops": (counts / max(int(counts.max()), 1)).tolist(), "most": int(counts.max()) / n},
        "sample": {"size": len(sample), "areas": stacked_areas(sample)},
    }


def stacked_areas(memberships: np.ndarray) -> list[tuple[int, str]]:
    """Stacked bars as one SVG path a component, (component, path), to be drawn in this order on a canvas of n x 100.

    Rows come sorted by leading component. Path h covers components 1..h, so that later paths (smaller h) leave of it
    what is component h's own: k paths in place of n k rectangles.
    """
    leading = memberships.argmax(axis=1)
    order = np.lexsort((-memberships.max(axis=1), leading))
    tops = 100.0 - 100.0 * np.clip(np.cumsum(memberships[order], axis=1), 0.0, 1.0)
    paths = []
    for h in range(memberships.shape[1] - 1, -1, -1):
        steps = "".join(f"V{top:.1f}H{i + 1}" for i, top in enumerate(tops[:, h]))
        paths.append((h, f"M0 100{steps}V100Z"))
    return paths


# --- How sure


def _sure(document: Mapping[str, Any]) -> dict[str, Any]:
    start, alpha0 = document["report"]["start"], document["report"]["alpha0"]
    curve = _curve(alpha0["tried"], start.get("alpha0", alpha0["value"]))
    if (matching := start.get("matching")) is None:  # only the moments tell of blocks and matching
        return {"curve": curve, "moments": None}
    known = [margin for each in matching["each"] if (margin := _margin(each)) is not None]
    kept = matching["anchors_kept"]
    return {
        "curve": curve,
        "moments": start,
        "condition": (start.get("plan") or {}).get("condition"),  # reports of before have none
        "permuted": matching.get("permuted", 0),
        "margin": min(known) if known else None,
        "kept": kept["permutation"] == list(range(len(kept["permutation"]))),
        "kept_guaranteed": kept["guaranteed"],
        "kept_margin": _margin(kept),
        "theorem": next(c["theorem"] for c in kept["conditions"] if _used(c, kept["method"])),
    }


def _used(condition: Mapping[str, Any], method: str) -> bool:
    return ("Procrustes" in condition["theorem"]) == (method == "procrustes")


def _margin(match: Mapping[str, Any]) -> float | None:
    return next((c["margin"] for c in match["conditions"] if _used(c, match["method"])), None)


CURVE_WIDTH, CURVE_HEIGHT = 440.0, 190.0
CURVE_LEFT, CURVE_RIGHT, CURVE_TOP, CURVE_BOTTOM = 62.0, 428.0, 12.0, 150.0


def _curve(tried: Sequence[Sequence[float]], value: float) -> dict[str, Any] | None:
    """The likelihood over log alpha0 in the coordinates of a small drawing."""
    if len(tried) < 2:
        return None
    x, y = np.log([point[0] for point in tried]), np.array([point[1] for point in tried])
    top = float(y.max())
    # Far from the truth the likelihood falls off so deep that the peak would look flat: those points are cut off.
    low = max(float(y.min()), top - 5.0 * (top - float(np.median(y))))
    low = low if low < top else top - 1.0
    scale_x = (CURVE_RIGHT - CURVE_LEFT) / max(float(np.ptp(x)), 1e-12)
    scale_y = (CURVE_BOTTOM - CURVE_TOP) / (top - low)

    def across(at: float) -> float:
        return CURVE_LEFT + (at - float(x.min())) * scale_x

    points = [(across(float(a)), CURVE_TOP + (top - float(b)) * scale_y) for a, b in zip(x, y, strict=True)]
    ticks = [10.0**e * m for e in range(-3, 4) for m in (1, 3)]
    return {
        "line": " ".join(f"{a:.1f},{min(b, 4 * CURVE_BOTTOM):.1f}" for a, b in points),
        "dots": [(a, b) for a, b in points if b <= CURVE_BOTTOM + 0.01],
        "cut": sum(b > CURVE_BOTTOM + 0.01 for _, b in points),
        "value": across(math.log(value)),
        "ticks": [(across(math.log(t)), f"{t:g}") for t in ticks if x.min() - 1e-9 <= math.log(t) <= x.max() + 1e-9],
        "top": f"{top:.2f}",
        "low": f"{low:.2f}",
        "box": (CURVE_WIDTH, CURVE_HEIGHT, CURVE_LEFT, CURVE_RIGHT, CURVE_TOP, CURVE_BOTTOM),
    }


# --- Small texts


def _about(document: Mapping[str, Any]) -> str:
    """Kinds of the variables and how much is missing, if there is something to say: "3 continuous, 2% missing"."""
    data = document["data"]
    words = data.get("in_words", {})
    parts = [f"{count:,} {word}" for word, count in words.items()] if len(words) > 1 else list(data.get("all_of", []))
    if data.get("missing_cells"):
        share = data["missing_cells"] / (data["rows"] * data["variables"])
        parts.append(f"{100 * share:.1f}% of the cells missing" if share >= 5e-4 else "few cells missing")
    return ", ".join(parts)


def _seconds(seconds: Mapping[str, float]) -> list[dict[str, Any]]:
    total = sum(seconds.values())
    longest = max([*seconds.values(), 1e-12])
    stages = [{"name": n, "text": f"{s:.2f}", "width": 100.0 * s / longest} for n, s in seconds.items()]
    return [*stages, {"name": "together", "text": f"{total:.2f}", "width": None}]


def _said(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_said(part)}" for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return " ".join(map(_said, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
