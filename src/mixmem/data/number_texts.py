"""Texts that stand for numbers or dates though they are not written as plain numbers: "$14,905", "35.3%", "12 kg"."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixmem.data.level_text import NUMBER_TEXT

_WRITTEN = re.compile(
    r"(?P<sign>[+\u2212-]?)\s*(?P<currency>[$€£¥]?)\s*(?P<number>[0-9](?:[0-9.,' \u00a0\u202f]*[0-9])?)\s*"
    r"(?P<unit>%|[$€£¥]|[A-Za-z°µ²³/]{1,8})?"
)
_GAPS = " '\u00a0\u202f"
_ENGLISH = r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"
_CONTINENTAL = r"(?:0|[1-9][0-9]*)(?:,[0-9]+)?"
_FORMS = (
    (re.compile(rf"{_ENGLISH}|[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})+(?:\.[0-9]+)?"), ",", "."),
    (
        re.compile(rf"(?:0|[1-9][0-9]*)(?:,[0-9]+)?|[1-9][0-9]{{0,2}}(?:[.{_GAPS}][0-9]{{3}})+(?:,[0-9]+)?"),
        "." + _GAPS,
        ",",
    ),
    (re.compile(rf"{_ENGLISH}|[1-9][0-9]{{0,2}}(?:[{_GAPS}][0-9]{{3}})+(?:\.[0-9]+)?"), _GAPS, "."),
)
"""How numbers are written, what parts their thousands, and their decimal mark."""
_DATE = re.compile(
    r"(?:[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}|[0-9]{1,2}(?P<mark>[-/.])[0-9]{1,2}(?P=mark)(?:[0-9]{4}|[0-9]{2}))"
    r"(?:[T ]+[0-9]{1,2}:[0-9]{2}.*)?"
)


DAYS = ("month first", "day first")
"""Forms of dates: which number comes first where the year is last."""


@dataclass(frozen=True)
class Written:
    """Texts read as numbers or days: ``values`` (m,), the ``form`` by which they were read, which later texts of the
    column are read by, and what they are written with, in words."""

    values: np.ndarray
    form: str
    words: str = ""


def written_numbers(texts: Sequence[str], *, decimal_comma: bool = False) -> Written | None:
    """Read texts as numbers with one currency or unit, or with marks between thousands; None if one is not so.

    ``decimal_comma`` says that the file writes numbers with decimal commas; else commas between three digits part
    thousands.

    >>> written_numbers(["$14,905", "$870"]).values.tolist()
    [14905.0, 870.0]
    >>> written_numbers(["1.234,5 kg", "12 kg"]).values.tolist()
    [1234.5, 12.0]
    >>> written_numbers(["12", "n. a."]) is None
    True
    """
    found = [_WRITTEN.fullmatch(text.strip()) for text in texts]
    if not found or None in found:
        return None
    parts = [match for match in found if match is not None]
    signs = {(match["currency"] or "", match["unit"] or "") for match in parts}
    numbers = [match["number"] for match in parts]
    if len(signs) > 1 or (not any(*signs) and all(number.isdigit() for number in numbers)):
        return None  # digits alone may be codes
    for form in (1, 2, 0) if decimal_comma else (0, 1, 2):
        if all(map(_FORMS[form][0].fullmatch, numbers)):
            words = f"with {''.join(*signs)}" if any(*signs) else "with marks between thousands or a decimal comma"
            if all(map(NUMBER_TEXT.fullmatch, texts)):
                words = "as texts"
            return Written(read_by(texts, str(form)), str(form), words)
    return None


def written_days(texts: Sequence[str]) -> Written | None:
    """Read texts as dates, in days since 1970; None if one is no date.

    >>> written_days(["1970-01-02", "1971-01-01"]).values.tolist()
    [1.0, 365.0]
    """
    if not texts or not all(_DATE.fullmatch(text.strip()) for text in texts):
        return None
    first = [int(re.split(r"[-/.]", text.strip(), maxsplit=1)[0]) for text in texts]
    day_first = any(12 < number <= 31 for number in first) or any("." in text for text in texts)
    form = DAYS[day_first]
    days = read_by(texts, form)
    return None if np.isnan(days).any() else Written(days, form)


def read_by(texts: Sequence[str], form: str) -> np.ndarray:
    """Return the numbers (m,) that texts are by a form, NaN where one is not of it.

    >>> read_by(["6,290 kg", "17"], "0").tolist(), read_by(["11/01/2020"], "day first").tolist()
    ([6290.0, 17.0], [18272.0])
    """
    if form in DAYS:
        import pandas as pd

        dates = pd.Series([text if _DATE.fullmatch(text.strip()) else None for text in texts], dtype=object)
        times = pd.to_datetime(dates, format="mixed", dayfirst=form == DAYS[1], errors="coerce", utc=True)
        return np.asarray((times.dt.tz_localize(None) - pd.Timestamp(0)) / pd.Timedelta(days=1), dtype=np.float64)
    pattern, thousands, decimal = _FORMS[int(form)]
    drop = str.maketrans("", "", thousands)
    values = np.full(len(texts), np.nan)
    for at, text in enumerate(texts):
        match = _WRITTEN.fullmatch(text.strip())
        if match is not None and pattern.fullmatch(match["number"]):
            value = float(match["number"].translate(drop).replace(decimal, "."))
            values[at] = -value if match["sign"] in ("-", "\u2212") else value
    return values


def few_texts(texts: Sequence[str], least: int, most: int = 2) -> tuple[str, ...]:
    """Return the texts that are no numbers, if they are at most ``most`` beside more than ``least`` numbers; else none.

    >>> few_texts([".", "1.5", "2.25", "3"], 2), few_texts(["a", "b", "c", "1", "2", "3"], 2)
    (('.',), ())
    """
    odd: list[str] = []
    for text in texts:
        if not NUMBER_TEXT.fullmatch(text):
            odd.append(text)
            if len(odd) > most:
                return ()
    return tuple(odd) if len(texts) - len(odd) > least else ()


def number_of(text: str) -> float:
    """Return the number that a text is, NaN if it is none."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return math.nan
