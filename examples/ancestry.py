"""Genomes of three populations and of their mixtures: ancestry proportions beside the truth."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mixmem import GDLM, align_components
from mixmem.plots import colour

K, SAMPLES, VARIANTS, APART = 3, 240, 2_000, 0.08
"""Populations, genomes, variants, and F_ST between populations."""


def main(folder: Path) -> None:
    """Draw genotypes by Balding and Nichols, fit them, and draw the proportions."""
    rng = np.random.default_rng(3)
    ancestral = rng.uniform(0.1, 0.9, VARIANTS)
    spread = (1 - APART) / APART
    frequencies = rng.beta(ancestral * spread, (1 - ancestral) * spread, size=(K, VARIANTS))
    truth = np.concatenate([np.repeat(np.eye(K), 40, axis=0), rng.dirichlet(np.full(K, 0.7), SAMPLES - 40 * K)])
    copies = rng.binomial(2, truth @ frequencies)
    varied = copies.std(axis=0) > 0
    table = pd.DataFrame(copies[:, varied], columns=[f"rs{j}" for j in np.flatnonzero(varied)])

    model = GDLM(K, variables=dict.fromkeys(table.columns, "dosage"), random_state=0).fit(table)
    found = model.memberships_
    found = found[:, align_components(truth, found)]
    print(f"proportions are off by {np.sqrt(((found - truth) ** 2).mean()):.3f} (root mean square)")

    figure = Figure(figsize=(10, 4), dpi=120, layout="constrained")
    order = np.lexsort((-truth.max(axis=1), truth.argmax(axis=1)))
    for axes, shares, name in zip(figure.subplots(2, 1), (truth, found), ("truth", "estimate"), strict=True):
        axes.stackplot(np.arange(SAMPLES), shares[order].T, colors=[colour(h) for h in range(K)], step="mid")
        axes.set(xlim=(0, SAMPLES - 1), ylim=(0, 1), ylabel=name, xticks=[])
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "ancestry.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
