"""`mixmem simulate`: a drawn table with its truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mixmem.errors import InputError
from mixmem.output.tables import membership_frame, write_alpha, write_codes, write_table, write_theta

if TYPE_CHECKING:
    from mixmem.results.simulate import Simulation


def draw(
    rows: int,
    components: int,
    *,
    variables: int,
    counts: int,
    continuous: int,
    levels: int,
    noise: float,
    missing: float,
    alpha: float,
    seed: int,
) -> Simulation:
    """A table by the paper's design, or one with numbers or missing cells."""
    from mixmem.results.simulate import simulate_gdlm, simulate_mixed

    if not (counts or continuous or missing):
        return simulate_gdlm(
            rows, variables, components, n_levels=levels, alpha=alpha, noise=noise, random_state=seed
        )  # fmt: skip
    if noise:
        raise InputError(
            "--noise is for tables of categories without missing cells; leave it out, or --counts, "
            "--continuous and --missing"
        )
    if not alpha > 0.0:
        raise InputError(f"alpha must be positive; got {alpha!r}")
    return simulate_mixed(
        rows, components, n_categorical=variables, n_count=counts, n_continuous=continuous, n_levels=levels,
        alpha=alpha, missing=missing, random_state=seed,
    )  # fmt: skip


def write_simulation(folder: Path, drawn: Simulation) -> None:
    """data.csv and the truth in the layouts of fit, under names that a fit into the same folder does not touch."""
    write_codes(folder / "data.csv", drawn.codes, drawn.coding)
    write_theta(folder / "truth_theta.csv", drawn.schema, drawn.theta)
    write_alpha(folder / "truth_alpha.csv", drawn.alpha)
    write_table(folder / "truth_memberships.csv", membership_frame(drawn.memberships, np.arange(len(drawn.codes))))
