"""The command line: what to type, what comes out, and how it ends.

Every command ends in one place, :func:`main`: 0 done; 2 bad usage or bad input, with one message on standard error;
130 interrupted; 1 anything else. Standard output is for results only. Only typer is imported at the start, so that
--help answers at once; commands import what they need when they run.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from mixmem.errors import FitWarning, InputError

__all__ = ["main"]

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells give it: 128 and the number of the signal."""


COMPLETING = "_MIXMEM_COMPLETE"
"""Set by a shell that asks for completions."""

BLAS_THREADS = "OPENBLAS_NUM_THREADS"
"""Read once, when BLAS is loaded: fits hold it at one thread; others would spin for a tenth of a second."""

EXPECTED = {
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
}
"""What a value should be, by what is wrong with it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (by default the program's own) and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if "numpy" not in sys.modules:
        os.environ.setdefault(BLAS_THREADS, "1")
    try:
        with _termination_interrupts():
            return _run(arguments)
    except KeyboardInterrupt:
        return _end("interrupted; nothing was written", INTERRUPTED)
    except InputError as error:
        from mixmem.cli.wording import as_typed

        return _end(f"error: {as_typed(str(error))}", 2)
    except BrokenPipeError:
        # Whoever read the output went away (`| head`). Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if (text := _usage(error)) is not None:
            return _end(f"error: {text}", 2)
        if "--verbose" in arguments:
            import traceback

            traceback.print_exc()
        advice = "" if "--verbose" in arguments else "; run again with --verbose for the traceback"
        reason = " ".join(str(error).split())
        return _end(f"failed with {type(error).__name__}: {reason}{advice}", 1)


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, so that nothing half-written is left."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _usage(error: Exception) -> str | None:
    """What to tell the user if the error is theirs to repair: typer's own, or about files that they named."""
    if hasattr(error, "format_message"):  # typer's usage errors, whose class moved between its versions
        context = getattr(error, "ctx", None)
        return f"{_plain(error)} (see {context.command_path if context else 'mixmem'} --help)"
    if not isinstance(error, OSError) or error.filename is None:
        return None
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return f"{error.filename} is a file; expected a folder: name another place"
    if isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError)):
        return f"{error.filename}: {error.strerror}; check the name and its permissions"
    return None  # a full disk, say


def _plain(error: Any) -> str:
    """Return a usage error in plain words: recent versions of typer hand on those of the library that checks values."""
    text = str(error.format_message())
    checked = getattr(error.__cause__, "errors", None)
    if checked is None:
        return text
    first = checked()[0]
    expected = EXPECTED.get(first["type"], "").format(**first.get("ctx", {}))
    return text.replace(first["msg"], f"expected {expected}, got {first['input']!r}") if expected else text


def _run(arguments: list[str]) -> int:
    import warnings

    from mixmem.cli.commands import app

    # The command is called without typer's own main, which would turn interruptions and exits into its own.
    command = typer.main.get_command(app)
    if COMPLETING in os.environ:  # a shell asks what may stand here
        command.main(prog_name="mixmem")
    try:
        with warnings.catch_warnings(), command.make_context("mixmem", arguments) as context:
            warnings.simplefilter("ignore", FitWarning)  # the result says so itself
            warnings.showwarning = lambda message, *_: typer.echo(f"mixmem: warning: {message}", err=True)
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as end:
        return int(end.exit_code)
    return 0


def _end(text: str, code: int) -> int:
    typer.echo(f"mixmem: {text}", err=True)
    return code
