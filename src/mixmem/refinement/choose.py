"""Refinement of the moment estimate: which kind, and what came of it.

Sampling is the most accurate where rows are short, and the slowest; in long rows EM with the memberships integrated out
comes near the limit in a few rounds. Maximum likelihood of theta and memberships together is what other programs
report; it errs more than the moments unless both rows and columns are many, so ``"auto"`` chooses it for genotypes
only, where users expect it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.errors import InputError
from mixmem.likelihood.contamination import clean_theta, noisy_theta
from mixmem.likelihood.marginal import LIKELIHOOD_ROWS, row_likelihood
from mixmem.likelihood.memberships import fit_rows
from mixmem.moments.anchors import spread_table
from mixmem.moments.estimate import Start
from mixmem.progress import Progress
from mixmem.records import Record
from mixmem.refinement.admixture import are_genotypes
from mixmem.refinement.admixture_start import apart
from mixmem.refinement.ascent import Maximum
from mixmem.refinement.gibbs import BATCH, LEAST_BATCHES, WARM_BATCHES, Posterior, Unknowns, sample_posterior, try_start
from mixmem.refinement.integrated_em import ROUNDS, Integrated, integrate_memberships
from mixmem.refinement.maximum_likelihood import CellsHeld, dirichlet_of, most_likely, numbers_refitted
from mixmem.typing import Array

LONG_ROW = 200
"""Variables up to which ``"auto"`` samples."""
MOST_SECONDS = 60.0
"""What ``"auto"`` allows sampling to take, by rough count of its work on one core a chain."""
ROWS_PER_COMPONENT = 150
"""Rows per component that ``"auto"`` wants for rounds of integrated EM: with fewer theta gains still, but memberships
lose, since rows have too much of a say in the theta that judges them."""
MOST_ROUND_SECONDS = 15.0
"""What it allows rounds of integrated EM, counted alike on one core."""

RIVAL = 10.0
"""Log-likelihood of all rows up to which another maximum counts as nearly as large: 20,000 times less likely."""


@dataclass(frozen=True)
class Refined:
    """Theta (rows, k) without noise, alpha (k,) and the contamination delta after refinement, and how they came about.

    ``likelihood`` is the mean log-likelihood of a row before and after, memberships integrated out, on ``n_scored``
    rows; None without refinement. ``start`` is the one that was taken, ``tried`` all of them if there were several.
    """

    method: str | None
    reason: str
    theta: Array
    alpha: Array
    delta: float
    posterior: Posterior | None = None
    maximum: Maximum | None = None
    integrated: Integrated | None = None
    likelihood: tuple[float, float] | None = None
    n_scored: int = 0
    start: Start | None = None
    tried: Sequence[StartReport] = ()
    apart: float = 0.0
    """How far memberships lie from those that another start ended at, with a likelihood that is nearly as large."""
    unscored: Exception | None = None
    """Why the likelihoods before and after could not be computed."""

    @property
    def likeliest(self) -> Array | None:
        """The rows' likeliest memberships (n, k), if the likelihood was climbed."""
        return None if self.maximum is None else self.maximum.memberships

    def ordered(self) -> Refined:
        """Return the same with components by falling alpha."""
        order = np.argsort(-self.alpha, kind="stable")
        return replace(
            self,
            theta=self.theta[:, order],
            alpha=self.alpha[order],
            posterior=None if self.posterior is None else self.posterior.ordered(order),
            maximum=None if self.maximum is None else self.maximum.ordered(order),
            integrated=None if self.integrated is None else self.integrated.ordered(order),
        )


def seconds_for(n_cells: int, k: int) -> float:
    """Roughly the seconds of a sweep of the sampler, as measured once: a decision may not depend on the clock."""
    return n_cells * (8.0 + 2.4 * k) * 1e-9


def round_seconds(n_cells: int, k: int) -> float:
    """Roughly the seconds of a round of integrated EM, as measured once."""
    return n_cells * (12.0 + 3.0 * k + 0.9 * k * k) * 1e-9


def choose_method(refine: str | None, table: Encoded, k: int) -> tuple[str | None, str]:
    """Return what ``refine`` stands for with this table, and why."""
    n_rows, n_variables = table.codes.shape
    if refine == "gibbs" and not table.whole:
        raise InputError(
            "refine='gibbs' samples rows, and weights that are no whole numbers say nothing of how many there are; "
            "expected refine=None or 'em'"
        )
    if refine == "integrated":
        _refuse_to_integrate(table)
    if refine != "auto":
        return refine, "asked for"
    if k > 1 and are_genotypes(table.schema):
        return "em", "genotypes: the likelihood that programs for ancestry maximise and report"
    if k == 1:
        return None, "one component has nothing to refine"
    if n_variables > LONG_ROW:
        return _in_long_rows(table, k)
    if not table.whole:
        return None, "rows have weights that are no whole numbers, so there are no rows to sample"
    n_rows = n_rows if table.weights is None else int(table.weights.sum())
    least = (WARM_BATCHES + LEAST_BATCHES) * BATCH * seconds_for(n_rows * n_variables, k)
    if least > MOST_SECONDS:
        return None, f"sampling {n_rows} rows would take about {least / 60:.0f} minutes; ask for it with refine='gibbs'"
    return "gibbs", f"in rows of {n_variables} variables, at most {LONG_ROW}, sampling is the most accurate"


def _in_long_rows(table: Encoded, k: int) -> tuple[str | None, str]:
    """Return the method for rows of more than LONG_ROW variables, and why."""
    n_rows, n_variables = table.codes.shape
    near = f"in rows of {n_variables} variables, more than {LONG_ROW}, the sweeps are near the limit"
    if table.schema.has("number").any():
        return None, f"{near}; refine='gibbs' would add some per cent of accuracy and the contamination"
    if n_rows < ROWS_PER_COMPONENT * k:
        return None, f"{near}, and {n_rows} rows are too few for EM to gain theta without a loss to memberships"
    seconds = ROUNDS * round_seconds(n_rows * n_variables, k)
    if seconds > MOST_ROUND_SECONDS:
        return None, (
            f"rounds over {n_rows} rows of {n_variables} variables would take about {seconds:.0f} seconds and add some "
            "per cent of accuracy; ask for them with refine='integrated'"
        )
    return "integrated", (
        f"in rows of {n_variables} variables, more than {LONG_ROW}, EM with the memberships integrated out comes "
        "nearest to the limit for its time"
    )


def _refuse_to_integrate(table: Encoded) -> None:
    """Refuse rounds of integrated EM on columns of numbers."""
    numbers = np.flatnonzero(table.schema.has("number"))
    if len(numbers):
        raise InputError(
            f"refine='integrated' takes columns of categories, and {table.schema.names[numbers[0]]!r} holds numbers; "
            "expected refine='auto', 'gibbs' or None"
        )


def refuse_refinement(refine: str | None) -> str:
    """Return why a fit in few passes is not refined; refuse if that was asked for."""
    if refine in PASSES_OVER_ROWS:
        what = PASSES_OVER_ROWS[refine]
        raise InputError(
            f"refine={refine!r} {what} of all rows in memory, and a fit in few passes (passes='few', or a file larger "
            "than the memory limit) does not hold them; expected refine=None or 'auto', or a part of the rows"
        )
    return "a fit in few passes does not hold all rows, which refinement needs"


PASSES_OVER_ROWS = {
    "gibbs": "samples the components of every cell",
    "integrated": "passes several times over the cells",
    "em": "climbs with the memberships",
}
"""What each refinement does with rows."""


def _sorted_rows(table: Encoded) -> Encoded:
    """Return the table with every row as often as it stands for, in an order that depends on what rows hold alone."""
    whole = table.repeated("sampling")
    return whole.take(np.lexsort(whole.codes.T[::-1]))


@dataclass(frozen=True)
class StartReport(Record):
    """A start that was tried, and the mean log-likelihood of a row that it led to."""

    way: str
    log_likelihood: float


def refine(
    table: Encoded,
    starts: Sequence[Start],
    method: str | None,
    reason: str,
    *,
    free_alpha0: bool,
    contamination: str | float,
    seed: np.random.SeedSequence,
    progress: Progress,
    everywhere: CellsHeld | None = None,
) -> Refined:
    """Refine theta (rows, k) and alpha (k,) from where they start; they describe the table as it is, noise included.

    ``contamination`` is the share of noise cells, or "auto": drawn by the sampler, zero without it. If the start
    brought memberships, alpha comes from the most likely ones. Sampling takes the likeliest of several starts, after
    some sweeps from each. ``everywhere`` as in :func:`mixmem.refinement.maximum_likelihood.numbers_refitted`.
    """
    delta = 0.0 if isinstance(contamination, str) else float(contamination)
    unknowns = Unknowns(free_alpha0, contamination == "auto", delta)
    rows = _sorted_rows(table) if method == "gibbs" else table
    start: Start = starts[0]
    if method is not None and len(starts) > 1 and start.memberships is not None:
        return _likeliest_maximum(table, starts, method, reason, unknowns, seed=seed, progress=progress)
    tried: list[StartReport] = []
    if len(starts) > 1:
        start, tried = _likeliest(rows, starts, unknowns, seed, progress)
    if method is None:
        theta = numbers_refitted(table, start.theta, start.alpha, progress=progress, everywhere=everywhere)
        found = Refined(None, reason, clean_theta(theta, delta, table.schema), start.alpha, delta)
    else:
        found = _refine_from(table, rows, start, method, reason, unknowns, seed=seed, progress=progress)
    return replace(found, start=start, tried=tried)


def _likeliest(
    rows: Encoded, starts: Sequence[Start], unknowns: Unknowns, seed: np.random.SeedSequence, progress: Progress
) -> tuple[Start, list[StartReport]]:
    """Return the start under which rows are likeliest after a short chain, at its end."""
    scored = replace(spread_table(rows, LIKELIHOOD_ROWS), weights=None)
    reached, tried = [], []
    with progress.stage("starts", len(starts)) as step:
        for start in starts:
            theta, alpha = try_start(rows, start.theta, start.alpha, unknowns, seed=seed)
            reached.append(replace(start, theta=theta, alpha=alpha))
            tried.append(StartReport(start.account.way, float(row_likelihood(scored, theta, alpha).mean())))
            step(1)
    return reached[int(np.argmax([each.log_likelihood for each in tried]))], tried


def _likeliest_maximum(
    table: Encoded,
    starts: Sequence[Start],
    method: str,
    reason: str,
    unknowns: Unknowns,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> Refined:
    """Return the likeliest of the maxima that starts lead to, and how far those nearly as likely lie apart from it."""
    ends, values = [], []
    for start in starts:
        found = _refine_from(table, table, start, method, reason, unknowns, seed=seed, progress=progress)
        assert found.maximum is not None
        ends.append(replace(found, start=start))
        values.append(found.maximum.history[-1])
    best = int(np.argmax(values))
    rivals = [end for end, value in zip(ends, values, strict=True) if (values[best] - value) * table.total < RIVAL]
    own = ends[best].maximum
    assert own is not None
    return replace(
        ends[best],
        tried=[StartReport(start.account.way, value) for start, value in zip(starts, values, strict=True)],
        apart=max(apart(own.memberships, end.maximum.memberships) for end in rivals if end.maximum is not None),
    )


def _refine_from(
    table: Encoded,
    rows: Encoded,
    start: Start,
    method: str,
    reason: str,
    unknowns: Unknowns,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> Refined:
    """Refine from one start; ``rows`` are the table's as they are sampled."""
    schema, theta, alpha, delta = table.schema, start.theta, start.alpha, unknowns.delta
    if start.memberships is not None:
        likeliest = most_likely(table, theta, start.memberships, progress=progress)
        found = dirichlet_of(likeliest.memberships, table.weights)
        alpha = found if unknowns.alpha0 else found * alpha.sum() / found.sum()
        return Refined(method, reason, likeliest.theta, alpha, 0.0, maximum=likeliest)
    if method == "integrated":  # a sharp likelihood of long rows would take longer than all rounds
        rounds = integrate_memberships(table, theta, alpha, progress=progress)
        clean = clean_theta(rounds.theta, delta, schema)
        return Refined(method, reason, clean, rounds.alpha, delta, integrated=rounds)
    scored = replace(spread_table(rows, LIKELIHOOD_ROWS), weights=None)
    began = theta, alpha
    posterior = maximum = None
    if method == "gibbs":
        posterior = sample_posterior(rows, theta, alpha, unknowns, seed=seed, progress=progress)
        clean, alpha, delta = posterior.theta, posterior.alpha, posterior.delta
    else:
        memberships = fit_rows(rows, theta, alpha, memberships="mode", progress=progress).memberships
        maximum = most_likely(table, theta, memberships, progress=progress)
        clean = clean_theta(maximum.theta, delta, schema)
    refined = Refined(method, reason, clean, alpha, delta, posterior, maximum, n_scored=scored.n_rows)
    try:
        before, after = (
            float(row_likelihood(scored, *point).mean())
            for point in (began, (noisy_theta(clean, delta, schema), alpha))
        )
    except Exception as error:  # what was refined is not lost to a figure about it
        return replace(refined, n_scored=0, unscored=error)
    return replace(refined, likelihood=(before, after))
