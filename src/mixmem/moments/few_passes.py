"""The moment estimate of more rows than are kept: a sample is swept to rest, then corrected by passes over all rows.

Cells are counted while rows are coded. A sample of whole row blocks gives plan, anchors and sweeps. One pass over all
rows takes the sums of all groups' steps at the theta found; what their means have more than the sample's is added to
every later sum over the sample, and sweeps go on from there (:class:`mixmem.moments.sweep.Correction`). What is left is
of second order: a further correction moves theta by about ``RATE`` times the first move's square, and a part of the
rows is enough for it (:mod:`mixmem.moments.part_of_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded
from mixmem.data.soft_levels import Part
from mixmem.data.united_levels import united
from mixmem.engine.rows import Arrays, RowSum, n_stretches, stretch_rows
from mixmem.moments.estimate import (
    CorrectionReport,
    Estimate,
    MomentAccount,
    Settings,
    Start,
    groups_rng,
    level_for_itself,
    sweeps_report,
    swept_to_rest,
)
from mixmem.moments.part_of_rows import Change, Changed, stretches_of_part
from mixmem.moments.sums import FirstMoments, first_moments
from mixmem.moments.sweep import Correction, FullTensor, Pass, Swept, UnheldTensor, split_in_groups
from mixmem.moments.theta_from_factors import concentration
from mixmem.progress import Progress
from mixmem.typing import Array, Positions

RATE = 5.0
"""By what a second correction moves theta, over the square of what the first did; 4.4 to 5.6 on simulated tables of 25
to 100 variables and 5 to 10 components."""
ENOUGH = 0.1
"""What is left may be this part of the sampling error of all rows: both together are then half a per cent more."""
MOST_CORRECTIONS = 4
MOST_COMPARED = 32
"""Codes of a variable up to which each is looked for on its own when cells are counted."""


@dataclass(frozen=True)
class Counted:
    """Counts of some chunks of a table, in a coding that is ``base`` with what they have beside.

    ``+`` unites codings and adds, in any order to the same bits. ``squares`` are sums of squared weights, by stretches;
    None where rows have no weights. ``whole`` says that all weights are whole numbers.
    """

    base: Coding
    first: FirstMoments
    squares: RowSum | None
    whole: bool

    @classmethod
    def of(cls, base: Coding, rows: Encoded, first_stretch: int) -> Counted:
        """Count the rows of a chunk, whose codes may lie column by column."""
        if rows.weights is None and not rows.codes.flags.c_contiguous:
            return cls._of_columns(base, rows, first_stretch)
        squares = None
        if rows.weights is not None:
            size = stretch_rows(rows.n_variables)
            parts = [(rows.weights[at : at + size] ** 2).sum() for at in range(0, rows.n_rows, size)]
            nodes = [RowSum({(0, first_stretch + at): (np.asarray(part),)}) for at, part in enumerate(parts)]
            squares = nodes[0]
            for node in nodes[1:]:
                squares = squares + node
        return cls(base, first_moments(rows, first_stretch=first_stretch), squares, rows.whole)

    @classmethod
    def _of_columns(cls, base: Coding, rows: Encoded, first_stretch: int) -> Counted:
        codes, n_rows = rows.codes.T, rows.n_rows
        offsets, size = rows.coding.soft.cell_offsets, stretch_rows(rows.n_variables)
        total = RowSum({})
        for number, begin in enumerate(range(0, n_rows, size), start=first_stretch):
            some = codes[:, begin : begin + size]
            counts = np.zeros(int(offsets[-1]))
            for column, first, last in zip(some, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
                counts[first:last] = _counts(column, last - first)
            total = total + RowSum({(0, number): (counts, np.asarray(float(some.shape[1])))})
        return cls(base, FirstMoments(rows.coding, total), None, True)

    def __add__(self, other: Counted) -> Counted:
        coding = united(self.base, (self.first.coding, other.first.coding))
        first = self.first.recoded(coding) + other.first.recoded(coding)
        squares = None if self.squares is None or other.squares is None else self.squares + other.squares
        return Counted(self.base, first, squares, self.whole and other.whole)

    @property
    def closed(self) -> Counted:
        """The same as one node, which others can no longer be added to."""
        first = FirstMoments(self.first.coding, self.first.sums.closed)
        return replace(self, first=first, squares=None if self.squares is None else self.squares.closed)

    @property
    def n_effective(self) -> float:
        """How many rows of even weight say as much, as in :attr:`mixmem.Encoded.n_effective`."""
        if self.squares is None or self.whole:
            return self.first.total
        return self.first.total**2 / float(self.squares.root[0])


def _counts(codes: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Return how often each code occurs: one after the other while they are few, which processors do 32 at a time."""
    if size > MOST_COMPARED:
        return np.bincount(codes, minlength=size)
    return np.array([np.count_nonzero(codes == code) for code in range(size)])


@dataclass(frozen=True)
class AllRows:
    """What is known of all rows of a table: first moments, how many rows of even weight they are worth, and the sums
    of a pass over them, or of a change of such sums over some of their stretches."""

    first: FirstMoments
    n_effective: float
    n_rows: int
    sums: Callable[[Pass], Arrays]
    change: Callable[[Change, Positions], Arrays]
    swept: bool = False
    """Whether every sweep is to go over all rows, where else the sample's are corrected."""


def corrected_start(
    found: Estimate,
    sample: Encoded,
    first: FirstMoments,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
    everything: AllRows,
) -> Start:
    """Return where refinement begins: the estimate from a sample, with its first moments, corrected by all rows, or
    swept over them."""
    if settings.n_components == 1:
        return replace(found, theta=everything.first.means[:, None]).start(everything.first)
    if settings.n_sweeps == 0 or sample.n_variables < 3:
        return found.start(everything.first)
    theta, sample, alpha0 = level_for_itself(found.theta, sample.coding), sample.unpooled, found.concentration.alpha0
    whole = FirstMoments(sample.coding, everything.first.sums)
    report: CorrectionReport | None = None
    if everything.swept:
        tensor = UnheldTensor(sample, whole, theta, alpha0, everything.sums)
        swept = swept_to_rest(tensor, alpha0, settings, seed, progress, everything.n_effective)
    else:
        swept, report = _corrected(replace(everything, first=whole), sample, theta, alpha0, settings, seed, progress)
    values = concentration(swept.weights, alpha0)
    assert isinstance(found.account, MomentAccount)
    account = replace(
        found.account, converged=swept.converged, reason=swept.reason, discrepancy=values.discrepancy,
        sweeps=sweeps_report(swept), correction=report,
    )  # fmt: skip
    return Estimate(swept.theta, values, account).start(whole)


def _corrected(
    everything: AllRows,
    sample: Encoded,
    theta: Array,
    alpha0: float,
    settings: Settings,
    seed: np.random.SeedSequence,
    progress: Progress,
) -> tuple[Swept, CorrectionReport]:
    """Correct until what is left is small against the sampling error of all rows."""
    rows = _Rows(everything, sample, alpha0, seed)
    moved: tuple[float, ...] = ()
    parts: tuple[float, ...] = ()
    left = bearable = np.inf
    while True:
        work, sums, part, unsure = rows.at(theta, left, bearable)
        swept = corrected_once(
            work, sums, sample, everything.first, theta, alpha0, settings, seed=seed, progress=progress,
            n_effective=everything.n_effective,
        )  # fmt: skip
        moved, parts, theta = (*moved, distance(swept.theta, theta)), (*parts, part), swept.theta
        left = max(left_after(moved), unsure * moved[-1])
        bearable = ENOUGH * error_of_all(moved, everything.first.total, sample.total)
        if left <= bearable or len(moved) == MOST_CORRECTIONS:
            return swept, CorrectionReport(list(moved), left, list(parts))


@dataclass
class _Rows:
    """The sums of a pass over all rows at one theta after another: the first ones by all rows, further ones by what a
    part of the rows says of the change where that is enough."""

    everything: AllRows
    sample: Encoded
    alpha0: float
    seed: np.random.SeedSequence
    counted: tuple[Pass, Arrays] | None = None

    def at(self, theta: Array, left: float, bearable: float) -> tuple[Pass, Arrays, float, float]:
        """Return a pass at theta, its sums, the part of the rows that was looked at, and how unsure a correction by
        them is, over what it moves; ``left`` is what is to be corrected, and ``bearable`` what may be left."""
        first, p = self.everything.first, self.sample.n_variables
        work = pass_at(theta, first, self.alpha0, self.seed)
        if self.counted is not None:
            n_rows, times = self.everything.n_rows, first.total / self.sample.total
            stretches = stretches_of_part(left / bearable, times, n_rows, p)
            if len(stretches):
                change = Change(self.counted[0], work, self._inverse(theta, work))
                part = len(stretches) / n_stretches(n_rows, p)
                found = Changed.of(self.everything.change(change, stretches), len(stretches), part)
                unsure = found.unsure(Changed.of(change.sums(self.sample, 0).root, 1, 1.0), part, times)
                if unsure * left <= bearable:
                    return work, found.added_to(self.counted[1], first.total), part, unsure
        self.counted = work, self.everything.sums(work)
        return *self.counted, 1.0, 0.0

    def _inverse(self, theta: Array, work: Pass) -> Array:
        """Return what takes sums to steps (w, w), padded as they are."""
        first = self.everything.first
        gram, squares, *_ = FullTensor(no_rows(first.coding), first, theta, self.alpha0).sums
        inverse = np.zeros((work.slopes.shape[1],) * 2)
        inverse[: work.k, : work.k] = np.linalg.pinv(gram * gram - squares, hermitian=True)
        return inverse


def pass_at(
    theta: Array,
    first: FirstMoments,
    alpha0: float,
    seed: np.random.SeedSequence,
    groups: Sequence[Part] | None = None,
) -> Pass:
    """Return what sums the steps of groups over any rows at a theta (soft levels, k), by default those of a sweep."""
    tensor = FullTensor(no_rows(first.coding), first, theta, alpha0)
    return tensor.pass_over(split_in_groups(tensor.soft, groups_rng(seed)) if groups is None else groups)


def no_rows(coding: Coding) -> Encoded:
    """Return a table of a coding that has no rows."""
    return Encoded.of(np.empty((0, coding.n_variables), dtype=coding.codes_dtype), coding)


def corrected_once(
    work: Pass,
    sums: Arrays,
    sample: Encoded,
    first: FirstMoments,
    theta: Array,
    alpha0: float,
    settings: Settings,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
    n_effective: float,
) -> Swept:
    """Sweep a sample to rest from theta, corrected by the sums of a pass over all rows, whose first moments are
    ``first``."""
    correction = Correction.of(work, sums, first.total, work.sums(sample).root, sample.total)
    tensor = FullTensor(sample, first, theta, alpha0, correction)
    return swept_to_rest(tensor, alpha0, settings, seed, progress, n_effective)


def distance(one: Array, other: Array) -> float:
    """Return the root mean square distance of two thetas."""
    return float(np.sqrt(((one - other) ** 2).mean()))


def left_after(moved: Sequence[float], first_rate: float = RATE) -> float:
    """Return what may be left after corrections that moved theta by so much each; ``first_rate`` is that of the first,
    over how far it moved."""
    rate = first_rate * moved[0] if len(moved) == 1 else moved[-1] / max(moved[-2], 1e-300)
    return min(rate, 1.0) * moved[-1]


def error_of_all(moved: Sequence[float], total: float, size: float) -> float:
    """Return the sampling error of all rows, of weight ``total``, from how far the first correction moved theta away
    from what a sample of weight ``size`` says."""
    return moved[0] / float(np.sqrt(max(total / size - 1.0, 1e-12)))


def enough(moved: Sequence[float], error: float) -> bool:
    """Whether what is left is small against the sampling error of all rows, or corrections are too many."""
    return left_after(moved) <= ENOUGH * error or len(moved) == MOST_CORRECTIONS
