"""Several sources as one table: the parts of a plan, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mixmem.data.delimited import Wanted
from mixmem.data.sources import FileSource, Source, Span
from mixmem.data.table import Table


@dataclass(frozen=True)
class NamedSource:
    """A source under a name, read as a file of several is."""

    name: str
    source: Source
    cheap = True
    """Parts of a plan are looked at once, so their codes need not be kept."""

    @property
    def n_bytes(self) -> int:
        """Bytes that all rows take about, as read."""
        return self.source.bytes_per_row * self.source.n_rows

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    @property
    def piece_bytes(self) -> int:
        """Bytes that all rows take about in pieces."""
        return self.n_bytes

    def wanting(self, wanted: Wanted) -> NamedSource:
        """Return the same source, of which columns are read in this way."""
        return replace(self, source=self.source.wanting(wanted))

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
    return FileSource([NamedSource(name, source) for name, source in zip(names, sources, strict=True)])
