"""Plans, sums of parts, and fits from them: what the commands do and say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from mixmem.cli.compilation import announce_compilation
from mixmem.cli.console import convergence, noted, warned, written
from mixmem.cli.fit import NOT_SCORED, fit_document
from mixmem.cli.reading import Described
from mixmem.data.dialect import Dialect
from mixmem.data.sources import source_of
from mixmem.errors import InputError
from mixmem.models._from_moments import MomentsLearner
from mixmem.models.moments import Moments
from mixmem.models.moments_plan import MomentsPlan, load_sample, save_sample
from mixmem.output.tables import component_names, refuse_overwriting, write_alpha, write_theta
from mixmem.parameters import bytes_of, check_parameters
from mixmem.progress import current
from mixmem.records import plain
from mixmem.words import listing, plain_number, quoted

NEXT_PLAN = "next-round.plan"
"""The plan of the next round, in the folder of a fit."""


def part_names(data: Sequence[str]) -> list[str]:
    """Return what parts are called: their files without suffixes, or all that was typed where these are alike.

    >>> part_names(["a/visits.csv", "b/answers.csv"]), part_names(["a/visits.csv", "b/visits.csv"])
    (['visits', 'answers'], ['a/visits.csv', 'b/visits.csv'])
    """
    short = [Path(each).name.split(".")[0] or each for each in data]
    return short if len(set(short)) == len(short) else list(data)


def make_moments_plan(
    data: Sequence[str],
    settings: Mapping[str, Any],
    described: Described,
    out: Path,
    sample: Path | None,
    *,
    start: str = "triples",
    quiet: bool,
) -> MomentsPlan:
    """Write the plan of parts, and the sample if one is to be kept."""
    model = MomentsLearner(**settings)
    check_parameters(model.get_params(deep=False))
    for path in (out, sample):
        if path is not None:
            refuse_overwriting(path, *data)
    with current().stage("reading"):
        sources = [source_of(each, described.dialect) for each in data]
    model.missing = described.of_columns(sources[0].names).missing
    announce_compilation(quiet)
    plan, rows = model.plan_moments(
        *sources, names=part_names(data), weight=described.weight, row_id=described.row_id,
        keep_sample=sample is not None, start=start,
    )  # fmt: skip
    if sample is not None and rows is not None:
        save_sample(sample, rows)
    plan.save(out)
    return plan


def join_plan(
    plan: Path, data: Sequence[str], out: Path, dialect: Dialect | None = None, *, jobs: int | None
) -> MomentsPlan:
    """Write a plan that further parts have joined."""
    refuse_overwriting(out, *data)
    found = MomentsPlan.load(plan)
    model = MomentsLearner(**found.parameters | {"n_jobs": jobs})
    found = model.extended_plan(found, *(source_of(each, dialect) for each in data), names=part_names(data))
    found.save(out)
    return found


def init_text(plan: MomentsPlan, out: Path, sample: Path | None) -> str:
    """Say what the plan is, and what to do next."""
    rows = sum(part.rows for part in plan.parts)
    lines = [
        f"plan for {rows:,} rows of {plan.coding.n_variables:,} variables in {_parts(plan)}, "
        f"{plan.parameters['n_components']} components, alpha0 {plain_number(plan.alpha0)}"
    ]
    if sample is not None:
        lines.append(f"{sample} holds {plan.sampled:,} rows: keep it where the fit is made, and hand on {out} alone")
    elif plan.sample is None:
        lines.append(
            "no sample: the work goes in rounds; parts elsewhere join with mixmem moments init DATA --plan PLAN"
        )
    return "\n".join([*lines, round_text(plan, out)])


def _parts(plan: MomentsPlan) -> str:
    names = [part.name for part in plan.parts]
    return f"{len(names)} part{'s' * (len(names) > 1)} ({listing(names)})"


def round_text(plan: MomentsPlan, path: Path) -> str:
    """Say what comes next: a round over all parts."""
    sample = " --sample FILE" if plan.sample is not None else ""
    return (
        f"next: round {plan.round}, which counts {plan.asks}\n"
        f"  for every part   mixmem moments count PART --plan {quoted(str(path))} --out PART.moments\n"
        f"  then             mixmem moments merge *.moments --out M\n"
        f"  then             mixmem fit --moments M{sample} --out DIR"
    )


def count_part(
    part: str,
    out: Path,
    plan: Path | None,
    after: Path | None,
    name: str | None,
    dialect: Dialect | None = None,
    *,
    least: int,
    jobs: int | None,
    memory_limit: str | None,
    quiet: bool,
) -> Moments:
    """Count the rows of a part, and write the sums."""
    if (plan is None) == (after is None):
        raise InputError("give --plan for a part of the plan, or --after M for rows that were added later: one of them")
    check_parameters({"memory_limit": memory_limit, "n_jobs": jobs})
    refuse_overwriting(out, part, *(path for path in (plan, after) if path is not None))
    before = None if after is None else Moments.load(after)
    asked = before.plan if before is not None else MomentsPlan.load(plan)  # type: ignore[arg-type]
    called = name or next((each.name for each in asked.parts if each.name == part), part_names([part])[0])
    announce_compilation(quiet)
    found = Moments.count(
        source_of(part, dialect), asked, called, after=before, least=least, memory_limit=bytes_of(memory_limit),
        n_jobs=jobs,
    )  # fmt: skip
    found.save(out)
    return found


def count_text(moments: Moments, out: Path) -> str:
    """Say what was counted."""
    part = moments.parts[0]
    return f"part {part.name!r}: {part.rows:,} rows counted for round {moments.plan.round}, in {out}"


def merge_files(files: Sequence[Path], out: Path) -> Moments:
    """Add the sums of files, and write them."""
    refuse_overwriting(out, *files)
    found: Moments | None = None
    for path in files:
        own = Moments.load(path)
        try:
            found = own if found is None else found + own
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
    assert found is not None
    found.save(out)
    return found


def merge_text(moments: Moments, out: Path) -> str:
    """Say what there is now, and what is missing."""
    names = [part.name for part in moments.parts]
    found = f"{moments.n_rows:,} rows of {len(names)} part{'s' * (len(names) > 1)} in {out}: {listing(names)}"
    missing = [part.name for part in moments.plan.parts if part.name not in names]
    if missing:
        return f"{found}\nstill missing: {listing(missing)}; merge {'it' if len(missing) == 1 else 'them'} with {out}"
    sample = " --sample FILE" if moments.plan.sample is not None else ""
    return f"{found}\nnext: mixmem fit --moments {quoted(str(out))}{sample} --out DIR"


@dataclass(frozen=True)
class MomentsFit:
    """A fit from sums: the model as far as it is known, and the sums."""

    model: MomentsLearner
    moments: Moments

    @property
    def fitted(self) -> bool:
        """Whether there is a model already."""
        return hasattr(self.model, "alpha_")


def fit_moments(moments: Path, sample: Path | None, *, jobs: int | None, quiet: bool) -> MomentsFit:
    """Fit sums that were merged."""
    found = Moments.load(moments)
    rows = None if sample is None else load_sample(sample)
    check_parameters({"n_jobs": jobs})
    announce_compilation(quiet)
    model = MomentsLearner(**found.plan.parameters | {"n_jobs": jobs})
    return MomentsFit(model._advance(found, rows), found)


def write_moments_fit(folder: Path, fit: MomentsFit, shown_as: Path) -> None:
    """Write the files of a fit from sums; there are no rows, so no memberships and no page."""
    model, moments = fit.model, fit.moments
    if model.next_plan_ is not None:
        model.next_plan_.save(folder / NEXT_PLAN)
    if not fit.fitted:
        return
    write_theta(folder / "theta.csv", model.schema_, model._theta)
    write_alpha(folder / "alpha.csv", model.alpha_)
    model.moments_ = None  # they are in a file of their own
    model.save(folder / "model.mixmem")
    shares = (model.alpha_ / model.alpha_.sum()).tolist()
    results = {
        "log_likelihood": {**NOT_SCORED, "mean_of_rows_given_memberships": None},
        "goodness": None,
        "cross_validation": None,
        "memberships": {"shares": shares, "largest_gap": None, "most_steps": None},
        "seconds": {**current().seconds, **model.report_.seconds},
        "warnings": [notice.to_plain() for notice in model.report_.warnings],
    }
    first, numbers = moments.first, model.schema_.has("number").nonzero()[0].tolist()
    means = {model.schema_.names[j]: first.mean(j) for j in numbers}
    said = Described(moments.plan.row_id, weight=moments.plan.weight)
    document = fit_document(model, said, str(shown_as), int(first.missing.sum()), means, results)
    text = json.dumps(plain(document), indent=1, allow_nan=False)
    (folder / "fit.json").write_text(text + "\n", encoding="utf-8")


def moments_fit_text(fit: MomentsFit, out: Path) -> str:
    """Say what was found, and what comes next."""
    model, moments = fit.model, fit.moments
    plan, following = moments.plan, model.next_plan_
    lines = []
    if fit.fitted:
        report, shares = model.report_, model.alpha_ / model.alpha_.sum()
        lines += [
            *warned(report.warnings),
            f"{len(shares)} components in {report.rows:,} rows of {report.variables:,} variables, from the sums of "
            f"{len(moments.parts)} part{'s' * (len(moments.parts) > 1)} in round {plan.round}",
            f"alpha0 {plain_number(model.alpha0_)} ({'estimated from' if plan.chosen else 'given with'} the plan)",
            "",
            f"  {'component':<14}{'alpha':>10}{'share':>18}",
        ]
        lines += [
            f"  {name:<14}{plain_number(alpha):>10}{share:>17.1%}"
            for name, alpha, share in zip(component_names(len(shares)), model.alpha_, shares, strict=True)
        ]
        lines += [convergence(report), *_moved(fit), *noted(report.warnings)]
        lines.append(written(out, ("theta.csv", "alpha.csv", "model.mixmem", "fit.json", NEXT_PLAN)))
        lines.append(
            f"memberships are found where rows are: mixmem memberships {out / 'model.mixmem'} DATA --out FILE.csv"
        )
    else:
        lines.append(f"round {plan.round} is done; there is no model yet")
    if following is None:
        return "\n".join([*lines, "no further round is needed"])
    if moments.grown:
        lines.append("rows were added: a further round would count all parts again, those of before too")
    elif fit.fitted:
        lines.append("the model can be used as it is; a further round makes it sharper")
    return "\n".join([*lines, round_text(following, out / NEXT_PLAN)])


def _moved(fit: MomentsFit) -> list[str]:
    correction = getattr(fit.model.report_.start, "correction", None)
    if correction is None:
        return []
    return [
        f"theta moved by {plain_number(correction.moved[-1])} (root mean square) in this round; "
        f"about {plain_number(correction.left)} may be left"
    ]


FREE = {"out", "jobs", "memory_limit", "quiet", "verbose"}
"""Options that no plan fixes."""


def refuse_options_of_the_plan(context: typer.Context, instead: str, free: Set[str]) -> None:
    """Refuse options that a plan has fixed already, which comes with the option ``instead``."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in FREE | free:
            what = next((name for name in reversed(parameter.opts) if name.startswith("-")), "DATA")
            has = "sums of a plan that fixed it" if instead == "--moments" else "a plan that fixed it"
            raise InputError(f"{what} goes with a table, and {instead} has {has}; leave it out")
