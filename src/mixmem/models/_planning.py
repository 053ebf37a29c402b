"""Plans of sums over rows: made from the parts of a table, or joined by parts elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixmem.data.chunks import Reading, whole_stretches
from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded
from mixmem.data.joined_sources import joined
from mixmem.data.sources import source_of
from mixmem.data.table_checks import check_weights
from mixmem.data.united_levels import Recoding
from mixmem.engine.chunks import Local
from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.models._learner import Learner, refuse_more_components_than_rows
from mixmem.models._passes import CountChunk, Everything, rows_per_chunk
from mixmem.models.grown_moments import grown_plan
from mixmem.models.moments_plan import MomentsPlan, sample_digest
from mixmem.moments.anchors import Plan, anchor_moments, carries
from mixmem.moments.estimate import MomentAccount, Settings, estimate, level_for_itself
from mixmem.moments.few_passes import Counted, pass_at
from mixmem.moments.sums import FirstMoments, first_moments
from mixmem.progress import Progress
from mixmem.refinement.choose import choose_without_rows
from mixmem.seeds import seed_sequence
from mixmem.selection.structure import structure_of


class PlanMaker(Learner):
    """What :class:`mixmem.GDLM` does before sums are counted."""

    def plan_moments(
        self,
        *parts: Any,
        names: Sequence[str] | None = None,
        weight: str | None = None,
        row_id: str | None = None,
        sample_weight: Any = None,
        keep_sample: bool = True,
        start: str = "triples",
    ) -> tuple[MomentsPlan, Encoded | None]:
        """Fix what the parts of a table are to count: coding, anchors, alpha0, and the stretches of every part.

        Parameters
        ----------
        *parts
            The parts, each anything that :meth:`fit` takes; all are looked at once.
        names : sequence of str or None
            What the parts are called; None for their numbers.
        weight, row_id : str or None
            The columns of the rows' weights and names.
        sample_weight : array (n,) or None
            How many rows each row stands for, of all parts together, instead of a column.
        keep_sample : bool
            Whether a sample of the rows stays with whoever fits: one round is then enough as a rule. Without it the
            work goes in rounds, and no row is kept.
        start : "triples" or "rows"
            Where the work begins without a sample: at the triples of the anchors over all parts, or at what the rows
            given here say for themselves, so that no triples are counted.

        Returns
        -------
        plan : MomentsPlan
        sample : Encoded or None
            The rows of the sample.
        """
        settings, seed, progress = self._settings(), seed_sequence(self.random_state), self._progress()
        self._refuse_what_sums_lack(settings, keep_sample or start == "rows")
        if start not in ("triples", "rows"):
            raise InputError(f"start must be 'triples' or 'rows'; got {start!r}")
        called = [str(at + 1) for at in range(len(parts))] if names is None else list(names)
        table: Encoded | Reading
        if len(parts) == 1 and isinstance(parts[0], Encoded):
            table, lengths = parts[0], [parts[0].n_rows]
            weighted = table.weights is not None
        else:
            sources = [source_of(part) for part in parts]
            lengths = [source.n_rows for source in sources]
            weights = None if sample_weight is None else check_weights(sample_weight, sum(lengths))
            table = Reading(joined(sources, called), self.missing, weight, weights, row_id)
            weighted = weight is not None or weights is not None
        with threads(self.n_jobs), self._looked_at(table, None, settings, progress, None) as everything:
            plan, anchors = self._plan_of(everything, settings, seed, progress)
            if keep_sample or start == "rows":
                plan = _begun(plan, anchors, everything, settings, seed, progress)
            if keep_sample:
                plan = replace(plan, sample=sample_digest(everything.sample), sampled=everything.sample.n_rows)
            plan = replace(plan, weight=weight, weighted=weighted, row_id=row_id)
            plan = plan.with_parts(list(zip(called, lengths, strict=True)))
            return plan, everything.sample if keep_sample else None

    def _refuse_what_sums_lack(self, settings: Settings, rows: bool) -> None:
        """Refuse what cannot be had from sums; ``rows`` says that the start comes from rows."""
        choose_without_rows(self.refine, passes=False)
        if settings.n_components == 1 or settings.n_sweeps == 0:
            raise InputError(
                "sums of parts serve sweeps over two components or more; expected -k 2 or more, and sweeps"
            )
        if self.n_partitions != "auto" and not rows:
            raise InputError("the paper's partitions need rows; leave n_partitions out, or keep a sample")

    def _plan_of(
        self, everything: Everything, settings: Settings, seed: np.random.SeedSequence, progress: Progress
    ) -> tuple[MomentsPlan, Plan]:
        """Return the plan without its parts and its start, from the sample of the rows, and its anchors."""
        sample, k = everything.sample, settings.n_components
        refuse_more_components_than_rows(k, sample)
        first = first_moments(sample)
        anchors = self._planned(sample, first, settings, None, seed)
        if sample.n_variables < 3 or not carries(sample.coding, anchors.anchors, k):
            few = f"{sample.n_variables} variables are too few for k = {k}"
            raise InputError(f"sums of parts need third moments, and {few}; fit the rows together, or fewer components")
        alpha0, chosen = self._alpha0_of(sample, first, settings, None, seed, progress)
        plan = MomentsPlan(
            coding=everything.chunks.coding, parameters=self._parameters(), seed=int(seed.entropy),  # type: ignore[arg-type]
            parts=(), anchors=anchors.anchors, alpha0=alpha0, chosen=chosen, structure=structure_of(sample, first),
            united=tuple(everything.united),
        )  # fmt: skip
        return plan, anchors

    def extended_plan(self, plan: MomentsPlan, *parts: Any, names: Sequence[str]) -> MomentsPlan:
        """Return a plan of its first round, made without a sample, with further parts and the levels that they have.

        Parameters
        ----------
        plan : MomentsPlan
            The plan, as another place made it from rows of its own.
        *parts
            The further parts.
        names : sequence of str
            What they are called.
        """
        if plan.round > 1 or plan.sample is not None or (plan.theta is not None and plan.coding.pooled):
            raise InputError(
                "parts can join a plan before its first round, made without a sample; count rows that come later after "
                "the merged sums (--after M)"
            )
        sources = [source_of(part) for part in parts]
        reading = Reading(joined(sources, names), plan.parameters.get("missing"), plan.weight, None, plan.row_id)
        counted = self._counted(reading, plan.coding.unpooled)
        coding = counted.first.coding
        found = plan
        if coding != plan.coding.unpooled and plan.theta is None:
            found = replace(plan, coding=coding.pooling_by(counted.first.counts))
        elif coding != plan.coding.unpooled:
            found = grown_plan(plan, coding, Recoding.between(plan.coding, coding), counted.first)
        return found.with_parts([(name, source.n_rows) for name, source in zip(names, sources, strict=True)])

    def _counted(self, reading: Reading, base: Coding) -> Counted:
        """Count the cells of rows in a coding that grows by what they hold beside."""
        p, reading = base.n_variables, reading.knowing(base)
        size = whole_stretches(rows_per_chunk(p, None, reading.source.bytes_per_row), p)
        count = -(-reading.n_rows // size)
        with threads(self.n_jobs), self._progress().stage("counting all rows", count) as step:
            found: Counted = Local().total("counting", CountChunk(reading, base, size), count, step)
        return found


def _begun(
    plan: MomentsPlan,
    anchors: Plan,
    everything: Everything,
    settings: Settings,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> MomentsPlan:
    """Return the plan with the theta of the sample, at which a pass is counted."""
    sample, first = everything.sample, first_moments(everything.sample)
    block = anchor_moments(sample, anchors)
    found = estimate(sample, anchors, first, block, plan.alpha0, settings, seed=seed, progress=progress)
    theta = level_for_itself(found.theta, sample.coding)
    whole = FirstMoments(sample.coding.unpooled, everything.first.sums)
    assert isinstance(found.account, MomentAccount)
    work = pass_at(theta, whole, plan.alpha0, seed)
    return replace(plan, account=found.account, theta=theta, alpha=found.concentration.alpha, work=work)
