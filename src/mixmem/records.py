"""Records: frozen dataclasses that say what happened, and become JSON in one place.

A record's fields are numbers, texts, records, and lists of these. ``record.to_plain()`` is what JSON holds,
``Kind.from_plain(document)`` the way back. Fields can be read as in the JSON, too: ``report["sweeps"]["count"]``.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import types
import typing
from typing import Any, Self

import numpy as np


@dataclasses.dataclass(frozen=True)
class Record:
    """The base of all records."""

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self.__dataclass_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a field of this name."""
        return name in self.__dataclass_fields__

    def to_plain(self) -> dict[str, Any]:
        """Return the record as dictionaries, lists, numbers and texts; numbers that are not finite become None."""
        return {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}

    @classmethod
    def from_plain(cls, document: dict[str, Any]) -> Self:
        """Return the record that :meth:`to_plain` was called on; KeyError or TypeError if it is none of these."""
        hints = typing.get_type_hints(cls, vars(sys.modules[cls.__module__]))
        values = {}
        for field in dataclasses.fields(cls):
            if field.name not in document and field.default is not dataclasses.MISSING:
                continue
            values[field.name] = _read(hints[field.name], document[field.name])
        return cls(**values)


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, Record):
        return value.to_plain()
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _read(kind: Any, value: Any) -> Any:
    """Return a plain value as what a field's type says."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        return _read(_alternative([each for each in arguments if each is not type(None)], value), value)
    if origin in (list, tuple):
        inner = arguments[0] if arguments else Any
        return origin(_read(inner, part) for part in value)
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind.from_plain(value)
    if kind is float and value is None:
        return math.inf
    return value


def _alternative(kinds: list[Any], value: Any) -> Any:
    """Return the one of several types that a value is of: records are told apart by their field ``way``."""
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, Record) and isinstance(value, dict):
            way = kind.__dataclass_fields__.get("way")
            if way is None or value.get("way") == way.default:
                return kind
    return next((kind for kind in kinds if not (isinstance(kind, type) and issubclass(kind, Record))), kinds[0])
