"""What is declared of columns: kinds by name or by pattern, and the order of ordered levels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from mixmem.errors import InputError
from mixmem.words import listing, quoted

ORDER = ":"
"""What stands between a kind and the order of its levels."""
LEADING = re.compile(r"\s*(\d+(?:\.\d+)?)")


def kinds_by_column(kinds: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """Return what is declared of each column; a name such as q* is that of every column it fits.

    A column's own name goes before patterns, and a later pattern before an earlier one.

    >>> kinds_by_column({"q*": "ordinal", "q2": "count"}, ["q1", "q2", "sex"])
    {'q1': 'ordinal', 'q2': 'count'}
    """
    own = set(names)
    found: dict[str, str] = {}
    exact: dict[str, str] = {}
    for key, kind in kinds.items():
        given = str(key)  # columns of a frame may be numbered
        is_pattern = given not in own and any(mark in given for mark in "*?[")
        fitting = [name for name in names if fnmatchcase(name, given)] if is_pattern else []
        if fitting:
            found |= dict.fromkeys(fitting, kind)
        else:
            exact[given] = kind
    return found | exact


def kind_and_order(kind: str) -> tuple[str, tuple[str, ...]]:
    """Return a kind's name and the order of levels that is declared with it, if any.

    >>> kind_and_order("ordinal:never<sometimes<often")
    ('ordinal', ('never', 'sometimes', 'often'))
    """
    name, _, order = kind.partition(ORDER)
    return name.strip(), tuple(level.strip() for level in order.split("<")) if order else ()


def ordered_texts(name: str, levels: Iterable[str], order: Sequence[str], *, known: bool) -> list[str]:
    """Return a column's levels in their order: the declared one, their own if it is ``known``, that of the numbers they
    begin with."""
    held = list(levels)
    if order:
        if strange := [level for level in held if level not in order]:
            raise InputError(
                f"column {name!r} holds {strange[0]!r}, which is not in the order declared for it, "
                f"{' < '.join(order)}; add it there, or declare it missing"
            )
        return [level for level in order if level in held]
    if known:
        return held
    found = [LEADING.match(level) for level in held]
    begins = [float(match[1]) for match in found if match is not None]
    if len(set(begins)) == len(held):
        return sorted(held, key=lambda level: begins[held.index(level)])
    order_of_some = quoted(f"{name}=ordinal:{'<'.join(held[:3])}")
    raise InputError(
        f"column {name!r} is declared ordinal, and its texts do not say in which order they stand: {listing(held)}; "
        f"expected the order, from the least to the most, such as --kind {order_of_some}"
    )
