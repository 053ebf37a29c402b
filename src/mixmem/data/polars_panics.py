"""The one door to polars' readers, whose engine may panic on damaged files instead of refusing them."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Turn a panic of polars' engine, which no ``except Exception`` sees, into a PolarsError.

    What the engine prints about it on standard error is left out where no other thread of Python may print meanwhile.
    """
    import polars as pl

    try:
        with _standard_error_held():
            yield
    except pl.exceptions.PanicException as panic:  # whose text is for polars' developers
        raise pl.exceptions.ComputeError("the reader broke down on it") from panic


@contextmanager
def _standard_error_held() -> Iterator[None]:
    """Keep what is written to standard error, and write it after the block unless that ended in a panic."""
    import polars as pl

    try:
        own = os.dup(2) if threading.active_count() == 1 else None
    except OSError:  # there is no standard error
        own = None
    if own is None:
        yield
        return
    panicked = False
    with tempfile.TemporaryFile() as held:
        if sys.stderr is not None:
            sys.stderr.flush()
        os.dup2(held.fileno(), 2)
        try:
            yield
        except pl.exceptions.PanicException:
            panicked = True
            raise
        finally:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(own, 2)
            os.close(own)
            held.seek(0)
            if not panicked and (text := held.read()):
                os.write(2, text)
