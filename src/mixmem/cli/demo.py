"""`mixmem demo`: a drawn survey, fitted as the command `fit` does, against its truth."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mixmem.cli.demo_survey import PROFILES, draw_survey
from mixmem.cli.fit import FIT_FILES, FitRun, run_fit, write_fit
from mixmem.data.schema import Schema
from mixmem.moments.components import align_components, rmse
from mixmem.output.tables import membership_frame, write_codes, write_table, write_theta
from mixmem.plots import comparison
from mixmem.storage.atomic import staged_folder

PICTURE = "demo.png"


@dataclass(frozen=True)
class DemoRun:
    """The fit of the demonstration and its root mean square errors after matching components."""

    fit: FitRun
    alpha: np.ndarray
    noise: float
    theta_error: float
    membership_error: float
    seconds: float


def run_demo(out: Path, *, seed: int = 0, jobs: int | None = None, quiet: bool = False) -> DemoRun:
    """Simulate, fit, compare, and write everything into a folder."""
    began = time.perf_counter()
    settings = {"n_components": len(PROFILES), "alpha0": "auto", "random_state": seed, "n_jobs": jobs}
    with staged_folder(out, (*FIT_FILES, PICTURE)) as folder:
        drawn = draw_survey(seed)
        write_codes(folder / "data.csv", drawn.codes, drawn.coding)
        write_theta(folder / "truth_theta.csv", drawn.schema, drawn.theta)
        write_table(folder / "truth_memberships.csv", membership_frame(drawn.memberships, np.arange(len(drawn.codes))))
        run = run_fit(folder / "data.csv", settings, shown_as=out / "data.csv", quiet=quiet)
        truth = drawn.theta[_rows_of(drawn.schema, run.table.schema)]
        theta, found = run.model._theta, run.rows.memberships
        order = align_components(truth, theta)
        run.attempts.write(
            folder / PICTURE,
            lambda path: comparison(
                truth, theta[:, order], drawn.memberships, found[:, order], PROFILES
            ).savefig(path),
        )  # fmt: skip
        write_fit(folder, run)
    errors = rmse(truth, theta), rmse(drawn.memberships, found)
    return DemoRun(run, drawn.alpha, drawn.noise, *errors, time.perf_counter() - began)


def _rows_of(whole: Schema, seen: Schema) -> np.ndarray:
    """Rows of the truth for the answers that were drawn: a rare one may not have been."""
    row = {pair: i for i, pair in enumerate((v.name, level) for v in whole.variables for level in v.levels)}
    return np.array([row[v.name, level] for v in seen.variables for level in v.levels])
