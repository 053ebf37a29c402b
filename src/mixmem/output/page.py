"""report.html: one self-contained page about a fit.

Here numbers become what the template shows; the template holds all markup and escapes every name. What is drawn is
drawn by the page's scripts, from what `payload` gives them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mixmem.output.diagnostics import diagnostics
from mixmem.output.fit_files import FitFiles
from mixmem.output.payload import CLEAR, LONGEST_NAME, payload
from mixmem.plots import colour
from mixmem.results.distinctive import Contents, distances
from mixmem.words import measured, plain_number, short

HERE = Path(__file__).parent
VENDORED = ("d3", "plot")
"""Libraries that every page carries: D3 and Observable Plot, as their packages ship them."""
VENDOR_FILES = {"d3": "d3.min.js", "plot": "plot.umd.min.js"}
SCRIPTS = ("data", "downloads", "figures", "profiles", "memberships", "start")
TYPICAL = 3
"""Levels named as typical of a component."""
ATOM_LIFT = 0.1
"""Of a number with atoms one is named as typical of a component that has it so much more often than all rows."""


def render_page(document: Mapping[str, Any], files: FitFiles) -> str:
    """Return the page, from what fit.json holds and what the other files of the fit do."""
    k = len(files.alpha)
    shares = np.asarray(document.get("memberships", {}).get("shares", files.memberships.mean(axis=0)), dtype=float)
    contents = Contents.of(files.labels)
    apart = distances(files.theta, contents, shares / shares.sum())
    data = payload(document, files, contents, apart, shares)
    largest = files.memberships.max(axis=1)
    return template("report.html.jinja").render(
        fit=document,
        report=document["report"],
        k=k,
        source=shown_source(document["data"]["path"]),
        about=_about(document),
        components=_components(contents, files, shares, apart, document["data"].get("means", {})),
        data=data,
        json=script_json(data),
        genotypes=document["data"].get("genotypes", False),
        numbers=bool(contents.number.any()),
        clear_share=float((largest > CLEAR).mean()),
        clear_from=CLEAR,
        diagnostics=diagnostics(document, files.memberships),
        settings=[(name, short(_said(value), LONGEST_NAME)) for name, value in document["settings"].items()],
        seconds=_seconds(document["seconds"]),
        vendor=[(HERE / "scripts" / "vendor" / VENDOR_FILES[name]).read_text(encoding="utf-8") for name in VENDORED],
        licences=[(HERE / "scripts" / "vendor" / f"{name}.LICENSE").read_text(encoding="utf-8") for name in VENDORED],
        script=own_script(),
        colour=colour,
    )


def own_script() -> str:
    """Return the page's own scripts as one, whose names stay inside."""
    parts = [(HERE / "scripts" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    return "(() => {\n" + "\n".join(parts) + "})();"


def script_json(data: Any) -> str:
    """Return data as JSON that may stand inside a page: no text of a table can end the element it stands in.

    >>> script_json({"a": "</script>"})
    '{"a":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def template(name: str) -> Any:
    """A template of this package, which escapes every name it is given and refuses what it was not given."""
    from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        bytecode_cache=FileSystemBytecodeCache(),  # compiling a template takes longer than filling it in
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def shown_source(path: str) -> str:
    """What a page calls the data it is about."""
    return "standard input" if path == "-" else short(Path(path).name or path, LONGEST_NAME)


# --- Components


def _components(
    contents: Contents, files: FitFiles, shares: np.ndarray, apart: np.ndarray, means: Mapping[str, float]
) -> list[dict[str, Any]]:
    """A line a component; ``means`` of the table's numbers, by name."""
    weights, theta = shares / shares.sum(), files.theta
    lift = theta - (theta @ weights)[:, None]
    # The level of every variable that a component favours most: one variable is named once.
    best = np.where(contents.number[:, None], apart, np.maximum.reduceat(lift, contents.offsets[:-1], axis=0))
    largest = max(float(shares.max()), 1e-12)
    found = []
    for h, alpha in enumerate(files.alpha):
        typical = [
            _typical(contents, theta, lift, weights, means, int(j), h)
            for j in np.argsort(-best[:, h], kind="stable")[:TYPICAL]
        ]
        found.append(
            {
                "number": h + 1,
                "alpha": plain_number(float(alpha)),
                "share": float(shares[h]),
                "width": 100.0 * float(shares[h]) / largest,
                "typical": typical if len(shares) > 1 else [],
            }
        )
    return found


def _typical(
    contents: Contents,
    theta: np.ndarray,
    lift: np.ndarray,
    weights: np.ndarray,
    means: Mapping[str, float],
    j: int,
    h: int,
) -> dict[str, str]:
    """What component h makes of variable j."""
    row, atoms = int(contents.offsets[j]), int(contents.atoms[j])
    if contents.number[j] and not (atoms and lift[row : row + atoms - 1, h].max() > ATOM_LIFT):
        own = contents.moments(theta, j)
        scale = _deviation(own, weights)
        # of atoms a table's mean says nothing to compare the others' with
        whole = float(own[0] @ weights)
        whole = whole if atoms else means.get(contents.names[j], whole)
        level = f"{'others ' if atoms else ''}mean {measured(own[0, h], scale)}"
        note = f"all rows {measured(whole, scale)}"
    else:
        end = row + atoms - 1 if contents.number[j] else int(contents.offsets[j + 1])
        row += int(lift[row:end, h].argmax())
        level, note = short(contents.labels[row][1], LONGEST_NAME), f"{100 * theta[row, h]:.0f}%"
    return {"variable": short(contents.names[j], LONGEST_NAME), "level": level, "note": note}


def _deviation(own: np.ndarray, weights: np.ndarray) -> float:
    """Standard deviation of a number over all rows, from its mean and variance in every component (2, k)."""
    mean, variance = own
    return math.sqrt(max(float((variance + (mean - float(mean @ weights)) ** 2) @ weights), 1e-300))


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
