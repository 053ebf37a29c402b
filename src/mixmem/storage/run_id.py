"""Which fit a file belongs to: a name derived from what was fitted, and digests of the files written with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

PIECE_BYTES = 4_000_000
BYSTANDERS = ("n_jobs", "verbose")
"""Settings that change nothing in a result."""


def run_id(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> str:
    """Return a name of a fit, derived from its arrays and its settings: the same fit has the same one on every run.

    >>> import numpy as np
    >>> one, other = (run_id({"alpha": np.array([0.1])}, {"seed": seed}) for seed in (0, 1))
    >>> len(one), one == other
    (16, False)
    """
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name], dtype="<f8", order="C")
        found.update(f"{name} {array.shape} ".encode())
        found.update(array.tobytes())
    kept = {name: value for name, value in settings.items() if name not in BYSTANDERS}
    found.update(json.dumps(kept, sort_keys=True, default=str).encode())
    return found.hexdigest()[:16]


def file_digest(path: Path) -> str:
    """Return the digest of a text file, whatever its line ends; the file may be larger than memory."""
    found, held = hashlib.sha256(), b""
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            piece = held + piece
            held = b"\r" if piece.endswith(b"\r") else b""  # its line's end may come with the next piece
            found.update(piece.removesuffix(held).replace(b"\r\n", b"\n"))
    found.update(held)
    return found.hexdigest()[:16]
