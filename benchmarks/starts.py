"""More components than anchors can hold, and unmixed rows: 16 binary items, 20,000 rows.

"mixed": k = 10, alpha_h = 0.1, alpha0 unknown, against the best of 20 random starts of EM for theta and memberships, by
the mean log-likelihood of a row (memberships integrated out; EM's alpha from its memberships). "unmixed": k = 7 and 10,
alpha0 = 0.01, given, against latent classes by StepMix (20 starts), of which it is the mixed version: those have the
likelihood of alpha0 = 0.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from mixmem import GDLM, Simulation, row_likelihood, simulate_gdlm
from mixmem.engine.local import threads
from mixmem.likelihood.memberships import fit_rows
from mixmem.progress import Progress
from mixmem.refinement.maximum_likelihood import dirichlet_of, most_likely

ROWS, ITEMS, STARTS = 20_000, 16, 20


def _best_em(drawn: Simulation, k: int, starts: int) -> float:
    """The best mean log-likelihood of a row over random starts of EM."""
    found = []
    for seed in range(starts):
        rng = np.random.default_rng([seed, 6])
        share = rng.uniform(0.05, 0.95, (ITEMS, k))
        theta = np.stack([share, 1.0 - share], axis=1).reshape(-1, k)
        rows = fit_rows(drawn.encoded, theta, np.full(k, 0.1)).memberships
        at = most_likely(drawn.encoded, theta, rows, progress=Progress())
        found.append(float(row_likelihood(drawn.encoded, at.theta, dirichlet_of(at.memberships)).mean()))
    return max(found)


def _stepmix(drawn: Simulation, k: int, starts: int) -> float:
    """Mean log-likelihood of a row under latent classes by StepMix."""
    from stepmix.stepmix import StepMix

    model = StepMix(n_components=k, measurement="bernoulli", n_init=starts, random_state=0, progress_bar=0, verbose=0)
    return float(model.fit(drawn.codes.astype(float)).score(drawn.codes.astype(float)))


def run(quick: bool = False) -> Iterator[dict[str, float | str]]:
    """One row per case and table."""
    starts = 3 if quick else STARTS
    for name, k, strength, alpha0 in (
        ("mixed", 10, 0.1, "auto"),
        ("unmixed", 7, 0.01 / 7, 0.01),
        ("unmixed", 10, 0.001, 0.01),
    ):
        for seed in range(1 if quick else 2):
            drawn = simulate_gdlm(ROWS, ITEMS, k, n_levels=2, alpha=strength, random_state=seed + 20)
            began = time.process_time()
            model = GDLM(k, alpha0=alpha0, random_state=seed).fit(drawn.encoded)
            seconds = time.process_time() - began
            with threads(None):
                other = (_best_em if name == "mixed" else _stepmix)(drawn, k, starts)
                truth = float(row_likelihood(drawn.encoded, drawn.theta, drawn.alpha).mean())
            yield {
                "table": f"{name}, k = {k}, {seed}",
                "likelihood": model.score(drawn.encoded),
                "of the other": other,
                "of the truth": truth,
                "CPU s": seconds,
                "start": model.report_.start.way,
                "says": ", ".join(notice.code for notice in model.report_.warnings),
            }
