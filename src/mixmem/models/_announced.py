"""The first compilation of kernels, announced to whoever looks in Python."""

from __future__ import annotations

from mixmem.kernels import COMPILING, compiled
from mixmem.progress import PatientProgress, Progress


def announced(progress: Progress) -> Progress:
    """Return the progress of a call, after saying why it takes longer, if kernels are compiled first."""
    if isinstance(progress, PatientProgress) and not compiled():
        progress.say(COMPILING)
    return progress
