"""Several sources as one table: the parts of a plan, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from mixmem.data.sources import FileSource, ScannedFile, Source, Span
from mixmem.data.table import Table


@dataclass(frozen=True)
class NamedSource:
    """A source under a name, read as a file of several is."""

    name: str
    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    def pick(self, spans: Sequence[Span]) -> Table:
        """Return the rows of spans."""
        return self.source.pick(spans)


def joined(sources: Sequence[Source], names: Sequence[str]) -> Source:
    """Return sources of the same columns as one, in the order given; a refusal calls them by their names.

    >>> import pandas as pd
    >>> from mixmem.data.sources import source_of
    >>> frames = pd.DataFrame({"u": [1, 2], "v": ["x", "y"]}), pd.DataFrame({"v": ["z"], "u": [3]})
    >>> joined([source_of(frame) for frame in frames], ["a", "b"]).pick([(1, 3)]).n_rows
    2
    """
    if len(sources) == 1:
        return sources[0]
    parts: Any = [NamedSource(name, source) for name, source in zip(names, sources, strict=True)]
    found = FileSource(cast(Sequence[ScannedFile], parts))
    found.cheap = True  # parts are looked at once, so their codes need not be kept
    return found
