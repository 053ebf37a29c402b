"""Kinds of variables, by the names under which users declare them; :mod:`mixmem.data.kinds.base` is the recipe."""

from __future__ import annotations

from typing import Protocol

from mixmem.data.kinds.base import Kind
from mixmem.data.kinds.categorical import Categorical
from mixmem.data.kinds.continuous import Continuous
from mixmem.data.kinds.count import Count
from mixmem.data.kinds.dosage import Dosage
from mixmem.data.kinds.ordinal import Ordinal
from mixmem.errors import InputError

KINDS: dict[str, Kind] = {}
"""The kinds, by name."""


class _OfKind(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...


def register(kind: type[Kind], *names: str) -> Kind:
    """Make a kind known under these names, and return it; one that lacks a method is refused.

    Parameters
    ----------
    kind : class
        A subclass of :class:`mixmem.data.kinds.base.LevelKind` or :class:`~mixmem.data.kinds.base.NumberKind`.
    *names : str
        What users call it in ``variables=`` and ``--kind``.
    """
    lacking = sorted(getattr(kind, "__abstractmethods__", ()))
    lacking += [name for name in ("statistics", "words", "nouns", "cells") if not hasattr(kind, name)]
    if lacking:
        raise InputError(
            f"the kind {kind.__name__} lacks {', '.join(lacking)}; write what mixmem.data.kinds.base asks of a kind"
        )
    if not names:
        raise InputError(f"the kind {kind.__name__} is registered without a name; give the one that users declare")
    made = kind()
    for name in names:
        KINDS[name] = made
    return made


def kind_of(variable: _OfKind) -> Kind:
    """Return the kind of a variable."""
    if variable.kind not in KINDS:
        raise InputError(
            f"variable {variable.name!r} is declared {variable.kind!r}; expected one of {', '.join(KINDS)}"
        )
    return KINDS[variable.kind]


register(Categorical, "categorical", "binary")  # one and the same to the model; users declare either
register(Ordinal, "ordinal")
register(Dosage, "dosage")
register(Count, "count")
register(Continuous, "continuous")
