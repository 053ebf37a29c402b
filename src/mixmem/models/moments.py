"""Sums over rows as an object: counted of any part, anywhere, added in any order to the same bits, and stored."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mixmem.data.chunks import Chunks, HeldChunks, Reading, whole_stretches
from mixmem.data.encode import Encoded
from mixmem.data.sources import Span, source_of
from mixmem.data.table_checks import check_weights
from mixmem.engine.chunks import Local
from mixmem.engine.local import threads
from mixmem.engine.rows import RowSum
from mixmem.errors import InputError
from mixmem.kernels import ROW_BLOCK
from mixmem.models._passes import rows_per_chunk, surprises
from mixmem.models.moments_plan import MomentsPlan, PlannedPart
from mixmem.models.small_sums import refuse_small
from mixmem.moments.few_passes import Counted
from mixmem.moments.sums import FirstMoments
from mixmem.moments.third_moments import third_moments
from mixmem.progress import current
from mixmem.refinement.maximum_likelihood import held_cells
from mixmem.storage.model_file import FileKind, load_model, save_model
from mixmem.words import listing

MOMENTS = FileKind(
    "mixmem-moments", 1, "a file of moments", "`mixmem moments count` or `mixmem moments merge` wrote", "count it again"
)


@dataclass(frozen=True)
class CountedPart(PlannedPart):
    """A part that was counted, and what its sums are known by: equal ones are of the same rows.

    ``digest`` is that of its cells, and ``trace`` a combination of the other sums, whose last digits depend on where
    the part begins.
    """

    digest: str
    trace: float

    def same_rows(self, other: CountedPart) -> bool:
        """Whether the sums of two parts are those of the same rows, which so many do not have by chance."""
        alike = self.rows == other.rows >= ROW_BLOCK and self.digest == other.digest
        return alike and bool(np.isclose(self.trace, other.trace, rtol=1e-9, atol=0.0))


@dataclass(frozen=True)
class Sums:
    """What is counted of some rows: their cells, and by name what the round asks for."""

    counted: Counted
    asked: Mapping[str, RowSum]

    @classmethod
    def of(cls, plan: MomentsPlan, rows: Encoded, first_stretch: int) -> Sums:
        """Count some rows that are coded as the plan says."""
        asked: dict[str, RowSum] = {}
        if plan.stage == "start":
            asked["triples"] = third_moments(rows, [plan.anchors], first_stretch=first_stretch)[0].stretches
        if plan.work is not None:
            asked["pass"] = plan.work.sums(rows, first_stretch)
        if plan.held is not None:
            assert plan.alpha is not None
            asked["held"] = held_cells(rows, plan.held, plan.alpha, first_stretch)
        return cls(Counted.of(plan.coding, rows, first_stretch), asked)

    def __add__(self, other: Sums) -> Sums:
        asked = {name: sums + other.asked[name] for name, sums in self.asked.items()}
        return Sums(self.counted + other.counted, asked)

    def as_one(self, node: tuple[int, int]) -> Sums:
        """Return the same as one node of the tree, in which nothing else lies."""

        def one(sums: RowSum) -> RowSum:
            return RowSum({node: sums.root})

        counted, first = self.counted, self.counted.first
        squares = None if counted.squares is None else one(counted.squares)
        closed = replace(counted, first=FirstMoments(first.coding, one(first.sums)), squares=squares)
        return Sums(closed, {name: one(sums) for name, sums in self.asked.items()})

    def of_part(self, part: PlannedPart) -> CountedPart:
        """Return what is known of a part that these are the sums of."""
        digest = hashlib.sha256(self.counted.first.counts.tobytes()).hexdigest()
        trace = 0.0
        for name in sorted(self.asked):
            for array in self.asked[name].root:
                trace += float(array.ravel() @ np.cos(np.arange(array.size)))
        return CountedPart(part.name, part.rows, part.first_stretch, digest, trace)


@dataclass(frozen=True, eq=False)
class Moments:
    """Hold the sums over the rows of some parts, as a plan asks for them; never the rows.

    Sums of different parts add up with ``+``, in any order to the same bits. Sums of another plan or coding, and parts
    that are in both, are refused.

    Attributes
    ----------
    plan : MomentsPlan
        What was counted.
    sums : Sums
        The sums by stretches of the table.
    parts : tuple of CountedPart
        What they were counted over.

    Examples
    --------
    >>> from mixmem import GDLM, Moments, simulate_gdlm
    >>> table = simulate_gdlm(2000, 9, 2, random_state=0).frame
    >>> parts = {"a": table[:1000], "b": table[1000:]}
    >>> plan, sample = GDLM(2, alpha0=0.2, random_state=0).plan_moments(*parts.values(), names=list(parts))
    >>> a, b = (Moments.count(part, plan, name) for name, part in parts.items())
    >>> (a + b).n_rows
    2000
    >>> GDLM.from_moments(b + a, sample).alpha_.shape
    (2,)
    """

    plan: MomentsPlan
    sums: Sums
    parts: tuple[CountedPart, ...]

    @classmethod
    def count(
        cls,
        X: Any,
        plan: MomentsPlan,
        part: str,
        *,
        after: Moments | None = None,
        sample_weight: Any = None,
        least: int = 0,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Count the rows of a part, chunk by chunk.

        Parameters
        ----------
        X
            The rows: anything that :meth:`mixmem.GDLM.fit` takes, files larger than memory too.
        plan : MomentsPlan
            What to count.
        part : str
            The name of the part.
        after : Moments or None
            For rows that the plan does not have, such as were added later: the sums that they follow.
        sample_weight : array (n,) or None
            How many rows each stands for, if the plan was made with such weights.
        least : int
            Refuse to give sums in which any cell, or any triple of the anchors, is held by fewer rows than that.
        memory_limit : int or None
            Bytes that rows may take as read.
        n_jobs : int or None
            Threads.

        Returns
        -------
        Moments
        """
        chunks = _chunks(X, plan, part, sample_weight, memory_limit)
        if after is None:
            place = plan.part(part)
            if place.rows != chunks.n_rows:
                raise InputError(
                    f"part {part!r} has {chunks.n_rows:,} rows, and {place.rows:,} in the plan; count the rows that "
                    "the plan was made with, or make it again"
                )
        else:
            plan.refuse_other(after.plan)
            place = PlannedPart(part, chunks.n_rows, plan.begin_of((*plan.parts, *after.parts), chunks.n_rows))
        with threads(n_jobs), current().stage("counting", len(chunks)) as step:
            work = _CountChunk(chunks, plan, place.first_stretch)
            sums: Sums = Local().total("counting", work, len(chunks), step)
            rows = sums
            if least > 1 and sums.counted.squares is not None:  # weights say nothing of how many rows there are
                rows = Local().total("counting", replace(work, weighted=False), len(chunks), lambda _: None)
        if (branch := plan.branch_of(place)) is not None:
            sums, rows = sums.as_one(branch), rows.as_one(branch)
        if least > 1:
            refuse_small(plan, rows, least, part)
        return cls(plan, sums, (sums.of_part(place),))

    def __add__(self, other: Moments) -> Moments:
        """Join the sums of different parts."""
        self.plan.refuse_other(other.plan)
        for mine in self.parts:
            for theirs in other.parts:
                if mine.name == theirs.name:
                    raise InputError(
                        f"part {mine.name!r} is in both sums, so its rows would count twice; merge each part once"
                    )
                if mine.same_rows(theirs):
                    raise InputError(
                        f"parts {mine.name!r} and {theirs.name!r} have the same sums, so they are the same rows, which "
                        "would count twice; merge one of them"
                    )
                if mine.first_stretch == theirs.first_stretch:
                    raise InputError(
                        f"parts {mine.name!r} and {theirs.name!r} were both counted after the same sums; merge one of "
                        "them with those, and count the other after the result (--after)"
                    )
        parts = sorted((*self.parts, *other.parts), key=lambda part: part.first_stretch)
        return Moments(self.plan, self.sums + other.sums, tuple(parts))

    @property
    def n_rows(self) -> int:
        """Return the rows of all parts."""
        return sum(part.rows for part in self.parts)

    @property
    def first(self) -> FirstMoments:
        """Return the counts of the cells."""
        return self.sums.counted.first

    @property
    def grown(self) -> bool:
        """Return whether there are parts beside those of the plan."""
        return len(self.parts) > len(self.plan.parts)

    def refuse_missing_parts(self) -> None:
        """Refuse sums that lack a part of the plan."""
        found = {part.name for part in self.parts}
        if missing := [part.name for part in self.plan.parts if part.name not in found]:
            raise InputError(
                f"the sums lack {'part' if len(missing) == 1 else 'the parts'} {listing(missing)} of the plan; count "
                "and merge what is missing, or make a plan without it"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sums, with their plan, to a file.

        Parameters
        ----------
        path : str or path
            The file; an older one stays until the new one is whole.
        """
        save_model(path, *self.content(), kind=MOMENTS)

    def content(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return what a file holds of the sums: arrays, and all else as JSON can hold it."""
        arrays, header = self.plan.content()
        arrays = {f"plan.{name}": array for name, array in arrays.items()}
        named = {"cells": self.first.sums, **self.sums.asked}
        if self.sums.counted.squares is not None:
            named["squares"] = self.sums.counted.squares
        for name, sums in named.items():
            for (level, index), node in sorted(sums.nodes.items()):
                arrays |= {f"sums.{name}.{level}.{index}.{at}": np.asarray(array) for at, array in enumerate(node)}
        document = {
            "plan": header, "parts": [part.to_plain() for part in self.parts], "whole": self.sums.counted.whole,
        }  # fmt: skip
        return arrays, document | {"digest": _digest(arrays, document)}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read sums that :meth:`save` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        """
        return cls.from_content(path, *load_model(path, MOMENTS))

    @classmethod
    def from_content(cls, path: str | os.PathLike[str], arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Self:
        """Return the sums that a file holds; damaged ones are refused."""
        said = {name: value for name, value in header.items() if name != "digest"}
        if header.get("digest") != _digest(arrays, said) or not all(
            np.isfinite(each).all() for each in arrays.values()
        ):
            raise InputError(f"{path} is damaged: its sums are not those that were written; copy it or count it again")
        own = {name.removeprefix("plan."): array for name, array in arrays.items() if name.startswith("plan.")}
        nodes: dict[str, dict[tuple[int, int], dict[int, np.ndarray]]] = {}
        try:
            plan = MomentsPlan.from_content(path, own, header["plan"])
            parts = tuple(CountedPart.from_plain(part) for part in header["parts"])
            for name, array in arrays.items():
                if name.startswith("sums."):
                    _, kind, level, index, at = name.split(".")
                    nodes.setdefault(kind, {}).setdefault((int(level), int(index)), {})[int(at)] = array
            read = {kind: RowSum({at: tuple(node[i] for i in sorted(node)) for at, node in sorted(found.items())})
                    for kind, found in nodes.items()}  # fmt: skip
            first = FirstMoments(plan.coding, read.pop("cells"))
            counted = Counted(plan.coding, first, read.pop("squares", None), bool(header["whole"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} lacks a part of the sums ({error}); count it again") from error
        return cls(plan, Sums(counted, read), parts)


def _digest(arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]) -> str:
    """What a file of sums is known by, to the last bit."""
    found = hashlib.sha256(json.dumps(document, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.shape} {array.dtype.str}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


@dataclass(frozen=True)
class _CountChunk:
    """The sums of a chunk of a part that begins at a stretch; if not ``weighted``, of every row of any weight once."""

    chunks: Chunks
    plan: MomentsPlan
    first_stretch: int
    weighted: bool = True

    def __call__(self, number: int) -> Sums:
        rows = self.chunks.rows(self.chunks.span(number))
        if not self.weighted:
            rows = replace(rows, weights=(rows.each > 0.0).astype(np.float64))
        return Sums.of(self.plan, rows, self.first_stretch + self.chunks.first_stretch(number))


@dataclass
class PartChunks(Chunks):
    """The rows of a part, which must be coded as the plan says."""

    reading: Reading
    plan: MomentsPlan
    name: str
    chunk_rows: int

    @property
    def coding(self) -> Any:  # type: ignore[override]
        return self.plan.coding

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return self.reading.n_rows

    def rows(self, span: Span, *parts: Any, by_rows: bool = True) -> Encoded:
        found = self.reading.coded(*span, self.plan.coding, by_rows=by_rows)
        if found.coding != self.plan.coding:
            told = surprises(self.plan.coding, found.coding)
            raise InputError(
                f"{self.reading.source.place(*span)} of part {self.name!r}: {told[0]}, which the plan does not know; "
                "recode the cells, or make the plan with this part (mixmem moments init, with all parts or with --plan)"
            )
        return found


def _chunks(X: Any, plan: MomentsPlan, part: str, weights: Any, memory_limit: int | None) -> Chunks:
    """Return the rows of a part in chunks."""
    p = plan.coding.n_variables
    if isinstance(X, Encoded):
        held = whole_stretches(rows_per_chunk(p, memory_limit), p)
        plan.coding.refuse_other(X.coding, f"part {part!r} and the plan")
        return HeldChunks(X if weights is None else replace(X, weights=check_weights(weights, X.n_rows)), held)
    source = source_of(X)
    if source.n_rows == 0:
        raise InputError(f"part {part!r} has no rows; leave it out")
    given = None if weights is None else check_weights(weights, source.n_rows)
    if plan.weighted != (given is not None or plan.weight is not None):
        raise InputError(
            f"part {part!r} comes {'with' if given is not None else 'without'} weights of rows, and the plan was made "
            f"{'with' if plan.weighted else 'without'}; give all parts weights, or none"
        )
    reading = Reading(source, plan.parameters.get("missing"), plan.weight, given, plan.row_id).knowing(plan.coding)
    size = rows_per_chunk(p, memory_limit, source.bytes_per_row)
    return PartChunks(reading, plan, part, whole_stretches(size, p))
