"""The coding of a table: how cells become codes, and what codes mean.

A coding is fixed before the first row is counted. It is what sums over rows depend on: two sums add only if their
codings are equal. A :class:`mixmem.Schema` is what a model knows of its variables; a coding adds to each the grid of
values that numbers are rounded to, the knots of their soft levels, and whether cells may be missing. It compares by
value, has a digest, and is written whole to model files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixmem.data.kinds import KINDS
from mixmem.data.kinds.base import MOST_SOFT, Kind
from mixmem.data.schema import Schema, Variable, variable_from_dict, variable_to_dict
from mixmem.data.soft_levels import SoftLevels
from mixmem.errors import InputError
from mixmem.typing import Array
from mixmem.words import listing

NO_VALUES = np.empty(0)
NO_VALUES.flags.writeable = False


@dataclass(frozen=True, eq=False)
class ColumnCoding:
    """Say how one variable's cells become codes.

    Attributes
    ----------
    variable : Variable
        Its name, kind and levels.
    values : array (m,)
        The grid of a number, ascending: code c stands for values[c].
    edges : array (m - 1,)
        Numbers up to edges[c] and above edges[c - 1] have code c.
    knots : tuple of float
        Ends of the pieces of its soft levels: the smallest value, quantiles between, the largest.
    missing : bool
        Whether cells may be missing; their code is the one after the last.
    resolution : float
        The step in which a column of numbers was measured: 1 of whole numbers, next to nothing where no two are equal.
    frequencies : array (levels,)
        How common the levels of a category are, where there are so many that the moments pool the rare ones; else none.
    """

    variable: Variable
    values: Array = field(default_factory=lambda: NO_VALUES)
    edges: Array = field(default_factory=lambda: NO_VALUES)
    knots: tuple[float, ...] = ()
    missing: bool = False
    resolution: float = 0.0
    frequencies: Array = field(default_factory=lambda: NO_VALUES)

    @property
    def name(self) -> str:
        return self.variable.name

    @property
    def kind(self) -> str:
        return self.variable.kind

    @property
    def own_kind(self) -> Kind:
        """Return the kind as an object."""
        return KINDS[self.variable.kind]

    @property
    def levels(self) -> tuple[str, ...]:
        return self.variable.levels

    @property
    def value_type(self) -> str:
        return self.variable.value_type

    @property
    def ploidy(self) -> int:
        return self.variable.ploidy

    @property
    def is_number(self) -> bool:
        return self.variable.is_number

    @property
    def n_codes(self) -> int:
        """Return how many codes a cell can have, missing not counted."""
        return KINDS[self.variable.kind].n_codes(self)

    def held(self) -> list[Any]:
        """Return what a cell of each code holds; None comes last, for missing."""
        return [*self.own_kind.held(self), None]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnCoding) and self.difference(other) is None

    def __hash__(self) -> int:
        return hash((self.variable, len(self.values), self.knots, self.missing))

    def difference(self, other: ColumnCoding) -> str | None:
        """Return in what two codings of a variable differ, in words; None if in nothing."""
        mine, theirs = self.variable, other.variable
        if mine.name != theirs.name:
            return f"variable {mine.name!r} stands where the other has {theirs.name!r}"
        if mine.kind != theirs.kind:
            return f"variable {mine.name!r} is {mine.kind} in the one and {theirs.kind} in the other"
        if mine.levels != theirs.levels:
            return f"variable {mine.name!r} has the levels {listing(mine.levels)} and {listing(theirs.levels)}"
        if (mine.value_type, mine.ploidy) != (theirs.value_type, theirs.ploidy):
            return f"variable {mine.name!r} holds {mine.value_type} and {theirs.value_type}, or other numbers of copies"
        grids = zip((self.values, self.edges), (other.values, other.edges), strict=True)
        alike = (self.knots, self.resolution) == (other.knots, other.resolution)
        if not alike or not all(np.array_equal(one, two) for one, two in grids):
            return (
                f"variable {mine.name!r} is rounded to {len(self.values):,} values in the one and to "
                f"{len(other.values):,} others in the other"
            )
        if not np.array_equal(self.frequencies, other.frequencies):
            return f"variable {mine.name!r} has other rare levels in the one than in the other"
        if self.missing != other.missing:
            return f"variable {mine.name!r} may be missing in only one of them"
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return a form that JSON can hold; floats come back to the last bit."""
        grid = {"values": self.values.tolist(), "edges": self.edges.tolist(), "knots": list(self.knots)}
        rare = {"frequencies": self.frequencies.tolist()} if len(self.frequencies) else {}
        kept = {"missing": self.missing, "resolution": self.resolution}
        return variable_to_dict(self.variable) | grid | kept | rare

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> ColumnCoding:
        """Return what :meth:`to_dict` was made from."""
        values, edges = (np.array(document[name], dtype=np.float64) for name in ("values", "edges"))
        common = np.array(document.get("frequencies", []), dtype=np.float64)
        knots, missing = tuple(document["knots"]), bool(document["missing"])
        resolution = float(document.get("resolution", 0.0))
        return cls(variable_from_dict(document), values, edges, knots, missing, resolution, common)


@dataclass(frozen=True)
class Coding:
    """Hold the coding of a table.

    Attributes
    ----------
    columns : tuple of ColumnCoding
        How each variable's cells become codes.
    left_out : tuple of str
        Columns of the table that were of no use; they do not count when codings are compared.

    Examples
    --------
    >>> from mixmem import encode
    >>> one, other = encode([["x", 1], ["y", 2]]).coding, encode([["y", 1], ["z", 2]]).coding
    >>> one == other
    False
    >>> one.difference(other)
    "variable 'x0' has the levels 'x', 'y' and 'y', 'z'"
    """

    columns: tuple[ColumnCoding, ...]
    left_out: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, schema: Schema, *, missing: bool = False) -> Coding:
        """Return the coding of tables of levels that a schema describes; numbers need a table to learn a grid from."""
        return cls(tuple(ColumnCoding(variable, missing=missing) for variable in schema.variables))

    @cached_property
    def schema(self) -> Schema:
        """Return what a model knows of the variables."""
        return Schema(tuple(column.variable for column in self.columns), self.left_out)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the variables."""
        return self.schema.names

    @property
    def n_variables(self) -> int:
        """Return the number of variables."""
        return len(self.columns)

    @cached_property
    def soft(self) -> SoftLevels:
        """Return cells and soft levels, the rows of the moments' theta."""
        return SoftLevels(self.columns)

    @cached_property
    def missing(self) -> np.ndarray:
        """Return whether cells of each variable may be missing (p,)."""
        return np.array([column.missing for column in self.columns], dtype=bool)

    @property
    def codes_dtype(self) -> np.dtype:
        """Return the narrowest unsigned type that holds every code, with its largest value to spare."""
        most = int(np.diff(self.soft.cell_offsets).max(initial=0))
        return np.dtype(np.uint8 if most <= 255 else np.uint16)

    @property
    def complete(self) -> Coding:
        """Return the same coding without missing cells."""
        return replace(self, columns=tuple(replace(column, missing=False) for column in self.columns))

    def pooling(self, codes: np.ndarray, weights: Array | None = None) -> Coding:
        """Return the coding in which columns of very many levels pool those that are rare in codes (n, p)."""
        counts = {j: np.bincount(codes[:, j], weights, self.columns[j].n_codes + 1) for j in self._wide}
        return self._pooled_by(counts)

    def pooling_by(self, counts: Array) -> Coding:
        """Return the coding in which columns of very many levels pool those that are rare by counts of cells."""
        offsets = self.soft.cell_offsets
        return self._pooled_by({j: counts[offsets[j] : offsets[j + 1]] for j in self._wide})

    @property
    def _wide(self) -> list[int]:
        return [j for j, column in enumerate(self.columns) if column.own_kind.pools and column.n_codes > MOST_SOFT]

    def _pooled_by(self, counts: Mapping[int, np.ndarray]) -> Coding:
        columns = list(self.columns)
        for j, found in counts.items():
            own = found[: columns[j].n_codes]
            columns[j] = replace(columns[j], frequencies=own / max(own.sum(), 1e-300))
        return replace(self, columns=tuple(columns)) if counts else self

    @property
    def pooled(self) -> bool:
        """Return whether the moments pool rare levels of some column."""
        return any(len(column.frequencies) for column in self.columns)

    @property
    def unpooled(self) -> Coding:
        """Return the same coding with every level of a category as a soft level of its own."""
        if not self.pooled:
            return self
        return replace(self, columns=tuple(replace(column, frequencies=NO_VALUES) for column in self.columns))

    def take(self, variables: Sequence[int] | np.ndarray) -> Coding:
        """Return the coding of some of the variables, in the order given."""
        return Coding(tuple(self.columns[int(j)] for j in variables))

    @cached_property
    def digest(self) -> str:
        """Return a text that two codings share only if they are equal."""
        return hashlib.sha256(json.dumps(self.to_dict()["columns"], sort_keys=True).encode()).hexdigest()

    def difference(self, other: Coding) -> str | None:
        """Return the first thing in which two codings differ, in words; None if they are equal."""
        if self is other:
            return None
        if len(self.columns) != len(other.columns):
            return f"one has {len(self.columns)} variables, the other {len(other.columns)}"
        found = (mine.difference(theirs) for mine, theirs in zip(self.columns, other.columns, strict=True))
        return next((text for text in found if text is not None), None)

    def refuse_other(self, other: Coding, what: str) -> None:
        """Refuse to go on with ``what`` unless the other coding is equal to this one."""
        if (found := self.difference(other)) is not None:
            raise InputError(
                f"{what} are of two codings: {found}; code both tables alike, with coding = learn_coding(a, b) and "
                "encode(a, coding=coding)"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return a form that JSON can hold."""
        left_out = {"left_out": list(self.left_out)} if self.left_out else {}
        return {"columns": [column.to_dict() for column in self.columns]} | left_out

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Coding:
        """Return what :meth:`to_dict` was made from."""
        try:
            columns = tuple(ColumnCoding.from_dict(each) for each in document["columns"])
            return cls(columns, tuple(document.get("left_out", ())))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the coding is not one that mixmem wrote ({error!r}); make the file again") from error
