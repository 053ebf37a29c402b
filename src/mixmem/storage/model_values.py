"""Whether what a model file holds can be a model: a changed or damaged file would give plausible memberships too."""

from __future__ import annotations

import os

import numpy as np

from mixmem.data.schema import Schema
from mixmem.errors import InputError
from mixmem.typing import Array

TOLERANCE = 1e-6
"""How far probabilities may be outside [0, 1], and their sum from one, by rounding."""


def check_model_values(
    path: str | os.PathLike[str], schema: Schema, theta: Array, alpha: Array, contamination: float
) -> None:
    """Refuse theta (rows, k), alpha (k,) or a contamination that no fit gives, naming the file and the variable."""
    found = _of_theta(schema, theta)
    if found is None and not (np.isfinite(alpha) & (alpha > 0.0)).all():
        bad = int(np.argmin(np.isfinite(alpha) & (alpha > 0.0)))
        found = f"alpha of component_{bad + 1} is {alpha[bad]:g}; expected a positive number"
    if found is None and not 0.0 <= contamination < 1.0:
        found = f"the contamination is {contamination:g}; expected a share from 0 up to, but less than, 1"
    if found is not None:
        raise InputError(f"{path}: {found}; the file is damaged or was changed: copy it again, or fit again")


def _of_theta(schema: Schema, theta: Array) -> str | None:
    """Return what is wrong with theta in words, with the first variable concerned; None if it is as it should be."""
    low, high = schema.bounds
    spread = np.array([statistic == "variance" for _, _, statistic in schema.labels])[:, None]
    inside = np.isfinite(theta) & (theta >= low - TOLERANCE) & (theta <= high + TOLERANCE) & ((theta > 0.0) | ~spread)
    if not inside.all():
        row, component = np.argwhere(~inside)[0].tolist()
        name, level, statistic = schema.labels[row]
        what = f"the {statistic}" + f" of {level!r}" * bool(level)
        expected = "a positive number" if spread[row, 0] else f"a number from {low[row, 0]:g} to {high[row, 0]:g}"
        return (
            f"variable {name!r}: {what} in component_{component + 1} is {theta[row, component]:g}; expected {expected}"
        )
    sums = np.add.reduceat(theta, schema.offsets[:-1], axis=0)
    whole = (np.abs(sums - 1.0) <= TOLERANCE) | schema.has("number")[:, None]
    if whole.all():
        return None
    j, component = np.argwhere(~whole)[0].tolist()
    return (
        f"variable {schema.names[j]!r}: the probabilities in component_{component + 1} sum to {sums[j, component]:g}; "
        "expected 1"
    )
