"""Refinement of the moment estimate: which kind, and what came of it.

Sampling is the most accurate at every shape measured, and the slowest; where rows are long the sweeps leave it little
to gain. Maximum likelihood of theta and memberships together is what other programs report; it errs more than the
moments unless both rows and columns are many, so it is never chosen, only asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.em import Maximum, maximise
from mixmem.gibbs import BATCH, LEAST_BATCHES, WARM_BATCHES, Posterior, Unknowns, clean_theta, sample_posterior
from mixmem.memberships import fit_rows
from mixmem.moments import Array
from mixmem.plan import spread_rows
from mixmem.progress import Progress
from mixmem.schema import Schema
from mixmem.select import LIKELIHOOD_ROWS, log_marginal

METHODS = (None, "auto", "gibbs", "em")
LONG_ROW = 200
"""Variables from which on ``"auto"`` leaves the moment estimate as it is."""
MOST_SECONDS = 60.0
"""What ``"auto"`` allows sampling to take, by rough count of its work on one core a chain."""


@dataclass(frozen=True)
class Refined:
    """Theta (rows, k) without noise, alpha (k,) and the contamination delta after refinement, and how they came about.

    ``likelihood`` is the mean log-likelihood of a row before and after, memberships integrated out, on ``n_scored``
    rows; None without refinement.
    """

    method: str | None
    reason: str
    theta: Array
    alpha: Array
    delta: float
    posterior: Posterior | None = None
    maximum: Maximum | None = None
    likelihood: tuple[float, float] | None = None
    n_scored: int = 0


def seconds_for(n_cells: int, k: int) -> float:
    """Roughly the seconds of a sweep of the sampler, as measured once: a decision may not depend on the clock."""
    return n_cells * (8.0 + 2.4 * k) * 1e-9


def choose_method(refine: str | None, shape: tuple[int, ...], k: int) -> tuple[str | None, str]:
    """What ``refine`` stands for in a table of this shape (n, p), and why."""
    n_rows, n_variables = shape
    if refine != "auto":
        return refine, "asked for"
    if k == 1:
        return None, "one component has nothing to refine"
    if n_variables > LONG_ROW:
        return None, (
            f"in rows of {n_variables} variables, more than {LONG_ROW}, the sweeps are near the limit; "
            "refine='gibbs' would add some per cent of accuracy and the contamination"
        )
    least = (WARM_BATCHES + LEAST_BATCHES) * BATCH * seconds_for(n_rows * n_variables, k)
    if least > MOST_SECONDS:
        return None, f"sampling {n_rows} rows would take about {least / 60:.0f} minutes; ask for it with refine='gibbs'"
    return "gibbs", f"in rows of {n_variables} variables, at most {LONG_ROW}, sampling is the most accurate"


def refine(
    codes: NDArray[np.unsignedinteger],
    schema: Schema,
    theta: Array,
    alpha: Array,
    method: str | None,
    reason: str,
    *,
    free_alpha0: bool,
    contamination: str | float,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> Refined:
    """Refine theta (rows, k) and alpha (k,), which describe the table as it is, noise included.

    ``contamination`` is the share of noise cells, or "auto": drawn by the sampler, zero without it.
    """
    delta = 0.0 if isinstance(contamination, str) else float(contamination)
    if method is None:
        return Refined(None, reason, clean_theta(theta, delta, schema), alpha, delta)
    scored = spread_rows(codes, LIKELIHOOD_ROWS)
    before = float(log_marginal(scored, schema, theta, alpha).mean())
    posterior = maximum = None
    if method == "gibbs":
        unknowns = Unknowns(free_alpha0, contamination == "auto", delta)
        posterior = sample_posterior(codes, schema, theta, alpha, unknowns, seed=seed, progress=progress)
        clean, alpha, delta = posterior.theta, posterior.alpha, posterior.delta
    else:
        start = fit_rows(codes, schema, theta, alpha, progress=progress).memberships
        maximum = maximise(codes, schema, theta, start, progress=progress)
        clean = clean_theta(maximum.theta, delta, schema)
    after = float(log_marginal(scored, schema, noisy_theta(clean, delta, schema), alpha).mean())
    return Refined(method, reason, clean, alpha, delta, posterior, maximum, (before, after), len(scored))


def noisy_theta(theta: Array, delta: float, schema: Schema) -> Array:
    """Probabilities of levels (rows, k) with a share delta of uniform noise: (1 - delta) theta + delta / d.

    >>> import numpy as np
    >>> from mixmem.schema import Schema, Variable
    >>> noisy_theta(np.array([[0.0], [1.0]]), 0.1, Schema((Variable("a", ("no", "yes")),)))
    array([[0.05],
           [0.95]])
    """
    levels = np.repeat(schema.n_levels, schema.n_levels)[:, None]
    return np.asarray((1.0 - delta) * theta + delta / levels)
