"""Refinement of the moment estimate: which kind, and what came of it.

Sampling is the most accurate where rows are short, and the slowest; in long rows EM with the memberships integrated out
comes near the limit in a few rounds. Maximum likelihood of theta and memberships together is what other programs
report; it errs more than the moments unless both rows and columns are many, so ``"auto"`` chooses it for genotypes
only, where users expect it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.errors import InputError
from mixmem.likelihood.contamination import clean_theta, noisy_theta
from mixmem.likelihood.marginal import LIKELIHOOD_ROWS, row_likelihood
from mixmem.likelihood.memberships import fit_rows
from mixmem.likelihood.table import LikelihoodTable
from mixmem.moments.estimate import Start
from mixmem.progress import Progress
from mixmem.refinement.admixture import are_genotypes
from mixmem.refinement.admixture_start import apart
from mixmem.refinement.ascent import Maximum
from mixmem.refinement.corners import can_move
from mixmem.refinement.em_of_all_rows import RoundSums, most_likely_of_all
from mixmem.refinement.gibbs import (
    BATCH,
    LEAST_BATCHES,
    WARM_BATCHES,
    Posterior,
    Unknowns,
    sample_posterior,
    seconds_for,
)
from mixmem.refinement.integrated_em import ROUNDS, Integrated, integrate_memberships
from mixmem.refinement.maximum_likelihood import CellsHeld, dirichlet_of, most_likely, numbers_refitted
from mixmem.refinement.starts import RIVAL, Likely, StartReport, Tried, fell_short, likeliest_start, some_rows
from mixmem.typing import Array

LONG_ROW = 200
"""Variables up to which ``"auto"`` samples."""
MOST_SECONDS = 30.0
"""What ``"auto"`` allows sampling to take, by rough count of its work on one core a chain."""
ROWS_PER_COMPONENT = 400
"""Rows per component that ``"auto"`` wants for rounds of integrated EM: with fewer theta gains still, but memberships
lose, since rows have too much of a say in the theta that judges them."""
MOST_ROUND_SECONDS = 15.0
"""What it allows rounds of integrated EM, counted alike on one core."""


@dataclass(frozen=True)
class Refined:
    """Theta (rows, k) without noise, alpha (k,) and the contamination delta after refinement, and how they came about.

    ``scores`` are log-likelihoods of some rows before and after, memberships integrated out; None without refinement.
    ``start`` is the one that was taken, with the account of the moments where it was learned from half of the rows,
    ``way`` what it was learned from, ``tried`` all of them if there were several.
    """

    method: str | None
    reason: str
    theta: Array
    alpha: Array
    delta: float
    posterior: Posterior | None = None
    maximum: Maximum | None = None
    integrated: Integrated | None = None
    scores: tuple[Array, Array] | None = None
    start: Start | None = None
    way: str = ""
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


def round_seconds(n_cells: int, k: int) -> float:
    """Roughly the seconds of a round of integrated EM, as measured once."""
    return n_cells * (20.0 + 5.0 * k + 1.5 * k * k) * 1e-9


class Choice(NamedTuple):
    """What ``refine`` stands for with a table, why, and how many rounds of integrated EM it means."""

    method: str | None
    reason: str
    rounds: int = ROUNDS


def choose_method(refine: str | None, table: Encoded, k: int) -> Choice:
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
        return Choice(refine, "asked for")
    if k > 1 and are_genotypes(table.schema):
        return Choice("em", "genotypes: the likelihood that programs for ancestry maximise and report")
    if k == 1:
        return Choice(None, "one component has nothing to refine")
    if n_variables > LONG_ROW:
        return _in_long_rows(table, k)
    if not table.whole:
        return Choice(None, "rows have weights that are no whole numbers, so there are no rows to sample")
    n_rows = n_rows if table.weights is None else int(table.weights.sum())
    least = (WARM_BATCHES + LEAST_BATCHES) * BATCH * seconds_for(n_rows * n_variables, k)
    if least > MOST_SECONDS:
        time = f"{least:.0f} seconds" if least < 100 else f"{least / 60:.0f} minutes"
        return Choice(None, f"sampling {n_rows} rows would take about {time}; ask for it with refine='gibbs'")
    return Choice("gibbs", f"in rows of {n_variables} variables, at most {LONG_ROW}, sampling is the most accurate")


def _in_long_rows(table: Encoded, k: int) -> Choice:
    """Return the method for rows of more than LONG_ROW variables, and why."""
    n_rows, n_variables = table.codes.shape
    near = f"in rows of {n_variables} variables, more than {LONG_ROW}, the sweeps are near the limit"
    if table.schema.has("number").any():
        return Choice(None, f"{near}; refine='gibbs' would add some per cent of accuracy and the contamination")
    seconds = ROUNDS * round_seconds(n_rows * n_variables, k)
    if n_rows < ROWS_PER_COMPONENT * k:
        why = f"{near}, and {n_rows} rows are too few for EM to gain theta without a loss to memberships"
    elif seconds > MOST_ROUND_SECONDS:
        why = (
            f"rounds over {n_rows} rows of {n_variables} variables would take about {seconds:.0f} seconds and add some "
            "per cent of accuracy; ask for them with refine='integrated'"
        )
    else:
        return Choice(
            "integrated",
            f"in rows of {n_variables} variables, more than {LONG_ROW}, EM with the memberships integrated out comes "
            "nearest to the limit for its time",
        )
    if can_move(table, k):
        return Choice("integrated", f"rows of {n_variables} variables tell where the components' corners lie; {why}", 0)
    return Choice(None, why)


def _refuse_to_integrate(table: Encoded) -> None:
    """Refuse rounds of integrated EM on columns of numbers."""
    numbers = np.flatnonzero(table.schema.has("number"))
    if len(numbers):
        raise InputError(
            f"refine='integrated' takes columns of categories, and {table.schema.names[numbers[0]]!r} holds numbers; "
            "expected refine='auto', 'gibbs' or None"
        )


def choose_without_rows(refine: str | None, *, passes: bool) -> tuple[str | None, str]:
    """Return what ``refine`` stands for where rows are not held, and why; refuse what needs them.

    ``passes`` says whether rows can be passed over again: then EM can be had, a pass per round.
    """
    if refine == "em" and passes:
        return "em", "asked for; every round is a pass over all rows"
    if refine in PASSES_OVER_ROWS:
        what = PASSES_OVER_ROWS[refine]
        kept = "refine=None, 'auto' or 'em'" if passes else "refine=None or 'auto'"
        raise InputError(
            f"refine={refine!r} {what} of all rows in memory, and a fit in few passes (passes='few', or a file larger "
            f"than the memory limit) does not hold them; expected {kept}, or a part of the rows"
        )
    return None, "a fit in few passes does not hold all rows, which refinement needs"


PASSES_OVER_ROWS = {
    "gibbs": "samples the components of every cell",
    "integrated": "passes several times over the cells",
    "em": "climbs with the memberships",
}
"""What each refinement does with rows."""


def rows_in_order(table: Encoded) -> Encoded:
    """Return the table with every row as often as it stands for, in an order that depends on what rows hold alone."""
    whole = table.repeated("sampling")
    return whole.take(np.lexsort(whole.codes.T[::-1]))


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
    integrated_rounds: int = ROUNDS,
    agreed: bool = False,
    everywhere: CellsHeld | None = None,
    rounds: RoundSums | None = None,
    total: float = 0.0,
) -> Refined:
    """Refine theta (rows, k) and alpha (k,) from where they start; they describe the table as it is, noise included.

    ``contamination`` is the share of noise cells, or "auto": drawn by the sampler, zero without it. If the start
    brought memberships, alpha comes from the most likely ones. Sampling takes the likeliest of several starts, after
    some sweeps from each; ``agreed`` says that they are expected to lead to one answer. ``everywhere`` as in
    :func:`mixmem.refinement.maximum_likelihood.numbers_refitted`. Where the table is a sample, EM goes on over all
    rows, of weight ``total``, by ``rounds``.
    """
    delta = 0.0 if isinstance(contamination, str) else float(contamination)
    unknowns = Unknowns(free_alpha0, contamination == "auto", delta)
    rows = rows_in_order(table) if method == "gibbs" else table
    start: Start = starts[0]
    if method is not None and len(starts) > 1 and start.memberships is not None:
        return _likeliest_maximum(table, starts, method, reason, unknowns, seed=seed, progress=progress)
    tried = Tried(start, start.account.way, [])
    if len(starts) > 1:
        tried = likeliest_start(rows, starts, unknowns, agreed=agreed, seed=seed, progress=progress)
        start = tried.best
    if method is None:
        theta = numbers_refitted(table, start.theta, start.alpha, progress=progress, everywhere=everywhere)
        found = Refined(None, reason, clean_theta(theta, delta, table.schema), start.alpha, delta)
    else:
        going_on = partial(
            _refine_from, table, rows, method=method, reason=reason, unknowns=unknowns, seed=seed, progress=progress,
            rounds=integrated_rounds,
        )  # fmt: skip
        found = going_on(start)
        if method != "integrated" and start.memberships is None:  # in long rows this would take longer than the rounds
            likely = partial(row_likelihood, LikelihoodTable(some_rows(rows, LIKELIHOOD_ROWS)))
            found = _with_scores(found, start, likely, table)
            reached = tried.reached
            if reached is not None and found.scores and fell_short(found.scores[1], reached, likely, rows.total):
                start = reached
                found = _with_scores(going_on(start), start, likely, table)
    if rounds is not None and found.maximum is not None:
        maximum = most_likely_of_all(table, found.maximum.theta, rounds, total, progress=progress)
        found = replace(found, theta=clean_theta(maximum.theta, delta, table.schema), maximum=maximum)
    return replace(found, start=start, way=tried.way, tried=tried.reports, apart=tried.apart)


def _with_scores(found: Refined, start: Start, likely: Likely, table: Encoded) -> Refined:
    """Return the same with how likely some rows are under the start and the end, noise included."""
    try:
        before = likely(start.theta, start.alpha)
        return replace(found, scores=(before, likely(noisy_theta(found.theta, found.delta, table.schema), found.alpha)))
    except Exception as error:  # what was refined is not lost to a figure about it
        return replace(found, unscored=error)


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
        ends.append(replace(found, start=start, way=start.account.way))
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
    rounds: int = ROUNDS,
) -> Refined:
    """Refine from one start; ``rows`` are the table's as they are sampled."""
    schema, theta, alpha, delta = table.schema, start.theta, start.alpha, unknowns.delta
    if start.memberships is not None:
        likeliest = most_likely(table, theta, start.memberships, progress=progress)
        fitted = dirichlet_of(likeliest.memberships, table.weights)
        alpha = fitted if unknowns.alpha0 else fitted * alpha.sum() / fitted.sum()
        return Refined(method, reason, likeliest.theta, alpha, 0.0, maximum=likeliest)
    if method == "integrated":
        found = integrate_memberships(table, theta, alpha, progress=progress, rounds=rounds)
        return Refined(method, reason, clean_theta(found.theta, delta, schema), found.alpha, delta, integrated=found)
    if method == "gibbs":
        drawn = sample_posterior(rows, theta, alpha, unknowns, seed=seed, progress=progress)
        return Refined(method, reason, drawn.theta, drawn.alpha, drawn.delta, posterior=drawn)
    memberships = fit_rows(rows, theta, alpha, memberships="mode", progress=progress).memberships
    maximum = most_likely(table, theta, memberships, progress=progress)
    return Refined(method, reason, clean_theta(maximum.theta, delta, schema), alpha, delta, maximum=maximum)
