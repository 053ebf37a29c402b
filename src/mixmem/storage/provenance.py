"""Where a result comes from: versions and machine, on which its last bits depend."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("mixmem", "numpy", "scipy", "numba", "polars")


def provenance() -> dict[str, Any]:
    """Return the versions of the packages that compute, and the kind of machine.

    Results are the same to the last bit for the same seed on machines of one instruction set with the same versions.

    >>> sorted(provenance())
    ['machine', 'versions']
    """
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a checkout that is not installed
            continue
    machine = {"system": platform.system(), "architecture": platform.machine()}
    if (door := sys.modules.get("mixmem.kernels._numba")) is not None:  # kernels are compiled for this processor
        machine["processor"] = door.processor()
    return {"versions": found, "machine": machine}
