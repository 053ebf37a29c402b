"""More components than anchors can hold, and unmixed rows: 16 binary items, 20,000 rows.

"mixed": k = 10, alpha_h = 0.1, alpha0 unknown, against the best of 20 random starts of EM for theta and memberships, by
the mean log-likelihood of a row (memberships integrated out; EM's alpha from its memberships). "unmixed": k = 7 and 10,
alpha0 = 0.01, given, against latent classes by StepMix (20 starts), of which it is the mixed version: those have the
likelihood of alpha0 = 0. The other maximizes the likelihood of the rows it is scored by, so both are scored on as many
new rows, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mixmem import GDLM, Encoded, Simulation, row_likelihood, simulate_gdlm
from mixmem.engine.local import threads
from mixmem.likelihood.memberships import fit_rows
from mixmem.progress import Progress
from mixmem.refinement.maximum_likelihood import dirichlet_of, most_likely
from mixmem.results.simulate import draw_codes

ROWS, ITEMS, STARTS = 20_000, 16, 20


def _best_em(drawn: Simulation, new: Encoded, k: int, starts: int) -> tuple[float, float]:
    """The best mean log-likelihood of a row over random starts of EM, and that of new rows."""
    best, fitted = -np.inf, (drawn.theta, drawn.alpha)
    for seed in range(starts):
        rng = np.random.default_rng([seed, 6])
        share = rng.uniform(0.05, 0.95, (ITEMS, k))
        theta = np.stack([share, 1.0 - share], axis=1).reshape(-1, k)
        rows = fit_rows(drawn.encoded, theta, np.full(k, 0.1)).memberships
        at = most_likely(drawn.encoded, theta, rows, progress=Progress())
        alpha = dirichlet_of(at.memberships)
        found = float(row_likelihood(drawn.encoded, at.theta, alpha).mean())
        if found > best:
            best, fitted = found, (at.theta, alpha)
    return best, float(row_likelihood(new, *fitted).mean())


def _stepmix(drawn: Simulation, new: Encoded, k: int, starts: int) -> tuple[float, float]:
    """Mean log-likelihood of a row, and of a new row, under latent classes by StepMix."""
    from stepmix.stepmix import StepMix

    model = StepMix(n_components=k, measurement="bernoulli", n_init=starts, random_state=0, progress_bar=0, verbose=0)
    model.fit(drawn.codes.astype(float))
    return float(model.score(drawn.codes.astype(float))), float(model.score(new.codes.astype(float)))


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
            rng = np.random.default_rng([seed, 7])
            codes = draw_codes(drawn.coding, drawn.theta, rng.dirichlet(drawn.alpha, ROWS), 0.0, rng)
            new = replace(drawn.encoded, codes=codes)
            began = time.process_time()
            model = GDLM(k, alpha0=alpha0, random_state=seed).fit(drawn.encoded)
            seconds = time.process_time() - began
            with threads(None):
                other, other_new = (_best_em if name == "mixed" else _stepmix)(drawn, new, k, starts)
                truth = float(row_likelihood(drawn.encoded, drawn.theta, drawn.alpha).mean())
            yield {
                "table": f"{name}, k = {k}, {seed}",
                "likelihood": model.score(drawn.encoded),
                "of the other": other,
                "of the truth": truth,
                "new rows": model.score(new),
                "of the other, new": other_new,
                "CPU s": seconds,
                "start": model.report_.start.way,
                "says": ", ".join(notice.code for notice in model.report_.warnings),
            }
