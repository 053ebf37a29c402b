"""What a fit says of itself: records all the way, which become ``report_`` and the JSON of ``fit.json``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.errors import InputError
from mixmem.moments.estimate import MomentAccount, PlanReport, SplitAccount, Start
from mixmem.records import Record
from mixmem.refinement.admixture_start import GenotypeAccount
from mixmem.refinement.ascent import Maximum
from mixmem.refinement.choose import Refined
from mixmem.refinement.gibbs import ENOUGH, LARGEST_RHAT, Posterior
from mixmem.refinement.latent_classes import ClassAccount
from mixmem.refinement.starts import StartReport
from mixmem.results.doubts import Evidence, LookedBack, doubts, may_be_survey_weights
from mixmem.results.notices import Notice, diagnostic_failed
from mixmem.selection.alpha0 import Alpha0
from mixmem.selection.structure import Structure
from mixmem.words import listed

ALIKE = float(np.log(1.25))
"""Logarithm of the ratio up to which a given alpha0 and its estimate count as the same."""


@dataclass(frozen=True)
class Alpha0Report(Record):
    """The value, whether it was estimated, how well it is determined, and the points tried (alpha0, likelihood).

    ``checked`` is the estimate beside a value that was given, if one was asked for.
    """

    value: float
    estimated: bool
    standard_error_of_log: float | None
    at_bound: bool
    tried: list[list[float]]
    checked: float | None = None


@dataclass(frozen=True)
class ContaminationReport(Record):
    """The share of cells that are noise."""

    value: float
    estimated: bool
    standard_error: float


@dataclass(frozen=True)
class RhatReport(Record):
    """Split R-hat of theta: its median, the largest in 95 % of theta (by which convergence is judged), the largest."""

    median: float
    in_95_percent: float
    most: float


@dataclass(frozen=True)
class SampleSizeReport(Record):
    """Effective sample size of theta: of all of it (by which convergence is judged), its median, and the least."""

    all: float
    median: float
    least: float


@dataclass(frozen=True)
class ChainsReport(Record):
    """How sampling went; ``theta_prior`` is the mean of eta."""

    chains: int
    warm_up: int
    sweeps: int
    converged: bool
    rhat: RhatReport
    effective_sample_size: SampleSizeReport
    theta_prior: float


@dataclass(frozen=True)
class AscentReport(Record):
    """How the likelihood of theta and memberships was climbed: its total, and a row's mean at every round."""

    rounds: int
    log_likelihood: float
    likelihood_given_memberships: list[float]
    converged: bool
    reason: str


@dataclass(frozen=True)
class RoundsReport(Record):
    """Rounds of EM with memberships integrated out: theta's change in each, and the strength of its prior.

    ``corners`` is theta's change when all components moved together in the end, None if they did not.
    """

    changes: list[float]
    theta_prior: float | None
    corners: float | None = None


@dataclass(frozen=True)
class RefineReport(Record):
    """The method and why it was taken, the mean log-likelihood of a row before and after, and how the method fared.

    ``starts`` are those that were tried, where the first was doubtful.
    """

    method: str | None
    reason: str
    likelihood_before: float | None
    likelihood_after: float | None
    likelihood_rows: int
    starts: list[StartReport]
    gibbs: ChainsReport | None
    em: AscentReport | None
    integrated: RoundsReport | None = None


@dataclass(frozen=True)
class PassesReport(Record):
    """How a table was fitted in few passes: the rows of the sample that kinds, k and alpha0 are judged by, and the
    columns that hold more outside it, in words. Where sums of parts were merged, the names of the parts and the rounds;
    the sample is then 0 if nobody held one."""

    sampled: int
    united: list[str]
    parts: tuple[str, ...] = ()
    rounds: int = 0


@dataclass(frozen=True)
class FitReport(Record):
    """What a fit says of itself.

    ``start`` is the account of where refinement began: of moments (plan, blocks, matching, sweeps), of genotypes, of
    split rows, or of latent classes; its field ``way`` says which.
    """

    rows: int
    variables: int
    theta_rows: int
    converged: bool
    reason: str
    warnings: list[Notice]
    structure: Structure | None
    start: MomentAccount | GenotypeAccount | SplitAccount | ClassAccount
    alpha0: Alpha0Report
    contamination: ContaminationReport
    refine: RefineReport
    seed: Any
    seconds: dict[str, float]
    memberships: str = "mode"
    """What memberships are of the posterior: its "mean", or its "mode" as in models of before."""
    passes: PassesReport | None = None
    """None where every stage saw all rows."""
    agreement: list[float] | None = None
    """How far two halves of the rows agree on each component, 1 for the same; None where it was not looked at."""


def fit_report(
    table: Encoded,
    chosen: Alpha0 | None,
    refined: Refined,
    looked: LookedBack,
    *,
    free_alpha0: bool,
    settled: bool,
    seed: np.random.SeedSequence,
    seconds: dict[str, float],
    memberships: str,
) -> FitReport:
    """Return the report of a fit: of its start, of the search for alpha0 if there was one, and of its refinement.

    ``settled`` says that so many sweeps were asked for, settled or not.
    """
    start = refined.start
    assert start is not None
    converged, reason = _convergence(start, refined)
    alpha0 = _alpha0(chosen, refined, free_alpha0)
    if refined.unscored is not None:
        failed = diagnostic_failed("the likelihood of rows before and after refinement", refined.unscored)
        looked = replace(looked, failed=(*looked.failed, failed))
    contamination = _contamination(refined)
    evidence = Evidence(
        table.schema, refined.theta, refined.alpha, table.each, converged or settled, reason, refined.way,
        alpha0.at_bound, looked, _plan(start), alpha0_checked(alpha0), refined.apart, may_be_survey_weights(table),
        contamination.value if contamination.estimated else 0.0,
    )  # fmt: skip
    return FitReport(
        rows=table.n_rows,
        variables=table.n_variables,
        theta_rows=table.schema.n_rows,
        converged=converged,
        reason=reason,
        warnings=doubts(evidence),
        structure=looked.structure,
        start=start.account,  # type: ignore[arg-type]
        alpha0=alpha0,
        contamination=contamination,
        refine=_refine(refined, table.total),
        seed=seed.entropy,
        seconds=dict(seconds),
        memberships=memberships,
        agreement=None if looked.agreement is None else looked.agreement.tolist(),
    )


def _plan(start: Start) -> PlanReport | None:
    return start.account.plan if isinstance(start.account, MomentAccount) else None


def alpha0_checked(found: Alpha0Report) -> tuple[float, float] | None:
    """Return the given alpha0 and the estimate beside it, where the two differ by more than the estimate's error."""
    if found.checked is None:
        return None
    error = 2.0 * (found.standard_error_of_log or 0.0)
    return (found.value, found.checked) if abs(np.log(found.checked / found.value)) > max(error, ALIKE) else None


def of_all_rows(report: FitReport, rows: int, total: float, passes: PassesReport) -> FitReport:
    """Return the report on a sample as that on all rows, of weight ``total``."""
    warnings = list(report.warnings)
    if passes.united:
        told = f"outside the sample that the coding was learned from, {listed(passes.united, 5)}"
        warnings.append(
            Notice("levels-united", "minor", told, "they take part as all others do; check for typing errors")
        )
    refined = report.refine
    if refined.em is not None:
        likelihood = refined.em.likelihood_given_memberships[-1] * total
        refined = replace(refined, em=replace(refined.em, log_likelihood=likelihood))
    return replace(report, rows=rows, warnings=warnings, refine=refined, passes=passes)


def _convergence(start: Start, refined: Refined) -> tuple[bool, str]:
    """Return whether the last stage converged, and in what sense."""
    if refined.posterior is not None:
        found = refined.posterior
        return found.converged, (
            f"{found.n_chains} chains of {found.n_sweeps} sweeps after {found.n_warm}, R-hat at most "
            f"{found.agreement:.2f} in 95 % of theta (asked for: {LARGEST_RHAT:.2f} or less), effective sample size "
            f"{found.effective:.0f} (asked for: {1.0 / ENOUGH:.0f} or more)"
        )
    if refined.maximum is not None:
        return refined.maximum.converged, refined.maximum.reason
    return start.account.converged, start.account.reason


def _alpha0(chosen: Alpha0 | None, refined: Refined, free: bool) -> Alpha0Report:
    error = None if chosen is None else chosen.standard_error
    if free and refined.posterior is not None:
        error = float(np.log(refined.posterior.alpha_draws.sum(axis=1)).std())
    return Alpha0Report(
        value=float(refined.alpha.sum()),
        estimated=free and (chosen is not None or refined.method is not None),
        standard_error_of_log=error,
        at_bound=free and chosen is not None and chosen.at_bound and refined.posterior is None,
        checked=None if free or chosen is None else chosen.value,
        tried=[] if chosen is None else [list(point) for point in chosen.tried],
    )


def _contamination(refined: Refined) -> ContaminationReport:
    drawn = None if refined.posterior is None else refined.posterior.delta_draws
    error = 0.0 if drawn is None else float(drawn.std())
    return ContaminationReport(refined.delta, error > 0.0, error)


def _refine(refined: Refined, total: float) -> RefineReport:
    rounds = refined.integrated
    before, after = refined.scores or (None, None)
    return RefineReport(
        method=refined.method,
        reason=refined.reason,
        likelihood_before=None if before is None else float(before.mean()),
        likelihood_after=None if after is None else float(after.mean()),
        likelihood_rows=0 if after is None else len(after),
        starts=list(refined.tried),
        gibbs=None if refined.posterior is None else _chains(refined.posterior),
        em=None if refined.maximum is None else _ascent(refined.maximum, total),
        integrated=None if rounds is None else RoundsReport(list(rounds.changes), rounds.eta, rounds.corners),
    )


def _ascent(found: Maximum, total: float) -> AscentReport:
    history = list(found.history)
    return AscentReport(len(history) - 1, history[-1] * total, history, found.converged, found.reason)


def _chains(found: Posterior) -> ChainsReport:
    return ChainsReport(
        chains=found.n_chains,
        warm_up=found.n_warm,
        sweeps=found.n_sweeps,
        converged=found.converged,
        rhat=RhatReport(float(np.median(found.rhat)), found.agreement, float(found.rhat.max())),
        effective_sample_size=SampleSizeReport(found.effective, float(np.median(found.ess)), float(found.ess.min())),
        theta_prior=float(found.eta_draws.mean()),
    )


def read_report(document: dict[str, Any]) -> FitReport:
    """Return the report that a model file or fit.json holds, of this format or that of version 0.1."""
    try:
        return FitReport.from_plain(document if "start" in document else _from_0_1(document))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the report is not one that mixmem wrote ({error!r}); fit again") from error


def _from_0_1(old: dict[str, Any]) -> dict[str, Any]:
    """Return a report of version 0.1 in today's form: what a start says of itself stood beside the rest."""
    moments = {"converged": old["converged"], "reason": old["reason"]}
    if not any(old["plan"]["anchors"]):
        start = moments | {"way": "genotypes"}
    elif not old["blocks"]["each"]:
        start = moments | {"way": "split rows", "alpha0": old["alpha0"]["of_moments"]}
    else:
        start = moments | {"way": "moments", "plan": old["plan"], "blocks": old["blocks"], "sweeps": old["sweeps"]}
        start |= {"matching": old["matching"], "alpha0": old["alpha0"]["of_moments"]}
        start |= {"discrepancy": old["alpha0"]["discrepancy"]}
    refine = old["refine"] | {"starts": []}
    if chains := refine.get("gibbs"):  # the figures that convergence is judged by were not kept
        rhat, size = chains["rhat"], chains["effective_sample_size"]
        refine["gibbs"] = chains | {
            "rhat": {"in_95_percent": rhat["most"], **rhat},
            "effective_sample_size": {"all": size["median"], **size},
        }
    return old | {"start": start, "refine": refine, "warnings": [], "structure": None}
