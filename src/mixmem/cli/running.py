"""How a command runs: its progress, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from mixmem.errors import InputError

if TYPE_CHECKING:
    from mixmem.results.notices import Notice


SERIOUS = 3


"""Exit code of a result with a serious warning, with --strict."""


@contextmanager
def shown(quiet: bool, verbose: bool, *, minutes: bool = False) -> Iterator[None]:
    """Progress as the options ask: lines, nothing, or bars where someone looks.

    What takes ``minutes`` says how far it is in any case: its output goes to a file or a log which is watched.
    """
    import sys
    import warnings

    from mixmem.errors import TableWarning
    from mixmem.progress import BarProgress, LineProgress, Progress, showing

    if quiet and verbose:
        raise InputError("--quiet and --verbose ask for opposite things; give one of them")
    kind: type[Progress] = Progress
    if verbose:
        kind = LineProgress
    elif not quiet and sys.stderr.isatty():
        kind = BarProgress
    if minutes and not quiet and kind is not BarProgress:
        from mixmem.experiments.pace import EveryStep, PacedProgress

        kind = EveryStep if verbose else PacedProgress
    with showing(kind), warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", TableWarning)
        yield


def tell_of_table(warnings: Iterable[str]) -> None:
    """Say on standard error what of the table will be learned poorly, or may be something else than it looks."""
    for text in warnings:
        typer.echo(f"mixmem: warning: {text}", err=True)


def end_strictly(strict: bool, notices: Iterable[Notice]) -> None:
    """End the command with exit code 3 if ``strict`` and a serious warning ask for it; files are written by then."""
    if strict and any(notice.severity == "serious" for notice in notices):
        raise typer.Exit(SERIOUS)
