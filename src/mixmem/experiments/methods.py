"""The methods of the paper's comparison on one simulated table: theta by each, under either setting.

``published`` runs tpm, nojd and hals on the full symmetric tensor with its same-variable blocks, as the paper's
experiment did. ``fair`` runs every method on three disjoint groups of variables: the moment identity holds for distinct
variables only, and a same-variable block is biased.
"""

from __future__ import annotations

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.data.schema import Schema
from mixmem.errors import InputError
from mixmem.models.gdlm import GDLM
from mixmem.moments.dirichlet import correct_second, correct_third
from mixmem.moments.solvers import factorize
from mixmem.moments.sums import first_moments
from mixmem.moments.theta_from_factors import simplex_rows
from mixmem.results.simulate import Simulation
from mixmem.typing import Array

METHODS = ("ptpqp", "hals", "meld", "tpm", "nojd0", "nojd1", "mixmem")
BOTH, FAIR = ("published", "fair"), ("fair",)
SETTINGS: dict[str, tuple[str, ...]] = {
    "ptpqp": FAIR,
    "hals": BOTH,
    "meld": FAIR,
    "tpm": BOTH,
    "nojd0": BOTH,
    "nojd1": BOTH,
    "mixmem": FAIR,
}


def estimate(method: str, setting: str, table: Simulation, seed: int) -> Array:
    """Theta (rows, k) of a simulated table, with its k and alpha0 given as in the paper."""
    if method not in METHODS or setting not in SETTINGS[method]:
        raise InputError(f"no method {method!r} in the setting {setting!r}")
    k, alpha0 = len(table.alpha), float(table.alpha.sum())
    if setting == "published":
        return symmetric_estimate(method, table.encoded, k, alpha0, seed)
    solver = {"ptpqp": "pqp", "mixmem": "pqp"}.get(method, method)
    sweeps = "auto" if method == "mixmem" else 0
    model = GDLM(k, alpha0=alpha0, solver=solver, sweeps=sweeps, refine=None, random_state=seed, n_jobs=1)
    model.fit(table.encoded)
    return model.theta_.iloc[:, 3:].to_numpy()


def symmetric_estimate(method: str, table: Encoded, k: int, alpha0: float, seed: int) -> Array:
    """Theta from the full symmetric tensor, same-variable blocks and all."""
    tensor, second = symmetric_moments(table.codes, table.schema, alpha0)
    found = factorize(
        tensor, k, solver=method, pairs=(second, second, second), max_iter=500, tol=1e-6, random_state=seed
    )
    means = first_moments(table).means
    return simplex_rows(np.maximum(found.factors[2], 0.0), table.schema.sizes, means)[0]


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
