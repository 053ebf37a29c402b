"""Which columns name rows rather than say something of them: judged by what they hold and by their name.

The order of the rows says little here: a table that is shuffled or split is the same table.
"""

from __future__ import annotations

import re

import numpy as np

IDENTIFIER_ROWS = 20
"""From this many rows on, a column whose values are all distinct may be an identifier."""
IDENTIFIER_SHARE = 0.9
"""A column of texts is one if so many of its rows have a text of their own."""
TIES = 9.0
"""Whole numbers that all differ do so by design if numbers drawn from their range would agree in so many pairs: by
chance alone all would differ once in exp(9) = 8,000 tables, whatever their range, and more seldom if not all numbers
are as frequent."""
FROM_ONE = 10.0
"""Ranks begin at one: the least of some of them, drawn at random, lies no further up than so many of their mean
steps."""
_SUBJECT = re.compile(
    r"(.*[_. -])?(id|ids|uuid|guid|identifier|subject|respondent|participant)"
    r"|id[_. -].*|id(no|nr|num|number)"
    r"|(p|s|u|hh|case|rec|record|row|resp|subj|subject|pers|person|part|participant|patient|respondent|member|user"
    r"|client|cust|customer|student|household|family|unique)id"
    r"|(?-i:.*[a-z](ID|Id))",
    re.IGNORECASE,
)
"""Names of columns that say who a row is about."""
_ROW = re.compile(
    r"(.*[_. -])?(nr|no|number|key)|(case|obs|row|record|serial|subj|subject|patient)[_. -]?(no|nr|num|number)"
    r"|((row|case|record|obs|sample|subject)[_. -]?)?index|rownames?|row|obs|observation|case|patient|serial|seqn"
    r"|unnamed: 0",
    re.IGNORECASE,
)
"""Names of columns that number rows, where their whole numbers all differ; else they may be anything."""


def names_subjects(name: str) -> bool:
    """Return whether a column's name says that it tells who a row is about.

    >>> [name for name in ("idno", "subject_id", "customerID", "paid", "covid", "id") if names_subjects(name)]
    ['idno', 'subject_id', 'customerID', 'id']
    """
    return _SUBJECT.fullmatch(name) is not None


def numbering(name: str, numbers: np.ndarray, *, first: bool) -> str:
    """Return what whole numbers (n,) without missing ones are: "identifier", "unclear" if they may be, else "".

    They are one if all differ and their name says so, or if they differ by design and are in the ``first`` column, in
    the rows' order, or do not begin at one; else they may be ranks.

    >>> mixed = np.random.default_rng(0).permutation(100) + 1
    >>> [numbering(name, mixed, first=name == "a") for name in ("a", "b", "b_id")]
    ['identifier', 'unclear', 'identifier']
    >>> numbering("b", mixed[:50], first=False), numbering("b", 7 * mixed**3, first=False)
    ('unclear', '')
    """
    n = len(numbers)
    if n < IDENTIFIER_ROWS or len(np.unique(numbers)) < n:
        return ""
    if names_subjects(name) or _ROW.fullmatch(name):
        return "identifier"
    rising = bool((np.diff(numbers) > 0).all())
    least, span = float(numbers.min()), float(numbers.max()) - float(numbers.min()) + 1.0
    if n * (n - 1) / 2.0 / span < TIES:
        return "unclear" if first or rising else ""
    return "identifier" if first or rising or abs(least) > FROM_ONE * span / n else "unclear"
