"""The first compilation of kernels, announced."""

from __future__ import annotations

import typer


def announce_compilation(quiet: bool) -> None:
    """Say why the first fit of an installation takes longer, if this is it."""
    from mixmem.kernels import COMPILING, compiled

    if not quiet and not compiled():
        typer.echo(f"mixmem: {COMPILING}", err=True)
