"""Values of cells -> the canonical texts by which levels are known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

NUMBER_TEXT = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?inf(inity)?", re.IGNORECASE)
"""A text that stands for a number. Leading zeros ("01") are the mark of a code, not of a number."""


def canonical_text(value: Any, value_type: str) -> str:
    """The text by which a level is known; `value_type` says what a text stands for."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    if isinstance(value, str):
        if value_type == "bool":
            return value.capitalize()
        if value_type == "int":
            return str(int(value))
        if value_type != "float":
            return value
        value = float(value)
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if is_integer(value):
        return str(int(value))
    if is_float(value):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return str(value)


def type_of_texts(texts: Iterable[str]) -> str:
    texts = list(texts)
    if all(text.lower() in ("true", "false") for text in texts):
        return "bool"
    if not all(NUMBER_TEXT.fullmatch(text) for text in texts):
        return "str"
    return "int" if all(text.lstrip("+-").isdigit() for text in texts) else "float"


def is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_float(value: Any) -> bool:
    return isinstance(value, (float, np.floating))


VALUE_TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: text == "True",
}
"""From a level's canonical text to its value."""
