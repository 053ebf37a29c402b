"""What the texts of options stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from mixmem.errors import InputError
from mixmem.words import listing

if TYPE_CHECKING:
    from mixmem.cli.labels import GroupedBy
    from mixmem.cli.reading import Described
    from mixmem.data.dialect import Dialect


HEADERS = ("auto", "yes", "no")


ONLY_NOW = ("--out", "--config", "--quiet", "--verbose", "--jobs", "--q", "--p", "--scratch", "--help")
"""Options that say nothing of the result."""


def as_typed(context: typer.Context) -> dict[str, str | bool | list[str]]:
    """Return the options of a command that differ from their defaults, by their long names, as one would type them."""
    found: dict[str, str | bool | list[str]] = {}
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        names = [name for name in parameter.opts if name.startswith("--") and name not in ONLY_NOW]
        if not names or value is None or value in ([], ()) or value == parameter.default:
            continue
        name = names[0].removeprefix("--")
        if isinstance(value, bool):
            found[name] = value
        else:
            found[name] = list(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return found


def number_or_auto(option: str, text: str, kind: type[int] | type[float]) -> str | int | float:
    """ "auto", or the number that a text stands for."""
    if text == "auto":
        return text
    try:
        return kind(text)
    except ValueError:
        words = "an integer" if kind is int else "a positive number"
        raise InputError(f"{option} is auto or {words}; got {text!r}") from None


def anchors_of(texts: list[str] | None) -> str | list[list[str]]:
    """Return the three groups of anchors by name; "auto" if none are named."""
    if not texts:
        return "auto"
    groups = [[name.strip() for name in text.split(",") if name.strip()] for text in texts]
    if len(groups) != 3 or not all(groups):
        raise InputError(
            f"--anchors names one group of variables, and there are three: expected the option three times, got "
            f"{listing(texts)}; for example --anchors a,b --anchors c,d --anchors e,f"
        )
    return groups


def kinds_of(texts: list[str] | None) -> dict[str, str] | None:
    """Kinds by column, from texts such as age=continuous; None if there are none."""
    from mixmem.data.declared import ORDER, kind_and_order
    from mixmem.data.kinds import KINDS
    from mixmem.data.table_checks import IGNORED

    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, declared = text.partition("=") if ORDER in text else text.rpartition("=")
        kind = kind_and_order(declared)[0]
        if not equals or not name:
            raise InputError(f"--kind is COLUMN=KIND, such as age=continuous; got {text!r}")
        if kind not in KINDS and kind != IGNORED:
            raise InputError(f"--kind {text}: there is no kind {kind!r}; expected one of {', '.join(KINDS)}, {IGNORED}")
        if found.setdefault(name, declared) != declared:
            raise InputError(f"--kind declares {name!r} both {found[name]} and {declared}; give one of them")
    return found or None


DIALECT = ("delimiter", "decimal", "header")
"""Options that say how a text file is written."""


def dialect_of(delimiter: str | None, decimal: str | None, header: str) -> Dialect:
    """What the options say of how a text file writes its table."""
    from mixmem.data.dialect import Dialect

    separator = {"tab": "\t", "\\t": "\t", "blank": " ", "space": " "}.get(delimiter or "", delimiter)
    if separator is not None and len(separator) != 1:
        raise InputError(f"--delimiter is one character, or tab or blank; got {delimiter!r}")
    if decimal not in (None, ".", ","):
        raise InputError(f"--decimal is . or , ; got {decimal!r}")
    return Dialect(separator, decimal, {"auto": None, "yes": True, "no": False}[_one_of("--header", header, HEADERS)])


def grouped_by(by: str | None, labels: str | None) -> GroupedBy | None:
    """How the rows are grouped, as the options say; None if they are not."""
    from mixmem.cli.labels import GroupedBy

    if by is None and labels is not None:
        raise InputError(f"--labels {labels} needs --by COLUMN, the column of that table that groups the rows")
    return None if by is None else GroupedBy(by, labels)


def described(
    row_id: str | None,
    missing: list[str] | None,
    dialect: Dialect,
    *,
    kind: list[str] | None = None,
    weight: str | None = None,
    columns: str = "useful",
    handle_unknown: str = "missing",
) -> Described:
    """What the options of a command say of its table."""
    from mixmem.cli.reading import Described

    _one_of("--columns", columns, ("useful", "strict"))
    _one_of("--handle-unknown", handle_unknown, ("missing", "error"))
    return Described(row_id, kinds_of(kind), missing_of(missing), weight, dialect, columns, handle_unknown)


def _one_of(option: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise InputError(f"{option} is one of {', '.join(allowed)}; got {value!r}")
    return value


def missing_of(texts: list[str] | None) -> list[str] | dict[str, list[str]] | None:
    """Values that mean a missing cell: of all columns (a list), by column (a dictionary); None if there are none.

    Values of all columns that come with some of single columns have the key "".
    """
    found: dict[str, list[str]] = {}
    for text in texts or ():
        name, equals, values = text.partition("=")
        listed = [value.strip() for value in (values if equals else text).split(",")]
        if (equals and not name) or "" in listed:
            raise InputError(
                f"--missing is a list of values for all columns (NA,?,-9) or one column (chol=0); got {text!r}"
            )
        found.setdefault(name if equals else "", []).extend(listed)
    return found[""] if list(found) == [""] else found or None
