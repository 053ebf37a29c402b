"""How much memory there is, as far as the system tells."""

from __future__ import annotations

import os
import sys
from pathlib import Path

MEMORY_INFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")
"""Where Linux tells of its memory, and of what a container may take of it."""


def available_memory() -> int:
    """Return the bytes of memory that can still be taken; more than any machine has where the system does not tell.

    >>> available_memory() > 0
    True
    """
    return min(_of_machine(), _of_group())


def _of_machine() -> int:
    try:
        for line in MEMORY_INFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return sys.maxsize


def _of_group() -> int:
    """Return what is left of a container's memory."""
    try:
        most, taken = (int((GROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no container, or one without a bound
        return sys.maxsize
    return max(0, most - taken)
