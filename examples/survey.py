"""A survey on five-point scales: find response profiles, look at what speaks against them, compare groups."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from mixmem import GDLM, simulate_gdlm
from mixmem.plots import ComparePlot


def main(folder: Path) -> None:
    """Simulate a survey, fit it, compare two groups, and write the picture."""
    drawn = simulate_gdlm(1_500, 20, 3, n_levels=5, alpha=0.3, random_state=1)
    rng = np.random.default_rng(0)
    answers = drawn.frame.rename(columns=lambda name: f"item {name[1:]}").astype(float)
    answers = answers.mask(rng.random(answers.shape) < 0.05)  # one answer in twenty is missing
    answers["city"] = np.where(rng.random(len(answers)) < 0.2 + 0.5 * drawn.memberships[:, 0], "city", "country")

    model = GDLM(3, variables={"city": "ignore"}, random_state=0).fit(answers)
    print("converged:", model.report_.converged)
    print("speaks against it:", [warning.text for warning in model.report_.warnings] or "nothing")
    print(model.goodness_of_fit(answers).summary)

    found = model.compare(answers, by="city")
    print(found.summary)
    print(found.means.round(3).to_string(index=False))
    folder.mkdir(parents=True, exist_ok=True)
    ComparePlot(found.means, "lives in").plot().figure_.savefig(folder / "survey.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
