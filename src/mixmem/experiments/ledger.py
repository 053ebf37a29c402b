"""What a long run has finished so far, on disk: ``settings.json`` says what was asked, ``tries.csv`` what is done.

A line is one method on one table. Lines of a unit (one try of one cell) are written together and flushed, so that an
interrupted run loses at most the units under way. What it left of a unit is dropped when the run goes on.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from mixmem.errors import InputError
from mixmem.experiments.cells import Cell
from mixmem.storage.atomic import write_atomically

Way = tuple[str, str]
"""A method and its setting."""


@dataclass(frozen=True)
class Unit:
    """One try of one cell: a table, on which every method runs."""

    cell: Cell
    attempt: int


@dataclass(frozen=True)
class Line:
    """One method on one table; where it failed, ``rmse`` is NaN and ``reason`` says why."""

    n: int
    delta: float
    k: int
    attempt: int
    method: str
    setting: str
    rmse: float
    cpu_seconds: float
    negative_fraction: float
    reason: str = ""

    @property
    def unit(self) -> Unit:
        """The unit that the line belongs to."""
        return Unit(Cell(self.n, self.delta, self.k), self.attempt)

    @property
    def way(self) -> Way:
        """The method and its setting."""
        return self.method, self.setting


HEADER = [{"attempt": "try"}.get(field.name, field.name) for field in fields(Line)]
KINDS = (int, float, int, int, str, str, float, float, float, str)


class Ledger:
    """The finished units of a run in a folder."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], ways: Callable[[Unit], Sequence[Way]]):
        """Open or begin a run; one with other settings in the same folder is refused. ``ways`` are those of a unit."""
        self.folder, self.path = folder, folder / "tries.csv"
        folder.mkdir(parents=True, exist_ok=True)
        _check_settings(folder, settings)
        self.lines = _whole_units(_read(self.path), ways) if self.path.exists() else []
        # Written anew, without what was left of a unit under way, so that new lines begin on a line of their own.
        with write_atomically(self.path) as temporary:
            temporary.write_text(_text([HEADER]) + _text(map(astuple, self.lines)), encoding="utf-8")

    @property
    def finished(self) -> set[Unit]:
        """Units that need not be run again."""
        return {line.unit for line in self.lines}

    def add(self, lines: Sequence[Line]) -> None:
        """Keep a finished unit."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(_text(map(astuple, lines)))
        self.lines.extend(lines)


def _check_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    path = folder / "settings.json"
    if not path.exists():
        if (folder / "tries.csv").exists():
            raise InputError(f"{folder} has tries.csv but no settings.json to tell of what; name another folder")
        with write_atomically(path) as temporary:
            temporary.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        differing = [key for key in {**settings, **before} if before.get(key) != settings.get(key)]
    except (ValueError, TypeError, AttributeError):
        raise InputError(f"{path} is damaged; name another folder with --out") from None
    if differing:
        said = "; ".join(
            f"{key}: {_short(before.get(key))} there, {_short(settings.get(key))} now" for key in differing
        )
        raise InputError(
            f"{folder} holds a run with other settings ({said}); ask for the same to go on with it, or name another "
            "folder with --out"
        )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{len(value)} of them"


def _read(path: Path) -> list[Line]:
    """All lines that were written whole."""
    whole = path.read_text(encoding="utf-8", errors="replace").rpartition("\n")[0]  # the rest of a cut line goes
    rows = list(csv.reader(io.StringIO(whole)))
    if rows and rows[0] != HEADER:
        raise InputError(f"{path} was not written by this command; name another folder with --out")
    lines = []
    for number, row in enumerate(rows[1:], start=2):
        try:
            lines.append(Line(*(kind(text) for kind, text in zip(KINDS, row, strict=True))))
        except ValueError:
            raise InputError(f"{path} is damaged in line {number}: delete that line, or name another folder") from None
    return lines


def _whole_units(lines: Iterable[Line], ways: Callable[[Unit], Sequence[Way]]) -> list[Line]:
    """Lines of the units in which every method ran that belongs there."""
    units: dict[Unit, dict[Way, Line]] = {}
    for line in lines:
        units.setdefault(line.unit, {})[line.way] = line
    return [found[way] for unit, found in units.items() if set(found) == set(ways(unit)) for way in ways(unit)]


def _text(rows: Iterable[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
