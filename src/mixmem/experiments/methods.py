"""The methods of the paper's comparison on one simulated table: theta by each, under each of its settings.

``authors`` is how the authors' own programs ran them: tpm, nojd and hals on the full symmetric tensor with its
same-variable blocks, tpm and nojd in all directions of it, meld on second moments from nearly equal columns, ptpqp on
one block of 8, 8 and 9 variables from one random start. ``fair`` is each method done well, on three disjoint groups of
variables: the moment identity holds for distinct variables only. ``moments`` and ``default`` are this library's own:
the moment estimate with its sweeps, and what a fit does that is given no options.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.data.schema import Schema
from mixmem.errors import InputError
from mixmem.models.gdlm import GDLM
from mixmem.moments.components import rmse
from mixmem.moments.dirichlet import correct_second, correct_third
from mixmem.moments.matching import column_affinity
from mixmem.moments.solvers import factorize
from mixmem.moments.sums import first_moments
from mixmem.moments.theta_from_factors import simplex_rows
from mixmem.results.simulate import Simulation
from mixmem.typing import Array

METHODS = ("ptpqp", "hals", "meld", "tpm", "nojd0", "nojd1", "mixmem")
AUTHORS, FAIR, MOMENTS, DEFAULT = "authors", "fair", "moments", "default"
SETTINGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(METHODS[:-1], (AUTHORS, FAIR)),
    "mixmem": (MOMENTS, DEFAULT),
}
COSTLY = (("nojd0", AUTHORS), ("nojd1", AUTHORS), ("mixmem", DEFAULT))
"""Ways that take ten seconds and more per table: run on the first table of some cells, unless all are asked for."""

_ALL_DIRECTIONS = {"directions": "all", "n_projections": 200, "rule": "qrj1d"}
AUTHORS_OPTIONS: dict[str, dict[str, Any]] = {
    "hals": {"max_iter": 500, "tol": 1e-6},
    "tpm": {"max_iter": 100, "tol": 1e-4, "options": {"directions": "all", "n_starts": 50}},
    "nojd0": {"max_iter": 200, "options": _ALL_DIRECTIONS},
    "nojd1": {"max_iter": 200, "options": _ALL_DIRECTIONS},
    "meld": {"max_iter": 10, "tol": 1e-5, "options": {"order": 2}},
}
"""How the authors' programs ran; meld's ten rounds are what its own rule (1e-5 relatively) took there, 8 to 12."""


def estimate(method: str, setting: str, table: Simulation, seed: int) -> Array:
    """Theta (rows, k) of a simulated table, with its k and alpha0 given as in the paper."""
    if method not in METHODS or setting not in SETTINGS[method]:
        raise InputError(f"no method {method!r} in the setting {setting!r}")
    k, alpha0 = len(table.alpha), float(table.alpha.sum())
    if setting == AUTHORS and method != "ptpqp":
        return symmetric_estimate(method, table.encoded, k, alpha0, seed)
    options: dict[str, Any] = {"alpha0": alpha0, "random_state": seed, "n_jobs": 1}
    if setting != DEFAULT:
        options |= {"refine": None, "sweeps": "auto" if setting == MOMENTS else 0}
        options |= {"solver": {"ptpqp": "pqp", "mixmem": "pqp"}.get(method, method)}
    if setting == AUTHORS:
        options |= {"anchors": dealt(table.schema, seed), "n_restarts": 1}
    return GDLM(k, **options).fit(table.encoded).theta_.iloc[:, 3:].to_numpy()


def error(setting: str, truth: Array, theta: Array) -> float:
    """Return the root mean square error, columns matched as the setting's programs did."""
    if setting != AUTHORS:
        return rmse(truth, theta)
    found = column_affinity(truth, theta, "procrustes").argmax(axis=0)  # may take a column twice
    return float(np.sqrt(((truth - theta[:, found]) ** 2).mean()))


def dealt(schema: Schema, seed: int) -> list[list[str]]:
    """Return the names of all variables, dealt at random to three modes of nearly one size."""
    names = np.random.default_rng([seed, 1]).permutation(np.asarray(schema.names, dtype=object))
    return [part.tolist() for part in np.array_split(names, 3)]


def symmetric_estimate(method: str, table: Encoded, k: int, alpha0: float, seed: int) -> Array:
    """Theta from the full symmetric tensor, same-variable blocks and all; entries by their absolute value."""
    tensor, second = symmetric_moments(table.codes, table.schema, alpha0)
    settings = dict(AUTHORS_OPTIONS[method])
    if method == "meld":
        settings["options"] = settings["options"] | {"sizes": [table.schema.sizes.tolist()] * 3}
    found = factorize(tensor, k, solver=method, pairs=(second, second, second), random_state=seed, **settings)
    return simplex_rows(np.abs(found.factors[2]), table.schema.sizes, first_moments(table).means)[0]


def symmetric_moments(codes: np.ndarray, schema: Schema, alpha0: float) -> tuple[Array, Array]:
    """M3 (rows, rows, rows) and M2 (rows, rows) over all variables, same-variable blocks corrected like the others."""
    rows = schema.n_rows
    onehot = np.zeros((len(codes), rows))
    np.put_along_axis(onehot, schema.offsets[:-1] + codes.astype(np.int64), 1.0, axis=1)
    mean, pair = onehot.mean(axis=0), onehot.T @ onehot / len(codes)
    third = np.zeros((rows, rows * rows))
    for part in np.array_split(onehot, max(1, len(codes) // 500)):
        third += part.T @ (part[:, :, None] * part[:, None, :]).reshape(len(part), -1)
    third = third.reshape(rows, rows, rows) / len(codes)
    return correct_third(third, (pair, pair, pair), (mean, mean, mean), alpha0), correct_second(
        pair, mean, mean, alpha0
    )
