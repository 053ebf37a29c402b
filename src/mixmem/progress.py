"""Progress of long stages, on standard error and only where someone looks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Progress:
    """Silent progress; times every stage all the same (``seconds``)."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Time a stage; the value yielded is called with the number of units (of ``total``) just done."""
        began = time.perf_counter()
        try:
            with self.shown(name, total) as step:
                yield step
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    @contextmanager
    def shown(self, name: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Show a stage; here not at all."""
        yield lambda _: None

    def say(self, text: str) -> None:
        """A line for whoever looks; here nobody."""


class LineProgress(Progress):
    """One line a stage on standard error, with its seconds (``verbose=True``)."""

    @contextmanager
    def shown(self, name: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Say the stage when it has ended."""
        began = time.perf_counter()
        yield lambda _: None
        self.say(f"{name}: {time.perf_counter() - began:.2f} s")

    def say(self, text: str) -> None:
        """Print to standard error."""
        sys.stderr.write(f"mixmem: {text}\n")
        sys.stderr.flush()


PATIENCE, PACE = 2.0, 0.5
"""Seconds after which a stage is shown, and between two lines of it."""


class PatientProgress(LineProgress):
    """One line on a terminal's standard error, of stages that take more than two seconds; it vanishes at the end."""

    @contextmanager
    def shown(self, name: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Say how far the stage is and how long it may take, from two seconds on."""
        began = time.perf_counter()
        done, said = 0, began + PATIENCE - PACE

        def step(n: int) -> None:
            nonlocal done, said
            done, now = done + n, time.perf_counter()
            if now - said >= PACE and total:
                left = (now - began) * (total - done) / max(done, 1)
                sys.stderr.write(f"\r\x1b[Kmixmem: {name} {min(done / total, 1.0):.0%}, at most {left:.0f} s left")
                sys.stderr.flush()
                said = now

        try:
            yield step
        finally:
            if said > began + PATIENCE - PACE:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()


def in_python(verbose: bool) -> Progress:
    """Return the progress of a call from Python: a line per stage if ``verbose``, else what :func:`showing` chose, and
    on a terminal a line of what takes long."""
    if verbose:
        return LineProgress()
    silent = _SHOWN.get() is None and not sys.stderr.isatty()
    return Progress() if silent else (_SHOWN.get() or PatientProgress)()


class BarProgress(LineProgress):
    """Bars with an estimate of the time left, for a terminal; they vanish when a stage has ended."""

    @contextmanager
    def shown(self, name: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Draw a bar while the stage runs."""
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with RichProgress(*columns, console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(name, total=total)
            yield lambda done: bars.advance(task, done)


_SHOWN: ContextVar[type[Progress] | None] = ContextVar("progress", default=None)


def current() -> Progress:
    """A new progress of the kind chosen by :func:`showing`; silent unless one was."""
    return (_SHOWN.get() or Progress)()


@contextmanager
def showing(kind: type[Progress]) -> Iterator[None]:
    """Let everything inside show its progress in that way."""
    token = _SHOWN.set(kind)
    try:
        yield
    finally:
        _SHOWN.reset(token)
