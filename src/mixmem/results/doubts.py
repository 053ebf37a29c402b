"""What a fit has to say against itself: one notice for each reason to doubt it, the serious ones first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.data.schema import Schema
from mixmem.likelihood.memberships import RowFit
from mixmem.moments.components import best_assignment
from mixmem.moments.estimate import PlanReport
from mixmem.refinement.admixture import TWO_ALLELES
from mixmem.refinement.starts import HALF
from mixmem.results.distinctive import Contents, distances, ordered_distances
from mixmem.results.notices import Notice
from mixmem.selection.copies import copies_told
from mixmem.selection.halves import HOLDS, LOST, FoundAgain
from mixmem.selection.n_components import below
from mixmem.selection.structure import Structure
from mixmem.typing import Array
from mixmem.words import listed, listing

EMPTY_SHARE, EMPTY_ROWS = 0.002, 0.5
"""Share of all memberships below which a component is empty, and the same in rows."""
FEW_OWNERS = 2.5
"""Effective number of rows up to which a component counts as owned by one or two."""
SAME = 0.05
"""Two components coincide if no variable's distribution differs by more between them (total variation)."""
STRAIGHT, NEARLY_STRAIGHT = 0.95, 0.85
"""Share of the way past all components that lies between the farthest two from which on they are on one scale: for
three, and for more. Fits to one normal factor have 0.98 to 1 and 0.83 to 1, fits to components drawn at random 0.91 and
0.5 at most."""
FAR = 0.05
"""Root mean square difference of memberships from which on two maxima are told."""
LARGE_WEIGHTS, ONCE, HUGE_WEIGHTS = 5.0, 0.02, 100.0
"""Mean from which on whole weights may be those of a survey, the share of ones below which they are hardly counts of
patterns, and the mean from which on checks that take them for rows are worth nothing."""
MUCH_NOISE = 0.15
"""Share of cells taken for noise from which on theta is told to be more extreme than answers are."""
FEWER_PARTITIONS = "fewer-partitions"
HOW_MANY = "look with `mixmem choose-k` how many components the rows show, and fit one fewer if it names this number"
FEWER = "use more variables, or fewer components"
"""What helps where a choice of k may have recommended so many components: halves of the rows show them all."""


@dataclass(frozen=True)
class LookedBack:
    """What is looked at after a fit: the table's structure, rows if they were fitted, memberships if there are any.

    ``failed`` says what could not be looked at, ``again`` what halves of the rows show, and ``agreement`` (k,) how far
    they agree on each component, 1 for the same.
    """

    structure: Structure | None
    rows: RowFit | None
    memberships: Array | None
    failed: tuple[Notice, ...] = ()
    again: FoundAgain | None = None
    agreement: Array | None = None


@dataclass(frozen=True)
class Evidence:
    """What is known of a finished fit: theta (rows, k), alpha (k,), whether and in what sense it converged.

    ``weights`` (n,) are how many rows each row stands for; ``looked`` has no structure with one component, and no
    memberships (n, k) where they were not computed.
    """

    schema: Schema
    theta: Array
    alpha: Array
    weights: Array
    converged: bool
    reason: str
    way: str
    at_bound: bool
    looked: LookedBack
    plan: PlanReport | None = None
    alpha0_apart: tuple[float, float] | None = None
    """The alpha0 given and the one estimated beside it, where they differ."""
    apart: float = 0.0
    """How far memberships lie from those of another maximum, nearly as likely."""
    may_be_survey_weights: bool = False
    noise: float = 0.0
    """The share of cells found to be noise; 0 where it was given."""


def agreement_of(schema: Schema, theta: Array, again: FoundAgain) -> Array:
    """Return how far halves of the rows agree on each component of a fit (k,), theta (rows, k): in the middle split.

    The least is that of the weakest component in the middle split, whichever was the weakest in each: by that a number
    of components holds or does not, here as where it is chosen.
    """
    k, contents, out = theta.shape[1], Contents.of(schema.labels), []
    for half, agreement in zip(again.thetas, again.agreements, strict=True):
        both = np.concatenate([theta, half], axis=1)
        apart = [distances(both, contents, np.eye(2 * k)[g])[:, k:].mean(axis=0) for g in range(k)]
        out.append(agreement[best_assignment(np.stack(apart))])
    middle = np.asarray(np.median(out, axis=0))
    least = int(middle.argmin())
    middle[least] = min(middle[least], again.weakest)
    return middle


def doubts(fit: Evidence) -> list[Notice]:
    """Return the notices of a fit, the serious ones first."""
    found = [*_convergence(fit), *_maxima(fit)]
    structure = fit.looked.structure
    if len(fit.alpha) > 1:
        found += _components(fit)
    if structure is not None:
        found = [*_structure(structure), *found, *_copies(structure), *_idle(structure)]
    if fit.way in ("latent classes", HALF):
        told = f"the fit began from {fit.way}, for which the guarantee of the method of moments does not hold"
        found.append(Notice("no-guarantee", "minor", told, "compare fits with other seeds before you rely on it"))
    if fit.at_bound:
        alike = "unmixed, each in one component" if fit.alpha.sum() < 1.0 else "all nearly alike"
        bound = f"the rows look {alike}: alpha0 lies at the end of the range searched"
        remedy = "give alpha0 if you know it, or try another number of components"
        found.append(Notice("alpha0-at-bound", "minor", bound, remedy))
    found += [
        *_weights(fit),
        *_noise(fit),
        *_genotypes(fit.schema),
        *_partitions(fit.plan),
        *_alpha0(fit.alpha0_apart),
        *fit.looked.failed,
    ]
    return sorted(found, key=lambda notice: notice.severity != "serious")


def may_be_survey_weights(table: Encoded) -> bool:
    """Return whether whole weights may be those of a survey, and not counts of rows.

    Of patterns that were counted some were seen once, or nearly all that there can be are there.
    """
    if table.weights is None or not table.whole or table.total < LARGE_WEIGHTS * table.n_rows:
        return False
    patterns = float(np.prod(np.minimum(table.schema.sizes, 1000).astype(np.float64)))
    return bool(np.mean(table.weights == 1.0) < ONCE) and table.n_rows < patterns / 2.0


def _weights(fit: Evidence) -> Iterator[Notice]:
    if fit.may_be_survey_weights:
        yield survey_weights(fit.weights)


def survey_weights(weights: Array) -> Notice:
    """Return what is said of whole weights (n,) that may be those of a survey."""
    rows, total = len(weights), int(weights.sum())
    return Notice(
        "weights-as-counts", "serious" if total >= HUGE_WEIGHTS * rows else "minor",
        f"the weights are whole numbers and are taken for counts: {rows:,} rows stand for {total:,}, and intervals "
        "and checks are as sure as so many rows make them",
        "if they are weights of a survey, divide them by their mean and begin again",
    )  # fmt: skip


def _noise(fit: Evidence) -> Iterator[Notice]:
    """Much noise: components of soft answers without noise, and of sharp ones with it, are hard to tell apart."""
    if fit.noise >= MUCH_NOISE:
        yield Notice(
            "much-noise", "minor",
            f"{fit.noise:.0%} of the cells are taken for noise, and theta describes the others: it is more extreme "
            "than the answers are",
            "fit with a contamination of 0 if nobody answers at random, or to read theta as shares of all answers",
        )  # fmt: skip


def _genotypes(schema: Schema) -> Iterator[Notice]:
    """Variants that keep genotypes from being fitted as programs for ancestry fit them."""
    odd = [variable.name for variable in schema.variables if not variable.own_kind.diploid_locus(variable)]
    every = all(variable.own_kind.cells == "copies" for variable in schema.variables)
    if every and 0 < len(odd) < schema.n_variables:
        yield Notice(
            "other-variants", "minor",
            f"{len(odd):,} of the {schema.n_variables:,} variants have not just two alleles in two copies "
            f"({listing(odd, 3)}), so that the fit does not climb the likelihood that programs for ancestry maximise",
            TWO_ALLELES,
        )  # fmt: skip


def _partitions(plan: PlanReport | None) -> Iterator[Notice]:
    """Partitions that were asked for and could not be had."""
    if plan is None or plan.asked is None or plan.partitions >= plan.asked:
        return
    anchors = sum(map(len, plan.anchors))
    left = (
        f"the {anchors} anchors leave {plan.partitions} to split, one per partition"
        if plan.partitions
        else f"all {anchors} variables are anchors, so that none is left to split"
    )
    yield Notice(
        FEWER_PARTITIONS, "minor",
        f"{plan.asked} partitions were asked for and {plan.partitions} were made: {left}",
        f"ask for at most {plan.partitions} partitions, or name fewer anchors" if plan.partitions
        else "leave the number of partitions out, or name fewer anchors",
    )  # fmt: skip


def _alpha0(apart: tuple[float, float] | None) -> Iterator[Notice]:
    if apart is not None:
        given, found = apart
        yield Notice(
            "alpha0-differs", "minor",
            f"alpha0 was given as {given:g}, and the rows are most likely at {found:.3g}",
            "fit again without alpha0, or look at the curve of the likelihood in the report",
        )  # fmt: skip


def _structure(structure: Structure) -> Iterator[Notice]:
    if not structure.found:
        who = "its variables, copies left out," if structure.copies else "its variables"
        yield Notice(
            "no-structure", "serious",
            f"the table does not show more than one component: {who} vary as if they were independent of each other "
            f"(chance alone gives as much in {structure.p_value:.0%} of tables)",
            "do not interpret the components; fit one component, or collect more rows or better variables",
        )  # fmt: skip


def _convergence(fit: Evidence) -> Iterator[Notice]:
    if fit.converged:
        return
    remedy = HOW_MANY
    if _come_back(fit):
        remedy = FEWER if fit.apart > FAR else (
            "halves of the rows show the same components, so compare fits with other seeds: what differs between them "
            "is not known"
        )  # fmt: skip
    yield Notice("not-converged", "serious", f"the fit did not converge: {fit.reason}", remedy)


def _come_back(fit: Evidence) -> bool:
    """Return whether halves of the rows show every component, and other rows do not speak for fewer."""
    again, known = fit.looked.again, fit.looked.agreement
    better = again is not None and (again.gain or (1.0, 0.0))[0] > 0.0
    return known is not None and bool(known.min() >= HOLDS) and better


def _maxima(fit: Evidence) -> Iterator[Notice]:
    if fit.apart > FAR:
        yield Notice(
            "several-maxima", "serious",
            f"another start ended at memberships that lie {fit.apart:.2f} apart (root mean square) and are nearly as "
            "likely: the rows do not tell which are right",
            "do not interpret single memberships; "
            + (FEWER if _come_back(fit) else f"{HOW_MANY}, or use more variables"),
        )  # fmt: skip


def _components(fit: Evidence) -> Iterator[Notice]:
    """Components that are empty, that few rows own, that coincide, lie on one scale or are not found again."""
    x, weights, total = fit.looked.memberships, fit.weights, float(fit.weights.sum())
    shares = fit.alpha / fit.alpha.sum() if x is None else weights @ x / total
    empty = (shares < EMPTY_SHARE) | (shares * total < EMPTY_ROWS)
    if empty.any():
        yield Notice(
            "empty-component", "serious",
            f"{_named(np.flatnonzero(empty))} {_is(empty.sum())} empty: less than "
            f"{max(EMPTY_SHARE, EMPTY_ROWS / total):.1%} of the memberships{' each' * int(empty.sum() > 1)}",
            f"fit {len(shares) - int(empty.sum())} components instead",
        )  # fmt: skip
    if x is not None:
        owners = (weights @ x) ** 2 / np.maximum(weights @ x**2, 1e-300)
        few = (owners <= FEW_OWNERS) & ~empty
        if few.any():
            yield Notice(
                "few-rows", "serious",
                f"{_named(np.flatnonzero(few))} {_is(few.sum())} owned by one or two rows",
                "look whether those rows hold errors, and fit again without them or with fewer components",
            )  # fmt: skip
    yield from _same(fit, np.flatnonzero(~empty))
    yield from _again(fit, empty)


def _same(fit: Evidence, places: NDArray[np.int64]) -> Iterator[Notice]:
    """Components that coincide, or that follow each other along one scale."""
    contents = Contents.of(fit.schema.labels)
    apart = [distances(fit.theta, contents, np.eye(len(fit.alpha))[g])[:, places] for g in places.tolist()]
    most = [each.max(axis=0, initial=0.0) for each in apart]
    pairs = [(g, h) for i, g in enumerate(places.tolist()) for h in places[i + 1 :][most[i][i + 1 :] < SAME].tolist()]
    if pairs:
        yield Notice(
            "equal-components", "serious",
            f"components {listed([f'{g + 1} and {h + 1}' for g, h in pairs])} are the same: no variable differs by "
            f"more than {SAME:.0%} between them",
            "fit fewer components",
        )  # fmt: skip
    elif (order := along_one_scale(ordered_distances(fit.theta[:, places], contents))) is not None:
        yield Notice(
            "one-scale", "minor",
            f"the components may be steps along one scale, such as low, middle and high, rather than different kinds "
            f"of rows: in the order {listed([str(place + 1) for place in places[order]])} each lies between its "
            "neighbours",
            "see whether one score, such as the sum of the items, tells as much",
        )  # fmt: skip


def along_one_scale(apart: Array) -> NDArray[np.int64] | None:
    """Return the order of components along one scale, from how far each is from each (k, k); None if they are on none.

    They are if the way past all of them is hardly longer than that from one end to the other.

    >>> along_one_scale(np.array([[0.0, 0.5, 1.0], [0.5, 0.0, 0.5], [1.0, 0.5, 0.0]]))
    array([0, 1, 2])
    >>> along_one_scale(1.0 - np.eye(3)) is None
    True
    """
    k = len(apart)
    if k < 3:
        return None
    end = int(apart.max(axis=1).argmax())
    order = np.argsort(apart[end], kind="stable")
    way = float(apart[order[:-1], order[1:]].sum())
    return order if apart[end].max() > way * (STRAIGHT if k == 3 else NEARLY_STRAIGHT) else None


def _again(fit: Evidence, empty: NDArray[np.bool_]) -> Iterator[Notice]:
    """Components that rows which were not fitted do not need, or that two halves of the rows do not both show."""
    again, known = fit.looked.again, fit.looked.agreement
    if again is None or known is None:
        return
    agreement, k = np.where(empty, 1.0, known), len(fit.alpha)
    lost, weak = agreement < LOST, (agreement >= LOST) & (agreement < HOLDS)
    asked = f"(1 is the same, {HOLDS:g} is asked for)"
    gain, error = again.gain or (0.0, 0.0)
    if gain < -error:
        least = int(agreement.argmin())
        which = f"; halves of the rows agree least on component {least + 1}, by {_figures(agreement[[least]])} {asked}"
        yield Notice(
            "too-many-components", "serious",
            f"rows that were not fitted are more likely with {k - 1} component{'s' * (k > 2)} than with {k}, by "
            f"{-gain:.3f} ± {error:.3f} per row{which if agreement[least] < HOLDS else ''}",
            f"fit fewer components: {HOW_MANY}",
        )  # fmt: skip
    elif lost.any():
        one = lost.sum() == 1
        yield Notice(
            "not-found-again", "serious",
            f"{_named(np.flatnonzero(lost))} {'was' if one else 'were'} not found again: learned from either half of "
            f"the rows, {'it agrees' if one else 'they agree'} by {_figures(agreement[lost])} {asked}",
            f"do not interpret {'it' if one else 'them'}; {HOW_MANY}",
        )  # fmt: skip
    elif weak.any():
        one = weak.sum() == 1
        yield Notice(
            "found-less-well", "minor",
            f"{_named(np.flatnonzero(weak))} {_is(weak.sum())} found less well: learned from either half of the rows, "
            f"{'it agrees' if one else 'they agree'} by {_figures(agreement[weak])} {asked}",
            f"take {'its' if one else 'their'} theta as rough; {HOW_MANY}",
        )  # fmt: skip


def _figures(values: Array) -> str:
    return listed([below(max(float(value), 0.0)) for value in values])


def _copies(structure: Structure) -> Iterator[Notice]:
    if structure.copies:
        yield Notice(
            "copied-variables", "minor",
            f"{copies_told(structure.copies, structure.together)}: the model takes each for evidence of its own, so "
            "that components and memberships look surer than they are",
            "leave all but one out",
        )  # fmt: skip


def _idle(structure: Structure) -> Iterator[Notice]:
    if structure.found and structure.idle:
        names, one = listed([repr(name) for name in structure.idle]), len(structure.idle) == 1
        yield Notice(
            "idle-variables", "minor",
            f"{names} {'shows' if one else 'show'} no relation to any other variable",
            f"leave {'it' if one else 'them'} out, or read nothing into how components differ there",
        )  # fmt: skip


def _named(places: NDArray[np.int64]) -> str:
    return f"component{'s' * (len(places) > 1)} {listed([str(place + 1) for place in places])}"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
