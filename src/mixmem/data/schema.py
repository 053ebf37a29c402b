"""Variables, their kinds and levels, and the rows they own in theta: what a model knows of its table.

Theta stacks one row per level of each category, and the statistics of each number. Where a variable's rows begin is
known here and nowhere else (`Schema.offsets`). How cells become codes, and the rows of the moments, is the coding's
(:mod:`mixmem.data.coding`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.kinds import KINDS, kind_of
from mixmem.data.kinds.base import Kind
from mixmem.data.level_text import VALUE_TYPES
from mixmem.errors import InputError
from mixmem.words import suggestion

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Variable:
    """Describe one column: its name, its kind, and its levels as canonical texts, in order.

    Attributes
    ----------
    name : str
        Name of the column.
    levels : tuple of str
        Categories, or alleles, of which a cell holds ``ploidy``; of a number, values that are levels of their own.
    value_type : {"str", "int", "float", "bool"}
        What the levels' texts stand for.
    kind : str
        A kind's name: "categorical", "count", "continuous", "dosage", or one that was registered.
    ploidy : int
        Copies per genotype.
    written : str
        How the column's texts are read as numbers or days, where they are not plain numbers; "" for all others.

    Examples
    --------
    >>> Variable("smokes", ("no", "yes")).n_rows
    2
    """

    name: str
    levels: tuple[str, ...] = ()
    value_type: str = "str"
    kind: str = "categorical"
    ploidy: int = 2
    written: str = ""

    def __post_init__(self) -> None:
        if self.value_type not in VALUE_TYPES:
            raise InputError(
                f"variable {self.name!r} has value type {self.value_type!r}; expected one of {', '.join(VALUE_TYPES)}"
            )
        kind_of(self).check(self)

    @property
    def own_kind(self) -> Kind:
        """Return the kind as an object, which knows what can be asked of it."""
        return KINDS[self.kind]

    @property
    def is_number(self) -> bool:
        """Return whether cells are numbers rather than one of a few levels."""
        return KINDS[self.kind].number

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Return level and statistic of every row it owns in theta; numbers have no level."""
        return KINDS[self.kind].labels(self)

    @property
    def n_rows(self) -> int:
        """Return how many rows this variable owns in theta."""
        kind = KINDS[self.kind]
        return len(kind.labels(self)) if kind.number else len(self.levels)


@dataclass(frozen=True)
class Schema:
    """List the variables of a table, in the order of the columns of the codes.

    Attributes
    ----------
    variables : tuple of Variable
        One per column, with distinct names.
    left_out : tuple of str
        Columns of the table that were of no use; they do not count when schemas are compared.

    Examples
    --------
    >>> Schema((Variable("smokes", ("no", "yes")), Variable("age", kind="continuous"))).offsets
    array([0, 2, 4])
    """

    variables: tuple[Variable, ...]
    left_out: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        refuse_duplicates(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the variables."""
        return tuple(variable.name for variable in self.variables)

    @property
    def n_variables(self) -> int:
        """Return the number of variables."""
        return len(self.variables)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Return the number of rows of each variable in theta, int64 (p,)."""
        return np.array([variable.n_rows for variable in self.variables], dtype=np.int64)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Return where variables begin, int64 (p + 1,): variable j owns rows offsets[j] to offsets[j + 1] of theta."""
        offsets = np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)]).astype(np.int64)
        offsets.flags.writeable = False
        return offsets

    @property
    def n_rows(self) -> int:
        """Return the number of rows of theta."""
        return int(self.offsets[-1])

    @cached_property
    def labels(self) -> list[tuple[str, str, str]]:
        """Return variable, level and statistic of every row of theta."""
        return [(variable.name, *label) for variable in self.variables for label in variable.labels]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    def rows(self, j: int) -> slice:
        """Return the rows of theta that variable j owns."""
        return slice(int(self.offsets[j]), int(self.offsets[j + 1]))

    def statistics(self, j: int) -> slice:
        """Return the rows of theta that hold the statistics of variable j, a number: the last ones it owns."""
        end = int(self.offsets[j + 1])
        return slice(end - len(self.variables[j].own_kind.statistics), end)

    def has(self, name: str) -> np.ndarray:
        """Return for each variable (p,) whether its kind has a property: "number", "contaminable", "plain"."""
        return np.array([getattr(variable.own_kind, name) for variable in self.variables], dtype=bool)

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest value that every row of theta may have, (rows, 1) each."""
        both = [pair for variable in self.variables for pair in variable.own_kind.all_bounds(variable)]
        low, high = np.array(both, dtype=float).reshape(-1, 2).T
        return low[:, None], high[:, None]

    def index(self, names: Iterable[str]) -> np.ndarray:
        """Return the positions of the named variables, as int64."""
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in self._positions:
                raise InputError(f"there is no variable {name!r}{suggestion(name, self.names)}")
        return np.array([self._positions[name] for name in wanted], dtype=np.int64)

    def theta_frame(self, theta: np.ndarray) -> pd.DataFrame:
        """Return theta (n_rows, k) as a long table: variable, level, statistic, component_1..component_k."""
        import pandas as pd

        theta = np.asarray(theta)
        if theta.ndim != 2 or theta.shape[0] != self.n_rows:
            raise InputError(f"theta has shape {theta.shape}; expected ({self.n_rows}, k)")
        labels = dict(zip(("variable", "level", "statistic"), zip(*self.labels, strict=True), strict=True))
        components = [f"component_{h + 1}" for h in range(theta.shape[1])]
        return pd.concat([pd.DataFrame(labels), pd.DataFrame(theta, columns=components)], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return a form that JSON can hold."""
        return {"variables": [variable_to_dict(variable) for variable in self.variables]}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Schema:
        """Return what :meth:`to_dict` was made from."""
        try:
            return cls(tuple(variable_from_dict(each) for each in document["variables"]))
        except (KeyError, TypeError) as error:
            raise InputError(f"the schema is not one that mixmem wrote ({error!r}); fit the model again") from error


def variable_to_dict(variable: Variable) -> dict[str, Any]:
    """Return a variable in a form that JSON can hold."""
    return {
        "name": variable.name,
        "levels": list(variable.levels),
        "value_type": variable.value_type,
        "kind": variable.kind,
        "ploidy": variable.ploidy,
    } | ({"written": variable.written} if variable.written else {})


def variable_from_dict(document: dict[str, Any]) -> Variable:
    """Return what :func:`variable_to_dict` was made from."""
    return Variable(
        document["name"],
        tuple(document["levels"]),
        document["value_type"],
        document["kind"],
        document.get("ploidy", 2),
        document.get("written", ""),
    )


def refuse_duplicates(names: Iterable[str]) -> None:
    """Refuse names that occur twice: they identify columns."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in seen:
            raise InputError(
                f"columns {seen[name]} and {position} have the same name {name!r}; "
                "expected distinct names: rename or drop one"
            )
        seen[name] = position


def mixed_schema(n_categorical: int, n_count: int, n_continuous: int, levels: tuple[str, ...]) -> Schema:
    """Return the schema of a table of categories x0, …, counts count0, … and continuous numbers real0, …"""
    variables = [Variable(f"x{j}", levels, "int") for j in range(n_categorical)]
    variables += [Variable(f"count{j}", value_type="int", kind="count") for j in range(n_count)]
    variables += [Variable(f"real{j}", value_type="float", kind="continuous") for j in range(n_continuous)]
    return Schema(tuple(variables))
