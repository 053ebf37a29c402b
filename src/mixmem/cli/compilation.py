"""The first compilation of kernels, announced."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer


def announce_compilation(quiet: bool) -> None:
    """Say why the first fit of an installation takes longer, if this is it."""
    if not quiet and not _compiled():
        typer.echo("mixmem: compiling kernels for this machine, once (about 20 s)", err=True)


def _compiled() -> bool:
    """Whether numba has left compiled kernels where it may: beside them, or in its own folder if that is read-only."""
    import mixmem.kernels

    pattern = f"*.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return any(Path(chosen).rglob(pattern))
    beside = Path(mixmem.kernels.__file__).parent / "__pycache__"
    return any(beside.glob(pattern)) or any((Path.home() / ".cache" / "numba").rglob(f"simplex.{pattern}"))
