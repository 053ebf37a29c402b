"""Fits from sums over rows that were counted elsewhere, in rounds; and rows that are added to a model later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from mixmem.data.chunks import SAMPLE_CELLS, Reading
from mixmem.data.encode import Encoded
from mixmem.data.sources import source_of
from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.likelihood.table import LikelihoodTable
from mixmem.models._planning import PlanMaker
from mixmem.models.grown_moments import grown
from mixmem.models.moments import Moments
from mixmem.models.moments_plan import MomentsPlan, PlannedPart, sample_digest
from mixmem.moments.block_factorization import factorize_anchors
from mixmem.moments.estimate import (
    CorrectionReport,
    Estimate,
    Settings,
    account_of,
    anchors_rng,
    level_for_itself,
    sweeps_report,
)
from mixmem.moments.few_passes import (
    ENOUGH,
    RATE,
    corrected_once,
    distance,
    enough,
    error_of_all,
    left_after,
    no_rows,
    pass_at,
)
from mixmem.moments.sums import FirstMoments
from mixmem.moments.sweep import Correction, FullTensor
from mixmem.moments.theta_from_factors import Concentration, concentration, theta_of
from mixmem.moments.third_moments import BlockMoments
from mixmem.progress import Progress
from mixmem.refinement.choose import choose_without_rows, refine
from mixmem.refinement.maximum_likelihood import held_cells
from mixmem.results.doubts import LookedBack
from mixmem.results.fit_report import PassesReport, fit_report, of_all_rows
from mixmem.results.simulate import drawn_rows
from mixmem.typing import Array

DRAWN_ROWS, LEAST_DRAWN = 65_536, 4_096
"""Rows that are drawn from the theta found so far where nobody holds a sample, fewer in very wide tables: they tell
only how sums answer to theta; what the sums are comes from all rows."""
FIRST_RATE = np.inf
"""What is left after the first correction of drawn rows is not known: there is always a second."""


LEAST_RATE = 0.05
"""What a correction of drawn rows leaves at least, over how far it moved theta: 0.018 to 0.028 on simulated tables."""


MOST_ROUNDS = 8
"""Corrections of drawn rows at most: where so many do not settle, further ones do not either."""


def trust_after(moved: Sequence[float]) -> float:
    """Return the part of a correction of drawn rows that is taken: half as much after each that moved theta by more
    than the one before.

    Where the model does not hold, drawn rows answer to theta in another way than the true ones, and may go too far.

    >>> trust_after([0.1, 0.02, 0.001]), trust_after([0.1, 0.2, 0.15])
    (1.0, 0.5)
    """
    return float(0.5 ** sum(later > earlier for earlier, later in pairwise(moved)))


def left_of_added(moved: float) -> float:
    """Return what may be left of how far added rows moved theta."""
    return min(max(RATE * moved, LEAST_RATE), 1.0) * moved


class MomentsLearner(PlanMaker):
    """What :class:`mixmem.GDLM` does with sums over rows, without scikit-learn."""

    next_plan_: MomentsPlan | None = None
    """What a further round would count; None where none is needed."""
    moments_: Moments | None = None
    """The sums that the model was last fitted from, to which those of further rows can be added."""

    def _forget(self) -> None:
        self.moments_, self.next_plan_ = None, None

    def partial_fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn from further rows, without those of before: their sums are kept, and new ones are added.

        The first rows fix kinds, grids of numbers and alpha0, and are fitted in few passes; levels that come later are
        added. Sums of earlier rows stay at the theta of then, so that what is left grows with how far theta has moved
        since (``report_.start.correction``): where the rows change a lot, fit all again. The sums are saved with the
        model. After :meth:`fit` the rows that it still holds are counted first; there is no refinement.

        Parameters
        ----------
        X
            The rows: anything that :meth:`fit` takes.
        y : None
            Ignored; scikit-learn passes it.
        sample_weight : array (n,) or None
            How many rows each stands for; in all calls or in none.

        Examples
        --------
        >>> from mixmem import GDLM, simulate_gdlm
        >>> table = simulate_gdlm(2000, 9, 2, random_state=0).frame
        >>> model = GDLM(2, alpha0=0.2, refine=None, random_state=0).partial_fit(table[:1500])
        >>> model.partial_fit(table[1500:]).report_.rows
        2000
        """
        if not hasattr(self, "alpha_"):
            return self._first_rows(X, sample_weight)
        if self.moments_ is None:
            if self._training is None:
                raise InputError(
                    "the model was fitted by fit, which keeps no sums over its rows, and does not hold the rows; begin "
                    "with partial_fit, or with from_moments, to add rows later"
                )
            self._first_rows(self._training.table, None)
        assert self.moments_ is not None
        before = self._with_levels_of(X, self.moments_)
        further = Moments.count(
            X, before.plan, f"rows {before.n_rows + 1:,} on", after=before, sample_weight=sample_weight,
            n_jobs=self.n_jobs,
        )  # fmt: skip
        return self._advance(before + further, None)

    def _with_levels_of(self, X: Any, moments: Moments) -> Moments:
        """Return sums in a coding that has the levels of further rows, too."""
        known = moments.plan.coding
        if isinstance(X, Encoded) or known.pooled:
            return moments
        plan, source = moments.plan, source_of(X)
        if not source.n_rows:
            return moments  # what counts the rows refuses it
        coding = self._counted(Reading(source, self.missing, plan.weight, None, plan.row_id), known).first.coding
        return moments if coding == known else grown(moments, coding)

    def _first_rows(self, X: Any, sample_weight: Any) -> Self:
        """Learn from the first rows as a fit in few passes does, and keep their sums."""
        plan: MomentsPlan | None
        plan, sample = self.plan_moments(X, names=["rows 1 on"], sample_weight=sample_weight)
        while plan is not None:
            counted = Moments.count(X, plan, "rows 1 on", sample_weight=sample_weight, n_jobs=self.n_jobs)
            self._advance(counted, sample)
            plan = self.next_plan_
        self._name_features(X)
        return self

    def _kept(self) -> tuple[dict[str, Array], dict[str, Any]]:
        if self.moments_ is None:
            return {}, {}
        arrays, header = self.moments_.content()
        return {f"moments.{name}": array for name, array in arrays.items()}, {"moments": header}

    def _take_kept(self, path: str | Path, arrays: dict[str, Array], header: dict[str, Any]) -> None:
        if "moments" in header:
            own = {name.removeprefix("moments."): each for name, each in arrays.items() if name.startswith("moments.")}
            self.moments_ = Moments.from_content(path, own, header["moments"])

    @classmethod
    def from_moments(cls, moments: Moments, sample: Encoded | None = None) -> Self:
        """Fit a model from sums over rows, merged from all parts of a plan.

        The parameters are those the plan was made with. ``next_plan_`` is the plan of the next round, if there is one;
        after the first rounds without a sample there is no model yet. Memberships of rows come from the model, where
        rows are: :meth:`transform`.

        Parameters
        ----------
        moments : Moments
            The sums over all parts.
        sample : Encoded or None
            The sample, where the plan was made with one.
        """
        model = cls(**moments.plan.parameters)
        return model._advance(moments, sample)

    def _advance(self, moments: Moments, sample: Encoded | None) -> Self:
        """Take the sums of a round: find the model as far as they tell, and the plan of the next round."""
        plan, settings, progress = moments.plan, self._settings(), self._progress()
        moments.refuse_missing_parts()
        if plan.sample is not None and sample is None and not moments.grown:
            raise InputError(
                "the plan was made with a sample of rows, which stays in a file of its own; give it too (--sample FILE)"
            )
        if sample is not None and sample_digest(sample) != plan.sample:
            raise InputError("the sample is not the one that the plan was made with; give that one, or none")
        with threads(self.n_jobs):
            if plan.stage == "start":
                self.next_plan_ = self._from_triples(moments, settings, progress)
            elif plan.stage == "extend":
                self.next_plan_ = self._extended(moments)
            else:
                self._corrected(moments, sample, settings, progress)
        self.moments_ = moments
        return self

    def _from_triples(self, moments: Moments, settings: Settings, progress: Progress) -> MomentsPlan:
        """Return the plan after the first round without a sample: theta of the anchors."""
        plan, first, seed = moments.plan, moments.first, np.random.SeedSequence(moments.plan.seed)
        block = BlockMoments(plan.anchors, plan.coding, moments.sums.asked["triples"])
        with progress.stage("anchor block"):
            factored = factorize_anchors(
                block, first.means, plan.alpha0, settings.n_components, n_restarts=settings.n_restarts,
                effort=settings.effort, rng=anchors_rng(seed),
            )  # fmt: skip
        values = concentration(factored.weights, plan.alpha0)
        account = account_of(plan.anchor_plan, factored, None, None, values, factored.theta)
        theta = level_for_itself(factored.theta, plan.coding)
        return _next(replace(plan, account=account, alpha=values.alpha), theta, _every_level(moments))

    def _extended(self, moments: Moments) -> MomentsPlan:
        """Return the plan after the anchors have told of the other variables."""
        plan, first = moments.plan, _every_level(moments)
        assert plan.theta is not None
        assert plan.work is not None
        rows = no_rows(first.coding)
        nothing = tuple(np.zeros_like(sums) for sums in moments.sums.asked["pass"].root)
        correction = Correction.of(plan.work, moments.sums.asked["pass"].root, first.total, nothing, 1.0)
        tensor = FullTensor(rows, first, plan.theta, plan.alpha0, correction)
        tensor.extend()
        return _next(plan, tensor.theta, first)

    def _corrected(self, moments: Moments, sample: Encoded | None, settings: Settings, progress: Progress) -> None:
        """Correct theta by the sums of a pass, and set the model; what a further round would count is there then."""
        plan, first, seed = moments.plan, _every_level(moments), np.random.SeedSequence(moments.plan.seed)
        assert plan.theta is not None
        assert plan.alpha is not None
        assert plan.account is not None
        assert plan.work is not None
        rows = self._drawn(plan, first, seed) if sample is None else sample.unpooled
        values = Concentration(plan.alpha, plan.alpha0, plan.account.discrepancy)
        found, moved, settled = Estimate(plan.theta, values, plan.account), plan.moved, True
        if plan.stage == "pass" or moments.grown:
            swept = corrected_once(
                plan.work, moments.sums.asked["pass"].root, rows, first, plan.theta, plan.alpha0, settings, seed=seed,
                progress=progress, n_effective=moments.sums.counted.n_effective,
            )  # fmt: skip
            theta, moved = swept.theta, (*moved, distance(swept.theta, plan.theta))
            if sample is None:
                trust = 1.0 if moments.grown else trust_after(moved)
                left = left_of_added(moved[-1]) if moments.grown else left_after(moved, FIRST_RATE)
                left, theta = max(left, (1.0 - trust) * moved[-1]), plan.theta + trust * (theta - plan.theta)
                settled = left <= ENOUGH * float(np.sqrt(settings.n_components / moments.sums.counted.n_effective))
            else:
                left, settled = left_after(moved), enough(moved, error_of_all(moved, first.total, rows.total))
            values = concentration(swept.weights, plan.alpha0)
            account = replace(
                plan.account, converged=swept.converged, reason=swept.reason, discrepancy=values.discrepancy,
                sweeps=sweeps_report(swept), correction=CorrectionReport(list(moved), left, [1.0] * len(moved)),
            )  # fmt: skip
            if sample is None and not settled and len(moved) >= MOST_ROUNDS:
                told = f"{len(moved)} rounds did not settle, with theta still to move by {moved[-1]:.2g}"
                account = replace(account, converged=False, reason=f"{told}: the model describes these rows poorly")
                settled = True
            found = Estimate(theta, values, account)
        start = found.start(first)
        numbers = bool(plan.coding.schema.has("number").any())
        refined = refine(
            rows, (start,), *choose_without_rows(self.refine, passes=False), free_alpha0=self._free_alpha0,
            contamination=self.contamination, seed=seed, progress=progress,
            everywhere=_held(moments, rows, first) if plan.stage == "numbers" else None,
        ).ordered()  # fmt: skip
        report = fit_report(
            rows, plan.chosen, refined, LookedBack(plan.structure, None, None), free_alpha0=self._free_alpha0,
            settled=self._asked_for_sweeps(refined), seed=seed, seconds=progress.seconds, memberships=self.memberships,
        )  # fmt: skip
        passes = PassesReport(plan.sampled, list(plan.united), tuple(part.name for part in moments.parts), plan.round)
        self._set(
            plan.coding,
            refined.theta,
            refined.alpha,
            refined.delta,
            of_all_rows(report, moments.n_rows, first.total, passes),
        )
        self._errors, self._training = None, None
        self.n_features_in_ = self.schema_.n_variables + len(self.schema_.left_out)
        parts = tuple(PlannedPart(part.name, part.rows, part.first_stretch) for part in moments.parts)
        after = replace(plan, parts=parts, account=found.account, moved=moved, alpha=found.concentration.alpha)  # type: ignore[arg-type]
        self.next_plan_ = None
        if not settled:
            self.next_plan_ = _next(after, found.theta, first)
        elif numbers and plan.stage == "pass":
            self.next_plan_ = replace(_next(after, found.theta, first), held=start.theta)

    def _drawn(self, plan: MomentsPlan, first: FirstMoments, seed: np.random.SeedSequence) -> Encoded:
        """Return rows drawn from the theta found so far, in place of a sample that nobody holds."""
        assert plan.theta is not None
        assert plan.alpha is not None
        count = max(LEAST_DRAWN, min(DRAWN_ROWS, SAMPLE_CELLS // plan.coding.n_variables))
        rng = np.random.default_rng([*seed.generate_state(4), 8])
        return drawn_rows(first, theta_of(plan.theta, first), plan.alpha, count, rng)


def _next(plan: MomentsPlan, theta: Array, first: FirstMoments) -> MomentsPlan:
    """Return the plan of the next round, at a theta of the soft levels."""
    found = replace(plan, theta=theta, round=plan.round + 1)
    seed = np.random.SeedSequence(plan.seed)
    groups, unknown = None, found.unknown
    if len(unknown):
        known = np.setdiff1d(np.arange(first.coding.n_variables), unknown)
        groups = [first.coding.soft.part(part) for part in (unknown, known)]
    return replace(found, work=pass_at(theta, first, plan.alpha0, seed, groups))


def _every_level(moments: Moments) -> FirstMoments:
    """Return the first moments with every level for itself."""
    return FirstMoments(moments.plan.coding.unpooled, moments.first.sums)


def _held(moments: Moments, rows: Encoded, first: FirstMoments) -> Any:
    """Return the mean over all rows of the cells that components hold, as a function of theta and alpha.

    It was counted at the plan's. At another theta, after further rows, what all rows have more than those at hand is
    held fixed.
    """
    plan = moments.plan
    assert plan.held is not None
    assert plan.alpha is not None
    cells, counted_at, counted_with = LikelihoodTable(rows), plan.held, plan.alpha
    everywhere = moments.sums.asked["held"].root[0] * cells.likelihoods(counted_at) / first.total

    def own(theta: Array, alpha: Array) -> Array:
        return np.asarray(held_cells(rows, theta, alpha).root[0] * cells.likelihoods(theta) / rows.total)

    def at(theta: Array, alpha: Array) -> Array:
        if np.array_equal(theta, counted_at) and np.array_equal(alpha, counted_with):
            return np.asarray(everywhere)
        return np.asarray(everywhere - own(counted_at, counted_with) + own(theta, alpha))

    return at
