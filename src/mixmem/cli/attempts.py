"""What a finished result can do without: a failure there becomes a notice, and nothing computed is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import typer

from mixmem.results.notices import Notice, diagnostic_failed

Value = TypeVar("Value")


@dataclass
class Attempts:
    """Try what may fail, and keep the notices of what did."""

    notices: list[Notice] = field(default_factory=list)

    def attempt(self, what: str, compute: Callable[[], Value]) -> Value | None:
        """Return what ``compute`` does; None and a notice about ``what``, also on standard error, if it fails."""
        try:
            return compute()
        except Exception as error:
            notice = diagnostic_failed(what, error)
            self.notices.append(notice)
            typer.echo(f"mixmem: warning: {notice.text}", err=True)
            return None

    def write(self, path: Path, write: Callable[[Path], object]) -> None:
        """Write a file by a function of its path; if that fails there is no file, and a notice."""
        failed = len(self.notices)
        self.attempt(path.name, lambda: write(path))
        if len(self.notices) > failed:
            path.unlink(missing_ok=True)

    def to_plain(self) -> list[dict[str, Any]]:
        """Return the notices as a JSON file holds them, under "warnings"."""
        return [notice.to_plain() for notice in self.notices]
