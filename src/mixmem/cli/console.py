"""What commands print on standard output: short texts."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mixmem.cli.wording import as_typed
from mixmem.moments.estimate import MomentAccount
from mixmem.output.tables import component_names
from mixmem.results.distinctive import spread_of_variables
from mixmem.results.fit_report import FitReport
from mixmem.results.notices import Notice
from mixmem.words import plain_number, quoted

if TYPE_CHECKING:
    from mixmem.cli.demo import DemoRun
    from mixmem.cli.fit import FitRun
    from mixmem.models._learner import Learner


CONTENTS = {
    "report.html": "all of it, to look at",
    "theta.csv": "probabilities and statistics of every variable in every component",
    "alpha.csv": "how common components are",
    "memberships.csv": "every row's share in every component",
    "intervals.csv": "standard errors and 95 % intervals",
    "groups.csv": "the rows' groups",
    "model.mixmem": "the model, for mixmem memberships, impute and compare, and mixmem.load",
    "fit.json": "settings, timings, diagnostics; mixmem fit --config makes it again",
}
"""What the files of a fit hold."""
LOOKED_AT = {"report.html": "what the components are", "demo.png": "estimate against truth"}
"""Files of the demonstration to look at."""

# --- Texts for standard output


def fit_text(run: FitRun, out: Path) -> str:
    """What was found, in a few lines."""
    doubts = run.model.report_.warnings  # what could not be made beside the fit was told when it failed
    return "\n".join(
        [*warned(doubts), *_found(run), *noted(doubts), written(out, tuple(CONTENTS), "report.html", CONTENTS)]
    )


def written(out: Path, names: Sequence[str], page: str = "", contents: Mapping[str, str] | None = None) -> str:
    """Say which files there are in a folder and what they hold, a line each; one of them, the page, is to be opened."""
    there = [name for name in names if (out / name).exists()]
    width = max((len(str(out / name)) for name in there), default=0)
    notes = {name: (contents or {}).get(name, "") + " (open this)" * (name == page) for name in there}
    return "\n".join(["", "written", *(f"  {out / name!s:<{width}}  {notes[name].strip()}".rstrip() for name in there)])


def warned(notices: Sequence[Notice]) -> list[str]:
    """Say what speaks against a result, before anything else, with an empty line after it."""
    serious = [f"WARNING: {as_typed(notice.text)}" for notice in notices if notice.severity == "serious"]
    return [*serious, ""] if serious else []


def noted(notices: Sequence[Notice]) -> list[str]:
    """Say what else is to be known."""
    return [f"note: {as_typed(notice.text)}" for notice in notices if notice.severity == "minor"]


def _found(run: FitRun) -> list[str]:
    model, report, k = run.model, run.model.report_, len(run.model.alpha_)
    shares = run.shares
    origin = "estimated" if report.alpha0.estimated else "given" if model.alpha0 != "auto" else "assumed"
    if k == 1:
        origin = "of no meaning with one component"
    lines = [
        f"{k} component{'s' * (k > 1)} in {report.rows:,} rows of {report.variables:,} variables",
        f"alpha0 {plain_number(model.alpha0_)} ({origin}){_noise(report)}",
        "",
        f"  {'component':<14}{'alpha':>10}{'mean membership':>18}",
    ]
    lines += [
        f"  {name:<14}{plain_number(alpha):>10}{share:>17.1%}"
        for name, alpha, share in zip(component_names(k), model.alpha_, shares, strict=True)
    ]
    if report.structure is not None and report.structure.found:
        schema = run.table.schema
        idle = np.isin(schema.names, report.structure.idle)
        spread = np.where(idle, -1.0, spread_of_variables(model._theta, schema.labels, shares))
        best = np.argsort(-spread, kind="stable")[: min(5, int((~idle).sum()))]
        lines += ["", f"told apart best by: {', '.join(schema.names[j] for j in best)}"]
    if report.refine.em:
        lines.append(f"log-likelihood {report.refine.em.log_likelihood:,.2f}, with the likeliest memberships")
    if run.document["cross_validation"]:
        found = run.document["cross_validation"]
        lines.append(f"cross-validation error {found['error']:.5f} (k = {k}, {found['folds']} folds)")
    if report.passes is not None:
        lines.append(
            f"kinds, grids{', alpha0' * report.alpha0.estimated} and components from a sample of "
            f"{report.passes.sampled:,} rows, corrected by all rows"
        )
    return [*lines, *_anchors(model), convergence(report)]


def _anchors(model: Learner) -> list[str]:
    """What was asked for beyond the default: anchors' condition numbers, how blocks were matched, alpha0 checked."""
    lines, report = [], model.report_
    start = report.start
    asked = model.anchors != "auto" or model.n_partitions != "auto"
    if asked and isinstance(start, MomentAccount) and start.plan is not None and start.matching is not None:
        numbers = ", ".join(plain_number(value) for value in start.plan.condition or ())
        lines.append(f"condition numbers of the three anchor matrices: {numbers}")
        if start.matching.blocks:
            lines.append(
                f"{start.matching.blocks} blocks matched, {start.matching.permuted} of them in another order; the "
                f"theorem's condition is met in {start.matching.guaranteed}"
            )
    if report.alpha0.checked is not None:
        lines.append(f"alpha0 estimated beside the given one: {plain_number(report.alpha0.checked)}")
    return lines


def _noise(report: FitReport) -> str:
    """The contamination, where it is more than nothing."""
    found = report.contamination
    if found.value == 0.0:
        return ""
    spread = f" +- {found.standard_error:.1%}" if found.estimated else ""
    return f", {found.value:.1%}{spread} of the cells noise"


def convergence(report: FitReport) -> str:
    """Whether the fit converged, by the rule that goes with its method."""
    return f"{'converged' if report.converged else 'NOT converged'}: {report.reason}"


def _program() -> str:
    """How to call this program: by its name where the shell finds it, else by the path it was called with."""
    return "mixmem" if shutil.which("mixmem") or not sys.argv[0].endswith("mixmem") else sys.argv[0]


def demo_text(run: DemoRun, out: Path) -> str:
    """The demonstration in a few lines, and where to go from there."""
    schema, k = run.fit.table.schema, len(run.fit.model.alpha_)
    return "\n".join(
        [
            f"simulated: a survey of {len(run.fit.table.codes):,} respondents, {schema.n_variables} questions with "
            f"{schema.sizes.min()} to {schema.sizes.max()} answers,",
            f"           drawn from {k} hidden profiles with alpha {', '.join(map(plain_number, run.alpha))} "
            f"(alpha0 {plain_number(float(run.alpha.sum()))}),",
            f"           {run.noise:.0%} of the answers given at random",
            "found:     " + "\n           ".join(_found(run.fit)).replace("           \n", "\n"),
            f"error:     theta {run.theta_error:.4f}, memberships {run.membership_error:.4f} (root mean square, "
            "after matching components)",
            f"time:      {run.seconds:.1f} s",
            "",
            *(f"look at    {out / name}   {what}" for name, what in LOOKED_AT.items() if (out / name).exists()),
            f"next       {_program()} fit {quoted(str(out / 'data.csv'))} -k {k} --out myfit",
        ]
    )
