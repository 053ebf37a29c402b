"""Notices: what a result has to say against itself, one record each, the same in files and on the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mixmem.records import Record

Severity = Literal["serious", "minor"]


@dataclass(frozen=True)
class Notice(Record):
    """Say what is wrong or missing, how bad that is, and what to do about it.

    Attributes
    ----------
    code : str
        A short name that programs can go by, such as "diagnostic-failed".
    severity : {"serious", "minor"}
        Whether the result itself is in doubt, or something beside it.
    message : str
        What was found, without a full stop.
    remedy : str
        What to do, without a full stop.

    Examples
    --------
    >>> Notice("diagnostic-failed", "minor", "goodness of fit was not computed", "fit again").text
    'goodness of fit was not computed; fit again'
    """

    code: str
    severity: Severity
    message: str
    remedy: str

    @property
    def text(self) -> str:
        """Return message and remedy as one sentence."""
        return f"{self.message}; {self.remedy}"


def diagnostic_failed(what: str, error: BaseException) -> Notice:
    """Return the notice that something beside a finished result could not be made.

    >>> diagnostic_failed("goodness of fit", ValueError("no pairs")).message
    'goodness of fit could not be made (ValueError: no pairs), everything else was'
    """
    reason = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")[:200]
    return Notice(
        "diagnostic-failed",
        "minor",
        f"{what} could not be made ({reason}), everything else was",
        "the other files are whole; if it happens again, report it with this message",
    )
