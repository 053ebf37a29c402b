"""Variables, their kinds and levels, and the rows they own in theta.

Theta stacks one row per level of each variable. Where a variable's rows begin is known here and nowhere else
(`Schema.offsets`).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

MAX_LEVELS = 65_535
"""Codes are at most 16 bits wide; a variable with more levels is no category."""


@dataclass(frozen=True)
class Kind:
    """What a kind of variable puts into theta."""

    statistic: str
    """The name of its rows in the `statistic` column of the theta table."""


KINDS: dict[str, Kind] = {"categorical": Kind(statistic="probability")}
# Both are categories to the moments; the names are kept because users declare them.
KINDS["binary"] = KINDS["ordinal"] = KINDS["categorical"]

VALUE_TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: text == "True",
}


@dataclass(frozen=True)
class Variable:
    """One column: its name and its levels as canonical texts (see `mixmem.encoding`), in order."""

    name: str
    levels: tuple[str, ...]
    value_type: str = "str"
    kind: str = "categorical"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"variable {self.name!r} is declared {self.kind!r}; expected one of {', '.join(KINDS)}")
        if self.value_type not in VALUE_TYPES:
            raise InputError(
                f"variable {self.name!r} has value type {self.value_type!r}; expected one of {', '.join(VALUE_TYPES)}"
            )
        if not self.levels:
            raise InputError(f"variable {self.name!r} has no levels; expected at least one")
        if len(self.levels) > MAX_LEVELS:
            raise InputError(
                f"variable {self.name!r} has {len(self.levels)} levels; expected at most {MAX_LEVELS}: "
                "drop the column or merge its levels"
            )
        if len(set(self.levels)) != len(self.levels):
            twice = next(level for level in self.levels if self.levels.count(level) > 1)
            raise InputError(f"variable {self.name!r} lists level {twice!r} twice; name each level once")

    @property
    def n_rows(self) -> int:
        """Rows this variable owns in theta."""
        return len(self.levels)

    def values(self) -> list[Any]:
        """The levels as the values they were read from."""
        convert = VALUE_TYPES[self.value_type]
        return [convert(level) for level in self.levels]


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
    def n_levels(self) -> np.ndarray:
        """(p,) int64: the number of levels of each variable."""
        return np.array([len(variable.levels) for variable in self.variables], dtype=np.int64)

    @cached_property
    def offsets(self) -> np.ndarray:
        """(p + 1,) int64: variable j owns rows offsets[j] to offsets[j + 1] of theta."""
        rows = [variable.n_rows for variable in self.variables]
        offsets = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)]).astype(np.int64)
        offsets.flags.writeable = False
        return offsets

    @property
    def n_rows(self) -> int:
        """Rows of theta."""
        return int(self.offsets[-1])

    @property
    def codes_dtype(self) -> np.dtype:
        """The narrowest unsigned type that holds every code, with its largest value to spare."""
        return np.dtype(np.uint8 if max(self.n_levels, default=0) <= 255 else np.uint16)

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
        labels = {
            "variable": [v.name for v in self.variables for _ in v.levels],
            "level": [level for v in self.variables for level in v.levels],
            "statistic": [KINDS[v.kind].statistic for v in self.variables for _ in v.levels],
        }
        components = [f"component_{h + 1}" for h in range(theta.shape[1])]
        return pd.concat([pd.DataFrame(labels), pd.DataFrame(theta, columns=components)], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold."""
        return {
            "variables": [
                {"name": v.name, "levels": list(v.levels), "value_type": v.value_type, "kind": v.kind}
                for v in self.variables
            ]
        }

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Schema:
        """The inverse of `to_dict`."""
        try:
            variables = tuple(
                Variable(v["name"], tuple(v["levels"]), v["value_type"], v["kind"]) for v in document["variables"]
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
