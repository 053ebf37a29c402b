"""The demonstration of the paper's authors, first 2,000 rows and 1,000 variables, k = 5, alpha0 = 3.5.

Needs the ground truth in ``gdlm_demo`` of the public data sets (MIXMEM_DATA, or ../shared/data beside the checkout):
cell (i, j) is drawn from 0.95 theta_j x_i + 0.05 / 3. The authors' C++ program on this class of machine: 70 s, theta
0.0695 against the noisy truth and 0.0711 against the clean one, memberships 0.0432.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mixmem import GDLM, Coding, Schema, Variable, align_components, rmse
from mixmem.results.simulate import draw_codes

DATA = Path(os.environ.get("MIXMEM_DATA", Path(__file__).parents[2] / "shared" / "data")) / "gdlm_demo"


def draw(n_rows: int, n_variables: int, seed: int):
    """Codes, noisy theta (3 p, 5) and memberships (n, 5) of the demonstration's upper left corner."""
    theta = _numbers(DATA / "multinomial.csv")[: 3 * n_variables]
    memberships = _numbers(DATA / "proportions.csv").T[:n_rows]
    memberships /= memberships.sum(axis=1, keepdims=True)  # the file rounds
    coding = Coding.of(Schema(tuple(Variable(f"x{j}", ("0", "1", "2"), "int") for j in range(n_variables))))
    noisy = 0.95 * theta + 0.05 / 3
    return draw_codes(coding, noisy, memberships, 0.0, np.random.default_rng(seed)), noisy, memberships


def _numbers(path: Path) -> np.ndarray:
    text = path.read_text()
    return np.loadtxt(text.replace(",", " ").splitlines())


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row a draw and refinement; theta against the noisy truth, and against the clean one where noise is found."""
    if not DATA.is_dir():
        print(f"skipped: no {DATA}; set MIXMEM_DATA to the folder of the public data sets")
        return
    for refine in (None, "integrated", "em", "gibbs"):
        for seed in range(1 if quick else 5 if refine in (None, "integrated") else 2):
            codes, noisy, memberships = draw(2000, 1000, seed)
            began = time.perf_counter()
            model = GDLM(5, alpha0=3.5, refine=refine, random_state=seed).fit(codes)
            fitted = time.perf_counter()
            found = model.transform(codes)
            ended = time.perf_counter()
            theta = model.theta_.iloc[:, 3:].to_numpy()
            order = align_components(noisy, theta)
            delta = model.contamination_
            yield {
                "refine": str(refine),
                "seed": seed,
                "theta": rmse(noisy, (1 - delta) * theta + delta / 3),
                "theta clean": rmse((noisy - 0.05 / 3) / 0.95, theta),
                "noise": delta,
                "memberships": float(np.sqrt(((found[:, order] - memberships) ** 2).mean())),
                "fit s": fitted - began,
                "rows s": ended - fitted,
            }
