"""Variables, their kinds and levels, and the rows they own in theta.

Theta stacks one row per level of each category, and the statistics of each number. Where a variable's rows begin is
known here and nowhere else (`Schema.offsets`); the rows of the moments are `Schema.features`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.kinds import KINDS, Dosage, Number
from mixmem.data.soft_levels import Features
from mixmem.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

NO_VALUES = np.empty(0)

VALUE_TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: text == "True",
}


@dataclass(frozen=True)
class Variable:
    """One column: its name, its kind, and its levels as canonical texts (see `mixmem.data.encode`), in order.

    Levels are categories, or alleles, of which a cell holds ``ploidy``; numbers have none. What belongs to a table
    rather than to a model takes no part in comparisons: the ``values`` of a number's codes, the ``knots`` of its soft
    levels, and whether cells are ``missing``.
    """

    name: str
    levels: tuple[str, ...] = ()
    value_type: str = "str"
    kind: str = "categorical"
    ploidy: int = 2
    values: np.ndarray = field(default_factory=lambda: NO_VALUES, compare=False, repr=False)
    knots: tuple[float, ...] = field(default=(), compare=False, repr=False)
    missing: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"variable {self.name!r} is declared {self.kind!r}; expected one of {', '.join(KINDS)}")
        if self.value_type not in VALUE_TYPES:
            raise InputError(
                f"variable {self.name!r} has value type {self.value_type!r}; expected one of {', '.join(VALUE_TYPES)}"
            )
        KINDS[self.kind].check(self)

    @property
    def is_number(self) -> bool:
        """Whether cells are numbers rather than one of a few levels."""
        return KINDS[self.kind].number

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Level and statistic of every row it owns in theta; numbers have no level."""
        kind = KINDS[self.kind]
        if kind.number:
            return [("", statistic) for statistic in kind.statistics]
        return [(level, kind.statistics[0]) for level in self.levels]

    @property
    def n_rows(self) -> int:
        """Rows this variable owns in theta."""
        return len(KINDS[self.kind].statistics) if KINDS[self.kind].number else len(self.levels)

    def of_codes(self) -> list[Any]:
        """What a cell of each code holds: a level's value, a genotype (the number of copies of the second allele, or
        both alleles), a number; None comes last, for missing."""
        kind = KINDS[self.kind]
        if isinstance(kind, Number):
            held: list[Any] = self.values.tolist()
            if self.value_type == "int":
                held = [int(value) if float(value).is_integer() else value for value in held]
        elif isinstance(kind, Dosage):
            copies = kind.copies(self)
            held = (
                copies.sum(axis=1).tolist()
                if len(self.levels) == 2
                else ["/".join(self.levels[a] for a in alleles) for alleles in copies]
            )
        else:
            convert = VALUE_TYPES[self.value_type]
            held = [convert(level) for level in self.levels]
        return [*held, None]


@dataclass(frozen=True)
class Schema:
    """The variables of a table, in the order of the columns of the codes."""

    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        refuse_duplicates(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables)

    @property
    def n_variables(self) -> int:
        return len(self.variables)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(p,) int64: the number of rows of each variable in theta."""
        return np.array([variable.n_rows for variable in self.variables], dtype=np.int64)

    @cached_property
    def offsets(self) -> np.ndarray:
        """(p + 1,) int64: variable j owns rows offsets[j] to offsets[j + 1] of theta."""
        offsets = np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)]).astype(np.int64)
        offsets.flags.writeable = False
        return offsets

    @property
    def n_rows(self) -> int:
        """Rows of theta."""
        return int(self.offsets[-1])

    @cached_property
    def features(self) -> Features:
        """Cells and soft levels, the rows of the moments' theta."""
        return Features(self.variables)

    @property
    def complete(self) -> Schema:
        """The same variables, none of them with missing cells."""
        return Schema(tuple(replace(variable, missing=False) for variable in self.variables))

    @cached_property
    def labels(self) -> list[tuple[str, str, str]]:
        """Variable, level and statistic of every row of theta."""
        return [(variable.name, *label) for variable in self.variables for label in variable.labels]

    @property
    def codes_dtype(self) -> np.dtype:
        """The narrowest unsigned type that holds every code, with its largest value to spare."""
        most = int(np.diff(self.features.cell_offsets).max(initial=0))
        return np.dtype(np.uint8 if most <= 255 else np.uint16)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    def index(self, names: Iterable[str]) -> np.ndarray:
        """Positions of the named variables, as int64."""
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in self._positions:
                raise InputError(f"there is no variable {name!r}{suggestion(name, self.names)}")
        return np.array([self._positions[name] for name in wanted], dtype=np.int64)

    def theta_frame(self, theta: np.ndarray) -> pd.DataFrame:
        """Theta (n_rows, k) as a long table: variable, level, statistic, component_1..component_k."""
        import pandas as pd

        theta = np.asarray(theta)
        if theta.ndim != 2 or theta.shape[0] != self.n_rows:
            raise InputError(f"theta has shape {theta.shape}; expected ({self.n_rows}, k)")
        labels = dict(zip(("variable", "level", "statistic"), zip(*self.labels, strict=True), strict=True))
        components = [f"component_{h + 1}" for h in range(theta.shape[1])]
        return pd.concat([pd.DataFrame(labels), pd.DataFrame(theta, columns=components)], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold."""
        kept = ("name", "levels", "value_type", "kind", "ploidy")
        return {"variables": [{name: getattr(v, name) for name in kept} for v in self.variables]}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Schema:
        """The inverse of `to_dict`."""
        try:
            variables = tuple(
                Variable(v["name"], tuple(v["levels"]), v["value_type"], v["kind"], v.get("ploidy", 2))
                for v in document["variables"]
            )
        except (KeyError, TypeError) as error:
            raise InputError(f"the schema is not one that mixmem wrote ({error!r}); fit the model again") from error
        return cls(variables)


def refuse_duplicates(names: Iterable[str]) -> None:
    """Names identify columns, so each may occur once."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in seen:
            raise InputError(
                f"columns {seen[name]} and {position} have the same name {name!r}; "
                "expected distinct names: rename or drop one"
            )
        seen[name] = position


def suggestion(name: str, known: Iterable[str]) -> str:
    """ "; did you mean ...?" for a name that is close to a known one, else the first few known names."""
    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; expected one of {listing(known)}"


def listing(items: Iterable[str], limit: int = 8) -> str:
    """The first few items, quoted, and how many there are in all if some are left out."""
    items = list(items)
    shown = ", ".join(repr(item) for item in items[:limit])
    return shown if len(items) <= limit else f"{shown}, ... ({len(items)} in all)"
