"""The plan of sums over rows that are counted in parts: what is counted, in which coding, and where each part begins.

A plan goes through rounds. Without a sample the first asks for the anchors' triples, the next for the other variables
as seen from the anchors, all further ones for the sums of a pass at the theta found so far; a plan made with a sample
begins with such a pass. Numbers ask for one round more. A round's sums give the next round's plan, or the end.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded
from mixmem.engine.rows import n_stretches
from mixmem.errors import InputError
from mixmem.moments.anchors import Plan
from mixmem.moments.estimate import MomentAccount
from mixmem.moments.sweep import Pass
from mixmem.records import Record
from mixmem.selection.alpha0 import Alpha0
from mixmem.selection.structure import Structure
from mixmem.storage.model_file import FileKind, load_model, save_model
from mixmem.typing import Array, Modes
from mixmem.words import listing, suggestion

PLAN = FileKind(
    "mixmem-moments-plan", 1, "a plan", "`mixmem moments init` or `mixmem fit --moments` wrote", "make it again"
)
SAMPLE = FileKind("mixmem-sample", 1, "the sample of a plan", "`mixmem moments init --sample` wrote", "make it again")


@dataclass(frozen=True)
class PlannedPart(Record):
    """A part of the rows by its name, how many rows it has, and the stretch at which it begins."""

    name: str
    rows: int
    first_stretch: int


@dataclass(frozen=True, eq=False)
class MomentsPlan:
    """Say what the parts of a table are to count, so that their sums add up to those of the whole.

    Made by :meth:`mixmem.GDLM.plan_moments`, and for every further round by :meth:`mixmem.GDLM.from_moments`. Holds no
    rows.

    Attributes
    ----------
    coding : Coding
        How the cells of every part are coded.
    parameters : dict
        Those of the estimator.
    seed : int
        What everything random is spawned from.
    parts : tuple of PlannedPart
        Names, numbers of rows and stretch numbers.
    anchors : three arrays of int
        Positions of the anchor variables of each mode.
    alpha0 : float
        The sum of alpha.
    weight, row_id : str or None
        The columns of the rows' weights and names.
    weighted : bool
        Whether rows have weights.
    chosen : Alpha0 or None
        The search for alpha0, if there was one.
    structure : Structure or None
        Whether the rows that the plan was made from show components at all.
    sample : str or None
        Digest of the sample that goes with it.
    sampled : int
        Rows of the sample.
    united : tuple of str
        What only rows outside the sample hold, in words.
    round : int
        Counted from 1.
    moved : tuple of float
        How far each correction so far moved theta, root mean square.
    account : MomentAccount or None
        What the estimate says of itself so far.
    theta : array (soft levels, k) or None
        Theta so far, every level for itself; zero rows of variables that are not known yet.
    alpha : array (k,) or None
        Alpha so far.
    work : Pass or None
        What a pass over rows takes with it.
    held : array (rows, k) or None
        Theta as users see it, at which the cells that components hold are counted.

    Examples
    --------
    >>> from mixmem import GDLM, simulate_gdlm
    >>> table = simulate_gdlm(2000, 9, 2, random_state=0).frame
    >>> plan, sample = GDLM(2, alpha0=0.2, random_state=0).plan_moments(table[:1000], table[1000:], names=["a", "b"])
    >>> [part.rows for part in plan.parts], plan.round, plan.stage
    ([1000, 1000], 1, 'pass')
    """

    coding: Coding
    parameters: dict[str, Any]
    seed: int
    parts: tuple[PlannedPart, ...]
    anchors: Modes
    alpha0: float
    weight: str | None = None
    weighted: bool = False
    row_id: str | None = None
    chosen: Alpha0 | None = None
    structure: Structure | None = None
    sample: str | None = None
    sampled: int = 0
    united: tuple[str, ...] = ()
    round: int = 1
    moved: tuple[float, ...] = ()
    account: MomentAccount | None = None
    theta: Array | None = None
    alpha: Array | None = None
    work: Pass | None = None
    held: Array | None = None

    @property
    def stage(self) -> str:
        """Return what is asked for: "start", "extend", "pass" or "numbers"."""
        if self.held is not None:
            return "numbers"
        if self.theta is None:
            return "start"
        return "extend" if len(self.unknown) else "pass"

    @property
    def unknown(self) -> np.ndarray:
        """Return the variables of which nothing is known yet."""
        if self.theta is None:
            return np.arange(self.coding.n_variables)
        sums = np.add.reduceat(self.theta.sum(axis=1), self.coding.unpooled.soft.offsets[:-1])
        return np.flatnonzero(sums == 0.0)

    @property
    def asks(self) -> str:
        """Return what a round counts, in words."""
        return {
            "start": "cells and the anchors' triples",
            "extend": "cells and what the anchors say of the other variables",
            "pass": "cells and the sums of a pass at the theta found so far",
            "numbers": "cells, the sums of a pass, and the numbers that components hold",
        }[self.stage]

    @property
    def anchor_plan(self) -> Plan:
        """Return the anchors as a plan of the moments."""
        return Plan(self.coding, self.anchors, ())

    def part(self, name: str) -> PlannedPart:
        """Return a part by its name; refuse one that the plan does not have."""
        for part in self.parts:
            if part.name == name:
                return part
        known = [part.name for part in self.parts]
        raise InputError(
            f"the plan has no part {name!r}{suggestion(name, known)}; give the name of one (--part), or count rows "
            "that were added later after the merged sums of all parts (--after M)"
        )

    def with_parts(self, parts: list[tuple[str, int]]) -> Self:
        """Return the plan with further parts (name, rows), each beginning at the stretch after the one before."""
        found = list(self.parts)
        for name, rows in parts:
            if rows == 0:
                raise InputError(f"part {name!r} has no rows; leave it out")
            if any(part.name == name for part in found):
                raise InputError(f"two parts are called {name!r}; give each a name of its own (a file's: rename it)")
            found.append(PlannedPart(name, rows, self.begin_of(found, rows)))
        return replace(self, parts=tuple(found))

    def begin_of(self, before: Sequence[PlannedPart], rows: int) -> int:
        """Return the stretch at which a part of so many rows begins after others.

        With a sample it is the next one, so that parts cut at stretch borders have the bits of the whole table. Without
        one every part has a branch of the tree of sums to itself, and gives its root only: a part's last stretch may
        hold few rows, of which nobody is to hear alone.
        """
        p = self.coding.n_variables
        ends = [part.first_stretch + self._room(n_stretches(part.rows, p)) for part in before]
        own = self._room(n_stretches(rows, p)) if self.sample is None else 1
        return -(-max(ends, default=0) // own) * own

    def branch_of(self, part: PlannedPart) -> tuple[int, int] | None:
        """Return the node of the tree that a part has to itself; None if it shares branches with others."""
        if self.sample is not None:
            return None
        level = self._room(n_stretches(part.rows, self.coding.n_variables)).bit_length() - 1
        return level, part.first_stretch >> level

    def _room(self, stretches: int) -> int:
        """Return how many stretches are kept free for a part that has so many."""
        return stretches if self.sample is not None else 1 << (stretches - 1).bit_length()

    @cached_property
    def digest(self) -> str:
        """Return a text that two plans share only if they ask for the same."""
        arrays, header = self.content()
        found = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
        for name in sorted(arrays):
            found.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
        return found.hexdigest()

    def refuse_other(self, other: MomentsPlan) -> None:
        """Refuse sums that were counted by another plan, and say in what the two differ."""
        if self.digest == other.digest:
            return
        if (found := self.coding.difference(other.coding)) is not None:
            raise InputError(f"the two sums are of two codings: {found}; count all parts with one plan")
        mine, theirs = self.content()[1], other.content()[1]
        if self.round != other.round:
            found = f"one is of round {self.round}, the other of round {other.round}"
        elif mine["parts"] != theirs["parts"]:
            found = (
                f"one has the parts {listing([part.name for part in self.parts])}, the other "
                f"{listing([part.name for part in other.parts])}, or other numbers of rows"
            )
        else:
            differing = [name for name, value in mine["parameters"].items() if theirs["parameters"].get(name) != value]
            found = f"they differ in {listing(differing or ['the theta that they count at'])}"
        raise InputError(f"the two sums are of different plans: {found}; count all parts with one plan")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file.

        Parameters
        ----------
        path : str or path
            The file; an older one stays until the new one is whole.
        """
        save_model(path, *self.content(), kind=PLAN)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a plan that :meth:`save` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        """
        return cls.from_content(path, *load_model(path, PLAN))

    def content(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return what a file holds of the plan: arrays, and all else as JSON can hold it."""
        arrays = {f"anchors_{mode}": each for mode, each in zip("uvw", self.anchors, strict=True)}
        arrays |= {name: found for name in ("theta", "alpha", "held") if (found := getattr(self, name)) is not None}
        if self.work is not None:
            arrays |= {f"pass_{each.name}": np.asarray(getattr(self.work, each.name)) for each in fields(Pass)}
        kept = ("parameters", "seed", "alpha0", "weight", "weighted", "row_id", "sample", "sampled", "round")
        header = {name: getattr(self, name) for name in kept}
        header |= {
            "coding": self.coding.to_dict(), "parts": [part.to_plain() for part in self.parts],
            "united": list(self.united), "moved": list(self.moved),
            "chosen": None if self.chosen is None else vars(self.chosen),
            "structure": None if self.structure is None else self.structure.to_plain(),
            "account": None if self.account is None else self.account.to_plain(),
        }  # fmt: skip
        return arrays, header

    @classmethod
    def from_content(cls, path: str | os.PathLike[str], arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Self:
        """Return the plan that a file holds."""
        try:
            found = dict(header)
            chosen, structure, account = (found.pop(name) for name in ("chosen", "structure", "account"))
            if chosen is not None:
                chosen = Alpha0(**chosen | {"tried": tuple(map(tuple, chosen["tried"]))})
            work = None
            if "pass_table" in arrays:
                values: dict[str, Any] = {each.name: arrays[f"pass_{each.name}"] for each in fields(Pass)}
                work = Pass(**values | {"k": int(values["k"])})
            return cls(
                coding=Coding.from_dict(found.pop("coding")),
                parts=tuple(PlannedPart.from_plain(part) for part in found.pop("parts")),
                anchors=(arrays["anchors_u"], arrays["anchors_v"], arrays["anchors_w"]),
                chosen=chosen,
                structure=None if structure is None else Structure.from_plain(structure),
                account=None if account is None else MomentAccount.from_plain(account),
                united=tuple(found.pop("united")),
                moved=tuple(found.pop("moved")),
                theta=arrays.get("theta"),
                alpha=arrays.get("alpha"),
                held=arrays.get("held"),
                work=work,
                **found,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} lacks a part of a plan ({error}); make it again") from error


# --- The sample, which stays with whoever fits


def sample_digest(sample: Encoded) -> str:
    """Return a text that two samples share only if they hold the same rows, coded alike."""
    found = hashlib.sha256(sample.coding.digest.encode())
    found.update(np.ascontiguousarray(sample.codes).tobytes())
    if sample.weights is not None:
        found.update(sample.weights.tobytes())
    return found.hexdigest()


def save_sample(path: str | os.PathLike[str], sample: Encoded) -> None:
    """Write the rows of a sample, without their names."""
    arrays = {"codes": sample.codes}
    if sample.weights is not None:
        arrays["weights"] = sample.weights
    save_model(path, arrays, {"coding": sample.coding.to_dict()}, kind=SAMPLE)


def load_sample(path: str | os.PathLike[str]) -> Encoded:
    """Read the rows that :func:`save_sample` wrote."""
    arrays, header = load_model(path, SAMPLE)
    return Encoded.of(arrays["codes"], Coding.from_dict(header["coding"]), arrays.get("weights"))
