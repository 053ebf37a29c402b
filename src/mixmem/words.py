"""Numbers, names and lists as a person reads them."""

from __future__ import annotations

import difflib
import math
import shlex
from collections.abc import Iterable

LONGEST = 60
"""Characters of a name that are shown."""
IN_DOUBLE_QUOTES = frozenset('"$`\\!')
"""Characters that mean something to a shell even between double quotes."""


def plain_number(value: float) -> str:
    """A number for reading: four digits, no exponent where none is needed.

    >>> plain_number(0.123456), plain_number(12345.6), plain_number(2.0)
    ('0.1235', '12,346', '2')
    """
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def measured(value: float, scale: float) -> str:
    """A measurement for reading: three digits, none below a hundredth of ``scale``, the column's deviation.

    >>> measured(4207.3, 800.0), measured(0.12345, 0.1), measured(0.00148, 1.0), measured(17.04, 2.0)
    ('4,207', '0.123', '0', '17')
    """
    value = round(float(value), 2 - math.floor(math.log10(scale))) + 0.0  # no negative zero
    return f"{value:,.0f}" if 100 <= abs(value) < 1e9 else f"{value:.3g}"


def counted(count: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "column"), counted(1200, "row")
    ('1 column', '1,200 rows')
    """
    return f"{count:,} {what}{'s' * (count != 1)}"


def short(text: str, longest: int = LONGEST) -> str:
    """A name, cut where it is longer than anyone reads."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def one_line(text: str) -> str:
    """Return a text without line breaks; blanks alone are shown in quotes."""
    return " ".join(text.split()) if text.strip() else repr(text)


def quoted(text: str) -> str:
    """Return a text as one types it in a shell: in quotes, if it holds blanks or what means something there.

    >>> print(quoted("age=99"), quoted("q*=ordinal"), quoted("time=don't know"), quoted("cost=$"))
    age=99 "q*=ordinal" "time=don't know" 'cost=$'
    """
    safe = shlex.quote(text)
    return safe if safe == text or IN_DOUBLE_QUOTES & set(text) else f'"{text}"'


def suggestion(name: str, known: Iterable[str]) -> str:
    """ "; did you mean ...?" for a name that is close to a known one, else the first few known names."""
    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; expected one of {listing(known)}"


def listed(items: Iterable[str], limit: int = 8) -> str:
    """Items as a sentence has them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    items = list(items)
    if len(items) > limit:
        return f"{', '.join(items[:limit])} and {len(items) - limit} more"
    return " and ".join(part for part in (", ".join(items[:-1]), items[-1]) if part)


def listing(items: Iterable[str], limit: int = 8) -> str:
    """The first few items, quoted, and how many there are in all if some are left out."""
    items = list(items)
    shown = ", ".join(repr(item) for item in items[:limit])
    return shown if len(items) <= limit else f"{shown}, ... ({len(items)} in all)"
